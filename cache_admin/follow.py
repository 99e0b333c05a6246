"""Writes that hooks reported drop what was stored of their paths. Not for being right (the digest is), but for room."""

import re
from typing import Any, Final

from cache_admin.invalidate import Doomed, invalidate
from cache_admin.models import EntryPath, Watermark
from memory.events import bodies
from memory.events.models import Event, Session
from memory.problems import Problem
from memory.tenants.access import Actor
from memory.tenants.models import Tenant

WRITERS: Final = ("Edit", "Write", "MultiEdit", "NotebookEdit", "apply_patch", "edit_file", "write_file")
AT_ONCE: Final = 500
# Codex names its files inside the patch.
_PATCHED: Final = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)
_PATCHES: Final = ("command", "input", "patch")
_PATHS: Final = ("file_path", "path", "notebook_path", "filePath")


def follow(tenant: Tenant, *, by: Actor) -> bool:
    """Read on from where each session was left; whether there is still something to watch for. Tenant bound."""
    # Only sessions that were heard since: a team's old ones are not walked again.
    sessions = tenant.sessions.order_by("-last_received_at", "-id")[:AT_ONCE]
    marks = dict(Watermark.objects.filter(session__in=[one.pk for one in sessions]).values_list("session_id", "seq"))
    for session in sessions:
        if session.last_seq > marks.get(session.pk, 0):
            _read_on(tenant, session, marks.get(session.pk, 0), by)
    return EntryPath.objects.filter(tenant=tenant).exists()


def _read_on(tenant: Tenant, session: Session, after: int, by: Actor) -> None:
    rows = session.events.filter(seq__gt=after, seq__lte=session.last_seq, kind="tool_after", tool__in=WRITERS)
    paths = {path for event in rows.order_by("seq")[:AT_ONCE] for path in _written(event)}
    if paths:
        project = session.project_id
        doomed = Doomed(
            paths=[(path, "") for path in sorted(paths)],
            root=session.cwd,
            project_pk=str(project) if project else None,
        )
        invalidate(tenant, doomed, by=by)
    Watermark.objects.update_or_create(tenant=tenant, session=session, defaults={"seq": session.last_seq})


def _written(event: Event) -> list[str]:
    try:
        given: Any = bodies.payload(event).get("tool_input")
    except Problem:
        return []
    if not isinstance(given, dict):
        return []
    named = [given[name] for name in _PATHS if isinstance(given.get(name), str)]
    patches = [given[name] for name in _PATCHES if isinstance(given.get(name), str)]
    return named + [path for patch in patches for path in _PATCHED.findall(patch)]
