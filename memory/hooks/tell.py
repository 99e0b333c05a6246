"""What a hook's answer says: the memory for a session that starts or is prompted."""

import logging

from memory.events.models import Event, Session
from memory.events.record import Arrival, Recorded
from memory.hooks.answers import takes_context
from memory.recall import inject
from memory.recall.models import Telling
from memory.tenants.models import Member
from memory.tenants.rls import tenant_scope

log = logging.getLogger(__name__)


def telling(arrival: Arrival, row: Recorded) -> str | None:
    """The text to tell, or None. It runs in a transaction of its own: no fault here may lose the event."""
    if arrival.kind not in ("start", "prompt") or not takes_context(arrival.home.client, arrival.kind):
        return None
    if arrival.home.is_internal or row.outcome == "deleted":
        return None
    try:
        with tenant_scope(row.tenant_pk):
            return _told_before(row) if row.outcome != "new" else _told_now(arrival, row)
    except Exception:
        # The event is stored; the agent goes on without memory rather than with an error it can do nothing about.
        log.exception("Nothing could be told to %s at %s", row.session_id, row.event_id)
        return None


def _told_before(row: Recorded) -> str | None:
    """A repeat gets the same bytes: the first answer may never have arrived. Only its own member's repeat does.

    Teammates can read an event's key, and what it was told may hold the private notes of whoever sent it.
    """
    if row.member_pk is None:
        return None
    told = Telling.objects.filter(event_id=row.event_pk, event__member_id=row.member_pk, member_id=row.member_pk)
    return told.values_list("text", flat=True).first()


def _told_now(arrival: Arrival, row: Recorded) -> str | None:
    event = Event.objects.select_related("session", "session__project", "member").get(pk=row.event_pk)
    session, member = event.session, event.member
    if arrival.kind == "start":
        if arrival.source == "resume" and _has_heard(session):
            return None
        return _start(session, event, member)
    # Some versions of Cursor drop what sessionStart answers, and cloud agents never run it.
    is_late_start = arrival.home.client == "cursor" and not _has_heard(session)
    if is_late_start and (text := _start(session, event, member)) is not None:
        return text
    told = inject.prompt_answer(session, event, prompt=arrival.prompt, member=member)
    return told.text if told else None


def _start(session: Session, event: Event, member: Member | None) -> str | None:
    told = inject.start_answer(session, event, member=member)
    return told.text if told else None


def _has_heard(session: Session) -> bool:
    """A resumed session still has in its context what it, or the one it goes on from, was told at its start."""
    sessions = [pk for pk in (session.pk, session.resumed_from_id) if pk]
    return Telling.objects.filter(session_id__in=sessions, kind="start").exists()
