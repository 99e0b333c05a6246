"""The list of threads: filters, search, cursor."""

from typing import Any

import pytest
from django.test import Client

from tests.pages import chains

URL = "/t/acme/threads/"
HTMX = {"HX-Request": "true"}


def titles(answer: Any) -> list[str]:
    return [thread.title for thread in answer.context["threads"]]


def test_it_lists_open_threads_the_latest_first(logged_in: Any, acme: Any, vera: Any) -> None:
    for title in ("old", "new"):
        chains.thread(acme, f"github:acme/web#{title}", title=title)
    chains.thread(acme, "github:acme/web#3", title="over", state="merged")
    answer = logged_in(vera).get(URL)
    assert titles(answer) == ["new", "old"]
    assert "GitHub" in answer.content.decode() and "github:acme/web#new" in answer.content.decode()


def test_it_filters(logged_in: Any, acme: Any, alice: Any) -> None:
    owned = chains.thread(acme, "github:acme/web#1", title="Mend the totals")
    chains.owner(owned, chains.worker(acme, owned))
    chains.thread(acme, "jira:PAY-7", title="Sửa lỗi")
    chains.thread(acme, "githubish:1", title="Another source")
    chains.thread(acme, "jira:PAY-8", title="Over", state="closed")
    browser = logged_in(alice)
    assert titles(browser.get(URL, {"q": "TOTALS"})) == ["Mend the totals"]
    assert titles(browser.get(URL, {"q": "sửa"})) == ["Sửa lỗi"]
    assert titles(browser.get(URL, {"q": owned.public_id})) == ["Mend the totals"]
    assert titles(browser.get(URL, {"source": "github"})) == ["Mend the totals"]
    assert titles(browser.get(URL, {"state": "closed"})) == ["Over"]
    assert titles(browser.get(URL, {"state": "any", "source": "jira"})) == ["Over", "Sửa lỗi"]
    assert titles(browser.get(URL, {"owned": "yes"})) == ["Mend the totals"]
    assert set(titles(browser.get(URL, {"owned": "no"}))) == {"Another source", "Sửa lỗi"}
    assert "No thread fits" in browser.get(URL, {"q": "nothing"}).content.decode()
    assert "Search all states" in browser.get(URL, {"q": "over", "state": "open"}).content.decode()


def test_a_search_looks_in_all_states_unless_one_is_chosen(logged_in: Any, acme: Any, alice: Any) -> None:
    chains.thread(acme, "jira:PAY-8", title="Over and out", state="closed")
    assert titles(logged_in(alice).get(URL, {"q": "over"})) == ["Over and out"]


def test_it_is_read_on_by_cursor_with_its_filters(logged_in: Any, acme: Any, alice: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("memory.graph.views.PAGE", 2)
    for number in range(5):
        chains.thread(acme, f"github:acme/web#{number}", title=f"totals {number}")
    chains.thread(acme, "jira:PAY-7", title="other")
    browser = logged_in(alice)
    answer = browser.get(URL, {"q": "totals"})
    seen = titles(answer)
    while answer.context["next_url"]:
        answer = browser.get(answer.context["next_url"], headers={**HTMX, "HX-Target": "more"})
        assert answer.content.strip().startswith(b"<tr")
        seen += titles(answer)
    assert seen == [f"totals {number}" for number in range(4, -1, -1)]


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "%00"])
def test_a_wrong_cursor_is_never_page_one(logged_in: Any, acme: Any, alice: Any, cursor: str) -> None:
    assert logged_in(alice).get(f"{URL}?cursor={cursor}").status_code == 400


def test_odd_filters_find_nothing_and_break_nothing(logged_in: Any, acme: Any, alice: Any) -> None:
    chains.thread(acme, "jira:PAY-7")
    browser = logged_in(alice)
    for query in ({"q": "\0"}, {"source": "'; --"}, {"state": "nothing"}, {"owned": "perhaps"}, {"q": "%_\\"}):
        assert browser.get(URL, query).status_code == 200, query


def test_a_thread_without_a_title_is_called_by_its_first_trigger(logged_in: Any, acme: Any, alice: Any) -> None:
    chains.trigger(acme, "ci:run-7", summary="The build failed")
    assert "The build failed" in logged_in(alice).get(URL).content.decode()


def test_a_piece_for_htmx_a_page_for_the_back_button(logged_in: Any, acme: Any, alice: Any) -> None:
    chains.thread(acme, "jira:PAY-7")
    browser = logged_in(alice)
    assert browser.get(URL, headers=HTMX).content.strip().startswith(b'<div id="threads">')
    back = browser.get(URL, headers={**HTMX, "HX-History-Restore-Request": "true"})
    assert b"<!doctype html>" in back.content


def test_an_empty_list_says_what_to_do(logged_in: Any, acme: Any, alice: Any) -> None:
    page = logged_in(alice).get(URL).content.decode()
    assert "No threads yet" in page and "/t/acme/webhooks/" in page


def test_it_needs_login(acme: Any) -> None:
    assert Client().get(URL).status_code == 302


def test_it_hides_the_threads_from_other_tenants(logged_in: Any, acme: Any, charlie: Any) -> None:
    chains.thread(acme, "jira:PAY-7", title="Mend the totals")
    browser = logged_in(charlie)
    assert browser.get(URL).status_code == 404
    for query in ({}, {"q": "totals"}, {"source": "jira", "state": "any"}):
        assert titles(browser.get("/t/globex/threads/", query)) == []


def test_it_takes_no_other_method(logged_in: Any, alice: Any) -> None:
    assert logged_in(alice).post(URL).status_code == 405
