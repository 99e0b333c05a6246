"""The files a session read most often, each with the stored result that saves reading it again."""

from typing import Any, Final

from django.db.models import Count, Q
from django.utils import timezone

from cache_admin.models import EntryPath
from memory.events.models import Session
from memory.recall.envelope import one_line
from memory.tenants.models import Member

MOST: Final = 20
FILE_READERS: Final = ("Read", "read_file", "ReadFile", "view")
_LONGEST: Final = 160


def lines(session: Session, *, member: Member | None) -> list[str]:
    """A line for each of the 20 files that the session read more than once, the most read first."""
    read = session.events.filter(kind="tool_after", tool__in=FILE_READERS).exclude(summary="")
    counted = read.values("summary").annotate(times=Count("pk")).filter(times__gt=1).order_by("-times", "summary")
    rows = [(row["summary"], row["times"]) for row in counted[:MOST]]
    results = _results(session, [path for path, _ in rows], member)
    return [_line(session, path, times, results.get(path, "")) for path, times in rows]


def _line(session: Session, path: str, times: int, result: str) -> str:
    home = session.cwd.rstrip("/") + "/"
    shown = one_line(path.removeprefix(home) if len(home) > 1 else path)
    shown = shown if len(shown) <= _LONGEST else "…" + shown[-_LONGEST:]
    return f"- {shown} · read {times} times{f' · {result}' if result else ''}"


def _results(session: Session, paths: list[str], member: Member | None) -> dict[str, str]:
    """The newest stored result of reading each path in the session's project that this member may see."""
    open_to = Q(entry__result__is_private=False) | Q(entry__result__owner=member)
    alive = Q(entry__expires_at__isnull=True) | Q(entry__expires_at__gt=timezone.now())
    found: Any = EntryPath.objects.filter(
        open_to if member else Q(entry__result__is_private=False),
        alive,
        path__in=[_keyed(session, path) for path in paths],
        entry__project=session.project,
        entry__tool__in=FILE_READERS,
        tenant_id=session.tenant_id,
    )
    newest = dict(found.order_by("entry__created_at", "pk").values_list("path", "entry__result__public_id"))
    known = {path: newest.get(_keyed(session, path), "") for path in paths}
    return {path: result for path, result in known.items() if result}


def _keyed(session: Session, path: str) -> str:
    """The path as the key of a stored call spells it."""
    home = session.cwd.rstrip("/") + "/"
    return f"$ROOT/{path.removeprefix(home)}" if path.startswith(home) else path
