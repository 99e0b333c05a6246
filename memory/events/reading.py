"""What the pages of sessions and events show: one query a list."""

import json
from contextlib import suppress
from datetime import datetime
from typing import Any

from django.db.models import Count, F, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils.formats import date_format
from django.utils.translation import gettext

from memory.events import bodies
from memory.events.models import Event, Project, ProjectRoot, Session
from memory.events.projects import with_counts
from memory.tenants.models import Tenant

MOST_SHOWN = 64 * 1024


def sessions(tenant: Tenant) -> QuerySet[Session]:
    """Sessions, the latest first."""
    rows: QuerySet[Session] = asked(tenant.sessions.select_related("project", "member"))
    return rows.order_by("-last_received_at", "-id")


def asked(rows: QuerySet[Session]) -> QuerySet[Session]:
    """Sessions with what was asked first, which says more than the last "continue", and their last event's time."""
    of_session = Event.objects.filter(session=OuterRef("pk"))
    return rows.annotate(
        first_prompt=Subquery(of_session.filter(kind="prompt").order_by("seq").values("summary")[:1]),
        # An imported session was received today and happened long ago.
        last_at=Coalesce(
            Subquery(of_session.filter(seq=OuterRef("last_seq")).values("occurred_at")[:1]), F("last_received_at")
        ),
    )


def first_prompt(session: Session) -> str:
    """What a session was asked first."""
    asked = session.events.filter(kind="prompt").order_by("seq").values_list("summary", flat=True)
    return asked.first() or ""


def filtered(rows: QuerySet[Session], *, q: str, project: str, client: str) -> QuerySet[Session]:
    """The sessions that a search and the two lists name."""
    if q:
        rows = rows.filter(Q(last_prompt__icontains=q) | Q(public_id=q) | Q(key=q))
    if project:
        rows = rows.filter(project__public_id=project)
    return rows.filter(client=client) if client else rows


def clients(tenant: Tenant) -> list[str]:
    """The harnesses whose sessions this team has."""
    return list(tenant.sessions.order_by("client").values_list("client", flat=True).distinct())


def projects(tenant: Tenant) -> QuerySet[Project]:
    """Projects with their places, sessions counted."""
    rows: QuerySet[Project] = tenant.projects.current()
    places = ProjectRoot.objects.order_by("kind", "place")
    return with_counts(rows).prefetch_related(Prefetch("roots", queryset=places)).order_by("slug", "pk")


def timeline(session: Session) -> QuerySet[Event]:
    """Events in order, without their bodies."""
    return session.events.defer("body", "head", "tail").order_by("seq")


def with_outcomes(session: Session, shown: list[Event]) -> list[Event]:
    """The events of a page, each with `is_lost`: a call whose result never came before the agent stopped.

    It was denied, blocked or cut off; the harness says nothing of it. Where results come without ids nobody can tell.
    """
    asked = [event.tool_use_id for event in shown if event.kind == "tool_before" and event.tool_use_id]
    done = session.events.filter(kind__in=("tool_after", "tool_failed"), tool_use_id__in=[*asked, ""])
    ids = set(done.values_list("tool_use_id", flat=True).distinct()) if asked else {""}
    last = session.last_seq + 1 if session.state in ("ended", "closed") else session.last_stop_seq
    for event in shown:
        is_call = event.kind == "tool_before" and bool(event.tool_use_id) and event.seq < last
        event.is_lost = is_call and "" not in ids and event.tool_use_id not in ids  # type: ignore[attr-defined]
    return shown


def repeated(session: Session) -> list[dict[str, Any]]:
    """Calls that the session made more than once with the same line, the most repeated first."""
    rows = (
        session.events.filter(kind="tool_before")
        .exclude(summary="")
        .values("tool", "summary")
        .annotate(count=Count("pk"))
        .filter(count__gt=1)
        .order_by("-count", "tool", "summary")[:10]
    )
    return [{"tool": row["tool"], "line": row["summary"], "count": row["count"]} for row in rows]


def readable(event: Event) -> tuple[str, bool]:
    """The payload with indents, and whether it was cut to what fits on a page."""
    raw = bodies.stored(event)
    if raw is None:
        return _gone(event.dropped_at), False
    text = raw.decode("utf-8", "replace")
    if len(text) > 8 * MOST_SHOWN:
        return text[:MOST_SHOWN], True
    with suppress(ValueError):
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return text[:MOST_SHOWN], len(text) > MOST_SHOWN


def _gone(at: datetime | None) -> str:
    if at is None:
        return gettext("The payload was removed by the team's retention. The event and its line stay.")
    words = gettext("The payload was removed on %(day)s by the team's retention. The event and its line stay.")
    return words % {"day": date_format(at, "DATE_FORMAT")}


def position(session: Session) -> list[str]:
    """Where a session stands in the list of the latest."""
    return [session.last_received_at.isoformat(), str(session.pk)]


def before(rows: QuerySet[Session], after: list[str]) -> QuerySet[Session]:
    """The sessions that follow a position. The id decides between those of one instant."""
    at, pk = datetime.fromisoformat(after[0]), after[1]
    return rows.filter(Q(last_received_at__lt=at) | Q(last_received_at=at, pk__lt=pk))
