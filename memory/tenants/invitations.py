"""Invitations: a link that lets one address into a team, once, within seven days."""

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from memory.tenants import audit, rls
from memory.tenants.access import Actor, Refused, member_actor, require
from memory.tenants.keys import digest
from memory.tenants.models import Invitation, Member, Role, Tenant, User
from memory.tenants.people import InvalidMember, address, free_handle, require_still

LIFE: Final = timedelta(days=7)


@dataclass(frozen=True)
class Offer:
    """What an invitation's link offers, and to whom."""

    tenant_pk: str
    invitation_pk: str
    slug: str
    team: str
    email: str
    role: str


def invite(tenant: Tenant, email: str, *, role: str, by: Actor) -> tuple[Invitation, str]:
    """An invitation and its link, which nobody can read again; an open one for the address ends. Raises Refused,
    InvalidMember.
    """
    require(by, "member.manage")
    if role == Role.OWNER and by.role != Role.OWNER:
        raise Refused("member.manage")
    known = address(email)
    if known is None or role not in Role.values:
        raise InvalidMember(
            gettext("%(email)s is not an e-mail address, or %(role)s is no role.")
            % {"email": repr(email), "role": repr(role)}
        )
    Tenant.objects.select_for_update().get(pk=tenant.pk)
    require_still(by)
    if Member.objects.current().filter(tenant=tenant, user__email=known).exists():
        raise InvalidMember(gettext("%(known)s is in the team already.") % {"known": known})
    open_invitations(tenant).filter(email=known).update(withdrawn_at=timezone.now())
    # One that has expired keeps the address until it is withdrawn.
    Invitation.objects.filter(tenant=tenant, email=known, accepted_at=None, withdrawn_at=None).update(
        withdrawn_at=timezone.now()
    )
    token = secrets.token_urlsafe(32)
    made = Invitation.objects.create(
        tenant=tenant,
        email=known,
        role=role,
        invited_by=Member.objects.get(tenant=tenant, public_id=by.id),
        hash=digest(token),
        expires_at=timezone.now() + LIFE,
    )
    audit.record(by, "member.invite", made.public_id, after=f"{known} as {role}")
    return made, f"{settings.PUBLIC_URL}/invite/{token}/"


def open_invitations(tenant: Tenant) -> "QuerySet[Invitation]":
    """Those that can be accepted now, the latest first."""
    waiting = Invitation.objects.filter(tenant=tenant, accepted_at=None, withdrawn_at=None)
    return waiting.filter(expires_at__gt=timezone.now()).order_by("-created_at", "-id")


def withdraw(invitation: Invitation, *, by: Actor) -> None:
    """End an invitation. Raises Refused."""
    require(by, "member.manage")
    waiting = Invitation.objects.filter(pk=invitation.pk, accepted_at=None, withdrawn_at=None)
    if waiting.update(withdrawn_at=timezone.now()):
        audit.record(by, "member.uninvite", invitation.public_id, before=f"{invitation.email} as {invitation.role}")


def peek(token: str) -> Offer | None:
    """What the link offers now; None where it is unknown, used, withdrawn or too old."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tenant_id, invitation_id, slug, name, email, role FROM peek_invitation(%s)", [digest(token)]
        )
        row = cursor.fetchone()
    return Offer(str(row[0]), str(row[1]), *row[2:]) if row else None


def has_account(email: str) -> bool:
    """Whether somebody can log in by this address: then only they may accept what is meant for it."""
    user = User.objects.filter(email=email).first()
    return user is not None


def accept(offer: Offer, user: User, *, ip: str = "", request_id: str = "") -> Member | None:
    """Let the user in whom the invitation is meant for; None where it was used a moment before."""
    if user.email != offer.email:
        return None
    with rls.tenant_scope(offer.tenant_pk):
        tenant = Tenant.objects.select_for_update().get(pk=offer.tenant_pk)
        waiting = Invitation.objects.filter(pk=offer.invitation_pk, accepted_at=None, withdrawn_at=None)
        if not waiting.update(accepted_at=timezone.now()):
            return None
        member = Member.objects.filter(tenant=tenant, user=user).first()
        if member is None:
            member = Member(tenant=tenant, user=user, handle=free_handle(tenant, user.email))
        member.role, member.removed_at = offer.role, None
        member.save()
        actor = member_actor(member, ip=ip, request_id=request_id)
        audit.record(actor, "member.join", member.public_id, after=offer.role)
        return member
