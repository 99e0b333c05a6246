"""Rejecting a proposal, with the reason that the next dream is told."""

from typing import Any

import pytest
from django.test import Client

from memory.notes.models import Tombstone
from memory.notes.review import Draft, propose
from memory.tenants import rls
from tests.pages import made

HTMX = {"HX-Request": "true"}


@pytest.fixture
def proposal(acme: Any) -> Any:
    return made.proposal(acme)


def url(of: Any, team: str = "acme") -> str:
    return f"/t/{team}/proposals/{of.public_id}/reject/"


def state(of: Any) -> str:
    with rls.tenant_scope(str(of.tenant_id)):
        of.refresh_from_db()
    return str(of.state)


def test_it_keeps_the_reason(logged_in: Any, acme: Any, bob: Any, proposal: Any) -> None:
    answer = logged_in(bob).post(url(proposal), {"reason": "It is two times"}, headers=HTMX)
    assert answer.status_code == 200 and "It is two times" in answer.content.decode()
    assert (state(proposal), proposal.decision_reason) == ("rejected", "It is two times")
    with rls.tenant_scope(str(acme.pk)):
        assert Tombstone.objects.filter(note=proposal.note_id).exists()


def test_without_javascript_it_leads_back_to_the_proposal(logged_in: Any, bob: Any, proposal: Any) -> None:
    assert logged_in(bob).post(url(proposal), {"reason": "No"})["Location"].endswith(f"{proposal.public_id}/")


@pytest.mark.parametrize("reason", ["", "  \n ", None])
def test_it_asks_for_a_reason(logged_in: Any, bob: Any, proposal: Any, reason: str | None) -> None:
    form = {} if reason is None else {"reason": reason}
    answer = logged_in(bob).post(url(proposal), form, headers=HTMX)
    assert answer.status_code == 422 and "Say why" in answer.content.decode()
    assert state(proposal) == "open"


def test_what_was_decided_before_stays(logged_in: Any, alice: Any, bob: Any, proposal: Any) -> None:
    made.approved(proposal, alice)
    answer = logged_in(bob).post(url(proposal), {"reason": "Too late"}, headers=HTMX)
    assert answer.status_code == 409 and "Someone decided this before you" in answer.content.decode()
    assert state(proposal) == "approved"


def test_it_needs_login(proposal: Any) -> None:
    assert Client().post(url(proposal), {"reason": "No"}).status_code == 302


@pytest.mark.parametrize("role", ["vera", "mia"])
def test_it_needs_the_role(logged_in: Any, teams: Any, proposal: Any, role: str) -> None:
    assert logged_in(teams[role]).post(url(proposal), {"reason": "No"}).status_code == 403
    assert logged_in(teams[role]).post(url(proposal), {}).status_code == 403
    assert state(proposal) == "open"


def test_it_hides_the_proposal_from_other_tenants(logged_in: Any, charlie: Any, proposal: Any) -> None:
    for team in ("acme", "globex"):
        assert logged_in(charlie).post(url(proposal, team), {"reason": "No"}).status_code == 404
    assert state(proposal) == "open"


def test_an_unknown_proposal_is_not_found(logged_in: Any, bob: Any, acme: Any) -> None:
    assert logged_in(bob).post("/t/acme/proposals/prp_none/reject/", {"reason": "No"}).status_code == 404


def test_it_takes_only_post(logged_in: Any, bob: Any, proposal: Any) -> None:
    assert logged_in(bob).get(url(proposal)).status_code == 405


def test_a_note_can_be_closed_to_dreams(logged_in: Any, acme: Any, bob: Any) -> None:
    unwanted = made.proposal(acme, path="general/unwanted.md", text="- Unwanted\n")
    browser = logged_in(bob)
    page = browser.get(f"/t/acme/proposals/{unwanted.public_id}/").content.decode()
    assert "Never propose this note again" in page
    browser.post(f"/t/acme/proposals/{unwanted.public_id}/reject/", {"reason": "No", "close_path": "1"})
    with rls.tenant_scope(str(acme.pk)):
        assert unwanted.note.tombstones.filter(line__isnull=True).exists()
        draft = Draft("general/unwanted.md", "- Something else\n")
        assert propose(acme, draft, by=made.dreamer(acme)) is None
    page = browser.get(f"/t/acme/proposals/{unwanted.public_id}/").content.decode()
    assert "Dreams leave this note alone" in page
