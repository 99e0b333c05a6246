"""Teams and the people in them."""

import re
from dataclasses import dataclass

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import connection, transaction

from memory.tenants import audit, keys, rls
from memory.tenants.access import command_actor
from memory.tenants.models import Member, Tenant, User

SLUG = re.compile(r"^[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?$")


class InvalidTeam(ValueError):
    """The slug or the address can't be used; the message says what can."""


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


def found_team(slug: str, *, owner: str, new_link: bool = False, new_key: bool = False) -> Founded:
    """The team called `slug` with `owner` (an e-mail address) as its owner, made where it is missing.

    A new team gets a login link and an agent key; an old one only what is asked for. Raises InvalidTeam.
    """
    if not SLUG.fullmatch(slug):
        raise InvalidTeam(f"{slug!r} can't be a team's slug: use 1 to 60 of a-z, 0-9 and -, e.g. acme.")
    email = owner.strip().lower()
    try:
        # The first start makes owner@localhost, which is an address without a dot.
        validate_email(email.replace("@localhost", "@localhost.test"))
    except ValidationError:
        raise InvalidTeam(f"{owner!r} is not an e-mail address.") from None
    known = tenant_by_slug(slug)
    tenant = Tenant(slug=slug, name=slug) if known is None else Tenant(pk=known)
    with transaction.atomic():
        rls.bind(str(tenant.pk))
        if known is None:
            tenant.save(force_insert=True)
        tenant = Tenant.objects.get(pk=tenant.pk)
        by = command_actor(tenant, "manage.py create_tenant")
        member, is_new = _owner(tenant, email)
        if known is None:
            audit.record(by, "member.manage", tenant.public_id, after=f"{slug}, owner {member.public_id}")
        return Founded(
            tenant,
            keys.make_login_link(member, by=by) if is_new or new_link else None,
            keys.make_key(member, name="first key", by=by)[1] if is_new or new_key else None,
        )


def _owner(tenant: Tenant, email: str) -> tuple[Member, bool]:
    user = User.objects.filter(email=email).first() or User.objects.create_user(email)
    member = Member.objects.filter(tenant=tenant, user=user).first()
    if member is not None:
        return member, False
    if Member.objects.filter(tenant=tenant).exists():
        raise InvalidTeam(f"The team {tenant.slug!r} exists and {email} is not in it. Its owner can add people.")
    return Member.objects.create(tenant=tenant, user=user, handle=free_handle(tenant, email), role="owner"), True


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


def user_by_key(user_pk: str) -> User:
    return User.objects.get(pk=user_pk)
