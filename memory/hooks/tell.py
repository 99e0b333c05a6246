"""What a hook's answer says: the memory for a session that starts or is prompted."""

import logging
from collections.abc import Sequence
from typing import Final

from cache_admin import rereads
from memory.events.models import Event
from memory.events.record import Arrival, Recorded
from memory.hooks.answers import takes_context
from memory.recall import awaited, inject
from memory.recall.models import Telling
from memory.recall.search import could_fit
from memory.tenants.rls import tenant_scope

log = logging.getLogger(__name__)
# Some versions of Cursor drop what sessionStart answers, cloud agents never run it, and neither Cursor nor Gemini
# starts anew after a compaction: their prompts may be told what a start is.
_STARTS_LATE: Final = ("cursor", "gemini_cli")


def telling(arrival: Arrival, row: Recorded) -> str | None:
    """The text to tell, or None. It runs in a transaction of its own: no fault here may lose the event."""
    if not may_be_told(arrival) or row.outcome in ("deleted", "closed"):
        return None
    try:
        if _has_nothing_to_say(arrival, row):
            return None
        with tenant_scope(row.tenant_pk):
            return _told_before(row) if row.outcome != "new" else _told_now(arrival, row)
    except Exception:
        # The event is stored; the agent goes on without memory rather than with an error it can do nothing about.
        log.exception("Nothing could be told to %s at %s", row.session_id, row.event_id)
        return None


def _has_nothing_to_say(arrival: Arrival, row: Recorded) -> bool:
    """A prompt without a telling word, or in a team without a note: most prompts of a new team end here."""
    if arrival.kind != "prompt" or arrival.home.client in _STARTS_LATE or row.outcome != "new":
        return False
    return not could_fit(arrival.prompt) or not inject.has_notes(row.tenant_pk)


def may_be_told(arrival: Arrival) -> bool:
    """Whether an answer to it can carry anything from the memory."""
    takes = arrival.kind in ("start", "prompt") and takes_context(arrival.home.client, arrival.kind)
    return takes and not arrival.home.is_internal


def settle(arrivals: Sequence[Arrival], rows: Sequence[Recorded]) -> None:
    """Give events that came in by a batch what was told for them before they came."""
    came = {
        arrival.key: row.event_pk
        for arrival, row in zip(arrivals, rows, strict=True)
        if may_be_told(arrival) and row.outcome in ("new", "repeat")
    }
    if came:
        with tenant_scope(rows[0].tenant_pk):
            awaited.arrived(came)


def _told_before(row: Recorded) -> str | None:
    """A repeat gets the same bytes: the first answer may never have arrived. Only its own member's repeat does.

    Teammates can read an event's key, and what it was told may hold the private notes of whoever sent it.
    """
    if row.member_pk is None:
        return None
    told = Telling.objects.filter(event_id=row.event_pk, event__member_id=row.member_pk, member_id=row.member_pk)
    return told.values_list("text", flat=True).first()


def _told_now(arrival: Arrival, row: Recorded) -> str | None:
    event = Event.objects.select_related("session", "session__project", "session__resumed_from", "member").get(
        pk=row.event_pk
    )
    session = event.session
    if (before := awaited.known(event.key)) is not None:
        awaited.arrived({event.key: row.event_pk})
        return before.text if before.member_id == event.member_id else None
    if arrival.kind == "start":
        # Resumed and forked sessions have in their context what was told before.
        if arrival.source in ("resume", "fork") and inject.has_heard_start(session):
            return None
        return _start(arrival, event)
    is_late_start = arrival.home.client in _STARTS_LATE and not inject.has_heard_start(session)
    if is_late_start and (text := _start(arrival, event)) is not None:
        return text
    told = inject.prompt_answer(session, event, prompt=arrival.prompt, member=event.member)
    return told.text if told else None


def _start(arrival: Arrival, event: Event) -> str | None:
    session, member = event.session, event.member
    # A clear is another job: what was read before is not wanted there.
    files = rereads.lines(session, member=member) if session.generation and arrival.source != "clear" else []
    told = inject.start_answer(session, event, member=member, files=files, by_client=arrival.by_client)
    return told.text if told else None
