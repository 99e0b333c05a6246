"""A member's own notes are theirs alone, on every page, whatever the role of whoever looks."""

from typing import Any

import pytest

from memory.tenants import rls
from tests.pages import made

TITLE = "Alice only"
TEXT = f"---\ntitle: {TITLE}\ndescription: Hers\n---\n# {TITLE}\n\n- Keep it short\n"
PATH = "profile/me.md"


@pytest.fixture
def event(acme: Any, alice: Any) -> Any:
    return made.event(made.session(acme, member=alice), summary="Keep it short")


@pytest.fixture
def note(acme: Any, alice: Any, event: Any) -> Any:
    """A private note that rests on an event, was told to a session, and has a change that waits."""
    revision = made.approved(made.proposal(acme, path=PATH, text=TEXT, member=alice, rests_on=(event,)), alice)
    made.telling(event, revision.note, why="Her profile")
    return revision.note


@pytest.fixture
def waiting(acme: Any, alice: Any, event: Any, note: Any) -> Any:
    changed = made.proposal(acme, path=PATH, text=TEXT.replace("short", "brief"), member=alice, rests_on=(event,))
    made.run(acme, proposals=(changed,), sessions=(event.session,))
    return changed


def pages(note: Any, waiting: Any, event: Any) -> list[str]:
    with rls.tenant_scope(str(waiting.tenant_id)):
        dream = waiting.tenant.dreams.get().public_id
    return [
        "/t/acme/",
        "/t/acme/notes/",
        "/t/acme/notes/?q=short",
        f"/t/acme/events/{event.public_id}/",
        f"/t/acme/sessions/{event.session.public_id}/",
        f"/t/acme/dreams/{dream}/",
    ]


def test_its_member_sees_it_everywhere(logged_in: Any, alice: Any, note: Any, waiting: Any, event: Any) -> None:
    browser = logged_in(alice)
    for page in pages(note, waiting, event):
        assert TITLE in browser.get(page).content.decode(), page


@pytest.mark.parametrize("role", ["bob", "vera", "mia"])
def test_nobody_else_sees_it_anywhere(
    logged_in: Any, teams: Any, note: Any, waiting: Any, event: Any, role: str
) -> None:
    browser = logged_in(teams[role])
    for page in pages(note, waiting, event):
        shown = browser.get(page).content.decode()
        assert TITLE not in shown and note.public_id not in shown and waiting.public_id not in shown, page
        assert "Her profile" not in shown


@pytest.mark.parametrize("role", ["bob", "vera"])
def test_its_pages_are_not_found_by_others(logged_in: Any, teams: Any, note: Any, waiting: Any, role: str) -> None:
    browser = logged_in(teams[role])
    for page in ("", "history/", "diff/?from=1&to=1"):
        assert browser.get(f"/t/acme/notes/{note.public_id}/{page}").status_code == 404
    assert browser.get(f"/t/acme/proposals/{waiting.public_id}/").status_code == 404


def test_others_may_not_change_it(logged_in: Any, bob: Any, note: Any, waiting: Any) -> None:
    browser = logged_in(bob)
    form = {"shown": made.shown(waiting), "reason": "No", "text": "x\n", "revision": "1"}
    for page in (f"notes/{note.public_id}/edit/", f"notes/{note.public_id}/revert/"):
        assert browser.post(f"/t/acme/{page}", form).status_code == 404
    for verb in ("approve", "reject", "edit"):
        assert browser.post(f"/t/acme/proposals/{waiting.public_id}/{verb}/", form).status_code == 404


def test_a_member_decides_in_their_own_space_whatever_the_role(logged_in: Any, acme: Any, mia: Any) -> None:
    own = made.proposal(acme, path=PATH, text=TEXT, member=mia)
    browser = logged_in(mia)
    assert "approve/" in browser.get(f"/t/acme/proposals/{own.public_id}/").content.decode()
    answer = browser.post(f"/t/acme/proposals/{own.public_id}/approve/", {"shown": made.shown(own)})
    assert answer.status_code == 302
    assert TITLE in browser.get(f"/t/acme/notes/{own.note.public_id}/").content.decode()
