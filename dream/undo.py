"""Taking back what a dream brought: a whole run, or one change of it. What people did since stays.

What is still open is withdrawn. What was let in is taken out of the text that stands now by a three-way merge; where
people changed the same lines since, nothing is touched and the conflict is shown. A key undoes by a proposal.
"""

from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.utils import timezone

from dream.models import Change, Run
from memory.notes import review, rules, shown
from memory.notes.diff import Conflict, merge3
from memory.notes.models import Note, Proposal, Revision
from memory.notes.publish import digest, supersede
from memory.notes.review import Draft
from memory.problems import project_closed
from memory.sentences import sentence
from memory.tenants import access, audit
from memory.tenants.access import Actor
from memory.tenants.models import Tenant
from memory.tenants.rls import unlimited

DONE: Final = frozenset({"undone", "withdrawn", "proposed", "kept"})


class NotFinished(Exception):
    """The run waits or runs: cancel it first."""


class NothingToUndo(Exception):
    """A dry run changed nothing."""


@dataclass(frozen=True)
class Undone:
    """What became of one change. `outcome`: undone, withdrawn, proposed, conflict, or kept (nothing was left of it)."""

    change: Change
    outcome: str
    detail: str = ""


def undo(run: Run, *, by: Actor) -> list[Undone]:
    """Take back all that a run brought, the latest first. Doing it twice does the rest. Raises Refused, NotFinished."""
    access.require(by, "dream.undo")
    if run.state in ("queued", "running"):
        raise NotFinished(run.public_id)
    if run.replays_id is not None:
        raise NothingToUndo(run.public_id)
    with unlimited():
        every = run.changes.count()
    if every != run.changes.count():
        # Half of it undone would be called undone, and the other half be nobody's.
        raise project_closed()
    with transaction.atomic():
        rows = list(run.changes.exclude(undo__in=DONE).select_related("proposal__note").order_by("-pk"))
        found = [_one(change, by) for change in rows]
        if all(one.outcome in DONE for one in found):
            Run.objects.filter(pk=run.pk, undone_at__isnull=True).update(
                undone_at=timezone.now(), undone_by=by.label[:200]
            )
        audit.record(by, "dream.undo", run.public_id)
    return found


def undo_change(change: Change, *, by: Actor) -> Undone:
    """Take back one change. Raises Refused, NotFinished, NothingToUndo."""
    access.require(by, "dream.undo")
    if change.run.state in ("queued", "running"):
        raise NotFinished(change.run.public_id)
    if change.proposal is None:
        raise NothingToUndo(change.run.public_id)
    if change.undo in DONE:
        return Undone(change, change.undo, change.undo_detail)
    with transaction.atomic():
        found = _one(change, by)
        audit.record(by, "dream.undo", change.proposal.public_id)
    return found


def conflicts(change: Change) -> list[Conflict]:
    """Where people changed the same lines since: what the dream wrote, what stands, what stood before the dream."""
    proposal = change.proposal
    made = shown.let_in(proposal) if proposal else None
    current = proposal.note.current if proposal else None
    if proposal is None or made is None or current is None or proposal.operation == "delete":
        return []
    return list(merge3(made.text, current.text, _before(made)).conflicts)


def _one(change: Change, by: Actor) -> Undone:
    proposal = change.proposal
    assert proposal is not None, "only dry runs have changes without a proposal"  # noqa: S101
    if proposal.state == "open":
        supersede(proposal, reason=sentence("The dream that made it was undone."))
        return _noted(change, "withdrawn")
    if proposal.state == "superseded":
        return _noted(change, *_out_of_successor(change))
    if proposal.state != "approved":
        return _noted(change, "kept", sentence("It was rejected."))
    made = shown.let_in(proposal)
    if made is None:
        return _noted(change, "kept", sentence("The revision is no longer known."))
    note = Note.objects.select_for_update(of=("self",)).select_related("current", "member").get(pk=proposal.note_id)
    return _noted(change, *_changed(note, made, proposal.operation, by))


def _changed(note: Note, made: Revision, operation: str, by: Actor) -> tuple[str, str]:
    """Of a whole run, one locked path or one that two people decide on keeps no other from being undone."""
    try:
        if by.kind == "key" or not review.may_decide(by, note):
            return _propose(note, made, operation, by)
        try:
            return _apply(note, made, operation, by)
        except rules.NeedsTwo:
            return _propose(note, made, operation, by)
    except rules.Locked as locked:
        return "conflict", str(locked)


def _apply(note: Note, made: Revision, operation: str, by: Actor) -> tuple[str, str]:
    if operation == "delete":
        if note.deleted_at is None:
            return "kept", sentence("The note was written again since.")
        review.revert(note, to=made, by=by)
        return "undone", ""
    if note.deleted_at is not None or note.current is None:
        return "kept", sentence("The note was deleted since.")
    before, current = _before(made), note.current
    if not before and current.pk == made.pk:
        review.delete(note, by=by, reason=sentence("The dream that made it was undone."))
        return "undone", ""
    merged = merge3(made.text, current.text, before)
    if merged.conflicts:
        return "conflict", sentence("People changed the same lines in revision %(number)s.", number=current.number)
    if merged.text == current.text:
        return "kept", sentence("Nothing of it stands any more.")
    if not merged.text.strip():
        review.delete(note, by=by, reason=sentence("The dream that made it was undone."))
        return "undone", ""
    review.write(
        Tenant(pk=note.tenant_id), path=note.path, text=merged.text, by=by, member=note.member, base=current.number
    )
    return "undone", ""


def _propose(note: Note, made: Revision, operation: str, by: Actor) -> tuple[str, str]:
    """A key never changes what people approved, nor one person where two decide: they ask for it."""
    before, current = _before(made), note.current
    if operation == "delete" or note.deleted_at is not None or current is None or note.member_id is not None:
        return "conflict", sentence("Only a person can undo this.")
    merged = merge3(made.text, current.text, before)
    if merged.conflicts:
        return "conflict", sentence("People changed the same lines in revision %(number)s.", number=current.number)
    is_gone = not merged.text.strip()
    draft = Draft(
        note.path,
        "" if is_gone else merged.text,
        reason=sentence("Undoes a dream."),
        operation="delete" if is_gone else "write",
        base=None if is_gone else current.number,
    )
    proposal = review.propose(Tenant(pk=note.tenant_id), draft, by=by)
    return ("proposed", proposal.public_id) if proposal else ("kept", sentence("Nothing of it stands any more."))


def _out_of_successor(change: Change) -> tuple[str, str]:
    """A later dream's proposal took this one's place, and holds its lines: they are taken out of it."""
    first = change.proposal
    assert first is not None, "asked for above"  # noqa: S101
    later = first.note.proposals.open().filter(author_kind="dream", operation="write").first()
    if later is None or first.operation == "delete":
        return "kept", sentence("It was replaced, and nothing of it waits.")
    merged = merge3(change.text, later.text, change.old_text)
    if merged.conflicts:
        return "conflict", sentence("%(proposal)s changed the same lines.", proposal=later.public_id)
    stands = first.note.current.text if first.note.current and first.note.deleted_at is None else ""
    if merged.text.strip() in ("", stands.strip()):
        supersede(later, reason=sentence("The dream that made it was undone."))
        return "withdrawn", ""
    if merged.text == later.text:
        return "kept", sentence("Nothing of it waits.")
    # Who approved it as the first of two has not seen this text.
    Proposal.objects.open().filter(pk=later.pk).update(text=merged.text, sha256=digest(merged.text), seen_by=None)
    return "withdrawn", sentence("Its lines were taken out of %(proposal)s.", proposal=later.public_id)


def _before(made: Revision) -> str:
    """What the note said before a revision; "" where it was its first, or the note had been deleted."""
    old = Revision.objects.filter(note_id=made.note_id, number=made.number - 1).first()
    return old.text if old else ""


def _noted(change: Change, outcome: str, detail: str = "") -> Undone:
    change.undo, change.undo_detail, change.undone_at = outcome, detail, timezone.now()
    change.save(update_fields=["undo", "undo_detail", "undone_at"])
    return Undone(change, outcome, detail)
