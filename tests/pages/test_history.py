"""All revisions of a note, the difference of any two, and the way back."""

from typing import Any

import pytest
from django.test import Client

from memory.notes.models import Note
from memory.tenants import rls
from tests.pages import made


@pytest.fixture
def note(acme: Any, alice: Any) -> Any:
    written = made.note(acme, alice)
    made.rewritten(written, alice, made.TEXT.replace("three", "five"))
    return written


def url(of: Any, page: str, team: str = "acme") -> str:
    return f"/t/{team}/notes/{of.public_id}/{page}/"


def current(of: Any) -> Any:
    with rls.tenant_scope(str(of.tenant_id)):
        return Note.objects.select_related("current").get(pk=of.pk).current


def test_the_history_lists_every_revision(logged_in: Any, vera: Any, note: Any) -> None:
    context = logged_in(vera).get(url(note, "history")).context
    assert [revision.number for revision in context["revisions"]] == [2, 1]


def test_the_diff_is_word_by_word(logged_in: Any, vera: Any, note: Any) -> None:
    page = logged_in(vera).get(url(note, "diff"), {"from": "1", "to": "2"}).content.decode()
    assert "<del>three</del>" in page and "<ins>five</ins>" in page
    back = logged_in(vera).get(url(note, "diff"), {"from": "2", "to": "1"}).content.decode()
    assert "<del>five</del>" in back and "<ins>three</ins>" in back


def test_a_revision_does_not_differ_from_itself(logged_in: Any, vera: Any, note: Any) -> None:
    assert logged_in(vera).get(url(note, "diff"), {"from": "1", "to": "1"}).status_code == 200


@pytest.mark.parametrize("query", [{}, {"from": "1"}, {"from": "1", "to": "9"}, {"from": "x", "to": "1"}])
def test_an_unknown_revision_is_not_found(logged_in: Any, vera: Any, note: Any, query: dict[str, str]) -> None:
    assert logged_in(vera).get(url(note, "diff"), query).status_code == 404


def test_reverting_makes_a_new_revision_with_the_old_bytes(logged_in: Any, bob: Any, note: Any) -> None:
    answer = logged_in(bob).post(url(note, "revert"), {"revision": "1"})
    assert answer["Location"] == f"/t/acme/notes/{note.public_id}/"
    assert (current(note).number, current(note).text) == (3, made.TEXT)
    assert "Back to revision 1" in logged_in(bob).get(url(note, "history")).content.decode()


def test_reverting_to_the_current_text_changes_nothing(logged_in: Any, bob: Any, note: Any) -> None:
    logged_in(bob).post(url(note, "revert"), {"revision": "2"})
    assert current(note).number == 2


@pytest.mark.parametrize("revision", ["9", "", "x"])
def test_it_reverts_only_to_what_was(logged_in: Any, bob: Any, note: Any, revision: str) -> None:
    assert logged_in(bob).post(url(note, "revert"), {"revision": revision}).status_code == 404


@pytest.mark.parametrize("role", ["vera", "mia"])
def test_reverting_needs_the_role(logged_in: Any, teams: Any, note: Any, role: str) -> None:
    assert logged_in(teams[role]).post(url(note, "revert"), {"revision": "1"}).status_code == 403
    assert current(note).number == 2
    query = {"from": "1", "to": "2"}
    assert "Revert to" not in logged_in(teams[role]).get(url(note, "diff"), query).content.decode()


def test_it_needs_login(note: Any) -> None:
    assert Client().get(url(note, "history")).status_code == 302
    assert Client().get(url(note, "diff")).status_code == 302
    assert Client().post(url(note, "revert")).status_code == 302


def test_it_hides_the_note_from_other_tenants(logged_in: Any, charlie: Any, note: Any) -> None:
    browser = logged_in(charlie)
    for team in ("acme", "globex"):
        assert browser.get(url(note, "history", team)).status_code == 404
        assert browser.get(url(note, "diff", team), {"from": "1", "to": "2"}).status_code == 404
        assert browser.post(url(note, "revert", team), {"revision": "1"}).status_code == 404
    assert current(note).number == 2


@pytest.mark.parametrize("page", ["history", "diff"])
def test_an_unknown_note_is_not_found(logged_in: Any, vera: Any, acme: Any, page: str) -> None:
    assert logged_in(vera).get(f"/t/acme/notes/nte_none/{page}/?from=1&to=1").status_code == 404


def test_they_take_no_other_method(logged_in: Any, bob: Any, note: Any) -> None:
    assert logged_in(bob).post(url(note, "history")).status_code == 405
    assert logged_in(bob).post(url(note, "diff")).status_code == 405
    assert logged_in(bob).get(url(note, "revert")).status_code == 405
