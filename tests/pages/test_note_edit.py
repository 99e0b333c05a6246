"""Writing a note by hand: whoever may approve publishes, others propose."""

import html
import re
from typing import Any

import pytest
from django.test import Client

from memory import purging
from memory.notes.models import Note, Proposal
from memory.tenants import rls
from tests.pages import made

NEW = "/t/acme/notes/new/"


@pytest.fixture
def note(acme: Any, alice: Any) -> Any:
    return made.note(acme, alice)


def url(of: Any, team: str = "acme") -> str:
    return f"/t/{team}/notes/{of.public_id}/edit/"


def current(of: Any) -> Any:
    with rls.tenant_scope(str(of.tenant_id)):
        return Note.objects.select_related("current").get(pk=of.pk).current


def test_a_reviewer_publishes(logged_in: Any, bob: Any, note: Any) -> None:
    browser = logged_in(bob)
    assert "Try three times" in browser.get(url(note)).content.decode()
    text = made.TEXT.replace("three", "two")
    answer = browser.post(url(note), {"text": text.replace("\n", "\r\n"), "revision": "1"})
    assert answer["Location"] == f"/t/acme/notes/{note.public_id}/"
    assert (current(note).text, current(note).number, current(note).tier) == (text, 2, 0)


def test_a_member_proposes(logged_in: Any, acme: Any, mia: Any, note: Any) -> None:
    browser = logged_in(mia)
    assert "a reviewer decides" in browser.get(url(note)).content.decode()
    form = {"text": made.TEXT.replace("three", "two"), "revision": "1", "message": "Three is slow"}
    answer = browser.post(url(note), form)
    with rls.tenant_scope(str(acme.pk)):
        waiting = Proposal.objects.open().get()
    assert answer["Location"] == f"/t/acme/proposals/{waiting.public_id}/"
    assert (waiting.reason, current(note).number) == ("Three is slow", 1)


def test_nothing_changed_proposes_nothing(logged_in: Any, acme: Any, mia: Any, note: Any) -> None:
    answer = logged_in(mia).post(url(note), {"text": made.TEXT, "revision": "1"})
    assert answer["Location"] == "/t/acme/notes/"
    with rls.tenant_scope(str(acme.pk)):
        assert not Proposal.objects.exists()


def test_a_lost_update_is_refused_and_shows_both(logged_in: Any, alice: Any, bob: Any, note: Any) -> None:
    made.rewritten(note, alice, made.TEXT.replace("three", "six"))
    browser = logged_in(bob)
    answer = browser.post(url(note), {"text": made.TEXT.replace("three", "nine"), "revision": "1"})
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "Alice</bdi> saved revision 2" in page and "Try six times" in page and "Try nine times" in page
    assert current(note).text == made.TEXT.replace("three", "six")
    both = typed(page, "text")
    assert "<<<<<<< mine" in both and typed(page, "revision") == "2"
    kept = browser.post(url(note), {"text": both, "revision": "2"})
    assert kept.status_code == 422 and "still marks two versions" in kept.content.decode()
    chosen = made.TEXT.replace("three", "nine")
    assert browser.post(url(note), {"text": chosen, "revision": "2"}).status_code == 302
    assert (current(note).text, current(note).number) == (chosen, 3)


@pytest.mark.parametrize("role", ["bob", "mia"])
def test_changes_in_other_places_are_merged_and_shown_before_they_are_saved(
    logged_in: Any, teams: Any, alice: Any, note: Any, role: str
) -> None:
    made.rewritten(note, alice, made.TEXT.replace("three", "six"))
    browser = logged_in(teams[role])
    answer = browser.post(url(note), {"text": made.TEXT + "- Log each try\n", "revision": "1"})
    page = answer.content.decode()
    assert answer.status_code == 409 and "brought together" in page and current(note).number == 2
    merged = typed(page, "text")
    assert merged == made.TEXT.replace("three", "six") + "- Log each try\n"
    assert browser.post(url(note), {"text": merged, "revision": typed(page, "revision")}).status_code == 302


def test_fields_beside_each_other_are_places_of_their_own(logged_in: Any, alice: Any, bob: Any, note: Any) -> None:
    made.rewritten(note, alice, made.TEXT.replace("How payments", "How all payments").replace("three", "six"))
    mine = made.TEXT.replace("title: Retries", "title: Tries").replace("three", "nine")
    page = logged_in(bob).post(url(note), {"text": mine, "revision": "1"}).content.decode()
    both = typed(page, "text")
    assert both.startswith("---\ntitle: Tries\ndescription: How all payments") and "<<<<<<< mine\n- Try nine" in both
    clash = made.TEXT.replace("How payments", "How no payments")
    page = logged_in(bob).post(url(note), {"text": clash, "revision": "1"}).content.decode()
    assert typed(page, "text").startswith("---\ntitle: Retries\n<<<<<<< mine\ndescription: How no")


def test_who_began_from_words_that_were_taken_out_sees_both(logged_in: Any, alice: Any, bob: Any, note: Any) -> None:
    old = current(note)
    made.rewritten(note, alice, made.TEXT.replace("three", "six"))
    with rls.tenant_scope(str(note.tenant_id)):
        purging.blank(old, "gone")
    page = logged_in(bob).post(url(note), {"text": "My words\n", "revision": "1"}).content.decode()
    assert "My words" in typed(page, "text") and "Try six times" in typed(page, "text")


def typed(page: str, name: str) -> str:
    """What stands in an input or a text area of the page, as a browser reads it."""
    page = page.replace("\r\n", "\n").replace("\r", "\n")
    area = re.search(rf'<textarea[^>]* name="{name}"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    found = area or re.search(rf'<input[^>]* name="{name}"[^>]* value="([^"]*)"', page)
    assert found, name
    return html.unescape(found[1])


@pytest.mark.parametrize("text", ["---\ntitle: [x\n---\n", "x" * 200_000], ids=["frontmatter", "too long"])
def test_a_text_that_cannot_be_a_note_stays_in_the_form(logged_in: Any, bob: Any, note: Any, text: str) -> None:
    answer = logged_in(bob).post(url(note), {"text": text, "revision": "1"})
    assert answer.status_code == 422 and text[:20] in answer.content.decode()
    assert current(note).number == 1


def test_a_new_note_is_made_at_its_path(logged_in: Any, acme: Any, bob: Any) -> None:
    browser = logged_in(bob)
    assert browser.get(NEW).status_code == 200
    answer = browser.post(NEW, {"path": "general/Tên.md", "text": "# Tên\n\n- Một\n"})
    assert "<li>Một</li>" in browser.get(answer["Location"]).content.decode()


def test_a_new_note_never_overwrites(logged_in: Any, bob: Any, note: Any) -> None:
    answer = logged_in(bob).post(NEW, {"path": made.PATH, "text": "Mine\n"})
    assert answer.status_code == 409 and "Mine" in answer.content.decode()
    assert current(note).number == 1


@pytest.mark.parametrize("path", ["", "../x.md", "x", "a/b/c/d/e/f/g.md", "\0.md", "general/x.txt"])
def test_a_wrong_path_is_said(logged_in: Any, acme: Any, bob: Any, path: str) -> None:
    answer = logged_in(bob).post(NEW, {"path": path, "text": "Words\n"})
    assert answer.status_code == 422 and "Words" in answer.content.decode()


def test_it_needs_login(note: Any) -> None:
    for address in (url(note), NEW):
        assert Client().get(address).status_code == 302
        assert Client().post(address, {"text": "x"}).status_code == 302


def test_it_needs_the_role(logged_in: Any, vera: Any, note: Any) -> None:
    for address in (url(note), NEW):
        assert logged_in(vera).get(address).status_code == 403
        assert logged_in(vera).post(address, {"text": "x", "path": "general/x.md"}).status_code == 403


def test_it_hides_the_note_from_other_tenants(logged_in: Any, charlie: Any, note: Any) -> None:
    for team in ("acme", "globex"):
        assert logged_in(charlie).post(url(note, team), {"text": "x", "revision": "1"}).status_code == 404
    assert current(note).number == 1


def test_an_unknown_note_is_not_found(logged_in: Any, bob: Any, acme: Any) -> None:
    assert logged_in(bob).get("/t/acme/notes/nte_none/edit/").status_code == 404


def test_it_takes_no_other_method(logged_in: Any, bob: Any, note: Any) -> None:
    assert logged_in(bob).put(url(note)).status_code == 405
