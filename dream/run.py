"""A dream run: begun once, carried on by whoever holds its lease, ended once.

Reading, thinking and writing are three steps. A model is asked outside any transaction; what came of it, the watermarks
and the counts are written in one. Whoever writes must still hold the lease and find each watermark where it was when
the events were read, so a run that was killed, or taken over, leaves nothing half and nothing twice.
"""

import logging
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.db import IntegrityError, InterfaceError, OperationalError, transaction
from django.utils import timezone

from dream import budget, known, replay, store, windows
from dream.mind import Material, Mind, MindFailed, Outcome, chosen
from dream.models import Run
from dream.windows import Batch, Span, Subject
from memory import redact
from memory.llm import UnknownModel, Usage
from memory.sentences import sentence
from memory.tenants import access, audit, due
from memory.tenants.access import Actor, dream_actor
from memory.tenants.due import Claim, LeaseLost
from memory.tenants.models import Due, Tenant
from memory.tenants.rls import tenant_scope

log = logging.getLogger(__name__)
TASK: Final = "dream"
# A window that has failed so often is halved, until the event that is to blame stands alone.
FAILURES_BEFORE_HALVING: Final = 3
MOST_HALVINGS: Final = 60
# A mind that has failed on so many windows in a row is the fault, not they: the run ends, and waits like in an outage.
# Halving 100,000 events down to the one to blame fails 17 times in a row at most.
MOST_IN_A_ROW: Final = 20
USELESS: Final = "useless"
# Workers that die over one run without progress. Then it has failed, and is tried again like any other.
MOST_ATTEMPTS: Final = 20
FIRST_WAIT: Final = timedelta(minutes=1)
LONGEST_WAIT: Final = timedelta(hours=1)


class AlreadyRunning(Exception):
    """A dream of this team waits or runs; `run` is it."""

    def __init__(self, run: Run) -> None:
        super().__init__(run.public_id)
        self.run = run


class AlreadyFinished(Exception):
    """The run has ended, so there is nothing to cancel."""


@dataclass(frozen=True)
class Dry:
    """What a dry run is to be: of which run, by which model and prompt ("" for the usual ones)."""

    of: Run
    model: str = ""
    instructions: str = ""


def start(tenant: Tenant, *, by: Actor, dry: Dry | None = None) -> Run:
    """Put down a dream of everything that happened up to now, or a dry run. Raises AlreadyRunning, UnknownModel.

    Up to now, and not only up to each Stop: whoever asks knows that there is something to learn. What a session does
    afterwards is read by the next run, from the watermark on.
    """
    access.require(by, "dream.start")
    if dry is not None:
        chosen(dry.model, dry.instructions, tenant_pk=str(tenant.pk))  # raises before anything is put down
    try:
        run = _put_down(tenant, by, dry)
    except IntegrityError:
        running = _running()
        if running is not None:
            raise AlreadyRunning(running) from None
        run = _put_down(tenant, by, dry)  # the other one ended in that moment
    due.put(str(tenant.pk), TASK, run.public_id)
    audit.record(by, "dream.start", run.public_id)
    return run


def _put_down(tenant: Tenant, by: Actor, dry: Dry | None) -> Run:
    run = Run(tenant_id=tenant.pk, asked_by=by.label[:200], is_whole=dry is None)
    if dry is not None:
        run.replays, run.asked_model, run.instructions = dry.of, dry.model[:120], dry.instructions
    with transaction.atomic():
        run.save(force_insert=True)
    return run


def _running() -> Run | None:
    return Run.objects.unfinished().first()


def cancel(run: Run, *, by: Actor) -> None:
    """End a run that waits, at once, or one that runs, before it next writes. Raises AlreadyFinished."""
    access.require(by, "dream.start")
    waiting = Run.objects.unfinished().filter(pk=run.pk)
    if not waiting.update(state="cancelled", finished_at=timezone.now()):
        raise AlreadyFinished(run.public_id)
    audit.record(by, "dream.cancel", run.public_id)


def start_and_claim(tenant: Tenant, *, by: Actor, dry: Dry | None = None) -> Claim:
    """Put down a dream and take it for this process, outside any transaction. Raises AlreadyRunning."""
    with tenant_scope(str(tenant.pk)):
        run = start(tenant, by=by, dry=dry)
        pk = str(Due.objects.get(task=TASK, argument=run.public_id).pk)
    claim = due.claim(str(tenant.pk), pk)
    if claim is None:
        # A worker was quicker by a moment; the dream is in good hands.
        raise AlreadyRunning(run)
    return claim


def perform(claim: Claim, *, mind: Mind | None = None) -> Run | None:
    """Carry out the dream that is due, from wherever it stands; None where there is none any more."""
    try:
        with tenant_scope(claim.tenant_pk):
            named = Run.objects.filter(public_id=claim.argument).first() if claim.argument else None
        asked = (named.asked_model, named.instructions) if named else ("", "")
        mind = mind or chosen(*asked, tenant_pk=claim.tenant_pk)
    except UnknownModel as why:
        return _refuse(claim, str(why))
    run = _begin(claim, mind)
    if run is None:
        return None
    with due.heartbeat(claim):
        try:
            if run.replays_id is None:
                _Dreamer(run, claim, mind).dream()
            else:
                _dry(run, claim, mind)
        except (LeaseLost, store.Raced) as why:
            log.warning("dream %s: another worker has it (%s)", run.public_id, why)
            due.release(claim)
        except store.Cancelled:
            _end_cancelled(claim)
    with tenant_scope(claim.tenant_pk):
        run.refresh_from_db()
    return run


def _begin(claim: Claim, mind: Mind) -> Run | None:
    with tenant_scope(claim.tenant_pk):
        run = _named(claim) if claim.argument else _scheduled(claim)
        if run is None:
            due.done(claim)
            return None
        if claim.attempts > MOST_ATTEMPTS:
            _fail(
                run,
                claim,
                sentence("%(many)s workers ended while they had it", many=claim.attempts - 1),
                timezone.now() + LONGEST_WAIT,
            )
            return None
        run.state, run.started_at = "running", run.started_at or timezone.now()
        run.mind, run.model, run.prompt_version = mind.name, mind.model[:120], mind.version[:20]
        run.save(update_fields=["state", "started_at", "mind", "model", "prompt_version"])
    return run


def _refuse(claim: Claim, error: str) -> Run | None:
    """A run that the settings make impossible: failed for all to see, and tried again after they were mended."""
    with tenant_scope(claim.tenant_pk):
        run = _named(claim) if claim.argument else _scheduled(claim)
        if run is None:
            due.done(claim)
            return None
        _fail(run, claim, error, timezone.now() + LONGEST_WAIT)
        run.refresh_from_db()
    return run


def _named(claim: Claim) -> Run | None:
    return Run.objects.unfinished().select_for_update().filter(public_id=claim.argument).first()


def _scheduled(claim: Claim) -> Run | None:
    """The run that the clock asked for. The row is named after it, so that whoever takes over finds it."""
    if Run.objects.unfinished().exists():
        return None
    run = Run.objects.create(tenant_id=claim.tenant_pk, asked_by="schedule")
    Due.objects.filter(pk=claim.pk, owner=claim.owner).update(argument=run.public_id)
    return run


def _end_cancelled(claim: Claim) -> None:
    with tenant_scope(claim.tenant_pk):
        due.done(claim)


def _fail(run: Run, claim: Claim, error: str, retry_at: datetime) -> None:
    """End the run as failed, and have the next one made when it is time to try again."""
    Run.objects.filter(pk=run.pk).update(
        state="failed", error=redact.brief(error, 2000), finished_at=timezone.now(), retry_at=retry_at
    )
    due.done(claim)
    due.put(claim.tenant_pk, TASK, at=retry_at)


def wait_after(failures: int, *, asked: float = 0.0) -> timedelta:
    """How long to wait after so many failures: 1, 2, 4 … minutes up to an hour, not less than the provider asks."""
    doubled: timedelta = FIRST_WAIT * 2 ** min(max(failures - 1, 0), 10)
    return max(min(doubled, LONGEST_WAIT), timedelta(seconds=min(asked, 24 * 3600)))


def _dry(run: Run, claim: Claim, mind: Mind) -> None:
    """A dry run fails for good: whoever asked for it asks again."""
    error = ""
    try:
        replay.perform(run, claim, mind)
    except MindFailed as why:
        error = str(why)
    with tenant_scope(claim.tenant_pk):
        store.count(run, Usage())
        state = "failed" if error else "succeeded" if run.changes.exists() else "no_change"
        Run.objects.filter(pk=run.pk).update(state=state, error=redact.brief(error, 2000), finished_at=timezone.now())
        due.done(claim)


@dataclass
class _Dreamer:
    """One go at a run, with what went wrong in it."""

    run: Run
    claim: Claim
    mind: Mind
    errors: list[str] = field(default_factory=list)
    retry_at: list[datetime] = field(default_factory=list)
    in_a_row: int = 0

    def dream(self) -> None:
        with tenant_scope(self.claim.tenant_pk):
            due.hold(self.claim)
            store.follow_merges(recount=not self.mind.model)
            subjects = windows.subjects(whole=self.run.is_whole)
            known = {subject.pk for subject in subjects}
            subjects += [subject for subject in store.untold() if subject.pk not in known]
        try:
            for subject in subjects:
                self._subject(subject)
        except MindFailed as why:
            # The provider is away or wants us to wait: the rest would fare no better.
            self.errors.append(str(why))
        self._end()

    def _subject(self, subject: Subject) -> None:
        waiting: deque[Span] = deque(subject.spans)
        while waiting:
            with tenant_scope(self.claim.tenant_pk):
                batch = windows.read(waiting, budget=self.mind.budget, weigh=self.mind.weigh)
            self._batch(subject, batch, is_last=not waiting)
        with tenant_scope(self.claim.tenant_pk):
            is_untold = store.has_news(subject)
        if is_untold:
            self._think(subject, Batch((), ()), is_last=True)

    def _batch(self, subject: Subject, batch: Batch, *, is_last: bool) -> None:
        """Dream a batch. A failure that its events may have caused is noted, and the next batch has its turn."""
        try:
            self._think(subject, batch, is_last=is_last)
        except MindFailed as why:
            failures = max(span.failures for span in batch.spans) + 1
            if why.blames and failures > FAILURES_BEFORE_HALVING and len(batch.spans) == 1:
                self._halve(subject, batch, why, [MOST_HALVINGS])
                return
            self._note(batch, why, failures)
            if not why.blames:
                raise

    def _halve(self, subject: Subject, batch: Batch, why: MindFailed, left: list[int]) -> None:
        """Find the event to blame: what can be dreamed without it is dreamed, and it is put aside for a person."""
        if len(batch.events) <= 1:
            self._write(store.Written(subject, batch, Outcome(), quarantine=str(why)))
            return
        for half in windows.halves(batch):
            left[0] -= 1
            if left[0] < 0:
                self._note(half, why, FAILURES_BEFORE_HALVING)
                return
            try:
                self._think(subject, half, is_last=False)
            except MindFailed as again:
                if not again.blames:
                    self._note(half, again, FAILURES_BEFORE_HALVING)
                    raise
                self._halve(subject, half, again, left)

    def _think(self, subject: Subject, batch: Batch, *, is_last: bool) -> None:
        with tenant_scope(self.claim.tenant_pk):
            material = self._material(subject, batch, is_last=is_last)
        try:
            outcome = self.mind.dream(material)
        except MindFailed as why:
            self._spend(why.usage)
            self.in_a_row += 1
            if why.blames and self.in_a_row >= MOST_IN_A_ROW:
                raise MindFailed(
                    USELESS,
                    sentence("%(many)s windows in a row failed, the last one by %(why)s", many=self.in_a_row, why=why),
                ) from why
            raise
        except (OperationalError, InterfaceError):
            raise  # the database is out of reach: no fault of these events, and whoever has the lease next goes on
        except Exception as why:
            # A fault of the mind, on these events: to be counted against them like any other, never to end the worker.
            log.exception("dream %s: the mind crashed", self.run.public_id)
            raise MindFailed("crashed", f"{type(why).__name__}: {why}") from why
        self.in_a_row = 0
        self._write(store.Written(subject, batch, outcome, is_last=is_last))

    def _material(self, subject: Subject, batch: Batch, *, is_last: bool) -> Material:
        """Only what this mind reads is looked up: rules need no notes, and a model no counts."""
        pk = self.claim.tenant_pk
        gists = store.gists_of(span.session_pk for span in batch.spans)
        if not self.mind.model:
            return Material(
                subject.name, subject.slug, batch.events, state=store.digest(subject), is_last=is_last, gists=gists
            )
        notes = known.notes(Tenant(pk=pk), subject, batch.events)
        turned_down = known.rejected(notes, subject.slug, batch.events)
        return Material(
            subject.name, subject.slug, batch.events, notes, turned_down, is_last=is_last, gists=gists,
            meter=budget.TeamMeter(pk), is_limited=subject.is_limited,
        )  # fmt: skip

    def _write(self, written: store.Written) -> None:
        with tenant_scope(self.claim.tenant_pk):
            due.hold(self.claim)
            usage = written.outcome.usage
            store.count(self.run, usage, events=len(written.batch.events))
            store.write(self.run, written, by=dream_actor(Tenant(pk=self.claim.tenant_pk), self.run.public_id))

    def _spend(self, usage: Usage) -> None:
        with tenant_scope(self.claim.tenant_pk):
            due.hold(self.claim)
            store.count(self.run, usage)

    def _note(self, batch: Batch, why: MindFailed, failures: int) -> None:
        """Keep the watermarks, and say when to try again."""
        waits = wait_after(failures if why.blames else self._outages() + 1, asked=why.retry_after)
        retry_at = budget.next_month() if why.kind == budget.OVER else timezone.now() + waits
        with tenant_scope(self.claim.tenant_pk):
            due.hold(self.claim)
            store.note_failure(self.run, batch, str(why), retry_at=retry_at, blamed=why.blames)
        self.errors.append(str(why))
        self.retry_at.append(retry_at)

    def _outages(self) -> int:
        """How many runs in a row have failed just before this one."""
        with tenant_scope(self.claim.tenant_pk):
            before = Run.objects.exclude(pk=self.run.pk).order_by("-created_at", "-id")[:10]
            states = [run.state for run in before]
        return next((place for place, state in enumerate(states) if state != "failed"), len(states))

    def _end(self) -> None:
        with tenant_scope(self.claim.tenant_pk):
            due.hold(self.claim)
            store.count(self.run, Usage())
            if self.errors:
                first = self.errors[0]
                _fail(self.run, self.claim, first, min(self.retry_at, default=timezone.now() + FIRST_WAIT))
                return
            state = "succeeded" if self.run.changes.exists() else "no_change"
            Run.objects.filter(pk=self.run.pk).update(state=state, finished_at=timezone.now())
            due.done(self.claim)
