"""The audit chain, and keys."""

from typing import Any

import pytest

from memory.tenants import audit, keys, rls
from memory.tenants.access import MAY, SCOPES, Refused, command_actor, member_actor, require
from memory.tenants.models import AgentKey, AuditEntry
from tests import database
from tests.conftest import new_agent


def test_entries_follow_from_each_other(acme: Any, alice: Any) -> None:
    for name in ("one", "two", "three"):
        with rls.tenant_scope(str(acme.pk)):
            audit.record(member_actor(alice), name)
    with rls.tenant_scope(str(acme.pk)):
        entries = AuditEntry.objects.order_by("seq")
        assert [e.seq for e in entries] == [1, 2, 3]
        assert list(audit.breaks(entries.iterator())) == []


@pytest.mark.parametrize("change", ["action = 'nothing'", "actor_label = 'mallory'", "before = 'x'", "ip = '::1'"])
def test_a_changed_entry_is_found(acme: Any, alice: Any, change: str) -> None:
    for name in ("one", "two", "three"):
        with rls.tenant_scope(str(acme.pk)):
            audit.record(member_actor(alice), name)
    with database.migrator() as owner:
        owner.execute(f"UPDATE tenants_auditentry SET {change} WHERE seq = 2".encode())
    with rls.tenant_scope(str(acme.pk)):
        assert list(audit.breaks(AuditEntry.objects.order_by("seq").iterator())) == [2]


def test_a_missing_entry_is_found(acme: Any, alice: Any) -> None:
    for name in ("one", "two", "three"):
        with rls.tenant_scope(str(acme.pk)):
            audit.record(member_actor(alice), name)
    with database.migrator() as owner:
        owner.execute("DELETE FROM tenants_auditentry WHERE seq = 2")
    with rls.tenant_scope(str(acme.pk)):
        assert list(audit.breaks(AuditEntry.objects.order_by("seq").iterator())) == [3]


def test_a_secret_says_what_it_is() -> None:
    secret = keys.new_secret()
    assert keys.is_well_formed(secret)
    swapped = secret[:12] + ("a" if secret[12] != "a" else "b") + secret[13:]
    assert not keys.is_well_formed(swapped)
    assert not keys.is_well_formed("tm_live_")


def test_the_secret_is_stored_nowhere(acme: Any, agent: Any) -> None:
    with rls.tenant_scope(str(acme.pk)):
        assert agent.secret not in str(list(AgentKey.objects.values())) + str(list(AuditEntry.objects.values()))


def test_a_key_may_do_no_more_than_its_owner(acme: Any, vera: Any, alice: Any) -> None:
    for action, roles in MAY.items():
        actor = command_actor(acme, "x")
        assert actor.may(action) == ("owner" in roles)
        assert member_actor(vera).may(action) == ("viewer" in roles)
    with pytest.raises(Refused), rls.tenant_scope(str(acme.pk)):
        keys.make_key(vera, name="x", by=member_actor(vera))


def test_no_key_approves() -> None:
    opened = set().union(*SCOPES.values())
    assert not opened & {"note.approve", "note.edit", "note.revert", "note.delete", "key.create", "member.manage"}
    for action in ("note.approve", "note.edit", "note.revert", "note.delete"):
        assert not MAY[action] & {"agent", "dream"}


def test_an_unknown_action_is_a_fault_and_never_a_yes(alice: Any) -> None:
    with pytest.raises(KeyError):
        require(member_actor(alice), "note.invent")


def test_a_revoked_key_stops_at_the_next_request(acme: Any, alice: Any, agent: Any, api: Any) -> None:
    assert api(agent).get("projects").status_code == 200
    with rls.tenant_scope(str(acme.pk)):
        keys.revoke_key(agent.key, by=member_actor(alice))
    answer = api(agent).get("projects")
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_a_removed_members_key_stops(acme: Any, mia: Any, api: Any) -> None:
    agent = new_agent(mia)
    with rls.tenant_scope(str(acme.pk)):
        mia.removed_at = mia.created_at
        mia.save()
    assert api(agent).get("projects").status_code == 401


def test_a_key_needs_the_scope(acme: Any, mia: Any, api: Any) -> None:
    answer = api(new_agent(mia, scopes=["ingest"])).get("projects")
    assert (answer.status_code, answer.json()["action"]) == (403, "project.read")
    with rls.tenant_scope(str(acme.pk)):
        refusal = AuditEntry.objects.get(outcome="refused")
        assert (refusal.action, refusal.actor_kind) == ("project.read", "key")


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer x", "Basic x", "Bearer tm_live_" + "0" * 46, "bearer \u00e9"])
def test_a_wrong_key_is_401(committed: None, client: Any, header: str) -> None:
    answer = client.get("/api/v1/projects", headers={"Authorization": header} if header else {})
    assert (answer.status_code, answer["Content-Type"]) == (401, "application/problem+json")
