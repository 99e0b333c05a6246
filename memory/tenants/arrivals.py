"""What a SAML provider said of somebody, between the provider's post and the browser that asked.

The post comes from another site, and cookies of ours don't go with it: what was checked is put down here, and the
browser, sent on by a redirect, takes what answers its own question. Each assertion is put down once.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Final

import orjson
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext

from memory.tenants import rls, vault
from memory.tenants.models import Arrival
from memory.tenants.oidc import Claims, Unproven
from memory.tenants.saml import Answer, Asked, Provider

_WAITS_FOR: Final = timedelta(minutes=5)


def put_down(tenant_pk: str, provider: Provider, answer: Answer, relay: str) -> None:
    """Keep what the provider said; `relay` is the RelayState that came with it. Raises Unproven where the assertion was
    taken before.
    """
    kept = vault.sealed(orjson.dumps(asdict(answer.claims)).decode())
    with rls.tenant_scope(tenant_pk):
        Arrival.objects.filter(tenant_id=tenant_pk, ends_at__lt=Now()).delete()
        _, is_new = Arrival.objects.get_or_create(
            tenant_id=tenant_pk,
            assertion=answer.assertion,
            defaults={
                "asked": _asked(provider, answer.in_response_to, relay),
                "claims": kept,
                "at": timezone.now(),
                "ends_at": _moment(answer.until),
            },
        )
    if not is_new:
        raise Unproven(gettext("This answer of the provider was used before."))


def take(tenant_pk: str, provider: Provider, trips: Sequence[Asked]) -> tuple[Asked, Claims] | None:
    """What came in answer to one of a browser's trips, and which; it is used up. None where nothing did."""
    mine = {_asked(provider, one.id, one.relay): one for one in trips}
    with rls.tenant_scope(tenant_pk):
        waiting = Arrival.objects.filter(tenant_id=tenant_pk, asked__in=list(mine), at__gt=timezone.now() - _WAITS_FOR)
        found = waiting.exclude(claims=b"").select_for_update().order_by("-at", "-id").first()
        if found is None:
            return None
        kept, found.claims = bytes(found.claims), b""
        found.save(update_fields=["claims"])
    try:
        claims = Claims(**orjson.loads(vault.opened(kept)))
    except vault.Unreadable:
        # The server's key was changed within these minutes.
        return None
    return mine[bytes(found.asked)], claims


def _asked(provider: Provider, request: str, relay: str) -> bytes:
    """One name for a question, what was sent along with it, and who was asked: a changed RelayState answers nothing,
    nor does a provider whom the team has left meanwhile.
    """
    return hashlib.sha256(repr((provider, request, relay)).encode()).digest()


def _moment(at: float) -> datetime:
    try:
        return datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError):
        raise Unproven(gettext("The provider names a time that is none.")) from None
