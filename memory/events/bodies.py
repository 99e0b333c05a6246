"""The stored bytes of an event's payload, wherever they are kept."""

import zlib
from typing import Any

from memory.events.models import Event
from memory.graph.models import Body
from memory.problems import Problem
from memory.tenants.rest import fast_json


def stored(event: Event) -> bytes | None:
    """The payload as it was stored, byte for byte; None where retention has dropped it. The tenant must be bound."""
    if event.dropped_at is not None:
        return None
    if event.body is not None:
        return event.body.encode()
    body = Body.objects.filter(tenant_id=event.tenant_id, sha256=bytes(event.sha256)).order_by("stored_on").first()
    if body is None:
        return None
    content = bytes(body.content)
    return zlib.decompress(content) if body.codec == "zlib" else content


def payload(event: Event) -> dict[str, Any]:
    """The payload as JSON; `{}` where it is gone. Numbers that no double holds come as text.

    Raises Problem where the stored bytes are no JSON, or more of it than is read in one go.
    """
    raw = stored(event)
    value = fast_json(raw)[0] if raw else {}
    return value if isinstance(value, dict) else {}


def gone(event: Event) -> Problem:
    """410: when the payload went and why."""
    on = f" on {event.dropped_at:%Y-%m-%d}" if event.dropped_at else ""
    at = event.dropped_at.isoformat() if event.dropped_at else None
    detail = f"This payload was removed{on} by the team's retention. The event, its place and its summary stay."
    return Problem(410, "payload_gone", detail, id=event.public_id, removed_at=at, reason="retention")
