"""What people are called: changed by themselves on their account page, shown on every page at once, audited."""

from typing import Any

import pytest
from django.test import Client

from memory.tenants import names, rls
from memory.tenants.models import AuditEntry, Member, User
from tests.pages import made

NAME = "/account/name/"


def called(member: Member) -> str:
    return User.objects.get(pk=member.user_id).name


def audited(tenant: Any) -> list[tuple[str, str, str]]:
    with rls.tenant_scope(str(tenant.pk)):
        return list(AuditEntry.objects.filter(action="name.change").values_list("target", "before", "after"))


def test_a_name_is_changed_and_every_page_says_it_at_once(acme: Any, alice: Any, bob: Any, logged_in: Any) -> None:
    note = made.note(acme, alice)
    made.rewritten(note, bob, made.TEXT.replace("three", "two"))
    session = made.session(acme, member=bob)
    browser = logged_in(bob)
    assert 'action="/account/name/"' in browser.get("/account/").content.decode()
    assert browser.post(NAME, {"name": "  Bob   Ó Briain "})["Location"] == "/account/"
    assert called(bob) == "Bob Ó Briain" and audited(acme) == [(bob.public_id, "Bob", "Bob Ó Briain")]
    for page in ("", "members/", "sessions/", f"sessions/{session.public_id}/", f"notes/{note.public_id}/"):
        assert "Bob Ó Briain" in logged_in(alice if page else bob).get(f"/t/acme/{page}").content.decode(), page
    assert "Bob Ó Briain" in browser.get("/account/").content.decode()
    logged_in(alice).post("/account/name/", {"name": "Alice Munro"})
    logged_in(alice).post("/t/acme/settings/", {"name": "digest_hour", "value": "9"})
    page = browser.get("/t/acme/settings/").content.decode()
    assert "Set by Alice Munro<" in page


def test_the_same_name_again_is_no_change(acme: Any, bob: Any, logged_in: Any) -> None:
    logged_in(bob).post(NAME, {"name": "Bob"})
    assert audited(acme) == []


def test_no_name_shows_the_handle(bob: Any, logged_in: Any) -> None:
    assert logged_in(bob).post(NAME, {"name": " "}).status_code == 302
    assert called(bob) == "" and '<b dir="auto">bob</b>' in logged_in(bob).get("/t/acme/").content.decode()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("x" * 61, "at most 60 characters"),
        ("Bob\u202eecilA", "seen"),
        ("Al\u200bice", "seen"),
        ("Bob\x00", "Null characters"),
        ("...", "at least one letter"),
    ],
)
def test_a_name_that_can_not_be_is_refused_at_its_field(bob: Any, logged_in: Any, said: str, why: str) -> None:
    answer = logged_in(bob).post(NAME, {"name": said})
    page = answer.content.decode()
    assert answer.status_code == 422 and why in page and called(bob) == "Bob"
    assert 'aria-invalid="true"' in page and 'id="id_name_error"' in page


@pytest.mark.parametrize("said", ["Zoë", "李小龍", "علی\u200cرضا", "O'Neil-Smith", "R2"])
def test_names_of_all_scripts_are_kept_as_typed(said: str) -> None:
    assert names.cleaned(said) == said


def test_who_is_called_as_another_stands_with_their_handle(acme: Any, alice: Any, bob: Any, mia: Any) -> None:
    names.rename(User.objects.get(pk=bob.user_id), "ALICE")
    with rls.tenant_scope(str(acme.pk)):
        shown = names.Names(acme)
        assert [shown.of(handle) for handle in ("alice", "bob", "mia", "gone")] == [
            "Alice (alice)",
            "ALICE (bob)",
            "Mia",
            "gone",
        ]


def test_a_key_called_as_a_member_is_not_shown_as_them(acme: Any, bob: Any) -> None:
    from memory.templatetags.look import author

    with rls.tenant_scope(str(acme.pk)):
        proposal = made.proposal(acme)
        proposal.author_kind, proposal.author_label = "key", "bob"
        assert author(proposal, names.Names(acme)) == "bob"
        proposal.author_kind = "member"
        assert author(proposal, names.Names(acme)) == "Bob"


def test_it_asks_for_login_and_a_post(committed: None, bob: Any, logged_in: Any) -> None:
    assert Client().post(NAME, {"name": "x"}).status_code == 302
    assert logged_in(bob).get(NAME).status_code == 405
    assert Client(enforce_csrf_checks=True).post(NAME, {"name": "x"}).status_code in (302, 403)


def test_a_teams_single_sign_on_renames_nobody_in_other_teams(acme: Any, globex: Any, bob: Any, logged_in: Any) -> None:
    browser = logged_in(bob)
    session = browser.session
    session["confined"] = True
    session["signed_on"] = {str(acme.pk): {"at": 1.0, "proved_at": 0.0}}
    session.save()
    assert browser.post(NAME, {"name": "Robert"}).status_code == 302 and called(bob) == "Robert"
    with rls.tenant_scope(str(globex.pk)):
        Member.objects.create(tenant=globex, user=bob.user, handle="bob", role="member")
    assert browser.post(NAME, {"name": "Charlie"}).status_code == 403 and called(bob) == "Robert"
    page = browser.get("/account/").content.decode()
    assert NAME not in page and "shows in all your teams" in page
