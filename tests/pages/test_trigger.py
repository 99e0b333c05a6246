"""One trigger: its payload, what came before it, who cites it."""

from typing import Any

import pytest
from django.test import Client

from tests.pages import chains


@pytest.fixture
def chain(acme: Any) -> dict[str, Any]:
    return chains.answered(acme)


def url(trigger: Any, more: str = "", team: str = "acme") -> str:
    return f"/t/{team}/triggers/{trigger.public_id}/{more}"


def test_it_shows_the_inline_view(logged_in: Any, acme: Any, vera: Any, chain: dict[str, Any]) -> None:
    later = chains.trigger(acme, payload=b'{"a": [1]}', media_type=chains.JSON, summary="Merged", external_id="d-9")
    page = logged_in(vera).get(url(later)).content.decode()
    assert "Merged" in page and "opened: Retry thrice" in page and "d-9" in page
    assert "{\n  &quot;a&quot;: [\n    1\n  ]\n}" in page
    assert "No report rests on this trigger yet" in page
    assert chain["worker"].public_id in page, "the owner of its thread"


def test_it_says_who_cites_it(logged_in: Any, vera: Any, chain: dict[str, Any]) -> None:
    answer = logged_in(vera).get(url(chain["run"]))
    assert [worker.public_id for worker in answer.context["citing"]] == [chain["worker"].public_id]
    assert f"/map/?to={chain['run'].public_id}" in answer.content.decode()


def test_it_lists_its_parts(logged_in: Any, vera: Any, chain: dict[str, Any]) -> None:
    chains.part(chain["run"], "full_log", b"line\n" * 9000)
    chains.part(chain["run"], "diff", b"+ line\n")
    answer = logged_in(vera).get(url(chain["run"]))
    assert [part.name for part in answer.context["parts"]] == ["diff", "full_log"]
    assert "44 KB" in answer.content.decode()


def test_one_without_a_payload_says_so(logged_in: Any, vera: Any, chain: dict[str, Any]) -> None:
    assert "Nothing was sent with it" in logged_in(vera).get(url(chain["opened"])).content.decode()


def test_a_long_text_is_shown_by_its_beginning(logged_in: Any, acme: Any, vera: Any) -> None:
    log = chains.trigger(acme, "ci:1", b"".join(b"line %d\n" % number for number in range(1, 9001)))
    page = logged_in(vera).get(url(log)).content.decode()
    assert "line 60<" in page and "line 61<" not in page and "All 9,000 lines" in page


def test_it_needs_login(chain: dict[str, Any]) -> None:
    for more in ("", "payload/", "raw/"):
        assert Client().get(url(chain["run"], more)).status_code == 302


def test_it_hides_the_trigger_from_other_tenants(logged_in: Any, acme: Any, charlie: Any) -> None:
    log = chains.trigger(acme, "ci:1", b"line\n")
    for team in ("acme", "globex"):
        for more in ("", "payload/", "raw/"):
            assert logged_in(charlie).get(url(log, more, team)).status_code == 404


def test_an_unknown_trigger_is_not_found(logged_in: Any, vera: Any, acme: Any) -> None:
    for more in ("", "payload/", "raw/"):
        assert logged_in(vera).get(f"/t/acme/triggers/trg_none/{more}").status_code == 404


def test_it_takes_no_other_method(logged_in: Any, alice: Any, chain: dict[str, Any]) -> None:
    for more in ("", "payload/", "raw/"):
        assert logged_in(alice).post(url(chain["run"], more)).status_code == 405
