"""Teams and the people in them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from django.utils.translation import gettext

from memory.tenants import audit, keys, outbox, outgoing, rls
from memory.tenants.access import DEFAULT_SCOPES, Actor, Refused, command_actor, member_actor, require
from memory.tenants.models import LoginLink, Member, Role, Tenant, User

SLUG = re.compile(r"^[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?$")


class InvalidTeam(ValueError):
    """The slug or the address can't be used; the message says what can."""


class InvalidMember(ValueError):
    """Nobody can be in the team that way; the message says why."""


@dataclass(frozen=True)
class Founded:
    """A team, and the secrets that are shown once. A secret that was not asked for is None."""

    tenant: Tenant
    login_url: str | None
    agent_key: str | None


def tenant_by_slug(slug: str) -> str | None:
    """The internal key of a team, or None."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tenant_by_slug(%s)", [slug])
        found = cursor.fetchone()[0]
    return str(found) if found else None


def address(typed: str) -> str | None:
    """An e-mail address as it is stored, or None where it is none."""
    email = typed.strip().lower()
    try:
        # The first start makes owner@localhost, which is an address without a dot.
        validate_email(email.replace("@localhost", "@localhost.test"))
    except ValidationError:
        return None
    return email


def require_slug(slug: str) -> None:
    """Raises InvalidTeam unless this can be a team's short name."""
    if not SLUG.fullmatch(slug):
        raise InvalidTeam(
            gettext("%(slug)s can't be a team's slug: use 1 to 60 of a-z, 0-9 and -, e.g. acme.") % {"slug": repr(slug)}
        )


def found_team(
    slug: str,
    *,
    owner: str,
    new_link: bool = False,
    new_key: bool = False,
    scopes: Sequence[str] = DEFAULT_SCOPES,
    projects: Sequence[str] = (),
) -> Founded:
    """The team called `slug` with `owner` (an e-mail address) as its owner, made where it is missing.

    A new team gets a login link and an agent key; an old one only what is asked for. The key works in all projects, or
    in those with these slugs. Raises InvalidTeam.
    """
    require_slug(slug)
    email = address(owner)
    if email is None:
        raise InvalidTeam(gettext("%(owner)s is not an e-mail address.") % {"owner": repr(owner)})
    known = tenant_by_slug(slug)
    tenant = Tenant(slug=slug, name=slug) if known is None else Tenant(pk=known)
    with transaction.atomic():
        rls.bind(str(tenant.pk))
        if known is None:
            _insert(tenant)
        tenant = Tenant.objects.get(pk=tenant.pk)
        by = command_actor(tenant, "manage.py create_tenant")
        member, is_new = _owner(tenant, email)
        if known is None:
            audit.record(by, "member.manage", tenant.public_id, after=f"{slug}, owner {member.public_id}")
        link = keys.make_login_link(member, by=by) if is_new or new_link else None
        if not (is_new or new_key):
            return Founded(tenant, link, None)
        only = _projects(tenant, projects) if projects else None
        _, secret = keys.make_key(member, name="first key", scopes=scopes, only_projects=only, by=by)
        return Founded(tenant, link, secret)


def _projects(tenant: Tenant, slugs: Sequence[str]) -> list[UUID]:
    known: dict[str, UUID] = dict(tenant.projects.current().filter(slug__in=slugs).values_list("slug", "pk"))
    missing = sorted(set(slugs) - set(known))
    if missing:
        raise InvalidTeam(
            gettext("The team has no project %(missing)s. The page Projects shows the slugs.")
            % {"missing": ", ".join(missing)}
        )
    return list(known.values())


def _owner(tenant: Tenant, email: str) -> tuple[Member, bool]:
    user = User.objects.filter(email=email).first() or User.objects.create_user(email)
    member = Member.objects.filter(tenant=tenant, user=user).first()
    if member is not None:
        return member, False
    if Member.objects.filter(tenant=tenant).exists():
        raise InvalidTeam(
            gettext("The team %(slug)s exists and %(email)s is not in it. Add people by manage.py add_member.")
            % {"slug": repr(tenant.slug), "email": email}
        )
    return first_owner(tenant, email), True


def _insert(tenant: Tenant) -> None:
    try:
        with transaction.atomic():
            tenant.save(force_insert=True)
    except IntegrityError:
        # Suspended ones are found by no name.
        raise InvalidTeam(
            gettext("The team %(slug)s is suspended: manage.py resume_tenant %(slug_2)s")
            % {"slug": f"{tenant.slug!r}", "slug_2": tenant.slug}
        ) from None


def first_owner(tenant: Tenant, email: str) -> Member:
    """The owner of a new team, with an account if they have none. Inside the bound transaction."""
    user = User.objects.filter(email=email).first() or User.objects.create_user(email)
    return Member.objects.create(tenant=tenant, user=user, handle=free_handle(tenant, email), role="owner")


@dataclass(frozen=True)
class Added:
    """A member as they now are, and what that took."""

    member: Member
    is_new: bool
    former_role: str | None


def add_member(tenant: Tenant, email: str, *, role: str | None = None, by: Actor) -> Added:
    """Let `email` into the team, or back into it, or give a member another role; the same again changes nothing.

    With no role a member keeps theirs and a new one is "member". Inside the bound transaction. Raises Refused,
    InvalidMember.
    """
    require(by, "member.manage")
    known = address(email)
    if known is None:
        raise InvalidMember(gettext("%(email)s is not an e-mail address.") % {"email": repr(email)})
    if role is not None and role not in Role.values:
        raise InvalidMember(
            gettext("%(role)s is no role: use %(values)s.") % {"role": repr(role), "values": ", ".join(Role.values)}
        )
    # Of two that lower the last two owners one must wait, and then sees that only one is left.
    Tenant.objects.select_for_update().get(pk=tenant.pk)
    require_still(by)
    user = User.objects.filter(email=known).first() or User.objects.create_user(known)
    member = Member.objects.filter(tenant=tenant, user=user).first()
    former = member.role if member and not member.removed_at else None
    wanted = role or former or Role.MEMBER.value
    if wanted == former and member:
        return Added(member, False, former)
    if "owner" in (wanted, former) and by.role != "owner":
        raise Refused("member.manage")
    if former == "owner" and not _other_owner(tenant, user):
        raise InvalidMember(
            gettext("%(known)s is the only owner of %(slug)s: make another owner first.")
            % {"known": known, "slug": tenant.slug}
        )
    if member is None:
        member = Member(tenant=tenant, user=user, handle=free_handle(tenant, known))
    member.role, member.removed_at = wanted, None
    member.save()
    audit.record(by, "member.manage", member.public_id, before=former or "", after=wanted)
    return Added(member, former is None, former)


def require_still(by: Actor) -> None:
    """Raises Refused where a member was lowered or removed while they waited for the team's lock: what they may was
    read before it.
    """
    if by.kind != "member":
        return
    if by.member_pk is None or not Member.objects.current().filter(pk=by.member_pk, role=by.role).exists():
        raise Refused("member.manage")


def _other_owner(tenant: Tenant, user: User) -> bool:
    return Member.objects.current().filter(tenant=tenant, role="owner").exclude(user=user).exists()


def free_handle(tenant: Tenant, email: str) -> str:
    """A handle made from the address, with a number where it is taken."""
    stem = re.sub(r"[^a-z0-9]+", "-", email.split("@", 1)[0].lower()).strip("-")[:50] or "member"
    taken = set(Member.objects.filter(tenant=tenant, handle__startswith=stem).values_list("handle", flat=True))
    return next(handle for handle in (stem, *(f"{stem}-{n}" for n in range(2, 1000))) if handle not in taken)


@dataclass(frozen=True)
class Membership:
    """One team of a user, as the choosing page shows it."""

    tenant: Tenant
    role: str


def teams_of(user_pk: str) -> list[Membership]:
    """The teams of a user, in order of their slug."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tenant_id, slug, name, role FROM user_tenants(%s)", [user_pk])
        return [Membership(Tenant(pk=row[0], slug=row[1], name=row[2]), row[3]) for row in cursor.fetchall()]


@dataclass(frozen=True)
class Suspended:
    """A suspended team of a user, and when it is to be deleted, if it is."""

    tenant: Tenant
    delete_at: datetime | None


def suspended_teams_of(user_pk: str) -> list[Suspended]:
    """The suspended teams that a user is in, in order of their slug."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tenant_id, slug, name, delete_at FROM suspended_teams(%s)", [user_pk])
        return [Suspended(Tenant(pk=row[0], slug=row[1], name=row[2]), row[3]) for row in cursor.fetchall()]


def user_by_key(user_pk: str) -> User:
    return User.objects.get(pk=user_pk)


def login_link_for(member: Member, *, by: Actor) -> str:
    """A login link for a member who lost their password. Raises Refused, InvalidMember.

    Not for who is in other teams too: the link would let whoever holds it into those.
    """
    require(by, "member.manage")
    if member.role == "owner" and by.role != "owner":
        raise Refused("member.manage")
    if member.user.is_operator:
        # It would open every team's door to whoever holds it.
        raise InvalidMember(
            gettext("%(email)s runs this server: manage.py login_link %(email)s") % {"email": member.user.email}
        )
    if len(teams_of(str(member.user_id))) > 1:
        raise InvalidMember(
            gettext(
                "%(email)s is in other teams too. Whoever runs the server makes a link: manage.py login_link %(email)s"
            )
            % {"email": member.user.email}
        )
    return keys.make_login_link(member, by=by)


def mail_own_link(user: User, *, slug: str | None = None, ip: str = "", request_id: str = "") -> bool:
    """Mail a person a login link of their own; False where one went a moment ago, or there is no mail or no team."""
    member = membership_of(user.email, slug=slug)
    if member is None or not outgoing.has_mail():
        return False
    with rls.tenant_scope(str(member.tenant_id)):
        # Of two presses at once the second waits here, and sees the first one's link.
        Tenant.objects.select_for_update().get(pk=member.tenant_id)
        just_now = timezone.now() - timedelta(minutes=2)
        if LoginLink.objects.filter(tenant=member.tenant_id, user=user, created_at__gt=just_now).exists():
            return False
        url = keys.make_login_link(member, by=member_actor(member, ip=ip, request_id=request_id))
        text = (
            f"Open this link in the browser in which you were asked who you are:\n\n{url}\n\nIt works once, for seven"
            " days. If you asked for nothing, ignore this mail.\n"
        )
        outbox.mail(member.tenant, user.email, "Your login link for Team Memory", text)
        return True


def change_role(member: Member, role: str, *, by: Actor) -> None:
    """Another role for a member. Raises Refused, InvalidMember."""
    add_member(Tenant.objects.get(pk=member.tenant_id), member.user.email, role=role, by=by)


def remove_member(member: Member, *, by: Actor) -> None:
    """Take a member, and what their keys open, out of the team; what they did stays theirs. One may also leave.

    Raises Refused, InvalidMember.
    """
    if str(member.pk) != by.member_pk:
        require(by, "member.manage")
    # Of the last two owners that remove each other one must wait, and then sees that it would be the last.
    tenant = Tenant.objects.select_for_update().get(pk=member.tenant_id)
    require_still(by)
    locked = Member.objects.select_related("user").get(pk=member.pk)
    if locked.removed_at is not None:
        return
    if locked.role == "owner" and str(member.pk) != by.member_pk and by.role != "owner":
        raise Refused("member.manage")
    if locked.role == "owner" and not _other_owner(tenant, locked.user):
        raise InvalidMember(
            gettext("%(email)s is the only owner of %(slug)s: make another owner first.")
            % {"email": locked.user.email, "slug": tenant.slug}
        )
    locked.removed_at = timezone.now()
    locked.save(update_fields=["removed_at"])
    # They stop with their member, and must not come back with them.
    ended = locked.keys.filter(revoked_at__isnull=True).update(revoked_at=timezone.now())
    audit.record(by, "member.remove", locked.public_id, before=locked.role, after=f"{ended} keys revoked")


def record_in_teams(
    user: User,
    action: str,
    *,
    before: str = "",
    after: str = "",
    outcome: str = "done",
    ip: str = "",
    request_id: str = "",
) -> None:
    """What a person did to their own account, or was refused, in the audit of each team that trusts it."""
    for team in teams_of(str(user.pk)):
        with rls.tenant_scope(str(team.tenant.pk)):
            member = Member.objects.get(tenant=team.tenant, user=user)
            actor = member_actor(member, ip=ip, request_id=request_id)
            audit.record(actor, action, member.public_id, before=before, after=after, outcome=outcome)


def new_user(email: str) -> User:
    """A person who has no account yet, not stored."""
    return User(email=email)


def keep_user(user: User, password: str | None) -> User | None:
    """The account with its first password, or with none; None where another request made one for the address a moment
    before.
    """
    user.set_password(password)
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError:
        return None
    return user


def membership_of(email: str, *, slug: str | None = None) -> Member | None:
    """The membership of a person in the team called `slug`, or in their first one; None where there is none."""
    user = User.objects.filter(email=email).first()
    teams = [team.tenant for team in teams_of(str(user.pk)) if slug in (None, team.tenant.slug)] if user else []
    if not teams:
        return None
    with rls.tenant_scope(str(teams[0].pk)):
        return Member.objects.select_related("tenant", "user").get(tenant=teams[0], user=user)
