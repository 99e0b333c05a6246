"""What people say about a proposal, and whose it is."""

from typing import Any

import pytest
from django.test import Client

from memory.notes.models import Comment, Proposal
from memory.tenants import rls
from memory.tenants.access import member_actor
from memory.tenants.models import AuditEntry
from tests.pages import made


@pytest.fixture
def proposal(acme: Any) -> Any:
    return made.proposal(acme)


def url(of: Any, what: str = "") -> str:
    return f"/t/acme/proposals/{of.public_id}/{what}"


def audited(acme: Any, action: str) -> list[tuple[str, str, str]]:
    with rls.tenant_scope(str(acme.pk)):
        rows = AuditEntry.objects.filter(action=action, outcome="done").order_by("seq")
        return list(rows.values_list("target", "before", "after"))


def test_a_comment_stands_on_the_page(acme: Any, bob: Any, mia: Any, vera: Any, logged_in: Any, proposal: Any) -> None:
    assert logged_in(mia).post(url(proposal, "comment/"), {"text": " Three, <b>really</b>?\r\n "}).status_code == 302
    page = logged_in(bob).get(url(proposal)).content.decode()
    assert "Three, &lt;b&gt;really&lt;/b&gt;?" in page and "@mia" in page
    assert len(audited(acme, "note.comment")) == 1
    assert logged_in(vera).post(url(proposal, "comment/"), {"text": "No"}).status_code == 403
    assert "comment/" not in logged_in(vera).get(url(proposal)).content.decode()
    assert Client().post(url(proposal, "comment/"), {"text": "No"}).status_code == 302
    piece = logged_in(bob).post(url(proposal, "comment/"), {"text": "Four"}, headers={"HX-Request": "true"})
    assert piece.status_code == 200 and "Four" in piece.content.decode() and "<html" not in piece.content.decode()


def test_nothing_is_no_comment_and_a_secret_is_taken_out(acme: Any, bob: Any, logged_in: Any, proposal: Any) -> None:
    browser = logged_in(bob)
    assert browser.post(url(proposal, "comment/"), {"text": " \n"}).status_code == 422
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    browser.post(url(proposal, "comment/"), {"text": f"Use {token}"})
    with rls.tenant_scope(str(acme.pk)):
        assert token not in Comment.objects.get().text


def test_its_writer_and_an_admin_take_a_comment_back(
    acme: Any, alice: Any, bob: Any, mia: Any, logged_in: Any, proposal: Any
) -> None:
    first, second = made.comment(proposal, mia, "First words"), made.comment(proposal, mia, "Second words")
    assert logged_in(bob).post(f"/t/acme/comments/{first.public_id}/remove/").status_code == 403
    elsewhere = {"at": "../.."}
    assert logged_in(mia).post(f"/t/acme/comments/{first.public_id}/remove/", elsewhere).status_code == 404
    assert "First words" in logged_in(bob).get(url(proposal)).content.decode()
    assert logged_in(mia).post(f"/t/acme/comments/{first.public_id}/remove/").status_code == 302
    assert logged_in(alice).post(f"/t/acme/comments/{second.public_id}/remove/").status_code == 302
    page = logged_in(bob).get(url(proposal)).content.decode()
    assert "First words" not in page and "Second words" not in page and page.count("Taken back.") == 2


def test_comments_follow_the_note_to_the_next_text_until_one_is_decided(
    acme: Any, bob: Any, logged_in: Any, proposal: Any
) -> None:
    made.comment(proposal, bob, "Said of the first")
    second = made.proposal(acme, text=made.TEXT.replace("three", "four"))
    page = logged_in(bob).get(url(second)).content.decode()
    assert "Said of the first" in page and "about an earlier text" in page
    made.approved(second, bob)
    third = made.proposal(acme, text=made.TEXT.replace("three", "five"))
    assert "Said of the first" not in logged_in(bob).get(url(third)).content.decode()


def test_a_reviewer_gives_a_proposal_to_somebody_and_it_stays_theirs(
    acme: Any, bob: Any, mia: Any, vera: Any, logged_in: Any, proposal: Any
) -> None:
    browser = logged_in(bob)
    assert logged_in(mia).post(url(proposal, "assign/"), {"to": "mia"}).status_code == 403
    for wrong in ("vera", "charlie", "nobody", "\0"):
        assert browser.post(url(proposal, "assign/"), {"to": wrong}).status_code == 422
    assert browser.post(url(proposal, "assign/"), {"to": "mia"}).status_code == 302
    browser.post(url(proposal, "assign/"), {"to": "mia"})  # again changes nothing
    newer = made.proposal(acme, text=made.TEXT.replace("three", "four"))
    with rls.tenant_scope(str(acme.pk)):
        assert str(Proposal.objects.get(pk=newer.pk).assigned_to_id) == str(mia.pk)
    inbox = logged_in(mia).get("/t/acme/").content.decode()
    assert "1 of them given to you" in inbox and "Yours" in inbox
    assert made.PATH in logged_in(mia).get("/t/acme/?for=me").content.decode()
    assert browser.get("/t/acme/?for=me").status_code == 302
    assert browser.post(url(newer, "assign/"), {"to": ""}).status_code == 302
    assert [(row[1], row[2]) for row in audited(acme, "note.assign")] == [("", "mia"), ("mia", "")]


def test_a_private_proposal_is_its_owners_alone(acme: Any, alice: Any, mia: Any, logged_in: Any) -> None:
    mine = made.proposal(acme, path="general/mine.md", member=mia, by=member_actor(mia), text="# Mine\n\n- Words\n")
    for what in ("comment/", "assign/"):
        assert logged_in(alice).post(url(mine, what), {"text": "No", "to": "alice"}).status_code == 404
    said = made.comment(mine, mia, "To myself")
    assert logged_in(alice).post(f"/t/acme/comments/{said.public_id}/remove/").status_code == 404
