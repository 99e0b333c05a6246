"""What holds for every page: the policy for scripts, caching, login lost in a panel, errors that can be read."""

from typing import Any

import pytest
from django.test import Client

from tests.pages import made

HTMX = {"HX-Request": "true"}


@pytest.mark.parametrize(
    "address", ["/login/", "/t/acme/", "/t/acme/notes/", "/t/acme/nothing/", "/nothing", "/api/v1/docs"]
)
def test_no_page_may_run_what_it_was_not_given(logged_in: Any, alice: Any, address: str) -> None:
    answer = logged_in(alice).get(address)
    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    page = answer.content.decode()
    assert "<style" not in page and " style=" not in page and "onclick" not in page
    assert "<script>" not in page


def test_private_pages_are_not_kept(logged_in: Any, alice: Any) -> None:
    assert logged_in(alice).get("/t/acme/")["Cache-Control"] == "no-store"


def test_a_panel_whose_login_is_lost_leaves_the_page(acme: Any) -> None:
    proposal = made.proposal(acme)
    here = f"http://testserver/t/acme/proposals/{proposal.public_id}/"
    answer = Client().post(f"/t/acme/proposals/{proposal.public_id}/approve/", headers={**HTMX, "HX-Current-URL": here})
    assert answer.status_code == 204
    assert answer["HX-Redirect"] == f"/login/?next=/t/acme/proposals/{proposal.public_id}/"


def test_a_refusal_is_a_piece_for_htmx_and_a_page_else(logged_in: Any, acme: Any, vera: Any) -> None:
    proposal = made.proposal(acme)
    url = f"/t/acme/proposals/{proposal.public_id}/approve/"
    piece, page = logged_in(vera).post(url, headers=HTMX), logged_in(vera).post(url)
    assert (piece.status_code, page.status_code) == (403, 403)
    assert b"<!doctype" not in piece.content and b"Your role may not do this" in piece.content
    assert b"<!doctype html>" in page.content


def test_the_frame_counts_what_waits_and_knows_the_teams(logged_in: Any, acme: Any, alice: Any) -> None:
    made.proposal(acme)
    page = logged_in(alice).get("/t/acme/connect/").content.decode()
    assert page.count('>1<span class="visually-hidden"> waiting') == 2
    assert "Switch team" not in page


def test_a_forged_form_is_refused(alice: Any, acme: Any) -> None:
    proposal = made.proposal(acme)
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice.user)
    answer = browser.post(f"/t/acme/proposals/{proposal.public_id}/approve/", {"shown": made.shown(proposal)})
    assert answer.status_code == 403


def test_a_tenant_named_by_the_client_changes_nothing(logged_in: Any, acme: Any, globex: Any, charlie: Any) -> None:
    made.proposal(acme)
    answer = logged_in(charlie).get("/t/globex/?tenant=acme", headers={"X-Tenant": "acme"})
    assert answer.context["proposal_count"] == 0
