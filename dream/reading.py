"""What the pages of dreams and sessions show: runs, and how far each session has been dreamt."""

from datetime import datetime
from typing import Any

from django.db.models import (
    BooleanField,
    Case,
    Count,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from dream import replay, undo
from dream.models import Change, Gardening, Quarantined, Run, SessionGist, Watermark, Window
from memory.events import reading as events
from memory.events.models import Event, Session
from memory.notes import reading as notes
from memory.notes import shown
from memory.notes.models import Proposal, Source
from memory.notes.reach import PRIVATE
from memory.recall.models import Telling, ToldNote
from memory.tenants import rls
from memory.tenants.access import Actor
from memory.tenants.models import Tenant

# A long session is told something with every prompt; the later texts stand on the pages of their events.
MOST_TEXTS = 20


def runs(tenant: Tenant, *, by: Actor) -> QuerySet[Run]:
    """Runs, the latest first, with the proposals counted that this person may see."""
    seen = Q(changes__proposal__note__member__isnull=True) | Q(changes__proposal__note__member_id=by.member_pk)
    rows: QuerySet[Run] = tenant.dreams.select_related("replays").annotate(
        proposal_count=Count("changes", filter=seen & Q(changes__proposal__isnull=False))
    )
    return rows.order_by("-created_at", "-id")


def position(run: Run) -> list[str]:
    """Where a run stands in the list of the latest."""
    return [run.created_at.isoformat(), str(run.pk)]


def before(rows: QuerySet[Run], after: list[Any]) -> QuerySet[Run]:
    """The runs that follow a position. The key decides between those of one instant."""
    at, pk = datetime.fromisoformat(after[0]), after[1]
    return rows.filter(Q(created_at__lt=at) | Q(created_at=at, pk__lt=pk))


def timed(run: Run) -> Run:
    """The run as its reader may see it, with how long it took, as far as it is."""
    run.error = _discreet(run.error)
    run.duration_s = (  # type: ignore[attr-defined]
        (run.finished_at - run.started_at).total_seconds() if run.started_at and run.finished_at else None
    )
    return run


def _discreet(error: str) -> str:
    """What went wrong: the kind alone for who does not see every project. The rest quotes answers, of any of them."""
    return error if not error or rls.sees_all() else error.partition(":")[0]


def measured(run: Run, tenant: Tenant) -> None:
    """Give a running dream the part of its events that it has read, in percent."""
    run.progress = None  # type: ignore[attr-defined]
    if run.state == "running":
        ahead = waiting_events(tenant)
        run.progress = 100 * run.events_read // max(1, run.events_read + ahead)  # type: ignore[attr-defined]


def changes(run: Run, *, by: Actor) -> list[Change]:
    """What a run did, or would do, as far as this person may see it: each with its proposal, and its conflicts."""
    rows: list[Any] = list(
        Change.objects.filter(of_mine(by), run=run)
        .select_related("proposal__note__member", "proposal__base", "proposal__decided_by", "run")
        .annotate(source_count=Count("proposal__sources"))
        .order_by("path", "pk")
    )
    notes.titled([change.proposal for change in rows if change.proposal])
    for change in rows:
        if change.proposal:
            change.proposal.source_count = change.source_count
        change.conflicts = undo.conflicts(change) if change.undo == "conflict" else []
        change.is_undone = change.undo in undo.DONE
        is_over = change.proposal is None or change.proposal.state == "rejected" or run.state in ("queued", "running")
        change.may_be_undone = not (change.is_undone or is_over)
    return rows


def of_mine(by: Actor) -> Q:
    """Changes of notes this person may see. A dry run's are named by their path alone."""
    shared = Q(proposal__isnull=True) & ~Q(path__startswith=PRIVATE)
    if by.kind == "member":
        shared |= Q(proposal__isnull=True, path__startswith=f"{PRIVATE}{by.label}/")
    seen = Q(proposal__note__member__isnull=True) | Q(proposal__note__member_id=by.member_pk)
    return shared | (Q(proposal__isnull=False) & seen)


def differences(run: Run) -> list[tuple[replay.Difference, shown.Change]]:
    """A dry run beside the run it replays, path by path with the words that differ; private notes left out."""
    rows = [row for row in replay.differences(run) if not row.path.startswith(PRIVATE)]
    return [(row, shown.between(row.before, row.after)) for row in rows]


def gist(session: Session) -> SessionGist | None:
    """What the session was about, as a dream summed it up."""
    return SessionGist.objects.filter(session=session).first()


def aside() -> list[Quarantined]:
    """Events that no dream could read, the latest first, each with its event."""
    rows = list(Quarantined.objects.select_related("session").order_by("-created_at", "-pk")[:50])
    events_of = Event.objects.filter(session__in=[row.session_id for row in rows], seq__in=[row.seq for row in rows])
    by_place = {(event.session_id, event.seq): event for event in events_of.defer("body", "head", "tail")}
    for row in rows:
        row.event = by_place.get((row.session_id, row.seq))  # type: ignore[attr-defined]
    return [row for row in rows if row.event]  # type: ignore[attr-defined]


def windows(run: Run) -> list[Window]:
    """The stretches of sessions that a run read, each session with its first prompt."""
    prompts = Event.objects.filter(session=OuterRef("session"), kind="prompt").order_by("seq").values("summary")
    rows = run.windows.select_related("session", "session__project").annotate(first_prompt=Subquery(prompts[:1]))
    found: list[Window] = list(rows.order_by("session_id", "from_seq"))
    for window in found:
        window.session.first_prompt = window.first_prompt  # type: ignore[attr-defined]
    return found


def mine(by: Actor | None) -> Q:
    """What is on a note that this person may see: the team's, or their own."""
    return Q(note__member__isnull=True) | Q(note__member_id=by.member_pk) if by else Q(note__member__isnull=True)


def dreamt(rows: QuerySet[Session], *, by: Actor | None = None) -> QuerySet[Session]:
    """Sessions with `dream_state` (done, waiting, failed, or "" for the memory's own) and `told_count`."""
    seq = Coalesce(Subquery(Watermark.objects.filter(session=OuterRef("pk")).values("seq")[:1]), Value(0))
    failed = Exists(Watermark.objects.filter(session=OuterRef("pk"), failures__gt=0))
    told = Coalesce(
        Subquery(
            ToldNote.objects.filter(mine(by), telling__session=OuterRef("pk"))
            .order_by()
            .values("telling__session")
            .annotate(count=Count("pk"))
            .values("count")
        ),
        Value(0),
    )
    return rows.annotate(
        watermark=seq,
        told_count=told,
        dream_state=Case(
            When(is_internal=True, then=Value("")),
            When(Q(ExpressionWrapper(failed, output_field=BooleanField())), then=Value("failed")),
            When(last_seq__gt=F("watermark"), then=Value("waiting")),
            default=Value("done"),
        ),
    )


def waiting(tenant: Tenant) -> QuerySet[Session]:
    """Sessions with events that no dream has read."""
    rows = dreamt(events.asked(_undreamt(tenant)))
    return rows.select_related("project").order_by("-last_received_at", "-id")


def _undreamt(tenant: Tenant) -> QuerySet[Session]:
    """The same, bare. By what is not there: one pass over both tables, where a watermark looked up for each session
    takes four times as long.
    """
    read = Watermark.objects.filter(session=OuterRef("pk"), seq__gte=OuterRef("last_seq"))
    return tenant.sessions.filter(~Exists(read), is_internal=False, last_seq__gt=0)


def waiting_events(tenant: Tenant) -> int:
    """How many events no dream has read."""
    read = Subquery(Watermark.objects.filter(session=OuterRef("pk")).values("seq")[:1])
    return _undreamt(tenant).aggregate(sum=Sum(F("last_seq") - Coalesce(read, Value(0))))["sum"] or 0


def failed(tenant: Tenant) -> list[Run]:
    """The last run where it failed: its events wait."""
    last: Run | None = tenant.dreams.order_by("-created_at", "-id").first()
    return [timed(last)] if last and last.state == "failed" else []


def tellings(session: Session, *, by: Actor) -> list[Telling]:
    """What a session was told, with each note and why. Another member's own notes stay theirs here too."""
    told = ToldNote.objects.filter(mine(by)).select_related("note", "revision").order_by("position", "pk")
    rows = session.tellings.defer("text").select_related("event").prefetch_related(Prefetch("notes", queryset=told))
    # What waits for its event stands last: it was told now, and the events before it are still on their way.
    found = list(rows.order_by(F("event__seq").asc(nulls_last=True), "at", "pk"))
    texts = dict(Telling.objects.filter(pk__in=[one.pk for one in found[:MOST_TEXTS]]).values_list("pk", "text"))
    for one in found:
        _with_text(one, texts.get(one.pk), by)
    return found


def told_at(event: Event, *, by: Actor) -> Telling | None:
    """What was told in answer to one event, with its exact text."""
    told = ToldNote.objects.filter(mine(by)).select_related("note", "revision").order_by("position", "pk")
    found = Telling.objects.filter(event=event).prefetch_related(Prefetch("notes", queryset=told)).first()
    if found is not None:
        _with_text(found, found.text, by)
    return found


def _with_text(telling: Telling, text: str | None, by: Actor) -> None:
    """Give a telling its `exact` text, unless another member's own notes are in it or it is shown elsewhere."""
    is_own = telling.member_id is None or str(telling.member_id) == by.member_pk
    is_private = text is not None and not is_own and PRIVATE in text
    telling.is_here = text is not None  # type: ignore[attr-defined]
    telling.is_private = is_private  # type: ignore[attr-defined]
    telling.exact = "" if is_private else text or ""  # type: ignore[attr-defined]


def learnt_from(session: Session, *, by: Actor) -> list[Proposal]:
    """Proposals that rest on the session's events."""
    # Once each by their keys: DISTINCT would compare whole rows, texts and all.
    resting = Source.objects.filter(event__session=session, proposal__isnull=False).values("proposal")
    rows = Proposal.objects.filter(mine(by), pk__in=resting).select_related("note")
    return notes.titled(rows.exclude(state="superseded").order_by("-created_at", "pk")[:20])


def with_tellings(events: list[Any], told: list[Telling]) -> list[Any]:
    """Each event with what was told in answer to it."""
    by_event = {telling.event_id: telling for telling in told}
    for event in events:
        event.telling = by_event.get(event.pk)
    return events


def looks(tenant: Tenant) -> list[Gardening]:
    """The gardener's latest looks, the newest first. What it says names folders, for who sees every project alone."""
    rows = list(tenant.gardenings.order_by("-started_at", "-pk")[:10])
    if not rls.sees_all():
        for row in rows:
            row.told = ""
    return rows


def shown_change(change: Change) -> shown.Change:
    """What an open change of a run does to its note, as a page shows it."""
    proposal = change.proposal
    assert proposal is not None, "only dry runs have changes without a proposal"  # noqa: S101
    base = proposal.base.text if proposal.base else ""
    return shown.between(base, "" if proposal.operation == "delete" else proposal.text)
