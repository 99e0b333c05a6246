"""Sessions and hook events in the walk of the id graph."""

from typing import Final

from memory.events.models import Event, Session
from memory.graph import kinds, workers
from memory.graph.kinds import Node
from memory.tenants.models import Tenant

NEAR: Final = 5


def register() -> None:
    """Put sessions and their events into the walk, and let a worker be a session."""
    kinds.register("ses", session)
    kinds.register("evt", event)
    kinds.register_session(attach)


def session(tenant: Tenant, public_id: str) -> Node | None:
    """A session: to the workers it is, and its last events."""
    found = tenant.sessions.select_related("project", "resumed_from").filter(public_id=public_id).first()
    if found is None:
        return None
    is_worker = workers.of_session(tenant, public_id)
    latest = found.events.order_by("-seq").values_list("public_id", flat=True)[:NEAR]
    before = [found.resumed_from.public_id] if found.resumed_from else []
    view = {
        "session_id": public_id,
        "client": found.client,
        "project": found.project.slug if found.project else None,
        "state": found.state,
        "last_prompt": found.last_prompt,
        "events": found.last_seq,
        "workers": is_worker,
        "first_received_at": found.first_received_at.isoformat(),
    }
    line = f"{public_id}: {found.client} · {found.last_prompt}"
    return Node(public_id, view, line, cause=(*is_worker, *before, *latest), after=(*is_worker, *latest))


def event(tenant: Tenant, public_id: str) -> Node | None:
    """A hook event: to its session."""
    found = tenant.events.select_related("session").filter(public_id=public_id).first()
    if found is None:
        return None
    view = {
        "event_id": public_id,
        "session_id": found.session.public_id,
        "seq": found.seq,
        "name": found.name,
        "tool": found.tool,
        "summary": found.summary,
        "received_at": found.received_at.isoformat(),
        "payload": f"GET /api/v1/events/{public_id}/payload ({found.size} bytes)",
    }
    around = Event.objects.filter(session=found.session)
    before = around.filter(seq=found.seq - 1).values_list("public_id", flat=True)
    later = around.filter(seq=found.seq + 1).values_list("public_id", flat=True)
    home = found.session.public_id
    return Node(public_id, view, f"{public_id}: {found.summary}", cause=(*before, home), after=(*later, home))


def attach(tenant: Tenant, session_id: str, worker_pk: str) -> None:
    """Let the session say which worker it is."""
    Session.objects.filter(tenant=tenant, public_id=session_id).update(worker_id=worker_pk)
