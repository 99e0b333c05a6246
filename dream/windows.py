"""Which events a run reads: of each session those after its watermark, in batches of bounded size."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError
from django.db.models import Case, F, Q, QuerySet, When
from django.db.models.functions import Coalesce, Now

from dream.distill_shapes import SeenEvent
from dream.models import Quarantined
from memory import redact
from memory.events import bodies
from memory.events.models import Event, Project, Session

log = logging.getLogger(__name__)
# A larger payload is told by its row alone: what it holds is a file or a log, and reading it would cost memory.
LARGEST_BODY: Final = 2 * 1024 * 1024
MOST_EVENTS: Final = 500
WORDS: Final = {"end": "session_end"}


@dataclass(frozen=True)
class Span:
    """The events of one session with `after < seq <= upto`."""

    session_pk: str
    session_id: str
    after: int
    upto: int
    failures: int = 0
    # Events that stood aside, or that a dry run reads again: no watermark waits for them.
    is_loose: bool = False


@dataclass(frozen=True)
class Subject:
    """A project and what is new in it. `pk` is None for sessions that belong to none."""

    pk: str | None
    name: str
    slug: str
    spans: tuple[Span, ...]
    # Whether some of the team don't see it.
    is_limited: bool = False


@dataclass(frozen=True)
class Batch:
    """Events that are dreamed together, and the spans they are the whole of."""

    spans: tuple[Span, ...]
    events: tuple[SeenEvent, ...]
    # Internal keys by public id, for citations.
    keys: dict[str, str] = field(default_factory=dict)
    # Why the payload of an event, by its public id, can't be read: the row's own words stand for it.
    unreadable: dict[str, str] = field(default_factory=dict)


def subjects(*, whole: bool) -> list[Subject]:
    """What the bound team has to dream, project by project. `whole`: also what has not come to a Stop, and retries."""
    by_project: dict[str | None, list[Span]] = {}
    homes = _homes()
    for row in _sessions(whole=whole):
        span = Span(str(row.pk), row.public_id, row.done, row.upto, row.failed)
        by_project.setdefault(homes.get(str(row.project_id)), []).append(span)
    for aside in Quarantined.objects.filter(is_again=True).select_related("session").order_by("created_at", "pk"):
        span = Span(str(aside.session_id), aside.session.public_id, aside.seq - 1, aside.seq, is_loose=True)
        by_project.setdefault(homes.get(str(aside.session.project_id)), []).append(span)
    known = {str(project.pk): project for project in Project.objects.current()}
    found = [subject_of(known.get(pk or ""), spans) for pk, spans in by_project.items()]
    return sorted(found, key=lambda subject: subject.slug)


def subject_of(project: Project | None, spans: Iterable[Span]) -> Subject:
    """The spans of one project, under its name."""
    if project is None:
        return Subject(None, "Work outside a project", "elsewhere", tuple(spans))
    return Subject(str(project.pk), project.name or project.slug, project.slug, tuple(spans), project.is_limited)


def _sessions(*, whole: bool) -> QuerySet[Any]:
    """Sessions with new events. One without a Stop ends by silence: 18 of 62 real ones never stop."""
    is_idle = Q(last_received_at__lt=Now() - timedelta(hours=settings.IDLE_HOURS))
    end = F("last_seq") if whole else Case(When(is_idle, then=F("last_seq")), default=F("last_stop_seq"))
    found = (
        Session.objects.filter(is_internal=False)
        .annotate(done=Coalesce("watermarks__seq", 0), failed=Coalesce("watermarks__failures", 0), upto=end)
        .filter(upto__gt=F("done"))
    )
    if not whole:
        found = found.filter(Q(watermarks__retry_at__isnull=True) | Q(watermarks__retry_at__lte=Now()))
    return found.order_by("first_received_at", "id")


def _homes() -> dict[str, str]:
    """Each project's key, and the key of the one it was merged into, over any number of steps."""
    into = {str(pk): str(other) if other else None for pk, other in Project.objects.values_list("pk", "merged_into_id")}
    homes = {}
    for pk in into:
        home, seen = pk, {pk}
        while (further := into.get(home)) and further not in seen:
            home = further
            seen.add(home)
        homes[pk] = home
    return homes


def read(waiting: deque[Span], *, budget: int, weigh: Callable[[SeenEvent], int]) -> Batch:
    """Take spans from the left until the budget is used; the rest of a span that does not fit goes back.

    A session that has failed is read alone, so that it does not take others with it. Where a session is cut, it is cut
    behind a Stop, if the batch is half full by then.
    """
    spans: list[Span] = []
    events: list[SeenEvent] = []
    keys: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    used = 0
    while waiting and used < budget and len(events) < MOST_EVENTS:
        if spans and (_is_alone(waiting[0]) or _is_alone(spans[0])):
            break
        span = waiting.popleft()
        last, stopped = span.upto, 0
        for event, key, fault in seen_events(span):
            events.append(event)
            keys[event.id] = key
            if fault:
                unreadable[event.id] = fault
            used += weigh(event)
            if event.name == "stop" and 2 * used >= budget:
                stopped = len(events)
            if (used >= budget or len(events) >= MOST_EVENTS) and event.seq < span.upto:
                del events[stopped or len(events) :]
                last = events[-1].seq
                waiting.appendleft(replace(span, after=last))
                break
        spans.append(replace(span, upto=last))
    return Batch(tuple(spans), tuple(events), keys, unreadable)


def _is_alone(span: Span) -> bool:
    return bool(span.failures) or span.is_loose


def halves(batch: Batch) -> tuple[Batch, Batch]:
    """The batch of one session in two, by its events."""
    span, middle = batch.spans[0], len(batch.events) // 2
    cut = batch.events[middle - 1].seq
    return (
        replace(batch, spans=(replace(span, upto=cut),), events=batch.events[:middle]),
        replace(batch, spans=(replace(span, after=cut),), events=batch.events[middle:]),
    )


def seen_events(span: Span) -> Iterator[tuple[SeenEvent, str, str]]:
    """The span's events in order, without those in quarantine, each with its internal key and what hid its payload."""
    aside = Quarantined.objects.filter(session_id=span.session_pk)
    poison = set() if span.is_loose else set(aside.values_list("seq", flat=True))
    rows = Event.objects.filter(session_id=span.session_pk, seq__gt=span.after, seq__lte=span.upto)
    for row in rows.select_related("member", "session__member").order_by("seq").iterator(200):
        if row.seq not in poison:
            found, fault = payload(row)
            yield _seen(row, span.session_id, found), str(row.pk), fault


def _seen(row: Event, session_id: str, found: dict[str, Any]) -> SeenEvent:
    member = row.member or row.session.member
    return SeenEvent(
        id=row.public_id,
        session=session_id,
        seq=row.seq,
        client=row.client,
        name=WORDS.get(row.kind, row.kind),
        at=row.occurred_at,
        member=member.handle if member else None,
        agent_id=row.agent_id or None,
        tool=row.tool or None,
        payload=found,
        heard=row.received_at,
    )


def payload(row: Event) -> tuple[dict[str, Any], str]:
    """What the hook sent, as it is stored; the row's own words where it is gone, too large, or can't be read (why)."""
    found: dict[str, Any] = {}
    fault = ""
    try:
        found = bodies.payload(row) if row.size <= LARGEST_BODY else {}
    except DatabaseError:
        raise
    except Exception as why:
        # One event that nobody can read must not keep its team from ever dreaming again.
        log.exception("the payload of %s can't be read", row.public_id)
        fault = redact.brief(f"{type(why).__name__}: {why}", 300)
    return found or {"tool_name": row.tool, "summary": row.summary}, fault
