"""One worker: its task, its report and what that rests on, its inbox."""

from typing import Any

import pytest
from django.test import Client

from memory.events import nodes
from tests.pages import chains, made

HTMX = {"HX-Request": "true"}


@pytest.fixture
def chain(acme: Any) -> dict[str, Any]:
    return chains.answered(acme)


def url(worker: Any, more: str = "", team: str = "acme") -> str:
    return f"/t/{team}/workers/{worker.public_id}/{more}"


def test_it_shows_the_report_with_what_it_rests_on(logged_in: Any, vera: Any, chain: dict[str, Any]) -> None:
    answer = logged_in(vera).get(url(chain["worker"]))
    page = answer.content.decode()
    assert "<h1>Why it failed</h1>" in page and "Why did the build fail?" in page
    assert [one.public_id for one in answer.context["cites"]] == [chain["run"].public_id, chain["opened"].public_id]
    run = chain["run"].public_id
    assert f'<a href="/t/acme/triggers/{run}/"' in page.split('class="prose"')[1].split("</div>")[0]


def test_it_links_its_session(logged_in: Any, acme: Any, vera: Any, chain: dict[str, Any]) -> None:
    nodes.register()
    session = made.session(acme)
    worker = chains.worker(acme, chain["thread"], session_id=session.public_id)
    browser, address = logged_in(vera), f"/t/acme/sessions/{session.public_id}/"
    assert address in browser.get(url(worker)).content.decode()
    assert url(worker) in browser.get(address).content.decode()


def test_it_says_when_there_is_no_report_and_no_citation(logged_in: Any, acme: Any, vera: Any) -> None:
    page = logged_in(vera).get(url(chains.worker(acme, None, task=""))).content.decode()
    assert "No report yet" in page and "It cites nothing" in page and "Worker without a task" in page


def test_its_inbox_is_read_on_by_cursor(
    logged_in: Any, acme: Any, vera: Any, chain: dict[str, Any], monkeypatch: Any
) -> None:
    monkeypatch.setattr("memory.graph.views.INBOX", 2)
    for number in range(5):
        chains.trigger(acme, summary=f"Push {number}")
    browser = logged_in(vera)
    answer = browser.get(url(chain["worker"]))
    seen = [entry.trigger.summary for entry in answer.context["inbox"]]
    while answer.context["next_url"]:
        answer = browser.get(answer.context["next_url"], headers={**HTMX, "HX-Target": "more"})
        assert answer.content.strip().startswith(b"<li")
        seen += [entry.trigger.summary for entry in answer.context["inbox"]]
    assert seen == [f"Push {number}" for number in range(5)]


@pytest.mark.parametrize("size", [20_000, 300_000])
def test_a_long_report_is_shown_and_kept_whole(
    logged_in: Any, acme: Any, vera: Any, chain: dict[str, Any], size: int
) -> None:
    report = "# Long\n\n" + "word " * (size // 5) + "end"
    worker = chains.worker(acme, chain["thread"], report=report)
    browser = logged_in(vera)
    page = browser.get(url(worker))
    assert "end" in page.content.decode() and "Long" in page.content.decode()
    kept = browser.get(url(worker, "report/"))
    assert kept.content.decode() == report and kept["Content-Disposition"].startswith("attachment;")


def test_a_report_that_was_not_made_is_not_found(logged_in: Any, acme: Any, vera: Any) -> None:
    assert logged_in(vera).get(url(chains.worker(acme, None), "report/")).status_code == 404


def test_it_needs_login(chain: dict[str, Any]) -> None:
    for more in ("", "report/"):
        assert Client().get(url(chain["worker"], more)).status_code == 302


def test_it_hides_the_worker_from_other_tenants(logged_in: Any, charlie: Any, chain: dict[str, Any]) -> None:
    for team in ("acme", "globex"):
        for more in ("", "report/"):
            assert logged_in(charlie).get(url(chain["worker"], more, team)).status_code == 404


def test_an_unknown_worker_is_not_found(logged_in: Any, vera: Any, acme: Any) -> None:
    assert logged_in(vera).get("/t/acme/workers/wkr_none/").status_code == 404


def test_it_takes_no_other_method(logged_in: Any, alice: Any, chain: dict[str, Any]) -> None:
    for more in ("", "report/"):
        assert logged_in(alice).post(url(chain["worker"], more)).status_code == 405
