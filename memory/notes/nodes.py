"""Notes, revisions and proposals in the walk of the id graph; another member's private ones do not exist there."""

from typing import Any, Final

from memory.graph import kinds, workers
from memory.graph.kinds import Node
from memory.notes import reach
from memory.notes.models import Note, Revision, Source
from memory.tenants.models import Tenant

FAN_OUT: Final = 20
TEXT_SHOWN: Final = 2_400
TEXT_SHORT: Final = 400


def register() -> None:
    """Put notes, their revisions and their proposals into the walk."""
    kinds.register_personal("nte", note)
    kinds.register_personal("rev", revision)
    kinds.register_personal("prp", proposal)


def note(tenant: Tenant, public_id: str, member_pk: str | None) -> Node | None:
    """A note: to the events that its text rests on, their sessions, and the workers those are."""
    rows = reach.notes(member_pk).live().select_related("current", "member")
    found = rows.filter(tenant=tenant, public_id=public_id).first()
    if found is None or found.current is None:
        return None
    view = _of_note(found) | _of_revision(found.current)
    line = f"{public_id}: {found.path} {found.current.title}".strip()
    causes = _causes(tenant, found.current.sources.all())
    earlier = found.revisions.exclude(pk=found.current.pk).order_by("-number").values_list("public_id", flat=True)
    return Node(public_id, view, line, cause=(*causes, *earlier[:3]), after=(), shorter=_shorter(view))


def revision(tenant: Tenant, public_id: str, member_pk: str | None) -> Node | None:
    """A version of a note: to what it rests on, and to its note."""
    found = Revision.objects.select_related("note__member").filter(tenant=tenant, public_id=public_id).first()
    if found is None or not reach.notes(member_pk).live().filter(pk=found.note_id).exists():
        return None
    view = _of_note(found.note) | _of_revision(found)
    line = f"{public_id}: {found.note.path} revision {found.number}"
    home = found.note.public_id
    causes = _causes(tenant, found.sources.all())
    return Node(public_id, view, line, cause=(*causes, home), after=(home,), shorter=_shorter(view))


def proposal(tenant: Tenant, public_id: str, member_pk: str | None) -> Node | None:
    """A proposal: to the events it cites; after it comes its note, where there is one by now."""
    rows = reach.proposals(member_pk).select_related("note__member")
    found = rows.filter(tenant=tenant, public_id=public_id).first()
    if found is None:
        return None
    view = _of_note(found.note) | {
        "proposal_id": public_id,
        "operation": found.operation,
        "state": found.state,
        "reason": found.reason,
        "tier": f"T{found.tier}",
        "by": found.author_label,
        "text": _cut(found.text, TEXT_SHOWN),
    }
    line = f"{public_id}: {found.operation} {found.note.path} ({found.state})"
    causes = _causes(tenant, found.sources.all())
    return Node(public_id, view, line, cause=causes, after=(found.note.public_id,), shorter=_shorter(view))


def _of_note(found: Note) -> dict[str, Any]:
    return {"note_id": found.public_id, "space": found.space, "path": found.path}


def _of_revision(found: Revision) -> dict[str, Any]:
    return {
        "revision_id": found.public_id,
        "number": found.number,
        "title": found.title,
        "description": found.description,
        "tier": f"T{found.tier}",
        "by": found.author_label,
        "text": _cut(found.text, TEXT_SHOWN),
    }


def _shorter(view: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    return (view | {"text": _cut(view["text"], TEXT_SHORT)},)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "…"


def _causes(tenant: Tenant, sources: Any) -> tuple[str, ...]:
    """The events that a text rests on in its order, then their sessions, then the workers those are."""
    rows: list[Source] = list(sources.select_related("event__session").order_by("position", "pk"))
    events = dict.fromkeys(row.event.public_id for row in rows)
    sessions = dict.fromkeys(row.event.session.public_id for row in rows)
    is_worker = dict.fromkeys(
        one for session in list(sessions)[:FAN_OUT] for one in workers.of_session(tenant, session)
    )
    return (*list(events)[:FAN_OUT], *list(sessions)[:FAN_OUT], *list(is_worker)[:FAN_OUT])
