"""What model calls took, by imported transcripts: each message once, whoever reports it too."""

import re
from typing import Any, Final

from django.db.models import F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from cache_admin import usage
from cache_admin.models import Watermark
from memory.events import bodies
from memory.events.models import Event, Session
from memory.problems import Problem
from memory.tenants.models import Tenant

NAME: Final = "AssistantMessage"
SESSIONS: Final = 50
MESSAGES: Final = 2_000
_ID: Final = re.compile(r"[^\s\x00-\x1f]{1,200}")


def take(tenant: Tenant) -> bool:
    """Read on in some sessions from where each was left; whether more wait. Running it twice does no harm. Bound."""
    marks = Watermark.objects.filter(session=OuterRef("pk")).values("usage_seq")[:1]
    behind = tenant.sessions.annotate(mark=Coalesce(Subquery(marks), 0)).filter(last_seq__gt=F("mark"))
    sessions = list(behind.order_by("last_received_at", "pk")[:SESSIONS])
    is_whole = [_read_on(tenant, session, session.mark) for session in sessions]
    return len(sessions) == SESSIONS or not all(is_whole)


def _read_on(tenant: Tenant, session: Session, after: int) -> bool:
    """Whether the session was read to its end."""
    rows = session.events.filter(Q(name=NAME), seq__gt=after, seq__lte=session.last_seq).order_by("seq")
    events = list(rows[: MESSAGES + 1])
    is_whole = len(events) <= MESSAGES
    found = [one for one in (_reported(session, event) for event in events[:MESSAGES]) if one is not None]
    # A message that a resumed session holds again has the same id.
    usage.record(tenant, list({one.message_id: one for one in found}.values()))
    until = session.last_seq if is_whole else events[MESSAGES - 1].seq
    Watermark.objects.update_or_create(tenant=tenant, session=session, defaults={"usage_seq": until})
    return is_whole


def _reported(session: Session, event: Event) -> usage.Reported | None:
    try:
        said = bodies.payload(event)
        taken = usage.read(_object(said.get("usage")))
    except (Problem, usage.UnknownUsage):
        return None
    if not any((taken.fresh, taken.read, taken.written, taken.output)):
        # What a harness says itself, such as an error of the network, is no call of a model.
        return None
    given = said.get("message_id")
    message_id = given if isinstance(given, str) and _ID.fullmatch(given) else event.public_id
    model = said.get("model")
    name = model if isinstance(model, str) and model.strip() else session.model
    at = min(event.occurred_at or event.received_at, timezone.now())
    return usage.Reported(message_id, name[:120] or "unknown", session.client[:40], taken, at)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
