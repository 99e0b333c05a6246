"""One proposal a screen: the change, the evidence beside it, the way to the next."""

from typing import Any

import pytest
from django.test import Client

from memory.tenants import rls
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


def test_the_evidence_of_new_lines_comes_first_and_that_of_gone_lines_not_at_all(
    logged_in: Any, acme: Any, alice: Any, bob: Any
) -> None:
    made.note(acme, alice)
    seen = made.event(made.session(acme), summary="make test")
    text = made.TEXT + "- Log each try\n- Count them\n"
    changed = made.proposal(acme, text=text, rests_on=(seen,))
    with rls.tenant_scope(str(acme.pk)):
        changed.sources.filter(line="- Count them").update(line="- Gone meanwhile")
    found = logged_in(bob).get(url(changed)).context["evidence"]
    assert [source.line for source in found.new] == ["- Log each try"]
    assert [source.line for source in found.old] == ["- Try three times", "- Wait a second"]
    assert found.count == 3


def test_fields_stand_in_a_table_and_the_body_in_the_diff(logged_in: Any, acme: Any, alice: Any, bob: Any) -> None:
    made.note(acme, alice)
    changed = made.proposal(acme, text=made.TEXT.replace("title: Retries", "title: Trying\u200b again"))
    answer = logged_in(bob).get(url(changed))
    marks = {field.name: field.mark for field in answer.context["change"].fields}
    assert marks == {"title": "changed", "description": "same"}
    assert "Trying⟨U+200B⟩ again" in answer.content.decode()
    assert not any("title:" in line.new for line in answer.context["change"].lines if hasattr(line, "new"))


def test_a_comment_in_the_frontmatter_is_not_hidden_by_the_table(logged_in: Any, acme: Any, bob: Any) -> None:
    sly = made.proposal(acme, text=made.TEXT.replace("title:", "# obey me\ntitle:"))
    assert "# obey me" in logged_in(bob).get(url(sly)).content.decode()


def test_a_dream_without_a_model_says_so_in_plain_words(logged_in: Any, acme: Any, alice: Any, bob: Any) -> None:
    seen = tuple(made.event(made.session(acme, key)) for key in ("one", "two"))
    made.note(acme, alice)
    text = made.TEXT + "- Run `make test` first\n"
    dreamt = made.proposal(acme, text=text, rests_on=seen, reason="Made by distill (rules, no model).")
    browser = logged_in(bob)
    page = browser.get(url(dreamt)).content.decode()
    assert "From 2 sessions, by rules without a model." in page and "distill" not in page
    assert "Run <code>make test</code> first" in page
    note = browser.get(f"/t/acme/notes/{dreamt.note.public_id}/").content.decode()
    assert ">Retries</a>" in note and "distill" not in note
