"""Who sees a limited project, by which keys, and what becomes of that when keys and projects change."""

from datetime import timedelta
from typing import Any

import pytest

from memory.events import limits, projects
from memory.events.models import Project, ProjectAccess
from memory.tenants import keys, rls
from memory.tenants.access import Refused, Sight, command_actor, member_actor
from memory.tenants.models import AuditEntry
from tests import limited
from tests.conftest import new_agent
from tests.graph.made import thread_of
from tests.pages import made


@pytest.fixture
def secret(acme: Any) -> Any:
    return limited.project_at(acme, "secret")


def sees(of: Any, sight: Sight) -> bool:
    with rls.seeing(sight), rls.tenant_scope(str(of.tenant_id)):
        return bool(Project.objects.filter(pk=of.pk).exists())


def by_page(member: Any) -> Sight:
    return member_actor(member).sight


def by_key(agent: Any) -> Sight:
    return Sight(str(agent.member.pk), str(agent.key.pk))


def test_owners_and_admins_always_see_it_and_others_where_they_are_named(
    teams: Any, secret: Any, bob: Any, mia: Any, alice: Any
) -> None:
    assert all(sees(secret, by_page(teams[name])) for name in ("alice", "bob", "vera", "mia"))
    change = limited.limit(secret, mia)
    assert (change.lost, change.gained) == (["bob", "vera"], [])
    assert [name for name in ("alice", "bob", "vera", "mia") if sees(secret, by_page(teams[name]))] == ["alice", "mia"]
    assert sees(secret, rls.SERVER)
    with rls.tenant_scope(str(secret.tenant_id)):
        change = limits.open_to_all(secret, by=member_actor(alice))
    assert change.gained == ["bob", "vera"] and sees(secret, by_page(bob))


def test_a_key_never_sees_more_than_its_member(secret: Any, bob: Any, mia: Any, alice: Any) -> None:
    ci, laptop, his = new_agent(mia), new_agent(mia), new_agent(bob)
    limited.limit(secret, keys=(ci.key,))
    assert [sees(secret, by_key(agent)) for agent in (ci, laptop, his, new_agent(alice))] == [True, False, False, True]
    assert sees(secret, by_page(mia)), "naming a key names its member"
    own = new_agent(alice)
    limited.limit(secret, mia, keys=(own.key,))
    assert not sees(secret, by_key(new_agent(alice))) and sees(secret, by_key(own)) and sees(secret, by_key(laptop))
    assert sees(secret, by_page(alice))


def test_a_list_of_the_keys_own_narrows_it_and_follows_a_merge(acme: Any, secret: Any, alice: Any, bound: Any) -> None:
    other, third = limited.project_at(acme, "other"), limited.project_at(acme, "third")
    agent, none = new_agent(alice, only_projects=[other.pk]), new_agent(alice, only_projects=[])
    assert [sees(one, by_key(agent)) for one in (secret, other, third)] == [False, True, False]
    assert not any(sees(one, by_key(none)) for one in (secret, other, third))
    with bound(acme):
        projects.merge(other, into=third, by=member_actor(alice))
    assert [sees(one, by_key(agent)) for one in (secret, other, third)] == [False, True, True]


def test_what_was_merged_into_it_is_hidden_too(
    acme: Any, secret: Any, alice: Any, mia: Any, bob: Any, bound: Any
) -> None:
    part = limited.project_at(acme, "part")
    note = made.note(acme, alice, path="project/part/a.md")
    limited.limit(secret, mia)
    with bound(acme):
        projects.merge(part, into=secret, by=member_actor(alice))
        open_ = limited.project_at(acme, "open")
        with pytest.raises(projects.CannotMerge, match="Open it"):
            projects.merge(secret, into=open_, by=member_actor(alice))
    assert not sees(part, by_page(bob)) and sees(part, by_page(mia))
    with rls.seeing(by_page(bob)), bound(acme):
        assert not type(note).objects.filter(pk=note.pk).exists()


def test_a_new_secret_of_a_named_key_sees_the_same(acme: Any, secret: Any, mia: Any, bound: Any) -> None:
    ci, narrow = new_agent(mia), new_agent(mia, only_projects=[secret.pk])
    limited.limit(secret, keys=(ci.key,))
    with rls.seeing(by_page(mia)), bound(acme):
        fresh, _ = keys.rotate_key(ci.key, overlap=timedelta(0), by=member_actor(mia))
        again, _ = keys.rotate_key(narrow.key, overlap=timedelta(0), by=member_actor(mia))
    assert sees(secret, Sight(str(mia.pk), str(fresh.pk)))
    assert [str(pk) for pk in again.only_projects or []] == [str(secret.pk)]


def test_a_removed_or_unknown_key_sees_no_limited_project(
    acme: Any, secret: Any, mia: Any, agent: Any, bound: Any
) -> None:
    limited.limit(secret, mia)
    assert sees(secret, Sight(key_hash=keys.digest(agent.secret)))
    assert not sees(secret, Sight(key_hash=keys.digest(keys.new_secret())))
    with bound(acme):
        keys.revoke_key(agent.key, by=command_actor(acme, "tests"))
    assert not sees(secret, Sight(key_hash=keys.digest(agent.secret)))


def test_it_is_audited_and_only_admins_may(acme: Any, secret: Any, mia: Any, bob: Any, bound: Any) -> None:
    ci = new_agent(mia)
    with bound(acme), pytest.raises(Refused):
        limits.limit(secret, [mia], by=member_actor(bob))
    limited.limit(secret, mia)
    limited.limit(secret, mia)
    limited.limit(secret, keys=(ci.key,))
    with bound(acme):
        limits.open_to_all(secret, by=command_actor(acme, "tests"))
        rows = list(AuditEntry.objects.filter(action="project.limit").order_by("seq").values_list("before", "after"))
        assert not ProjectAccess.objects.exists()
    named = f"only mia {ci.key.public_id}"
    assert rows == [("all", "only mia"), ("only mia", named), (named, "all")]


def test_a_thread_is_of_the_project_whose_remote_its_key_names(acme: Any, mia: Any, bob: Any, bound: Any) -> None:
    before = thread_of(acme, "github:Acme/Secret#1")
    secret = limited.project_at(acme, "secret")
    names = [
        "github:acme/secret@abc123",
        "github:acme/secret/releases/v1",
        "github:acme/secret",
        "deploy:github:acme/secret/x",
    ]
    others = ["github:acme/secrets#1", "slack:C1:17.2", "gitlab:acme/secret#1", None]
    inside = [before, *(thread_of(acme, key) for key in names)]
    outside = [thread_of(acme, key) for key in others if key]
    limited.limit(secret, mia)
    with rls.seeing(by_page(bob)), bound(acme):
        assert set(acme.threads.values_list("pk", flat=True)) == {one.pk for one in outside}
    with bound(acme):
        limits.open_to_all(secret, by=command_actor(acme, "t"))
        home = limited.project_at(acme, "home")
        projects.merge(secret, into=home, by=command_actor(acme, "t"))
    limited.limit(home, mia)
    with rls.seeing(by_page(bob)), bound(acme):
        assert set(acme.threads.values_list("pk", flat=True)) == {one.pk for one in outside}
    with rls.seeing(by_page(mia)), bound(acme):
        assert acme.threads.count() == len(inside) + len(outside)


def test_nothing_is_bound_in_a_request_before_it_is_known_who_looks(acme: Any) -> None:
    with rls.seeing(None), pytest.raises(rls.Unseen), rls.tenant_scope(str(acme.pk)):
        pass


def test_an_inner_scope_leaves_the_outer_as_it_was(acme: Any, secret: Any, mia: Any, bob: Any) -> None:
    limited.limit(secret, mia)
    with rls.seeing(by_page(bob)), rls.tenant_scope(str(acme.pk)):
        assert not Project.objects.exists()
        with rls.seeing(rls.SERVER), rls.tenant_scope(str(acme.pk)):
            assert Project.objects.count() == 1
        with rls.unlimited():
            assert Project.objects.count() == 1
        with pytest.raises(ValueError, match="no"), rls.unlimited():
            raise ValueError("no")
        assert not Project.objects.exists() and not rls.sees_all()
