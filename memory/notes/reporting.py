""" "This note was wrong": said by an agent or a person, and answered by a person."""

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from memory import redact
from memory.notes import reach
from memory.notes.holding import locked, require_may
from memory.notes.models import Note, NoteReport
from memory.tenants import access, audit
from memory.tenants.access import Actor
from memory.tenants.models import Tenant

MAX_REASON = 2_000


class NoReason(ValueError):
    """A report says what is wrong."""


def report(note: Note, *, reason: str, by: Actor) -> tuple[NoteReport, bool]:
    """The report, and whether it is new: the same voice on the same note again replaces what it said.

    Raises Refused, NoReason.
    """
    access.require(by, "note.propose")
    said = redact.brief(reason.strip(), MAX_REASON)
    if not said:
        raise NoReason(gettext("Say what is wrong with the note, and how you know."))
    with transaction.atomic():
        note = locked(note)
        assert note.current is not None, "only approved notes are reported"  # noqa: S101
        made, is_new = NoteReport.objects.update_or_create(
            tenant_id=note.tenant_id,
            note=note,
            author_id=by.id,
            closed_at=None,
            defaults={
                "revision": note.current,
                "reason": said,
                "author_kind": by.kind,
                "author_label": by.label[:200],
            },
        )
        audit.record(by, "note.report", made.public_id, after=note.public_id)
    return made, is_new


def close(asked: NoteReport, *, answer: str, by: Actor) -> None:
    """Answer a report and take it out of the inbox; the same again changes nothing. Raises Refused."""
    require_may(by, "note.approve", asked.note)
    answer = redact.brief(answer.strip(), MAX_REASON)
    rows = NoteReport.objects.filter(pk=asked.pk, closed_at__isnull=True)
    if rows.update(closed_at=timezone.now(), closed_by_id=by.member_pk, answer=answer):
        audit.record(by, "note.report_close", asked.public_id, after=asked.note.public_id)


def waiting(tenant: Tenant, *, by: Actor) -> QuerySet[NoteReport]:
    """Open reports on notes that this person may see, the oldest first."""
    rows = NoteReport.objects.filter(
        tenant=tenant, closed_at__isnull=True, note__in=reach.notes(by.member_pk).present()
    )
    return rows.select_related("note__member", "note__current", "revision").order_by("created_at", "pk")
