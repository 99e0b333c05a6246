"""What nothing leads to."""

from typing import Any

from django.test import Client

from tests.pages import chains

URL = "/t/acme/threads/unlinked/"
HTMX = {"HX-Request": "true", "HX-Target": "more"}


def found(answer: Any) -> list[str]:
    return [thread.latest_summary for thread in answer.context["threads"]]


def test_it_lists_what_has_no_link_no_worker_and_no_citation(logged_in: Any, acme: Any, vera: Any) -> None:
    chains.answered(acme)
    chains.trigger(acme, "ci:1", summary="Alone")
    chains.trigger(acme, "ci:2", summary="First of two")
    chains.trigger(acme, "ci:2", summary="Second of two")
    answer = logged_in(vera).get(URL)
    assert found(answer) == ["Second of two", "Alone"]
    assert "the last of 2 triggers" in answer.content.decode() and "Link its thread" not in answer.content.decode()


def test_what_is_linked_leaves_the_list(logged_in: Any, acme: Any, mia: Any) -> None:
    alone = chains.trigger(acme, "ci:1", summary="Alone").thread
    browser = logged_in(mia)
    assert "Link its thread" in browser.get(URL).content.decode()
    browser.post(f"/t/acme/threads/{alone.public_id}/link/", {"to": "github:acme/web#9"})
    answer = browser.get(URL)
    assert found(answer) == [] and "Everything is linked" in answer.content.decode()


def test_it_is_read_on_by_cursor(logged_in: Any, acme: Any, vera: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("memory.graph.views.PAGE", 2)
    for number in range(5):
        chains.trigger(acme, f"ci:{number}", summary=str(number))
    browser = logged_in(vera)
    answer = browser.get(URL)
    seen = found(answer)
    while answer.context["next_url"]:
        answer = browser.get(answer.context["next_url"], headers=HTMX)
        assert answer.content.strip().startswith(b"<li")
        seen += found(answer)
    assert seen == ["4", "3", "2", "1", "0"]


def test_it_needs_login(acme: Any) -> None:
    assert Client().get(URL).status_code == 302


def test_it_hides_the_list_from_other_tenants(logged_in: Any, acme: Any, charlie: Any) -> None:
    chains.trigger(acme, "ci:1", summary="Alone")
    assert logged_in(charlie).get(URL).status_code == 404
    assert found(logged_in(charlie).get("/t/globex/threads/unlinked/")) == []


def test_it_takes_no_other_method(logged_in: Any, alice: Any) -> None:
    assert logged_in(alice).post(URL).status_code == 405
