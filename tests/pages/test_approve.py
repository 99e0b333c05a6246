"""Approving a proposal in the browser."""

from typing import Any

import pytest
from django.test import Client

from memory.notes import publish
from memory.notes.models import Note, Proposal
from memory.sentences import sentence
from memory.tenants import rls
from memory.tenants.models import AuditEntry
from tests.pages import made

HTMX = {"HX-Request": "true"}


@pytest.fixture
def proposal(acme: Any) -> Any:
    return made.proposal(acme)


def url(of: Any, team: str = "acme") -> str:
    return f"/t/{team}/proposals/{of.public_id}/approve/"


def state(of: Any) -> str:
    with rls.tenant_scope(str(of.tenant_id)):
        of.refresh_from_db()
    return str(of.state)


def current(of: Any) -> str | None:
    with rls.tenant_scope(str(of.tenant_id)):
        note = Note.objects.select_related("current").get(pk=of.note_id)
        return note.current.text if note.current else None


def test_it_lets_the_text_in(logged_in: Any, bob: Any, proposal: Any) -> None:
    answer = logged_in(bob).post(url(proposal), {"shown": made.shown(proposal)})
    assert (answer.status_code, answer["Location"]) == (302, f"/t/acme/proposals/{proposal.public_id}/")
    assert (state(proposal), current(proposal)) == ("approved", made.TEXT)


def test_htmx_gets_the_decided_proposal(logged_in: Any, acme: Any, bob: Any, proposal: Any) -> None:
    following = made.proposal(acme, path="general/next.md", text="- Next\n")
    answer = logged_in(bob).post(url(proposal), {"shown": made.shown(proposal)}, headers=HTMX)
    page = answer.content.decode()
    assert answer.status_code == 200 and page.strip().startswith('<article id="proposal">')
    assert "Approved by" in page and f"/t/acme/proposals/{following.public_id}/" in page


def test_it_needs_login(proposal: Any) -> None:
    assert Client().post(url(proposal)).status_code == 302
    assert state(proposal) == "open"


@pytest.mark.parametrize("role", ["vera", "mia"])
def test_it_needs_the_role(logged_in: Any, teams: Any, acme: Any, proposal: Any, role: str) -> None:
    answer = logged_in(teams[role]).post(url(proposal), {"shown": made.shown(proposal)})
    assert (answer.status_code, state(proposal)) == (403, "open")
    with rls.tenant_scope(str(acme.pk)):
        assert AuditEntry.objects.filter(outcome="refused").count() == 1


def test_it_hides_the_proposal_from_other_tenants(logged_in: Any, charlie: Any, proposal: Any) -> None:
    browser = logged_in(charlie)
    for team in ("acme", "globex"):
        assert browser.post(url(proposal, team), {"shown": made.shown(proposal)}).status_code == 404
    assert state(proposal) == "open"


def test_an_unknown_proposal_is_not_found(logged_in: Any, bob: Any, acme: Any) -> None:
    assert logged_in(bob).post("/t/acme/proposals/prp_none/approve/").status_code == 404


def test_it_takes_only_post(logged_in: Any, bob: Any, proposal: Any) -> None:
    assert logged_in(bob).get(url(proposal)).status_code == 405


def test_a_stale_screen_changes_nothing_and_shows_the_text_as_it_is(
    logged_in: Any, acme: Any, alice: Any, bob: Any, proposal: Any
) -> None:
    seen = made.shown(proposal)
    made.note(acme, alice, text=made.TEXT.replace("three", "seven"))
    answer = logged_in(bob).post(url(proposal), {"shown": seen}, headers=HTMX)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "The text changed since you opened this page" in page or "took the place" in page
    assert current(proposal) == made.TEXT.replace("three", "seven")
    assert state(proposal) != "approved"


def test_a_wrong_hash_is_a_conflict_with_the_fresh_text(logged_in: Any, bob: Any, proposal: Any) -> None:
    answer = logged_in(bob).post(url(proposal), {"shown": "0" * 64}, headers=HTMX)
    assert answer.status_code == 409
    assert "look again" in answer.content.decode() and made.shown(proposal) in answer.content.decode()
    assert state(proposal) == "open"


def test_of_two_reviewers_the_second_is_told(logged_in: Any, alice: Any, bob: Any, proposal: Any) -> None:
    logged_in(alice).post(url(proposal), {"shown": made.shown(proposal)})
    answer = logged_in(bob).post(url(proposal), {"shown": made.shown(proposal)}, headers=HTMX)
    assert answer.status_code == 409
    assert "Someone decided this before you" in answer.content.decode()


def test_a_replaced_proposal_says_so(logged_in: Any, acme: Any, bob: Any, proposal: Any) -> None:
    newer = made.proposal(acme, text=made.TEXT.replace("three", "four"))
    answer = logged_in(bob).post(url(proposal), {"shown": made.shown(proposal)}, headers=HTMX)
    assert answer.status_code == 409
    page = answer.content.decode()
    assert f'<a href="/t/acme/proposals/{newer.public_id}/">a newer proposal for this note</a>, by a dream' in page
    assert state(newer) == "open" and current(newer) is None


def test_one_that_was_not_replaced_says_why_it_went(logged_in: Any, acme: Any, bob: Any, proposal: Any) -> None:
    with rls.tenant_scope(str(acme.pk)):
        publish.supersede(proposal, reason=sentence("The note was deleted."))
    page = logged_in(bob).get(f"/t/acme/proposals/{proposal.public_id}/").content.decode()
    assert "Nobody decides on this any more:" in page and "The note was deleted." in page and "newer" not in page


def test_a_lowered_role_may_not_approve_with_a_page_it_still_has(
    logged_in: Any, acme: Any, bob: Any, proposal: Any
) -> None:
    browser = logged_in(bob)
    assert browser.get(f"/t/acme/proposals/{proposal.public_id}/").status_code == 200
    with rls.tenant_scope(str(acme.pk)):
        bob.role = "viewer"
        bob.save()
    assert browser.post(url(proposal), {"shown": made.shown(proposal)}).status_code == 403
    assert state(proposal) == "open"


def test_approving_a_deletion_takes_the_note_out(logged_in: Any, acme: Any, alice: Any, bob: Any) -> None:
    made.note(acme, alice)
    gone = made.proposal(acme, operation="delete")
    browser = logged_in(bob)
    assert "Text that would go" in browser.get(f"/t/acme/proposals/{gone.public_id}/").content.decode()
    answer = browser.post(url(gone), {"shown": made.shown(gone)}, headers=HTMX)
    assert answer.status_code == 200
    with rls.tenant_scope(str(acme.pk)):
        assert Proposal.objects.get(pk=gone.pk).state == "approved"
        assert Note.objects.get(pk=gone.note_id).deleted_at is not None
    assert browser.get(f"/t/acme/notes/{gone.note.public_id}/").status_code == 404


def test_the_counter_in_the_frame_follows_a_decision(logged_in: Any, acme: Any, bob: Any, proposal: Any) -> None:
    made.proposal(acme, path="general/next.md", text="- Next\n")
    browser = logged_in(bob)
    page = browser.post(url(proposal), {"shown": made.shown(proposal)}, headers=HTMX).content.decode()
    assert 'id="waiting-Main" hx-swap-oob="true">1<' in page and 'id="waiting-Menu" hx-swap-oob="true">1<' in page
    assert "decided · 1 left" in page
    whole = browser.get("/t/acme/")
    assert whole.context["proposal_count"] == 1 and "hx-swap-oob" not in whole.content.decode()
