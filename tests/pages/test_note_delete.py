"""Deleting a note in the browser."""

from typing import Any

import pytest
from django.test import Client

from memory.notes.models import Note
from memory.notes.review import Draft, propose
from memory.tenants import rls
from tests.pages import made


@pytest.fixture
def note(acme: Any, alice: Any) -> Any:
    return made.note(acme, alice)


def url(of: Any, team: str = "acme") -> str:
    return f"/t/{team}/notes/{of.public_id}/delete/"


def is_deleted(of: Any) -> bool:
    with rls.tenant_scope(str(of.tenant_id)):
        return Note.objects.get(pk=of.pk).deleted_at is not None


def test_it_takes_the_note_out_and_keeps_dreams_away(logged_in: Any, acme: Any, bob: Any, note: Any) -> None:
    browser = logged_in(bob)
    page = browser.get(f"/t/acme/notes/{note.public_id}/").content.decode()
    assert "Its history stays, dreams leave the path alone, and a person may write it again." in page
    answer = browser.post(url(note), {"reason": "No longer true"}, follow=True)
    assert answer.redirect_chain == [("/t/acme/notes/", 302)] and is_deleted(note)
    assert f"Deleted {made.PATH}" in answer.content.decode()
    with rls.tenant_scope(str(acme.pk)):
        assert note.tombstones.get(line__isnull=True).reason == "No longer true"
        assert propose(acme, Draft(made.PATH, "- Back again\n"), by=made.dreamer(acme)) is None


def test_it_wants_a_reason(logged_in: Any, bob: Any, note: Any) -> None:
    answer = logged_in(bob).post(url(note), {"reason": "  "})
    assert answer.status_code == 422 and "Say why it is deleted" in answer.content.decode()
    assert not is_deleted(note)


def test_a_person_may_write_it_again(logged_in: Any, bob: Any, note: Any) -> None:
    browser = logged_in(bob)
    browser.post(url(note), {"reason": "No longer true"})
    browser.post("/t/acme/notes/new/", {"path": made.PATH, "text": "- Now it is so\n", "revision": ""})
    assert not is_deleted(note)


def test_it_needs_login(note: Any) -> None:
    assert Client().post(url(note), {"reason": "No"}).status_code == 302


@pytest.mark.parametrize("role", ["vera", "mia"])
def test_it_needs_the_role(logged_in: Any, teams: Any, note: Any, role: str) -> None:
    browser = logged_in(teams[role])
    assert browser.post(url(note), {"reason": "No"}).status_code == 403 and not is_deleted(note)
    assert "Delete this note" not in browser.get(f"/t/acme/notes/{note.public_id}/").content.decode()


def test_members_delete_their_own(logged_in: Any, acme: Any, mia: Any, alice: Any) -> None:
    own = made.note(acme, mia, path="general/mine.md", is_private=True)
    assert logged_in(alice).post(url(own), {"reason": "No"}).status_code == 404
    assert logged_in(mia).post(url(own), {"reason": "No"}).status_code == 302 and is_deleted(own)


def test_it_hides_the_note_from_other_tenants(logged_in: Any, charlie: Any, note: Any) -> None:
    for team in ("acme", "globex"):
        assert logged_in(charlie).post(url(note, team), {"reason": "No"}).status_code == 404
    assert not is_deleted(note)


def test_an_unknown_note_is_not_found(logged_in: Any, bob: Any, acme: Any) -> None:
    assert logged_in(bob).post("/t/acme/notes/nte_none/delete/", {"reason": "No"}).status_code == 404


def test_it_takes_only_post(logged_in: Any, bob: Any, note: Any) -> None:
    assert logged_in(bob).get(url(note)).status_code == 405


def test_a_deleted_note_has_its_history_and_comes_back(
    logged_in: Any, acme: Any, bob: Any, vera: Any, note: Any
) -> None:
    browser, page = logged_in(bob), f"/t/acme/notes/{note.public_id}/"
    assert "/notes/deleted/" not in browser.get("/t/acme/notes/").content.decode()
    browser.post(url(note), {"reason": "No longer true"})
    assert "/notes/deleted/" in browser.get("/t/acme/notes/").content.decode()
    listed = browser.get("/t/acme/notes/deleted/").content.decode()
    assert "No longer true" in listed and made.PATH in listed and "Bring back" in listed
    seen = logged_in(vera).get("/t/acme/notes/deleted/").content.decode()
    assert "No longer true" in seen and "Bring back" not in seen
    for way in ("history/", "diff/?from=1&to=1"):
        assert logged_in(vera).get(f"{page}{way}").status_code == 200
    assert browser.get(page).status_code == 404
    assert logged_in(vera).post(f"{page}revert/", {"revision": "1"}).status_code == 403 and is_deleted(note)
    assert browser.post(f"{page}revert/", {"revision": "1"})["Location"] == page
    assert not is_deleted(note) and browser.get(page).status_code == 200
    assert "Nothing was deleted" in browser.get("/t/acme/notes/deleted/").content.decode()


def test_deleted_notes_of_a_member_s_own_space_are_theirs(logged_in: Any, acme: Any, alice: Any, mia: Any) -> None:
    own = made.note(acme, mia, path="general/mine.md", is_private=True)
    logged_in(mia).post(url(own), {"reason": "No"})
    assert "Bring back" in logged_in(mia).get("/t/acme/notes/deleted/").content.decode()
    assert "mine.md" not in logged_in(alice).get("/t/acme/notes/deleted/").content.decode()
    page = f"/t/acme/notes/{own.public_id}/"
    assert logged_in(alice).get(f"{page}history/").status_code == 404
    assert logged_in(alice).post(f"{page}revert/", {"revision": "1"}).status_code == 404 and is_deleted(own)
    assert logged_in(mia).post(f"{page}revert/", {"revision": "1"}).status_code == 302 and not is_deleted(own)
