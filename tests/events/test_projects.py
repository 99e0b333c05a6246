"""Which project a session belongs to, and how a person brings two together."""

from typing import Any

import pytest

from memory.events import projects
from memory.events.models import Project, ProjectRoot, Session
from memory.events.record import Arrival, Home, store
from memory.tenants.access import Refused, member_actor
from memory.tenants.models import Member, Tenant

REMOTE = "github.com/a/shop"


def work(tenant: Tenant, key: str, *, remote: str = "", root: str = "") -> Session:
    home = Home("claude_code", key, remote, root)
    [row] = store(str(tenant.pk), None, [Arrival(home, "X", "other", f"{key}:{remote}:{root}", b"{}")])
    return Session.objects.select_related("project").get(pk=row.session_pk)


@pytest.fixture(autouse=True)
def in_acme(acme: Tenant, bound: Any) -> Any:
    with bound(acme):
        yield


def test_three_people_two_harnesses_and_a_worktree_are_one_project(acme: Tenant) -> None:
    places = ["/home/ann/shop", "/Users/ben/src/shop", "/home/eve/worktrees/shop-fix"]
    sessions = [work(acme, root, remote=REMOTE, root=root) for root in places]
    sessions.append(work(acme, "no remote", root="/home/ann/shop/api/tests"))
    assert {session.project for session in sessions} == {Project.objects.get()}
    assert ProjectRoot.objects.count() == 4


@pytest.mark.parametrize("root", ["/", "/tmp", "/home/ann", "/Users/ann", "/root", "C:/Users/ann", ""])
def test_a_shared_folder_is_no_project(acme: Tenant, root: str) -> None:
    assert work(acme, "s", root=root).project is None


def test_a_home_folder_does_not_swallow_what_lies_below(acme: Tenant) -> None:
    work(acme, "remote at home", remote=REMOTE, root="/home/ann")
    other = work(acme, "s", root="/home/ann/other").project
    assert other is not None and other.slug == "other"


def test_a_root_takes_over_the_remote_it_gets(acme: Tenant) -> None:
    before = work(acme, "s1", root="/home/ann/shop").project
    assert work(acme, "s2", remote=REMOTE, root="/home/ann/shop").project == before
    assert work(acme, "s1", remote=REMOTE, root="/home/ann/shop").project == before


def test_another_remote_in_the_same_folder_is_another_project(acme: Tenant) -> None:
    first = work(acme, "s1", remote=REMOTE, root="/src/shop").project
    second = work(acme, "s2", remote="github.com/b/other", root="/src/shop").project
    assert first != second and second is not None and second.slug == "other"


def test_slugs_are_unique(acme: Tenant) -> None:
    slugs = {work(acme, root, root=root).project.slug for root in ("/a/shop", "/b/Shop", "/c/shop!")}  # type: ignore[union-attr]
    assert slugs == {"shop", "shop-2", "shop-3"}


def test_merging_takes_places_and_sessions_over(acme: Tenant, alice: Member) -> None:
    old = work(acme, "s1", root="/a/shop").project
    new = work(acme, "s2", root="/b/shop").project
    assert old is not None and new is not None
    assert [likeness.why for likeness in projects.likely_same(Project.objects.all())] == ["both are called shop"]
    projects.merge(old, into=new, by=member_actor(alice))
    assert work(acme, "s3", root="/a/shop").project == new
    assert Session.objects.get(key="s1").project == new
    assert list(Project.objects.current()) == [new]
    with pytest.raises(projects.CannotMerge):
        projects.merge(old, into=new, by=member_actor(alice))
    with pytest.raises(projects.CannotMerge):
        projects.merge(new, into=new, by=member_actor(alice))


def test_mapping_a_place_adopts_what_worked_there(acme: Tenant, alice: Member) -> None:
    project = work(acme, "s1", root="/a/shop").project
    assert project is not None
    home = Home("codex", "lost", "", "/tmp")
    store(str(acme.pk), None, [Arrival(home, "X", "other", "lost", b"{}", cwd="/tmp")])
    projects.map_root(project, "root", "/tmp", by=member_actor(alice))
    assert Session.objects.get(key="lost").project == project
    assert work(acme, "s4", root="/tmp").project == project
    other = work(acme, "s2", root="/b/other").project
    assert other is not None
    with pytest.raises(projects.PlaceTaken):
        projects.map_root(other, "root", "/tmp", by=member_actor(alice))


def test_a_reviewer_may_not_merge(acme: Tenant, bob: Member) -> None:
    one, two = (work(acme, root, root=root).project for root in ("/a/x", "/b/y"))
    assert one is not None and two is not None
    with pytest.raises(Refused):
        projects.merge(one, into=two, by=member_actor(bob))
