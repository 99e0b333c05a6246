"""Who sees a project: everybody, or some members and keys. The database hides it from the others (`look_as`)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from django.db import transaction

from memory.events.models import Project, ProjectAccess
from memory.tenants import access, audit, keys
from memory.tenants.access import ADMINS, Actor
from memory.tenants.models import AgentKey, Member, Tenant

ALL: Final = "all"
_AUDITED: Final = 200
# A member, and the key that alone sees it for them.
Row = tuple[UUID, UUID | None]


@dataclass(frozen=True)
class Seat:
    """A member on the page of a project: whether they see it, by which keys, and whether that can be taken away."""

    member: Member
    is_in: bool
    is_always: bool
    keys: list["SeatKey"] = field(default_factory=list)


@dataclass(frozen=True)
class SeatKey:
    """A key of a member: ticked where only the ticked ones see the project."""

    key: AgentKey
    is_named: bool


def seats(tenant: Tenant, projects: Iterable[Project]) -> dict[object, list[Seat]]:
    """By project: every member with their usable keys, and what each of them sees."""
    people = list(tenant.members.current().select_related("user").order_by("handle"))
    usable: dict[object, list[AgentKey]] = {}
    for key in keys.usable_in(tenant):
        usable.setdefault(key.member_id, []).append(key)
    rows = ProjectAccess.objects.filter(project__in=[one.pk for one in projects])
    named = {(row.project_id, row.member_id, row.key_id) for row in rows}
    members = {(project, member) for project, member, _ in named}
    return {
        project.pk: [
            Seat(
                one,
                not project.is_limited or one.role in ADMINS or (project.pk, one.pk) in members,
                one.role in ADMINS,
                [SeatKey(key, (project.pk, one.pk, key.pk) in named) for key in usable.get(one.pk, ())],
            )
            for one in people
        ]
        for project in projects
    }


def sees(project: Project) -> set[str]:
    """The handles of the members who see a project now."""
    people = Member.objects.current().filter(tenant_id=project.tenant_id)
    if project.is_limited:
        named = ProjectAccess.objects.filter(project=project).values("member_id")
        people = people.filter(role__in=ADMINS) | people.filter(pk__in=named)
    return set(people.values_list("handle", flat=True))


@dataclass(frozen=True)
class Change:
    """Whom a change of a limit took the project from, and whom it gave it to, by handle."""

    lost: list[str]
    gained: list[str]


def limit(project: Project, members: Sequence[Member], *, named_keys: Sequence[AgentKey] = (), by: Actor) -> Change:
    """Let only these members see a project, and owners and admins, who always do.

    Of a member for whom `named_keys` has keys, those keys alone see it; naming a key names its member. Raises Refused.
    """
    access.require(by, "project.limit")
    owners = {key.member_id for key in named_keys}
    rows: set[Row] = {(one.pk, None) for one in members if one.pk not in owners and one.role not in ADMINS}
    rows |= {(key.member_id, key.pk) for key in named_keys}
    return _changed(project, rows, is_limited=True, by=by)


def open_to_all(project: Project, *, by: Actor) -> Change:
    """Let the whole team see a project. Raises Refused."""
    access.require(by, "project.limit")
    return _changed(project, set(), is_limited=False, by=by)


def _changed(project: Project, rows: set[Row], *, is_limited: bool, by: Actor) -> Change:
    with transaction.atomic():
        locked = Project.objects.select_for_update().get(pk=project.pk)
        before, seen = described(locked), sees(locked)
        ProjectAccess.objects.filter(project=locked).delete()
        ProjectAccess.objects.bulk_create(
            ProjectAccess(tenant_id=locked.tenant_id, project=locked, member_id=member, key_id=key)
            for member, key in sorted(rows, key=str)
        )
        locked.is_limited = is_limited
        locked.save(update_fields=["is_limited"])
        after = described(locked)
        if before != after:
            audit.record(by, "project.limit", locked.public_id, before=before, after=after)
    project.is_limited = is_limited
    now = sees(locked)
    return Change(sorted(seen - now), sorted(now - seen))


def described(project: Project) -> str:
    """Who sees a project, for the audit: handles, and the ids of keys where only these see it."""
    if not project.is_limited:
        return ALL
    rows = ProjectAccess.objects.filter(project=project).select_related("member", "key")
    said = sorted(f"{row.member.handle} {row.key.public_id}" if row.key else row.member.handle for row in rows)
    return f"only {', '.join(said) or 'owners and admins'}"[:_AUDITED]
