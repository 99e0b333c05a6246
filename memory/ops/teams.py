"""What an operator does with teams: make, suspend, resume, export, delete. Each is a line of the team's audit and of
the operators' log, which outlives the team.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import psycopg
from django.conf import settings
from django.core.files.storage import storages
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext

from memory.graph import bodies
from memory.settings import connection as parameters_of
from memory.tenants import audit, due, keys, people, rls
from memory.tenants.access import Actor
from memory.tenants.models import Member, OperatorEntry, Tenant, User

PAGE: Final = 50
_COLUMNS: Final = (
    "tenant_id, public_id, slug, name, created_at, suspended_at, delete_at, members, sessions, events, notes, active_at"
)


class Refused(ValueError):
    """It can't be done as things stand; the message says why."""


@dataclass(frozen=True)
class Operator:
    """Whoever acts: an operator in the browser, or a command on the server. `pk` is the user's, "" for a command."""

    kind: str
    label: str
    pk: str = ""
    ip: str = ""
    request_id: str = ""

    def actor(self, tenant: Tenant) -> Actor:
        """The same in the audit of a team."""
        return Actor(
            self.kind,
            self.label[:100],
            self.label,
            "owner",
            str(tenant.pk),
            ip=self.ip,
            request_id=self.request_id,
        )


def command(name: str) -> Operator:
    """A command on the server."""
    return Operator("command", f"manage.py {name}")


@dataclass(frozen=True)
class Team:
    """A team as operators see it: figures, never what is in it. Events and sessions without the deleted ones."""

    pk: str
    public_id: str
    slug: str
    name: str
    created_at: datetime
    suspended_at: datetime | None
    delete_at: datetime | None
    members: int
    sessions: int
    events: int
    notes: int
    active_at: datetime | None

    @property
    def state(self) -> str:
        """active, suspended, or leaving: its deletion is decided."""
        return "leaving" if self.delete_at else "suspended" if self.suspended_at else "active"


def listed(user_pk: str, *, words: str = "", after: str = "", most: int = PAGE) -> list[Team]:
    """Teams in order of their slug, the first after `after`; none for who is no operator."""
    return _asked(user_pk, None, words, after, most)


def one(user_pk: str, slug: str) -> Team | None:
    """The team called `slug`; None for who is no operator."""
    return next(iter(_asked(user_pk, slug, "", "", 1)), None)


def _asked(user_pk: str, *values: Any) -> list[Team]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_COLUMNS} FROM operator_tenants(%s, %s, %s, %s, %s)", [user_pk, *values])  # noqa: S608
        return [_team(row) for row in cursor.fetchall()]


def on_server(slug: str | None = None) -> list[Team]:
    """The teams, or the one called `slug`, for a command on the server: as the backup role, which sees all."""
    with psycopg.connect(**parameters_of("backup")) as backup:
        values = [slug, 1 if slug else 1_000_000]
        rows = backup.execute(f"SELECT {_COLUMNS} FROM tenant_figures(%s, '', '', %s)", values).fetchall()  # noqa: S608
    return [_team(row) for row in rows]


def _team(row: tuple[Any, ...]) -> Team:
    return Team(str(row[0]), *row[1:])


@dataclass(frozen=True)
class Made:
    """A new team, and its owner's login link; "" where the owner has an account and comes in as ever."""

    slug: str
    owner: str
    login_url: str


def make(slug: str, *, name: str, owner: str, by: Operator) -> Made:
    """A team with an owner (an e-mail address). Raises people.InvalidTeam, Refused."""
    people.require_slug(slug)
    email = people.address(owner)
    if email is None:
        raise people.InvalidTeam(gettext("%(owner)s is not an e-mail address.") % {"owner": repr(owner)})
    tenant = Tenant(slug=slug, name=name.strip() or slug)
    try:
        with rls.tenant_scope(str(tenant.pk)):
            tenant.save(force_insert=True)
            has_account = User.objects.filter(email=email).exists()
            member = people.first_owner(tenant, email)
            _record(by, tenant, "team.create", after=f"owner {email}")
            # A link is a way into all teams of its person: who has an account keeps their own ways in.
            link = "" if has_account else keys.make_login_link(member, by=by.actor(tenant))
    except IntegrityError as taken:
        if "slug" not in str(taken):
            raise
        raise Refused(gettext("The slug %(slug)s is taken.") % {"slug": slug}) from None
    return Made(slug, email, link)


def suspend(team: Team, *, by: Operator, reason: str = "") -> None:
    """From here on its keys and pages are refused and nothing works for it; all stays. Raises Refused."""
    with rls.tenant_scope(team.pk):
        if not Tenant.objects.filter(pk=team.pk, suspended_at=None).update(suspended_at=timezone.now()):
            raise Refused(gettext("%(slug)s is suspended already.") % {"slug": team.slug})
        due.take_all_back(team.pk)
        _record(by, Tenant.objects.get(pk=team.pk), "team.suspend", after=reason)


def resume(team: Team, *, by: Operator) -> None:
    """Everything goes on; what waited comes in. Raises Refused."""
    with rls.tenant_scope(team.pk):
        rows = Tenant.objects.filter(pk=team.pk, suspended_at__isnull=False, delete_at=None)
        if not rows.update(suspended_at=None):
            raise Refused(
                gettext("%(slug)s is not suspended, or is to be deleted: take that back first.") % {"slug": team.slug}
            )
        _record(by, Tenant.objects.get(pk=team.pk), "team.resume")


def mark(team: Team, *, by: Operator, at_once: bool = False) -> datetime:
    """Suspend the team and say when all of it goes; gives that time. Raises Refused."""
    now = timezone.now()
    at = now if at_once else now + timedelta(days=settings.DELETE_GRACE_DAYS)
    with rls.tenant_scope(team.pk):
        tenant = Tenant.objects.select_for_update().filter(pk=team.pk).first()
        if tenant is None or (tenant.delete_at is not None and not at_once):
            raise Refused(gettext("%(slug)s is marked already.") % {"slug": team.slug})
        if tenant.suspended_at is None:
            due.take_all_back(team.pk)
        Tenant.objects.filter(pk=team.pk).update(
            suspended_at=tenant.suspended_at or now, delete_at=Now() if at_once else at
        )
        _record(by, tenant, "team.delete", after=f"goes at {at:%Y-%m-%d %H:%M} UTC")
    return at


def keep(team: Team, *, by: Operator) -> None:
    """Take a deletion back. The team stays suspended. Raises Refused."""
    with rls.tenant_scope(team.pk):
        rows = Tenant.objects.filter(pk=team.pk, delete_at__gt=timezone.now())
        if not rows.update(delete_at=None):
            raise Refused(gettext("%(slug)s is not marked for deletion, or its time is over.") % {"slug": team.slug})
        _record(by, Tenant.objects.get(pk=team.pk), "team.keep")


def exported(team: Team, *, by: Operator) -> None:
    """Note in both places that all of a team leaves the server."""
    with rls.tenant_scope(team.pk):
        _record(by, Tenant.objects.get(pk=team.pk), "team.export")


def remove_due() -> list[str]:
    """Remove each team whose time is over, with everybody who is in no other; gives the slugs. Safe to run twice."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM tenants_to_remove()")
        waiting = [str(pk) for (pk,) in cursor.fetchall()]
    return [slug for pk in waiting if (slug := _remove(pk))]


def _remove(pk: str) -> str:
    _forget_stored(pk)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT slug, public_id, person FROM remove_tenant(%s)", [pk])
            rows = cursor.fetchall()
        if not rows:
            return ""
        slug, public_id, _ = rows[0]
        User.objects.filter(pk__in=[person for _, _, person in rows if person]).delete()
        log(Operator("server", "the server"), "team.remove", slug, target_id=public_id, after="every row is gone")
    return str(slug)


def _forget_stored(pk: str) -> None:
    """Payloads in the bucket lie in the team's own folder. Before the rows: who is interrupted comes again."""
    if settings.PAYLOADS_IN_STORAGE:
        storage = storages[bodies.STORAGE]
        for name in list(_names(storage, pk)):
            storage.delete(name)


def _names(storage: Any, folder: str) -> Iterator[str]:
    folders, files = storage.listdir(folder)
    yield from (f"{folder}/{name}" for name in files)
    for name in folders:
        yield from _names(storage, f"{folder}/{name}")


def appoint(email: str, *, by: Operator, is_operator: bool = True) -> bool:
    """Make a person an operator, or no longer one; False where they were that already. Raises Refused."""
    user = User.objects.filter(email=people.address(email) or "").first()
    if user is None:
        raise Refused(
            gettext("%(email)s has no account. Add them to a team first: manage.py add_member or create_tenant.")
            % {"email": email}
        )
    if user.is_operator == is_operator:
        return False
    with transaction.atomic():
        User.objects.filter(pk=user.pk).update(is_operator=is_operator)
        # A link that an admin of some team made would open all of them now.
        keys.end_links(str(user.pk))
        action = "operator.add" if is_operator else "operator.remove"
        log(by, action, user.email)
        people.record_in_teams(user, action, after=by.label)
    return True


def operators() -> list[User]:
    """Who runs the server, in order of their address."""
    return list(User.objects.filter(is_operator=True, is_active=True).order_by("email"))


def _record(by: Operator, tenant: Tenant, action: str, *, after: str = "") -> None:
    audit.record(by.actor(tenant), action, tenant.public_id, after=after)
    log(by, action, tenant.slug, target_id=tenant.public_id, after=after)


def log(by: Operator, action: str, target: str, *, target_id: str = "", after: str = "") -> None:
    """A line of the operators' log, inside the running transaction."""
    OperatorEntry.objects.bulk_create(
        [
            OperatorEntry(
                at=timezone.now(),
                actor_kind=by.kind,
                actor_label=by.label[:200],
                action=action,
                target=target,
                target_id=target_id,
                after=after[:200],
                ip=by.ip,
                request_id=by.request_id,
            )
        ]
    )


def logged(user_pk: str, *, before: str | None = None, most: int = 100) -> list[OperatorEntry]:
    """The latest lines of the operators' log, older than the line `before`; none for who is no operator."""
    return list(OperatorEntry.objects.raw("SELECT * FROM operator_log(%s, %s, %s)", [user_pk, before, most]))


def owners_of(pk: str) -> list[Member]:
    """The team's owners: whom to write to about it."""
    with rls.tenant_scope(pk):
        owners = Member.objects.current().filter(tenant_id=pk, role="owner")
        return list(owners.select_related("user").order_by("handle"))
