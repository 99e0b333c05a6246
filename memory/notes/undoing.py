"""A minute to take a decision back: the proposal is open again, and the note says what it said before."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext

from memory.notes import rules
from memory.notes.holding import by_person, live, locked
from memory.notes.models import Note, Proposal, Revision, Source
from memory.notes.publish import digest, publish
from memory.notes.review import UNDO_FOR
from memory.notes.shown import let_in
from memory.tenants import access, audit
from memory.tenants.access import Actor


class TooLate(Exception):
    """The minute is over, or the note was changed since; `str()` says which."""


def may_undo(proposal: Proposal, *, by: Actor) -> bool:
    """True where this person decided it less than a minute ago."""
    if proposal.state not in ("approved", "rejected") or proposal.decided_at is None or by.member_pk is None:
        return False
    return str(proposal.decided_by_id) == by.member_pk and timezone.now() - proposal.decided_at < UNDO_FOR


def undo(proposal: Proposal, *, by: Actor) -> None:
    """Open the proposal again and take back what deciding it did. Raises Refused, TooLate, Locked."""
    with transaction.atomic():
        note = locked(proposal.note)
        proposal = note.proposals.select_related("base", "note").get(pk=proposal.pk)
        if proposal.state == "open":
            raise TooLate(gettext("Nothing was decided here: the proposal waits."))
        if str(proposal.decided_by_id) != by.member_pk:
            raise access.Refused("note.approve")
        if not may_undo(proposal, by=by):
            raise TooLate(gettext("A decision can be taken back for a minute. Change or revert the note instead."))
        rules.require_open(note)
        if digest(proposal.text) != bytes(proposal.sha256):
            raise TooLate(gettext("The words of this proposal were taken out since."))
        if note.proposals.open().filter(author_kind=proposal.author_kind).exists():
            raise TooLate(gettext("A newer proposal waits for this note meanwhile. Decide on that one."))
        if proposal.state == "approved":
            _take_back(note, proposal, by)
        note.tombstones.filter(proposal=proposal).delete()
        note.refresh_from_db()
        base = live(note)
        Proposal.objects.filter(pk=proposal.pk).update(
            state="open", decided_at=None, decided_by=None, decision_reason="", base=base, seen_by=None
        )
        audit.record(by, "note.undo", proposal.public_id, before=proposal.state, after=note.public_id)


def _take_back(note: Note, proposal: Proposal, by: Actor) -> None:
    if proposal.operation == "delete" and note.deleted_at is not None:
        note.deleted_at = None
        note.save(update_fields=["deleted_at"])
        return
    if proposal.operation == "move":
        raise TooLate(gettext("The note was moved. Move it back instead."))
    made = let_in(proposal)
    if made is None or note.current_id != made.pk or note.deleted_at is not None:
        raise TooLate(gettext("The note was changed since. Revert it in its history instead."))
    before = note.revisions.filter(number__lt=made.number).order_by("-number").first()
    if before is None or proposal.base_id is None:
        _unpublish(note, before)
        return
    publish(note, by_person(proposal.base.text if proposal.base else "", by), sources=_sources(proposal.base))


def _unpublish(note: Note, before: Revision | None) -> None:
    """A note that was new, or came back, is no note again."""
    note.current = before
    note.deleted_at = timezone.now() if before else None
    note.save(update_fields=["current", "deleted_at"])


def _sources(base: Revision | None) -> list[Source]:
    return list(base.sources.order_by("position", "pk")) if base else []
