"""Agent keys and login links: made once, shown once, kept as SHA-256."""

import hashlib
import secrets
import string
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet, Sum
from django.utils import timezone

from memory.tenants import audit
from memory.tenants.access import DEFAULT_SCOPES, MAY, SCOPES, Actor, Refused, require
from memory.tenants.models import RATE_LIMIT, AgentKey, KeyDay, LoginLink, Member, Tenant

ALPHABET: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
PREFIX: Final = "tm_live_"
LINK_LIFE: Final = timedelta(days=7)
KEY_LIFE: Final = timedelta(days=365)
MOST_OVERLAP: Final = timedelta(days=7)


class NotUsable(Exception):
    """The key is revoked, expired, or replaced already."""


def base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, rest = divmod(number, 62)
        digits.append(ALPHABET[rest])
    return "".join(reversed(digits))


def new_secret() -> str:
    """`tm_live_`, 40 base62 characters (238 bits) and a CRC32, so that scanners can tell ours without asking."""
    body = "".join(secrets.choice(ALPHABET) for _ in range(40))
    return f"{PREFIX}{body}{base62(zlib.crc32(body.encode()), 6)}"


def is_well_formed(secret: str) -> bool:
    """True where the prefix, the length and the check sum are right."""
    body, check = secret[len(PREFIX) : -6], secret[-6:]
    return secret.startswith(PREFIX) and len(body) == 40 and check == base62(zlib.crc32(body.encode()), 6)


def digest(secret: str) -> bytes:
    """What is stored of a secret. It has 238 bits, so a slow hash would only slow us."""
    return hashlib.sha256(secret.encode()).digest()


def make_key(
    member: Member,
    *,
    name: str,
    scopes: Sequence[str] = DEFAULT_SCOPES,
    life: timedelta = KEY_LIFE,
    rate_limit: int = RATE_LIMIT,
    only_projects: Sequence[UUID] | None = None,
    rotated_from: AgentKey | None = None,
    by: Actor,
) -> tuple[AgentKey, str]:
    """A new key of a member, and its secret, which nobody can read again.

    `only_projects` are the keys of the projects it works in; None is all that its member sees. Raises Refused,
    ValueError.
    """
    require(by, "key.create")
    unknown = set(scopes) - set(SCOPES)
    if unknown:
        raise ValueError(f"unknown scopes {sorted(unknown)}; known: {sorted(SCOPES)}")
    secret = new_secret()
    key = AgentKey.objects.create(
        tenant_id=member.tenant_id,
        member=member,
        name=name[:120],
        hash=digest(secret),
        display=f"{secret[:11]}…{secret[-4:]}",
        scopes=sorted(scopes),
        expires_at=timezone.now() + min(life, KEY_LIFE),
        rate_limit=rate_limit,
        only_projects=only_projects,
        rotated_from=rotated_from,
    )
    within = "" if only_projects is None else f" in {len(only_projects)} projects"
    opens = f"{key.display} {','.join(key.scopes)} {rate_limit}/min until {key.expires_at:%F}{within}"
    audit.record(by, "key.create", key.public_id, before=rotated_from.public_id if rotated_from else "", after=opens)
    return key, secret


def rotate_key(key: AgentKey, *, overlap: timedelta, by: Actor) -> tuple[AgentKey, str]:
    """A new key in the place of an old one, which stays good for `overlap`. Raises Refused, NotUsable.

    Only its member may: whoever sees the new secret acts as them.
    """
    if str(key.member_id) != by.member_pk:
        raise Refused("key.create")
    locked = AgentKey.objects.select_for_update().get(pk=key.pk)
    now = timezone.now()
    if locked.revoked_at or (locked.expires_at and locked.expires_at <= now):
        raise NotUsable(locked.public_id)
    if AgentKey.objects.filter(rotated_from=locked, revoked_at__isnull=True).exists():
        raise NotUsable(locked.public_id)
    made = make_key(
        key.member,
        name=key.name,
        scopes=key.scopes,
        rate_limit=key.rate_limit,
        only_projects=key.only_projects,
        rotated_from=locked,
        by=by,
    )
    ends = now + min(max(overlap, timedelta(0)), MOST_OVERLAP)
    locked.expires_at = min(locked.expires_at or ends, ends)
    locked.save(update_fields=["expires_at"])
    audit.record(by, "key.rotate", key.public_id, before=key.display, after=f"good until {locked.expires_at:%F %T}")
    return made


def change_key(key: AgentKey, *, name: str, rate_limit: int, by: Actor) -> None:
    """Another name and limit. Raises Refused."""
    if str(key.member_id) != by.member_pk:
        require(by, "member.manage")
    before = f"{key.name} {key.rate_limit}/min"
    key.name, key.rate_limit = name[:120], rate_limit
    key.save(update_fields=["name", "rate_limit"])
    audit.record(by, "key.change", key.public_id, before=before, after=f"{key.name} {rate_limit}/min")


def openable_scopes(role: str) -> list[str]:
    """The scopes that open something to a key of a member with this role."""
    return [scope for scope, actions in SCOPES.items() if any({role, "agent"} <= MAY[action] for action in actions)]


@dataclass(frozen=True)
class Week:
    """What a key asked for in the last seven days, the busiest door first."""

    calls: int
    refused: int
    doors: list[tuple[str, int]]


def week_of(tenant: Tenant) -> dict[object, Week]:
    """By key: what each did this week; a key that did nothing is missing."""
    since = timezone.now().date() - timedelta(days=6)
    rows = KeyDay.objects.filter(tenant=tenant, day__gte=since).values("key_id", "door")
    counted: dict[object, list[tuple[str, int, int]]] = {}
    for row in rows.annotate(sum_calls=Sum("calls"), sum_refused=Sum("refused")).order_by("-sum_calls", "door"):
        counted.setdefault(row["key_id"], []).append((row["door"], row["sum_calls"], row["sum_refused"]))
    return {
        key: Week(
            sum(calls for _, calls, _ in doors),
            sum(refused for *_, refused in doors),
            [(door, calls) for door, calls, _ in doors if calls],
        )
        for key, doors in counted.items()
    }


def free_name(member: Member, wanted: str) -> str:
    """The name for a member's new key, with a number behind it where they have a key of that name that is in use."""
    taken = set(usable_keys(member).filter(name__startswith=wanted).values_list("name", flat=True))
    return next(name for name in (wanted, *(f"{wanted} {n}" for n in range(2, len(taken) + 3))) if name not in taken)


def is_open(key: AgentKey) -> bool:
    """Whether the key opens the door now."""
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > timezone.now())


def usable_keys(member: Member) -> "QuerySet[AgentKey]":
    """A member's keys that open the door, the newest first."""
    return _usable(member.keys.all())


def usable_in(tenant: Tenant) -> "QuerySet[AgentKey]":
    """The keys of a team that open the door, whose ever they are, the newest first."""
    return _usable(tenant.keys.all())


def _usable(keys: "QuerySet[AgentKey]") -> "QuerySet[AgentKey]":
    open_now = keys.filter(revoked_at__isnull=True).exclude(expires_at__lte=timezone.now())
    return open_now.order_by("-created_at", "-id")


def revocable_keys(tenant: Tenant, *, by: Actor) -> "QuerySet[AgentKey]":
    """The keys whose end this actor may decide: their own, or all for who manages members."""
    if by.may("member.manage"):
        return tenant.keys.all()
    return tenant.keys.filter(member_id=by.member_pk) if by.member_pk else tenant.keys.none()


def revoke_key(key: AgentKey, *, by: Actor) -> None:
    """Stop a key; it is checked at every request, so it works from the next one on."""
    if str(key.member_id) != by.member_pk:
        require(by, "member.manage")
    if AgentKey.objects.filter(pk=key.pk, revoked_at__isnull=True).update(revoked_at=timezone.now()):
        audit.record(by, "key.revoke", key.public_id, before=key.display)


def make_login_link(member: Member, *, by: Actor) -> str:
    """A one-time link for a member, valid for seven days."""
    token = secrets.token_urlsafe(32)
    LoginLink.objects.create(
        tenant_id=member.tenant_id,
        user_id=member.user_id,
        hash=digest(token),
        expires_at=timezone.now() + LINK_LIFE,
    )
    audit.record(by, "login_link.make", member.public_id)
    return f"{settings.PUBLIC_URL}/login/link/{token}/"


@dataclass(frozen=True)
class Link:
    """Whom a login link lets in, and where."""

    user_pk: str
    tenant_slug: str


def peek_link(token: str) -> Link | None:
    """Whom the link would let in; it is not used up."""
    return _link("SELECT user_id, slug FROM peek_login_link(%s)", token)


def claim_link(token: str) -> Link | None:
    """Use the link up. None where it is unknown, used or expired; of two claims one wins."""
    return _link("SELECT user_id, slug FROM claim_login_link(%s)", token)


def end_links(user_pk: str) -> int:
    """End the unused login links of a person, whoever made them; gives how many."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT end_login_links(%s)", [user_pk])
        return int(cursor.fetchone()[0])


def _link(sql: str, token: str) -> Link | None:
    with connection.cursor() as cursor:
        cursor.execute(sql, [digest(token)])
        row = cursor.fetchone()
    return Link(str(row[0]), row[1]) if row else None
