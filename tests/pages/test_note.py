"""Reading a note: its text, where it comes from, who was told."""

import html
import re
from typing import Any

import pytest
from django.test import Client

from tests.pages import made


@pytest.fixture
def note(acme: Any, alice: Any) -> Any:
    return made.note(acme, alice)


def url(of: Any, team: str = "acme") -> str:
    return f"/t/{team}/notes/{of.public_id}/"


def test_it_shows_the_text_made_readable(logged_in: Any, vera: Any, note: Any) -> None:
    page = logged_in(vera).get(url(note)).content.decode()
    assert "<li>Try three times</li>" in page and "How payments are tried again" in page
    assert "to no session yet" in page


def test_it_shows_the_events_it_rests_on_and_who_let_it_in(logged_in: Any, acme: Any, bob: Any) -> None:
    seen = made.event(made.session(acme), summary="Retry thrice, please")
    revision = made.approved(made.proposal(acme, rests_on=(seen,)), bob)
    page = logged_in(bob).get(url(revision.note)).content.decode()
    assert "Retry thrice, please" in page and f"/t/acme/events/{seen.public_id}/" in page
    assert "Approved by a person" in page and "by <bdi>Bob</bdi>" in page


def test_ids_in_the_text_lead_to_what_they_name(logged_in: Any, acme: Any, globex: Any, alice: Any) -> None:
    seen = made.event(made.session(acme))
    foreign = made.event(made.session(globex))
    read = made.note(acme, alice, path="general/ids.md", text=f"Seen in {seen.public_id}, not {foreign.public_id}.\n")
    page = logged_in(alice).get(url(read)).content.decode()
    assert f'href="/t/acme/events/{seen.public_id}/"' in page
    assert f"events/{foreign.public_id}" not in page


def test_it_shows_an_old_revision_as_such(logged_in: Any, alice: Any, vera: Any, note: Any) -> None:
    made.rewritten(note, alice, made.TEXT.replace("three", "nine"))
    browser = logged_in(vera)
    assert "Try nine times" in browser.get(url(note)).content.decode()
    old = browser.get(url(note), {"revision": "1"}).content.decode()
    assert "Try three times" in old and "not the text agents are told" in old


@pytest.mark.parametrize("revision", ["0", "7", "x", "-1", "１", "9" * 30, ""])
def test_an_unknown_revision_is_not_found(logged_in: Any, vera: Any, note: Any, revision: str) -> None:
    assert logged_in(vera).get(url(note), {"revision": revision}).status_code == 404


def test_it_names_the_sessions_that_were_told(
    logged_in: Any, acme: Any, vera: Any, note: Any, monkeypatch: Any
) -> None:
    first, second = (made.session(acme, key=key, last_prompt=f"Pay {key}") for key in ("one", "two"))
    made.telling(made.event(first), note)
    made.telling(made.event(first, seq=2), note)
    made.telling(made.event(second), note)
    browser = logged_in(vera)
    page = browser.get(url(note)).content.decode()
    assert "3 times, to 2 sessions" in page and "Pay one" in page and f"/t/acme/sessions/{second.public_id}/" in page
    monkeypatch.setattr("memory.notes.views.TOLD_PAGE", 1)
    listed = browser.get(f"{url(note)}told/").content.decode()
    assert "Told 3 times, to 2 sessions" in listed and "Pay two" in listed and "Pay one" not in listed
    more = re.search(r'href="([^"]*cursor=[^"]*)"', listed)
    rest = browser.get(html.unescape(more[1]), headers={"HX-Request": "true", "HX-Target": "more"}).content.decode()
    assert "Pay one" in rest and "Pay two" not in rest and "<!doctype" not in rest and "cursor=" not in rest


def test_it_names_no_session_that_was_deleted(logged_in: Any, acme: Any, alice: Any, note: Any) -> None:
    gone = made.session(acme, last_prompt="Gone words", member=alice)
    made.telling(made.event(gone), note)
    browser = logged_in(alice)
    assert browser.post(f"/t/acme/sessions/{gone.public_id}/delete/").status_code == 302
    for page in (url(note), f"{url(note)}told/"):
        assert "Gone words" not in browser.get(page).content.decode()
    assert "to no session yet" in browser.get(url(note)).content.decode()


def test_it_says_that_a_change_waits(logged_in: Any, acme: Any, vera: Any, note: Any) -> None:
    waiting = made.proposal(acme, text=made.TEXT.replace("three", "two"), reason="Seen again")
    page = logged_in(vera).get(url(note)).content.decode()
    assert "A change waits for a decision" in page and waiting.public_id in page


def test_a_note_that_only_waits_is_not_found(logged_in: Any, acme: Any, vera: Any) -> None:
    assert logged_in(vera).get(url(made.proposal(acme).note)).status_code == 404


def test_it_needs_login(note: Any) -> None:
    assert Client().get(url(note)).status_code == 302


def test_who_only_reads_may_not_edit(logged_in: Any, vera: Any, note: Any) -> None:
    assert f"{url(note)}edit/" not in logged_in(vera).get(url(note)).content.decode()


def test_it_hides_the_note_from_other_tenants(logged_in: Any, charlie: Any, note: Any) -> None:
    for team in ("acme", "globex"):
        assert logged_in(charlie).get(url(note, team)).status_code == 404


@pytest.mark.parametrize("asked", ["nte_none", "x", "%00", "a.md", "..", "nte_" + "0" * 500])
def test_an_unknown_note_is_not_found(logged_in: Any, vera: Any, acme: Any, asked: str) -> None:
    assert logged_in(vera).get(f"/t/acme/notes/{asked}/").status_code == 404


def test_it_takes_no_other_method(logged_in: Any, vera: Any, note: Any) -> None:
    assert logged_in(vera).post(url(note)).status_code == 405


def test_a_heading_that_repeats_the_title_is_shown_once(logged_in: Any, acme: Any, alice: Any, vera: Any) -> None:
    note = made.note(acme, alice)
    page = logged_in(vera).get(f"/t/acme/notes/{note.public_id}/").content.decode()
    assert page.count("Retries</h1>") == 1
