"""One proposal a screen: the change, the evidence beside it, the way to the next."""

from typing import Any

import pytest
from django.test import Client

from memory.tenants.access import member_actor
from tests.pages import made


@pytest.fixture
def proposal(acme: Any) -> Any:
    seen = made.event(made.session(acme), tool="Bash", name="PostToolUse", kind="tool_after", summary="make test")
    return made.proposal(acme, rests_on=(seen,), reason="Seen twice")


def url(of: Any) -> str:
    return f"/t/acme/proposals/{of.public_id}/"


def test_it_shows_the_change_and_the_events_it_rests_on(logged_in: Any, bob: Any, proposal: Any) -> None:
    page = logged_in(bob).get(url(proposal)).content.decode()
    for said in ("Try three times", "Seen twice", "make test", "Bash", made.PATH, "1 of 1", "Text of the new note"):
        assert said in page


def test_it_shows_a_change_against_the_current_text(logged_in: Any, acme: Any, alice: Any, bob: Any) -> None:
    made.note(acme, alice)
    changed = made.proposal(acme, text=made.TEXT.replace("three", "five"))
    page = logged_in(bob).get(url(changed)).content.decode()
    assert "<del>three</del>" in page and "<ins>five</ins>" in page and "Against revision 1" in page


def test_it_leads_to_its_neighbours(logged_in: Any, acme: Any, bob: Any) -> None:
    rows = [made.proposal(acme, path=f"general/{name}.md", text=f"- Say {name}\n") for name in "abc"]
    context = logged_in(bob).get(url(rows[1])).context
    assert (context["previous"], context["next"]) == (rows[0].public_id, rows[2].public_id)
    assert (context["position"], context["total"]) == (2, 3)


def test_it_shows_what_else_is_proposed_for_the_note(logged_in: Any, acme: Any, mia: Any, bob: Any) -> None:
    mine = made.proposal(acme, text="# Mine\n\n- Another thought\n", by=member_actor(mia))
    dreamt = made.proposal(acme)
    assert [row.public_id for row in logged_in(bob).get(url(mine)).context["others"]] == [dreamt.public_id]


def test_it_needs_login(proposal: Any) -> None:
    assert Client().get(url(proposal)).status_code == 302


def test_who_only_reads_may_not_decide(logged_in: Any, vera: Any, proposal: Any) -> None:
    page = logged_in(vera).get(url(proposal)).content.decode()
    assert "A reviewer decides" in page and "approve/" not in page


def test_it_hides_the_proposal_from_other_tenants(logged_in: Any, charlie: Any, proposal: Any) -> None:
    browser = logged_in(charlie)
    assert browser.get(url(proposal)).status_code == 404
    assert browser.get(url(proposal).replace("acme", "globex")).status_code == 404


def test_an_unknown_proposal_is_not_found(logged_in: Any, bob: Any, acme: Any) -> None:
    assert logged_in(bob).get("/t/acme/proposals/prp_none/").status_code == 404


def test_it_takes_no_other_method(logged_in: Any, bob: Any, proposal: Any) -> None:
    assert logged_in(bob).post(url(proposal)).status_code == 405


def test_a_piece_for_htmx_a_page_for_the_back_button(logged_in: Any, bob: Any, proposal: Any) -> None:
    browser = logged_in(bob)
    piece = browser.get(url(proposal), headers={"HX-Request": "true"})
    whole = browser.get(url(proposal))
    back = browser.get(url(proposal), headers={"HX-Request": "true", "HX-History-Restore-Request": "true"})
    assert piece.content.strip().startswith(b'<article id="proposal">')
    assert b"<!doctype html>" in whole.content and b"<!doctype html>" in back.content
    assert "HX-Request" in piece["Vary"] and "HX-Request" in whole["Vary"]
    assert piece["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "title", ["x" * 300, "Không tự ý gộp nhánh", "دائما استخدم الاختبارات", "🚀 ship 👩‍👩‍👧", "a\u202eb"], ids=range(5)
)
def test_titles_of_every_kind_are_shown(logged_in: Any, acme: Any, bob: Any, title: str) -> None:
    named = made.proposal(acme, path="general/named.md", text=f"# {title}\n\n- Say so\n")
    browser = logged_in(bob)
    assert title[:200] in browser.get(url(named)).content.decode()
    assert title[:200] in browser.get("/t/acme/").content.decode()
