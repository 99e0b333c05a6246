"""Projects: which places belong to one, which are likely the same, and how a person brings them together."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.db import connection, transaction
from django.db.models import Count, Max, Q, QuerySet
from django.utils.translation import gettext

from memory.events.models import Project, ProjectRoot, Session
from memory.events.places import normal_remote, normal_root
from memory.tenants import access, audit
from memory.tenants.access import Actor


class CannotMerge(ValueError):
    """The two are one already, or one of them is merged away; the message says which."""


class PlaceTaken(ValueError):
    """The place belongs to another project; `project` names it."""

    def __init__(self, place: str, project: Project) -> None:
        super().__init__(
            gettext("%(place)s belongs to %(slug)s. Merge the two projects instead.")
            % {"place": place, "slug": project.slug}
        )
        self.project = project


@dataclass(frozen=True)
class Likeness:
    """Two projects that are probably one, and why."""

    one: Project
    other: Project
    why: str


def with_counts(projects: QuerySet[Project]) -> QuerySet[Project]:
    """Projects with `session_count` and `last_at`."""
    return projects.annotate(
        session_count=Count("sessions", filter=Q(sessions__is_internal=False), distinct=True),
        last_at=Max("sessions__last_received_at"),
    )


def at(*, remote: str, root: str) -> Project | None:
    """The project known at a place, by its remote or else by the folder or the nearest one above; nothing is made."""
    known = ProjectRoot.objects.select_related("project__merged_into")
    address, folder = normal_remote(remote), normal_root(root)
    if address and (found := known.filter(kind="remote", place=address).first()):
        return found.project
    above = [folder]
    while "/" in above[-1].lstrip("/"):
        above.append(above[-1].rpartition("/")[0])
    places = {row.place: row.project for row in known.filter(kind="root", place__in=[one for one in above if one])}
    return next((places[one] for one in above if one in places), None)


def merge(project: Project, *, into: Project, by: Actor) -> None:
    """Make `project` a part of `into`: its places and sessions go over, and whatever comes from there follows.

    Raises Refused, CannotMerge.
    """
    access.require(by, "project.edit")
    with transaction.atomic():
        _one_change_at_a_time(project)
        locked = {
            str(row.pk): row
            for row in Project.objects.select_for_update().filter(pk__in=[project.pk, into.pk]).order_by("pk")
        }
        if project.pk == into.pk or len(locked) != 2:
            raise CannotMerge(gettext("Choose two different projects of this team."))
        if any(row.merged_into_id for row in locked.values()):
            raise CannotMerge(gettext("One of the two is merged into another project already."))
        if locked[str(project.pk)].is_limited:
            # Its notes and sessions would be seen by whoever sees the other one, without a word about it.
            raise CannotMerge(
                gettext("%(name)s is limited to some members. Open it to the whole team first.")
                % {"name": project.name}
            )
        ProjectRoot.objects.filter(project=project).update(project=into)
        Session.objects.filter(project=project).update(project=into)
        Project.objects.filter(Q(pk=project.pk) | Q(merged_into=project)).update(merged_into=into)
        audit.record(by, "project.edit", project.public_id, before=project.slug, after=f"merged into {into.slug}")
    project.merged_into = into


def map_root(project: Project, kind: str, place: str, *, by: Actor) -> ProjectRoot:
    """Say that a place (a normalised remote, or a folder) belongs to a project. Raises Refused, PlaceTaken."""
    access.require(by, "project.edit")
    with transaction.atomic():
        _one_change_at_a_time(project)
        root, made = ProjectRoot.objects.get_or_create(
            tenant_id=project.tenant_id, kind=kind, place=place, defaults={"project": project}
        )
        if root.project_id != project.pk:
            raise PlaceTaken(place, root.project)
        if made:
            _adopt(project, root)
            audit.record(by, "project.edit", project.public_id, after=f"{kind} {place}"[:200])
    return root


def unmap_root(root: ProjectRoot, *, by: Actor) -> None:
    """Forget a place; its sessions stay where they are. Raises Refused."""
    access.require(by, "project.edit")
    with transaction.atomic():
        audit.record(by, "project.edit", root.project.public_id, before=f"{root.kind} {root.place}"[:200])
        root.delete()


def _one_change_at_a_time(project: Project) -> None:
    """The same lock as `place_project` in SQL takes, so that no session is placed meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('project ' || %s, 0))", [str(project.tenant_id)])


def _adopt(project: Project, root: ProjectRoot) -> None:
    """Sessions at the place that had no project get this one."""
    if root.kind == "root":
        at = Q(cwd=root.place) | Q(cwd__startswith=f"{root.place}/")
        Session.objects.filter(at, project__isnull=True).update(project=project)


@dataclass(frozen=True)
class _Known:
    """What two projects are compared by, read once each."""

    project: Project
    remotes: frozenset[str]
    last_parts: tuple[str, ...]
    names: frozenset[str]
    folders: tuple[str, ...]

    @classmethod
    def of(cls, project: Project) -> "_Known":
        roots = list(project.roots.all())
        remotes = frozenset(root.place for root in roots if root.kind == "remote")
        names = frozenset(
            re.sub(r"[^a-z0-9]+", "-", root.place.rsplit("/", 1)[-1].lower()).strip("-") for root in roots
        )
        folders = tuple(root.place for root in roots if root.kind == "root")
        return cls(project, remotes, tuple(sorted(place.rsplit("/", 1)[-1] for place in remotes)), names, folders)

    def stems(self) -> Iterator[str]:
        """The folders that one of its own could be a worktree of, by its name."""
        for folder in self.folders:
            yield from (folder[: cut.start()] for cut in re.finditer(r"(?<=[^/])[-_.]", folder))


def likely_same(projects: QuerySet[Project]) -> list[Likeness]:
    """Pairs to offer for merging: the same name at two places, or a worktree beside its repository."""
    rows = projects.current().prefetch_related("roots").order_by("created_at", "pk")  # type: ignore[attr-defined]
    known = [_Known.of(project) for project in rows]
    found = []
    for place, other in sorted(_pairs(known)):
        why = _likeness(known[place], known[other])
        if why:
            found.append(Likeness(known[place].project, known[other].project, why))
    return found


def _pairs(known: list[_Known]) -> set[tuple[int, int]]:
    """Those that have the last part of an address, a name or a folder in common, by their places: of hundreds of
    projects few have, and to compare each with each takes most of a second.
    """
    alike: dict[tuple[str, str], list[int]] = {}
    holding: dict[str, list[int]] = {}
    for place, one in enumerate(known):
        for mark in {*(("remote", part) for part in one.last_parts), *(("name", name) for name in one.names)}:
            alike.setdefault(mark, []).append(place)
        for folder in one.folders:
            holding.setdefault(folder, []).append(place)
    pairs = {(one, other) for places in alike.values() for at, one in enumerate(places) for other in places[at + 1 :]}
    for place, one in enumerate(known):
        others = {other for stem in one.stems() for other in holding.get(stem, ())} - {place}
        pairs |= {(min(place, other), max(place, other)) for other in others}
    return pairs


def _likeness(one: _Known, other: _Known) -> str:
    for mine in one.last_parts:
        if mine in other.last_parts:
            said = gettext("both remotes are called %(name)s: a fork, or a new address")
            return said % {"name": mine}
    if one.remotes and other.remotes:
        return ""
    if shared := one.names & other.names:
        return gettext("both are called %(name)s") % {"name": min(shared)}
    for folder in one.folders:
        for near in other.folders:
            if _is_worktree(folder, near) or _is_worktree(near, folder):
                said = gettext("%(near)s looks like a worktree of %(folder)s")
                return said % {"near": near, "folder": folder}
    return ""


def _is_worktree(folder: str, near: str) -> bool:
    """`shop-fix-totals` or `shop.wt/fix` beside `shop`; tools put worktrees below a folder of their own too."""
    parent, _, name = folder.rpartition("/")
    if not name or not near.startswith(f"{parent}/"):
        return False
    first = near[len(parent) + 1 :].split("/", 1)[0]
    return first != name and re.match(rf"{re.escape(name)}[-_.]", first) is not None
