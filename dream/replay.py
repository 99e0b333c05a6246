"""A dry run: what another run read is read again, by this mind or prompt, and what it would propose is only shown."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from dream import budget, known, store, windows
from dream.mind import Material, Mind, MindFailed
from dream.models import Change, Run, Window
from dream.shapes import KnownNote, Proposed
from dream.windows import Span, Subject
from memory.notes import paths
from memory.tenants import due
from memory.tenants.due import Claim
from memory.tenants.models import Tenant
from memory.tenants.rls import tenant_scope


@dataclass(frozen=True)
class Difference:
    """One path in two runs: the text each came to, "" where it left the note alone."""

    path: str
    before: str
    after: str
    before_kind: str
    after_kind: str

    @property
    def outcome(self) -> str:
        if not self.before_kind or not self.after_kind:
            return "only there" if self.before_kind else "only here"
        return "same" if (self.before, self.before_kind) == (self.after, self.after_kind) else "different"


def differences(run: Run) -> list[Difference]:
    """A dry run beside the run that it replays, path by path."""
    assert run.replays is not None, "only a dry run is compared"  # noqa: S101
    first, second = (
        {change.path: change for change in each.changes.order_by("path", "pk")} for each in (run.replays, run)
    )
    rows = []
    for path in sorted(first.keys() | second.keys()):
        old, new = first.get(path), second.get(path)
        rows.append(
            Difference(
                path,
                _text(old),
                _text(new),
                old.kind if old else "",
                new.kind if new else "",
            )
        )
    return rows


def _text(change: Change | None) -> str:
    return change.text if change and change.kind != "delete" else ""


def perform(run: Run, claim: Claim, mind: Mind) -> None:
    """Read the windows of the replayed run and keep what the mind would propose. Raises MindFailed, Cancelled."""
    with tenant_scope(claim.tenant_pk):
        due.hold(claim)
        first = run.replays
        assert first is not None, "only a dry run comes here"  # noqa: S101
        subjects = _subjects(first)
        done = [(str(one.session_id), one.to_seq) for one in run.windows.all()]
    for subject in subjects:
        left = (_left(span, done) for span in subject.spans)
        waiting = deque(span for span in left if span.after < span.upto)
        while waiting:
            _batch(run, claim, mind, first, subject, waiting)


def _left(span: Span, done: Iterable[tuple[str, int]]) -> Span:
    """What of a span a worker that died had not read yet."""
    read = [seq for session, seq in done if session == span.session_pk and span.after < seq <= span.upto]
    return replace(span, after=max(read, default=span.after))


def _subjects(first: Run) -> list[Subject]:
    """What a run read, project by project, as windows say."""
    by_project: dict[str | None, list[Window]] = {}
    rows = first.windows.filter(outcome="read").select_related("session__project")
    for window in rows.order_by("session__first_received_at", "session_id", "from_seq"):
        by_project.setdefault(str(window.session.project_id) if window.session.project_id else None, []).append(window)
    found = []
    for read in by_project.values():
        project = read[0].session.project
        spans = tuple(Span(str(one.session_id), one.session.public_id, one.from_seq - 1, one.to_seq) for one in read)
        found.append(windows.subject_of(project, spans))
    return found


def _batch(run: Run, claim: Claim, mind: Mind, first: Run, subject: Subject, waiting: deque[Span]) -> None:
    with tenant_scope(claim.tenant_pk):
        batch = windows.read(waiting, budget=mind.budget, weigh=mind.weigh)
        material = Material(subject.name, subject.slug, batch.events, is_last=not waiting)
        if mind.model:
            notes = _overlaid(run, known.notes(Tenant(pk=claim.tenant_pk), subject, batch.events, at=first.started_at))
            material = replace(
                material, notes=notes, rejected=known.rejected(notes, subject.slug, batch.events),
                meter=budget.TeamMeter(claim.tenant_pk), is_limited=subject.is_limited,
            )  # fmt: skip
    try:
        outcome = mind.dream(material)
    except MindFailed as why:
        with tenant_scope(claim.tenant_pk):
            store.count(run, why.usage)
        raise
    with tenant_scope(claim.tenant_pk):
        due.hold(claim)
        store.count(run, outcome.usage, events=len(batch.events))
        outcome = store.inside(subject, outcome)
        for span in batch.spans:
            store.set_window(run, span, "read", "\n".join(outcome.dropped))
        for proposed in outcome.proposed:
            _keep(run, proposed, material.notes)
        store.count_sessions(run)


def _overlaid(run: Run, notes: Iterable[KnownNote]) -> tuple[KnownNote, ...]:
    """The notes as they would stand after the batches before this one."""
    would = {change.path.removeprefix("team/"): change.text for change in run.changes.exclude(kind="delete")}
    rows = {note.path: replace(note, text=would.get(note.path, note.text)) for note in notes}
    rows |= {path: KnownNote(path, text) for path, text in would.items() if path not in rows and "members/" not in path}
    return tuple(rows.values())


def _keep(run: Run, proposed: Proposed, notes: Iterable[KnownNote]) -> None:
    """Set down what would be proposed; a later batch has the last word on a path."""
    stands = {paths.path_key(note.path): note.text for note in notes}
    old = "" if proposed.member else stands.get(paths.path_key(proposed.path), "")
    Change.objects.update_or_create(
        tenant_id=run.tenant_id, run=run, path=store.address(proposed), proposal=None,
        defaults={
            "kind": proposed.operation if proposed.operation == "delete" else "create" if not old else proposed.kind,
            "text": proposed.text, "old_text": old, "reason": proposed.reason,
        },
    )  # fmt: skip
