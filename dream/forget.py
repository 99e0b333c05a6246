"""Deleting a session: what it recorded is gone, and what was drafted from it. Its ids stay known, without words."""

from dataclasses import dataclass
from typing import Final

from django.db import connection
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from dream.models import Change, Quarantined, SessionGist, Watermark, Window
from dream.taint import BLANK
from memory.events.models import DELETED, Claim, Event, Reading, Session
from memory.events.working import BY
from memory.graph.models import Worker
from memory.graph.tombstones import bury_worker, know
from memory.notes.models import Proposal, Source
from memory.recall.models import Entry, Mark, Telling, ToldNote
from memory.sentences import sentence
from memory.tenants import audit
from memory.tenants.access import Actor, require

# Bodies are stored under their digest: the same bytes may belong to another event, a trigger, a report or a result.
_DROP_BODIES: Final = """
DELETE FROM graph_body b WHERE b.tenant_id = %(tenant)s AND b.sha256 = ANY (%(digests)s)
  AND NOT EXISTS (SELECT FROM events_event e WHERE e.tenant_id = b.tenant_id AND e.sha256 = b.sha256)
  AND NOT EXISTS (SELECT FROM graph_part p WHERE p.tenant_id = b.tenant_id AND p.sha256 = b.sha256)
  AND NOT EXISTS (SELECT FROM graph_worker w WHERE w.tenant_id = b.tenant_id AND w.report_sha256 = b.sha256)
"""


@dataclass(frozen=True)
class Forgotten:
    """What went with a session, and the worker that stays because its report was to be kept."""

    events: int
    proposals: int
    workers_deleted: tuple[str, ...]
    workers_kept: tuple[str, ...]


def may_forget(session: Session, by: Actor) -> bool:
    """Not to be recorded is a right of whoever the session is of; else it takes an admin."""
    is_own = by.member_pk is not None and str(session.member_id) == by.member_pk
    return (is_own and by.may("session.delete")) or by.may("session.delete_any")


def forget(session: Session, *, by: Actor, keep_report: bool = False) -> Forgotten:
    """Delete a session in the bound transaction. With `keep_report` the worker it was stays, and so do drafts of notes.

    What was approved stays: a note is the team's, and its citation says "deleted". Raises Refused, and
    Session.DoesNotExist where another request was first.
    """
    if not may_forget(session, by):
        require(by, "session.delete_any")
    # Its row lock keeps events out that arrive now, and a dream that reads it finds its watermark moved.
    Session.objects.select_for_update().get(pk=session.pk)
    proposals = 0 if keep_report else _withdraw_drafts(session)
    deleted, kept = _part_from_workers(session, keep_report=keep_report)
    _forget_tellings(session)
    _forget_dreams(session)
    events = _empty_events(session)
    Claim.objects.filter(session=session).delete()
    Reading.objects.filter(session=session).delete()
    Session.objects.filter(pk=session.pk).update(
        state="deleted",
        deleted_at=timezone.now(),
        worker=None,
        project=None,
        resumed_from=None,
        last_seq=0,
        last_stop_seq=0,
        **dict.fromkeys(("source", "cwd", "model", "transcript_path", "last_prompt"), ""),
    )
    know(str(session.tenant_id), [session.public_id])
    audit.record(by, "session.delete", session.public_id, after=f"{events} events")
    return Forgotten(events, proposals, deleted, kept)


def _withdraw_drafts(session: Session) -> int:
    """Close what a dream proposed from this session alone; what rests on others too is theirs as well."""
    own = Source.objects.filter(proposal=OuterRef("pk"), event__session=session)
    others = Source.objects.filter(proposal=OuterRef("pk")).exclude(Q(event__session=session) | Q(event__kind=DELETED))
    drafts = Proposal.objects.open().filter(Exists(own), ~Exists(others), author_kind="dream")
    Change.objects.filter(proposal__in=list(drafts.values_list("pk", flat=True))).update(**BLANK)
    return drafts.update(
        state="superseded",
        text="",
        reason="",
        decided_at=timezone.now(),
        decision_reason=sentence("The session that it came from was deleted."),
    )


def _part_from_workers(session: Session, *, keep_report: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A worker that was made from the session's events goes with it; one that an agent reported itself only lets go."""
    rows = Worker.objects.filter(session_public_id=session.public_id, deleted_at__isnull=True).order_by("created_at")
    deleted, kept = [], []
    for worker in rows:
        if worker.by == BY and not keep_report:
            bury_worker(worker)
            deleted.append(worker.public_id)
        else:
            kept.append(worker.public_id)
    rows.update(session_public_id="")
    return tuple(deleted), tuple(kept)


def _forget_tellings(session: Session) -> None:
    """That something was told, and which notes, stays; the words of the prompt and of the answer do not."""
    ToldNote.objects.filter(telling__session=session).update(why="")
    Telling.objects.filter(session=session).update(text="")


def _forget_dreams(session: Session) -> None:
    Window.objects.filter(session=session).update(detail="")
    SessionGist.objects.filter(session=session).delete()
    Quarantined.objects.filter(session=session).delete()
    Watermark.objects.update_or_create(
        tenant_id=session.tenant_id,
        session=session,
        defaults={"seq": session.last_seq + 1, "failures": 0, "retry_at": None, "error": ""},
    )


def _empty_events(session: Session) -> int:
    """Nothing of an event stays but its id, its place and when it was received."""
    rows = Event.objects.filter(session=session)
    found = list(rows.values_list("pk", "public_id", "kind"))
    digests = list(rows.filter(body__isnull=True).values_list("sha256", flat=True).distinct())
    prompts = [pk for pk, _, kind in found if kind == "prompt"]
    Entry.objects.filter(target__in=prompts, kind="event").delete()
    Mark.objects.filter(Q(target__in=prompts), tenant_id=session.tenant_id, kind="event").delete()
    with connection.cursor() as cursor:
        # Its key may be its sender's own words; the session refuses a repeat, so it need not be recognised.
        cursor.execute(
            "UPDATE events_event SET kind = %s, key = 'deleted:' || public_id, name = '', agent_id = '', tool = '',"
            " tool_use_id = '', summary = '', sha256 = '', size = 0, body = NULL, head = '', tail = '', redactions = 0,"
            " sanitized = 0, occurred_at = NULL, agent_key_id = NULL WHERE session_id = %s",
            [DELETED, session.pk],
        )
        if digests:
            cursor.execute(_DROP_BODIES, {"tenant": session.tenant_id, "digests": [bytes(one) for one in digests]})
    know(str(session.tenant_id), [public_id for _, public_id, _ in found])
    return len(found)
