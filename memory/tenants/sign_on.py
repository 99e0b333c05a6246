"""Single sign-on of a team: where it leads, who comes in by it, and as whom.

Whoever decides where it leads could come in as anybody: an admin's choice lets no owner in, and a login by it opens
this team alone (memory/tenants/entry.py).
"""

import re
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from memory.sentences import retold
from memory.tenants import audit, invitations, oidc, outgoing, people, rls, saml, vault
from memory.tenants.access import Actor, member_actor, require
from memory.tenants.models import Arrival, Identity, Invitation, Member, Role, SignOn, Tenant, User

ROLES: Final = (Role.VIEWER, Role.MEMBER, Role.REVIEWER)
_DOMAIN: Final = re.compile(r"(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+")


class Invalid(ValueError):
    """It can't be set so; the message says what can. `field` is where it belongs."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(why)
        self.field = field


class NotLetIn(Exception):
    """The provider knows the person, and the team does not let them in; `str()` says why, for them."""


@dataclass(frozen=True)
class Wanted:
    """What an admin typed. An empty secret keeps the one that is set. With a `provider` it is SAML, and `issuer`,
    `client_id` and `secret` say nothing.
    """

    issuer: str
    client_id: str
    secret: str
    domains: str
    role: str
    is_required: bool
    provider: saml.Provider | None = None

    @property
    def leads_to(self) -> tuple[str, ...]:
        if self.provider is not None:
            return SignOn.Protocol.SAML, self.provider.issuer, self.provider.sso_url
        return SignOn.Protocol.OIDC, self.issuer, self.client_id

    @property
    def certificates(self) -> set[str]:
        return set(self.provider.certificates) if self.provider is not None else set()


@dataclass(frozen=True)
class Door:
    """A team's single sign-on as its login page needs it."""

    tenant_pk: str
    slug: str
    team: str
    leads_to: oidc.Client | saml.Provider

    @property
    def service(self) -> saml.Service:
        """Who we are to a SAML provider."""
        return service(self.slug)


def service(slug: str) -> saml.Service:
    """Who a team is to a SAML provider, whether it has one or not."""
    base = f"{settings.PUBLIC_URL}/sso/{slug}/saml"
    return saml.Service(entity_id=f"{base}/metadata/", acs=f"{base}/acs/")


def callback(slug: str) -> str:
    """Where the provider sends people back to: to be entered there."""
    return f"{settings.PUBLIC_URL}/sso/{slug}/callback/"


def of(tenant: Tenant) -> SignOn | None:
    """What the team set; None where it set nothing. The tenant must be bound."""
    return SignOn.objects.filter(tenant=tenant).first()


def door(slug: str) -> Door | None:
    """The single sign-on of the team called `slug`; None where there is no such team, or it has none."""
    tenant_pk = people.tenant_by_slug(slug)
    if tenant_pk is None:
        return None
    with rls.tenant_scope(tenant_pk):
        row = SignOn.objects.select_related("tenant").filter(tenant_id=tenant_pk).first()
    if row is None:
        return None
    if row.protocol == SignOn.Protocol.SAML:
        return Door(tenant_pk, slug, row.tenant.name, _provider(row))
    try:
        secret = vault.opened(bytes(row.secret))
    except vault.Unreadable:
        # It can't be used until somebody types the secret again; the settings page says so.
        return None
    client = oidc.Client(row.issuer, row.client_id, secret, callback(slug))
    return Door(tenant_pk, slug, row.tenant.name, client)


def _provider(row: SignOn) -> saml.Provider:
    return saml.Provider(row.issuer, row.sso_url, tuple(row.certificates))


def save(tenant: Tenant, wanted: Wanted, *, signed_on_at: float, by: Actor) -> SignOn:
    """Set it. `signed_on_at` is when this browser last came in by it, in seconds since 1970: who asks all members for
    it has to have tried it. Raises Refused, Invalid.
    """
    require(by, "settings.manage")
    row = SignOn.objects.filter(tenant=tenant).select_for_update().first()
    before = told(row)
    domains = " ".join(sorted(set(wanted.domains.lower().replace(",", " ").replace("@", "").split())))
    _check(wanted, domains, row)
    now = timezone.now()
    is_moved = row is None or _is_moved(row, wanted)
    was = set(row.certificates) if row is not None else set()
    row = row or SignOn(tenant=tenant, connected_at=now)
    if is_moved or was - wanted.certificates:
        # A certificate that is taken away proves nothing any more, and what it proved neither.
        row.connected_at = now
    if is_moved or wanted.certificates - was:
        row.is_for_owners = False
    if is_moved:
        oidc.forget()
    if wanted.is_required and is_moved:
        raise Invalid(
            "is_required", gettext("Save without this, come in by it once yourself, then ask everybody for it.")
        )
    if wanted.is_required and not row.is_required and signed_on_at <= row.connected_at.timestamp():
        raise Invalid("is_required", gettext("Come in by it once yourself first, so that nobody is locked out."))
    _lead(row, wanted)
    row.domains, row.role, row.is_required = domains, wanted.role, wanted.is_required
    row.is_for_owners = row.is_for_owners or by.role == Role.OWNER
    row.changed_by = f"{by.label} ({by.id})"[:200]
    row.save()
    after = f"{told(row)}{', new secret' if wanted.secret else ''}"
    audit.record(by, "sign_on.change", row.issuer, before=before, after=after)
    return row


def _is_moved(row: SignOn, wanted: Wanted) -> bool:
    """Whether it would lead elsewhere. A provider goes from one certificate to the next with one in common."""
    led = (row.protocol, row.issuer, row.sso_url if row.protocol == SignOn.Protocol.SAML else row.client_id)
    return led != wanted.leads_to or (bool(wanted.certificates) and wanted.certificates.isdisjoint(row.certificates))


def _lead(row: SignOn, wanted: Wanted) -> None:
    provider = wanted.provider
    if provider is None:
        row.protocol, row.issuer, row.client_id = SignOn.Protocol.OIDC, wanted.issuer, wanted.client_id
        row.sso_url, row.certificates = "", []
        row.secret = vault.sealed(wanted.secret) if wanted.secret else row.secret
        return
    row.protocol, row.issuer, row.sso_url = SignOn.Protocol.SAML, provider.issuer, provider.sso_url
    row.certificates, row.client_id, row.secret = list(provider.certificates), "", b""


def _check(wanted: Wanted, domains: str, row: SignOn | None) -> None:
    if wanted.provider is None:
        _check_client(wanted, row)
    elif not domains:
        raise Invalid("domains", gettext("Say of which domains: SAML has no word for an address that was verified."))
    wrong = [one for one in domains.split() if not _DOMAIN.fullmatch(one)]
    if wrong:
        raise Invalid(
            "domains", gettext("%(wrong)s is no domain, such as example.org.") % {"wrong": repr(wrong[0][:80])}
        )
    if wanted.role and wanted.role not in ROLES:
        raise Invalid("role", gettext("Who comes for the first time can be %(roles)s.") % {"roles": ", ".join(ROLES)})
    if wanted.role and not domains:
        raise Invalid("domains", gettext("Say of which domains: else everybody whom the provider knows would join."))


def _check_client(wanted: Wanted, row: SignOn | None) -> None:
    try:
        outgoing.check_url(wanted.issuer)
    except outgoing.InvalidAddress as why:
        raise Invalid("issuer", retold(why)) from None
    if "?" in wanted.issuer or "#" in wanted.issuer:
        raise Invalid("issuer", gettext("An issuer has no ? and no #."))
    if (row is None or not row.secret) and not wanted.secret:
        raise Invalid("secret", gettext("The provider gives a secret with the client id."))


def told(row: SignOn | None) -> str:
    """The settings in one line, without the secret."""
    if row is None:
        return "none"
    joins = f"new ones as {row.role}" if row.role else "invited only"
    # Whoever holds the key of a certificate could come in as anybody: which they were stands in the audit.
    signs = " and ".join(saml.shown(one).fingerprint[:32] for one in row.certificates)
    leads_to = f"SAML to {row.sso_url} signed by {signs}" if signs else row.client_id
    return f"{leads_to}, {joins}, {row.domains or 'any domain'}{', required' if row.is_required else ''}"


def remove(tenant: Tenant, *, by: Actor) -> None:
    """Take it away, and what it knew of members. Raises Refused."""
    require(by, "settings.manage")
    row = SignOn.objects.filter(tenant=tenant).first()
    if row is not None:
        Identity.objects.filter(tenant=tenant).delete()
        Arrival.objects.filter(tenant=tenant).delete()
        row.delete()
        audit.record(by, "sign_on.remove", row.issuer, before=told(row))


def unlink(member: Member, *, by: Actor) -> bool:
    """Forget who a member is at the provider: the next login links them anew by their address. Raises Refused."""
    require(by, "member.manage")
    subjects = list(Identity.objects.filter(member=member).values_list("subject", flat=True))
    if not subjects:
        return False
    Identity.objects.filter(member=member).delete()
    audit.record(by, "sign_on.unlink", member.public_id, before=", ".join(subjects))
    return True


def arrive(door: Door, claims: oidc.Claims, *, ip: str = "", request_id: str = "") -> Member:
    """The member whom the provider vouches for, linked or let in where the team's rules say so. A refusal is audited.
    Raises NotLetIn.
    """
    label = claims.email or claims.subject
    who = Actor("sign_on", claims.subject[:100], label, "", door.tenant_pk, ip=ip, request_id=request_id)
    try:
        with rls.tenant_scope(door.tenant_pk):
            return _arrive(door, claims, who)
    except NotLetIn as why:
        _refused(door, str(why), who)
        raise


def refused(door: Door, why: str, *, ip: str = "", request_id: str = "") -> None:
    """Record that what the provider said did not hold."""
    _refused(door, why, Actor("sign_on", "", "single sign-on", "", door.tenant_pk, ip=ip, request_id=request_id))


def _refused(door: Door, why: str, who: Actor) -> None:
    with rls.tenant_scope(door.tenant_pk):
        audit.record(who, "sign_on.enter", door.leads_to.issuer, after=why, outcome="refused")


def _arrive(door: Door, claims: oidc.Claims, who: Actor) -> Member:
    # Two tabs that arrive at once must not link or join twice.
    tenant = Tenant.objects.select_for_update().get(pk=door.tenant_pk)
    row = SignOn.objects.filter(tenant=tenant).first()
    if row is None or not _still(row, door):
        raise NotLetIn(gettext("The team's single sign-on was changed a moment ago. Try again."))
    if not claims.is_verified or not claims.email:
        said = gettext("Your provider tells no e-mail address of yours, or not that it verified it.")
        raise NotLetIn(said)
    if row.domains and claims.email.rpartition("@")[2] not in row.domains.split():
        raise NotLetIn(gettext("The team lets nobody in by an address like %(email)s.") % {"email": claims.email})
    identity = Identity.objects.select_related("member__user", "member__tenant").filter(
        tenant=tenant, issuer=row.authority, subject=claims.subject
    )
    known = identity.first()
    member = known.member if known else _known_by_address(row, claims) or _joined(row, tenant, claims, who)
    if member.removed_at is not None or not member.user.is_active:
        raise NotLetIn(gettext("You are not in this team any more. Ask whoever manages its members."))
    if member.role == Role.OWNER and not row.is_for_owners:
        raise NotLetIn(gettext("Owners come in by this once an owner has saved the team's single sign-on."))
    if known is None:
        _link(row, member, claims, who)
    else:
        identity.update(last_at=timezone.now())
    return member


def _still(row: SignOn, door: Door) -> bool:
    """Whether it leads where it did when the door was opened."""
    if isinstance(door.leads_to, saml.Provider):
        return row.protocol == SignOn.Protocol.SAML and _provider(row) == door.leads_to
    led = (row.protocol, row.issuer, row.client_id)
    return led == (SignOn.Protocol.OIDC, door.leads_to.issuer, door.leads_to.client_id)


def _known_by_address(row: SignOn, claims: oidc.Claims) -> Member | None:
    found = Member.objects.select_related("user", "tenant").filter(tenant=row.tenant_id, user__email=claims.email)
    return found.first()


def _link(row: SignOn, member: Member, claims: oidc.Claims, who: Actor) -> None:
    if Identity.objects.filter(member=member, issuer=row.authority).exists():
        # Addresses are given to others; the provider's own name for a person is not.
        raise NotLetIn(
            gettext("Your provider knew somebody else by this address. Ask an admin of the team to unlink them.")
        )
    Identity.objects.create(
        tenant_id=row.tenant_id, member=member, issuer=row.authority, subject=claims.subject, last_at=timezone.now()
    )
    actor = member_actor(member, ip=who.ip, request_id=who.request_id)
    audit.record(actor, "sign_on.link", member.public_id, after=claims.subject)


def _joined(row: SignOn, tenant: Tenant, claims: oidc.Claims, who: Actor) -> Member:
    """A member made now, for who is invited, or for anybody where the team says so."""
    if User.objects.filter(email=claims.email).exists():
        # Their account is theirs, and other teams' too: a provider of this team has no say about it.
        raise NotLetIn(
            gettext("You have an account, and are not in this team. Ask for an invitation, and log in to accept it.")
        )
    invitation = invitations.open_invitations(tenant).filter(email=claims.email, invited_by__removed_at=None).first()
    role = invitation.role if invitation else row.role
    if not role:
        raise NotLetIn(
            gettext("Nobody invited %(email)s. Ask whoever manages the team's members.") % {"email": claims.email}
        )
    if role == Role.OWNER and not row.is_for_owners:
        raise NotLetIn(gettext("Owners come in by this once an owner has saved the team's single sign-on."))
    fresh = people.new_user(claims.email)
    fresh.name = claims.name
    user = people.keep_user(fresh, None)
    if user is None:
        raise NotLetIn(gettext("This address got an account a moment ago. Try again."))
    member = Member(tenant=tenant, user=user, handle=people.free_handle(tenant, user.email), role=role)
    member.save()
    if invitation:
        Invitation.objects.filter(pk=invitation.pk).update(accepted_at=timezone.now())
    actor = member_actor(member, ip=who.ip, request_id=who.request_id)
    audit.record(actor, "member.join", member.public_id, after=f"{role} by single sign-on")
    return member


def identities(tenant: Tenant) -> "QuerySet[Identity]":
    """Who is linked. The tenant must be bound."""
    return Identity.objects.filter(tenant=tenant)


def reseal() -> int:
    """Seal the clients' secrets anew under the current key, as the migrator, who sees all teams; gives how many."""
    count = 0
    for row in SignOn.objects.exclude(secret=b"").select_for_update():
        row.secret = vault.resealed(bytes(row.secret))
        row.save(update_fields=["secret"])
        count += 1
    return count
