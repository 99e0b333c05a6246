"""Agent keys and login links: made once, shown once, kept as SHA-256."""

import hashlib
import secrets
import string
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from memory.tenants import audit
from memory.tenants.access import DEFAULT_SCOPES, SCOPES, Actor, require
from memory.tenants.models import AgentKey, LoginLink, Member, Tenant

ALPHABET: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
PREFIX: Final = "tm_live_"
LINK_LIFE: Final = timedelta(days=7)
KEY_LIFE: Final = timedelta(days=365)


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


def make_key(member: Member, *, name: str, scopes: Sequence[str] = DEFAULT_SCOPES, by: Actor) -> tuple[AgentKey, str]:
    """A new key of a member, and its secret, which nobody can read again. Raises Refused, ValueError."""
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
        expires_at=timezone.now() + KEY_LIFE,
    )
    audit.record(by, "key.create", key.public_id, after=key.display)
    return key, secret


def usable_keys(member: Member) -> "QuerySet[AgentKey]":
    """A member's keys that open the door, the newest first."""
    open_now = member.keys.filter(revoked_at__isnull=True).exclude(expires_at__lte=timezone.now())
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


def _link(sql: str, token: str) -> Link | None:
    with connection.cursor() as cursor:
        cursor.execute(sql, [digest(token)])
        row = cursor.fetchone()
    return Link(str(row[0]), row[1]) if row else None
