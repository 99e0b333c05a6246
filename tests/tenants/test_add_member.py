"""manage.py add_member, and the verb under it."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from memory.tenants import keys, rls
from memory.tenants.access import Refused, command_actor, member_actor
from memory.tenants.middleware import membership
from memory.tenants.models import AuditEntry, Member, Tenant, User
from memory.tenants.people import add_member


def add(*arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command("add_member", *arguments, "--json", stdout=out)
    answer: dict[str, Any] = json.loads(out.getvalue())
    return answer


def role_of(tenant: Tenant, email: str) -> str:
    with rls.tenant_scope(str(tenant.pk)):
        return Member.objects.get(user__email=email).role


def test_it_lets_a_person_in_by_a_link(acme: Tenant) -> None:
    added = add("acme", "Rita@Acme.test", "--role", "reviewer")
    assert (added["tenant"], added["handle"], added["role"]) == ("acme", "rita", "reviewer")
    link = keys.claim_link(added["login_url"].rstrip("/").rsplit("/", 1)[1])
    assert link is not None and link.tenant_slug == "acme"
    assert membership(link.user_pk, "acme") is not None
    with rls.tenant_scope(str(acme.pk)):
        entry = AuditEntry.objects.get(action="member.manage")
        assert (entry.target, entry.before, entry.after) == (added["member_id"], "", "reviewer")


def test_the_same_again_changes_nothing_and_shows_no_link(acme: Tenant) -> None:
    first = add("acme", "rita@acme.test", "--role", "reviewer")
    again = add("acme", "rita@acme.test", "--role", "reviewer")
    assert again == first | {"former_role": "reviewer", "login_url": None}
    with rls.tenant_scope(str(acme.pk)):
        assert AuditEntry.objects.filter(action="member.manage").count() == 1


def test_a_new_link_leaves_the_role_as_it_is(acme: Tenant, bob: Member) -> None:
    again = add("acme", "bob@acme.test", "--new-link")
    assert again["login_url"] and again["role"] == "reviewer"
    assert role_of(acme, "bob@acme.test") == "reviewer"


def test_another_role_is_given_and_audited(acme: Tenant, bob: Member) -> None:
    out = StringIO()
    call_command("add_member", "acme", "bob@acme.test", "--role", "admin", stdout=out)
    assert "admin, was reviewer" in out.getvalue()
    assert role_of(acme, "bob@acme.test") == "admin"
    with rls.tenant_scope(str(acme.pk)):
        entry = AuditEntry.objects.get(action="member.manage")
        assert (entry.actor_kind, entry.before, entry.after) == ("command", "reviewer", "admin")


def test_the_last_owner_cannot_be_lowered(acme: Tenant, alice: Member) -> None:
    with pytest.raises(CommandError, match="only owner"):
        add("acme", "alice@acme.test", "--role", "viewer")
    assert role_of(acme, "alice@acme.test") == "owner"
    add("acme", "bob@acme.test", "--role", "owner")
    assert add("acme", "alice@acme.test", "--role", "viewer")["role"] == "viewer"


def test_a_removed_member_comes_back(acme: Tenant, bob: Member) -> None:
    with rls.tenant_scope(str(acme.pk)):
        Member.objects.filter(pk=bob.pk).update(removed_at=timezone.now())
    back = add("acme", "bob@acme.test", "--role", "viewer")
    assert back["login_url"] and back["handle"] == "bob"
    assert membership(str(bob.user_id), "acme") is not None


def test_a_person_of_another_team_stays_in_theirs(acme: Tenant, charlie: Member) -> None:
    add("acme", "charlie@globex.test")
    assert User.objects.filter(email="charlie@globex.test").count() == 1
    assert membership(str(charlie.user_id), "acme") and membership(str(charlie.user_id), "globex")


def test_only_who_manages_members_may(acme: Tenant, bob: Member, alice: Member) -> None:
    add("acme", "ada@acme.test", "--role", "admin")
    with rls.tenant_scope(str(acme.pk)):
        ada = Member.objects.get(handle="ada")
        for actor, role in ((member_actor(bob), "viewer"), (member_actor(ada), "owner")):
            with pytest.raises(Refused):
                add_member(acme, "new@acme.test", role=role, by=actor)
        assert add_member(acme, "new@acme.test", role="member", by=member_actor(ada)).is_new
        with pytest.raises(Refused):
            add_member(acme, "alice@acme.test", role="viewer", by=member_actor(ada))
        assert add_member(acme, "alice@acme.test", by=command_actor(acme, "x")).member.role == "owner"


def test_it_says_what_is_wrong(acme: Tenant) -> None:
    with pytest.raises(CommandError, match="no team 'none'"):
        add("none", "rita@acme.test")
    with pytest.raises(CommandError, match="not an e-mail address"):
        add("acme", "rita")
    with pytest.raises(CommandError, match="invalid choice"):
        add("acme", "rita@acme.test", "--role", "king")
