"""Webhook endpoints: made, given a new secret, paused, and what was sent to them last."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from memory.graph.webhooks import generic, proofs, secrets
from memory.graph.webhooks.models import Delivery, Endpoint, Mark
from memory.problems import Problem
from memory.tenants import audit
from memory.tenants.access import Actor, require
from memory.tenants.models import Tenant

# For so long the old secret is good beside the new one: time to change it at the sender.
OVERLAP: Final = timedelta(hours=24)
LONGEST_OVERLAP: Final = timedelta(days=30)
# So many deliveries are kept of each endpoint and outcome, so that a flood of refused ones pushes no accepted one out.
KEPT: Final = 100
_LEAST_SECRET: Final = 16
_MOST_ENDPOINTS: Final = 200
# Where marks are kept and not used for so long, nobody looks for them any more.
MARK_LIFE: Final = timedelta(days=400)


class WrongEndpoint(Problem):
    """What was said of an endpoint can't be taken."""

    def __init__(self, code: str, detail: str, **more: Any) -> None:
        super().__init__(400, code, detail, **more)


@dataclass(frozen=True)
class Wanted:
    """What is said of a new endpoint beyond kind and name. Without `secret` one is made; Slack makes its own."""

    field_map: Any = None
    proof: proofs.Proof | None = None
    source: str = ""
    secret: str = ""


def create(tenant: Tenant, kind: str, name: str, *, wanted: Wanted | None = None, by: Actor) -> tuple[Endpoint, str]:
    """A new endpoint, and its secret, which nobody can read again. Raises Refused, WrongEndpoint."""
    require(by, "webhook.manage")
    wanted = wanted or Wanted()
    if kind not in proofs.USUAL:
        raise WrongEndpoint(
            "unknown_kind", gettext("The kind is one of %(usual)s.") % {"usual": ", ".join(proofs.USUAL)}, field="kind"
        )
    if tenant.endpoints.count() >= _MOST_ENDPOINTS:
        raise WrongEndpoint(
            "too_many_endpoints",
            gettext("A team has up to %(most_endpoints)s endpoints. Remove one first.")
            % {"most_endpoints": _MOST_ENDPOINTS},
        )
    endpoint = Endpoint(
        tenant=tenant,
        kind=kind,
        name=_name(name),
        source=_source(kind, wanted.source or name),
        field_map=_field_map(kind, wanted.field_map),
        proof=_proof(kind, wanted.proof).stored(),
        created_by=by.id,
    )
    secret = _secret(endpoint, wanted.secret)
    endpoint.secret = _kept(endpoint, secret)
    try:
        with transaction.atomic():
            endpoint.save(force_insert=True)
    except IntegrityError:
        raise WrongEndpoint(
            "name_taken", gettext("Another endpoint has this name. Choose another."), field="name"
        ) from None
    audit.record(by, "webhook.create", endpoint.public_id, after=f"{kind} {endpoint.name}")
    return endpoint, secret


def rotate(endpoint: Endpoint, *, by: Actor, secret: str = "", overlap: timedelta = OVERLAP) -> str:
    """A new secret, shown once; the old one is good until the overlap has passed. Raises Refused, WrongEndpoint."""
    require(by, "webhook.manage")
    if not timedelta() <= overlap <= LONGEST_OVERLAP:
        raise WrongEndpoint(
            "invalid_overlap", gettext("The old secret may stay good for up to 30 days."), field="overlap"
        )
    locked = Endpoint.objects.select_for_update().get(pk=endpoint.pk)
    fresh = _secret(locked, secret)
    now = timezone.now()
    locked.previous_secret = locked.secret if overlap else None
    locked.previous_until = now + overlap if overlap else None
    locked.secret = _kept(locked, fresh)
    locked.rotated_at = now
    locked.save(update_fields=["secret", "previous_secret", "previous_until", "rotated_at"])
    audit.record(by, "webhook.rotate", locked.public_id, after=f"old secret until {locked.previous_until or now:%F %T}")
    endpoint.refresh_from_db()
    return fresh


def pause(endpoint: Endpoint, *, by: Actor, is_paused: bool = True) -> None:
    """Take no deliveries until it is resumed; senders are told so. Raises Refused."""
    require(by, "webhook.manage")
    at = timezone.now() if is_paused else None
    if Endpoint.objects.filter(pk=endpoint.pk, paused_at__isnull=is_paused).update(paused_at=at):
        audit.record(by, "webhook.pause" if is_paused else "webhook.resume", endpoint.public_id)
    endpoint.refresh_from_db()


def change(endpoint: Endpoint, *, by: Actor, name: str | None = None, field_map: Any = None) -> None:
    """Another name, another field map. Raises Refused, WrongEndpoint."""
    require(by, "webhook.manage")
    if name is not None:
        endpoint.name = _name(name)
    if field_map is not None:
        endpoint.field_map = _field_map(endpoint.kind, field_map)
    try:
        with transaction.atomic():
            endpoint.save(update_fields=["name", "field_map"])
    except IntegrityError:
        raise WrongEndpoint(
            "name_taken", gettext("Another endpoint has this name. Choose another."), field="name"
        ) from None
    audit.record(by, "webhook.change", endpoint.public_id, after=endpoint.name)


def remove(endpoint: Endpoint, *, by: Actor) -> None:
    """Close the address for good; the triggers it brought stay. Raises Refused."""
    require(by, "webhook.manage")
    audit.record(by, "webhook.remove", endpoint.public_id, before=endpoint.name)
    Endpoint.objects.filter(pk=endpoint.pk).delete()


def deliveries(endpoint: Endpoint, *, status: str = "") -> "QuerySet[Delivery]":
    """The last deliveries of an endpoint, the newest first."""
    rows = Delivery.objects.filter(endpoint=endpoint)
    return (rows.filter(status=status) if status else rows).order_by("-at", "-pk")


def delivered(endpoint: Endpoint, delivery: Delivery) -> Delivery:
    """Keep what became of a call. The same refusal within a minute is counted; of each outcome the last 100 stay."""
    delivery.endpoint, delivery.tenant_id = endpoint, endpoint.tenant_id
    same = Delivery.objects.filter(endpoint=endpoint, status=delivery.status)
    if delivery.status == Delivery.Status.REFUSED:
        last = same.filter(code=delivery.code, event=delivery.event, at__gt=timezone.now() - timedelta(minutes=1))
        row = last.order_by("-at", "-pk").first()
        if row is not None:
            row.times, row.at, row.size = row.times + 1, timezone.now(), delivery.size
            row.delivery_id, row.detail = delivery.delivery_id, delivery.detail
            row.save(update_fields=["times", "at", "size", "delivery_id", "detail"])
            return row
    delivery.save(force_insert=True)
    beyond = same.order_by("-at", "-pk").values_list("at", flat=True)[KEPT : KEPT + 1]
    for at in beyond:
        same.filter(at__lte=at).delete()
    return delivery


def forget_marks(tenant: Tenant) -> int:
    """Take away marks that nothing was found by for more than a year."""
    return Mark.objects.filter(tenant=tenant, at__lt=timezone.now() - MARK_LIFE).delete()[0]


def reseal() -> int:
    """Encrypt every kept secret under the current SECRET_KEY, as the migrator, who sees all teams; gives how many.
    Raises Unreadable.
    """
    count = 0
    for endpoint in Endpoint.objects.select_for_update():
        if not proof_of(endpoint).keeps_secret:
            continue
        for name in ("secret", "previous_secret"):
            kept = getattr(endpoint, name)
            if kept:
                said = secrets.decrypted(bytes(kept), row=str(endpoint.pk))
                setattr(endpoint, name, secrets.encrypted(said, row=str(endpoint.pk)))
                count += 1
        endpoint.save(update_fields=["secret", "previous_secret"])
    return count


def secrets_of(endpoint: Endpoint) -> list[str | bytes]:
    """What a proof is checked against: the secret, and the one before while that is good. Raises Unreadable."""
    kept = [bytes(endpoint.secret)]
    if endpoint.previous_secret and endpoint.previous_until and endpoint.previous_until > timezone.now():
        kept.append(bytes(endpoint.previous_secret))
    if not proof_of(endpoint).keeps_secret:
        return list(kept)
    return [secrets.decrypted(one, row=str(endpoint.pk)) for one in kept]


def proof_of(endpoint: Endpoint) -> proofs.Proof:
    return proofs.Proof(**endpoint.proof)


def _kept(endpoint: Endpoint, secret: str) -> bytes:
    if proof_of(endpoint).keeps_secret:
        return secrets.encrypted(secret, row=str(endpoint.pk))
    return secrets.digest(secret)


def _secret(endpoint: Endpoint, given: str) -> str:
    if not given and endpoint.kind == Endpoint.Kind.SLACK:
        raise WrongEndpoint(
            "no_secret",
            gettext("Slack makes the signing secret: copy it from the app's Basic Information."),
            field="secret",
        )
    if given and (len(given) < _LEAST_SECRET or len(given) > 500 or not given.isascii() or not given.isprintable()):
        raise WrongEndpoint(
            "weak_secret",
            gettext("A secret has %(least_secret)s to 500 ASCII characters. Leave it out to have one made.")
            % {"least_secret": _LEAST_SECRET},
            field="secret",
        )
    return given or secrets.new_secret(standard=proof_of(endpoint).method == "standard")


def _name(name: str) -> str:
    clean = " ".join(name.split())
    if not clean or len(clean) > 120:
        raise WrongEndpoint("invalid_name", gettext("A name has 1 to 120 characters."), field="name")
    return clean


def _source(kind: str, wanted: str) -> str:
    """What the triggers call their source: the kind's name, or for others a word like `jira`."""
    if kind != Endpoint.Kind.GENERIC:
        return kind
    word = re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-")[:60]
    if not word:
        raise WrongEndpoint(
            "invalid_source", gettext("The source is a word of a-z and 0-9, e.g. jira."), field="source"
        )
    # Keys of these begin the threads that the other kinds make; one that only says so must not write into them.
    return f"{word}-hook" if word in proofs.USUAL else word


def _field_map(kind: str, given: Any) -> dict[str, str]:
    if kind != Endpoint.Kind.GENERIC:
        if given:
            raise WrongEndpoint(
                "no_field_map", gettext("Only an endpoint of the kind generic has a field map."), field="field_map"
            )
        return {}
    try:
        return generic.checked_map(given or {})
    except generic.WrongMap as why:
        raise WrongEndpoint("invalid_field_map", str(why), field="field_map") from None


def _proof(kind: str, given: proofs.Proof | None) -> proofs.Proof:
    """The kind's usual proof; GitLab and mail may have another, GitHub and Slack have their own."""
    if given is None or given == proofs.USUAL[kind]:
        return proofs.USUAL[kind]
    if kind in ("github", "slack") or (kind == "gitlab" and given != proofs.STANDARD):
        raise WrongEndpoint(
            "invalid_proof", gettext("%(kind)s proves itself in its own way.") % {"kind": kind}, field="proof"
        )
    if given.method == "slack":
        raise WrongEndpoint("invalid_proof", gettext("This way is Slack's own."), field="proof")
    return given
