"""The gardener's page, its labels on notes, and the answer that something may stay."""

from typing import Any

from memory.notes.models import Finding
from memory.tenants.models import AuditEntry, Due
from memory.tenants.rls import tenant_scope
from tests.pages import made

PAGE = "/t/acme/garden/"


def state(acme: Any) -> str:
    with tenant_scope(str(acme.pk)):
        return Finding.objects.get().state


def test_what_was_noticed_stands_on_its_page_the_note_the_tree_and_the_inbox(
    acme: Any, alice: Any, bob: Any, vera: Any, logged_in: Any
) -> None:
    note, other = made.note(acme, alice), made.note(acme, alice, path="general/other.md", text="# Other\n\n- Words\n")
    made.finding(note, "All 2 lines stand elsewhere.", kind="near_duplicate", other=other)
    browser = logged_in(bob)
    for address in (PAGE, "/t/acme/", f"/t/acme/notes/{note.public_id}/", f"/t/acme/notes/{other.public_id}/"):
        page = browser.get(address).content.decode()
        assert "All 2 lines stand elsewhere." in page and "Nearly the same" in page, address
    tree = browser.get("/t/acme/notes/").content.decode()
    assert tree.count("Nearly the same") == 2 and "noticed 1 thing" in tree
    assert "Leave it" not in logged_in(vera).get(PAGE).content.decode()


def test_a_reviewer_leaves_it_as_it_is(acme: Any, alice: Any, bob: Any, mia: Any, logged_in: Any) -> None:
    found = made.finding(made.note(acme, alice), "Too many words")
    leave = f"{PAGE}{found.public_id}/leave/"
    assert logged_in(mia).post(leave).status_code == 403 and state(acme) == "open"
    assert logged_in(bob).post(leave, {"answer": "It is a list"}).status_code == 302
    assert logged_in(bob).post(leave).status_code == 302  # twice changes nothing
    assert state(acme) == "dismissed" and "Too many words" not in logged_in(bob).get(PAGE).content.decode()
    with tenant_scope(str(acme.pk)):
        assert AuditEntry.objects.filter(action="note.leave", outcome="done").count() == 1


def test_what_is_found_in_a_private_space_is_its_owners(acme: Any, alice: Any, mia: Any, logged_in: Any) -> None:
    mine = made.note(acme, mia, path="general/mine.md", text="# Mine\n\n- Words\n", is_private=True)
    found = made.finding(mine, "Mia's own words")
    assert "Mia&#x27;s own" in logged_in(mia).get(PAGE).content.decode()
    assert "Mia&#x27;s own" not in logged_in(alice).get(PAGE).content.decode()
    assert logged_in(alice).post(f"{PAGE}{found.public_id}/leave/").status_code == 404
    assert logged_in(mia).post(f"{PAGE}{found.public_id}/leave/", {"from": "note"}).status_code == 302


def test_a_look_is_started_and_its_progress_seen(acme: Any, alice: Any, mia: Any, vera: Any, logged_in: Any) -> None:
    browser = logged_in(mia)
    assert "There are no notes to look through" in browser.get(PAGE).content.decode()
    made.note(acme, alice)
    assert "Nobody has looked yet" in browser.get(PAGE).content.decode()
    assert logged_in(vera).post(f"{PAGE}start/").status_code == 403
    assert browser.post(f"{PAGE}start/").status_code == 302
    page = browser.get(PAGE).content.decode()
    assert "Looking…" in page and "every 2s" in page
    with tenant_scope(str(acme.pk)):
        assert Due.objects.filter(task="garden").count() == 1
