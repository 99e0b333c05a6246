"""A question without its event: what would be told now, where the event itself comes later, after those before it."""

from django.db import transaction

from memory.events.record import Arrival, is_closed, opened, store
from memory.hooks import tell
from memory.hooks.receive import Call, arrivals
from memory.recall import awaited
from memory.tenants.access import Actor, require
from memory.tenants.rls import seeing, tenant_scope, unlimited


def told_without_event(actor: Actor, call: Call) -> tuple[Arrival, str | None]:
    """The arrival and the text for it. The telling is kept and waits for its event; asked again, it is the same.

    Raises Refused.
    """
    require(actor, "event.record")
    [arrival] = arrivals([call])
    if not tell.may_be_told(arrival):
        return arrival, None
    with seeing(actor.sight), tenant_scope(actor.tenant_pk):
        if is_closed(actor.tenant_pk, actor.key_pk, arrival.home):
            return arrival, None
        # The session's lock: of two that ask for one event, the second finds what the first was told.
        with unlimited():
            session_pk = opened(actor.tenant_pk, actor.member_pk, arrival.home)
        if (before := awaited.known(arrival.key)) is not None:
            return arrival, before.text if str(before.member_id) == actor.member_pk else None
        text, is_kept = _as_if_stored(actor, arrival, session_pk)
        if not is_kept:
            transaction.set_rollback(True)
    return arrival, text


def _as_if_stored(actor: Actor, arrival: Arrival, session_pk: str) -> tuple[str | None, bool]:
    """The text, and whether a telling was kept.

    A client with a backlog sends its events in their order, so this one must not be stored before them; yet the agent
    waits now. What is told is worked out as if it were stored, and all but the telling is taken back.
    """
    point = transaction.savepoint()
    with unlimited():
        [row] = store(actor.tenant_pk, actor.member_pk, [arrival])
    if row.outcome == "new":
        awaited.go_on(session_pk, renews=arrival.renews)
    text = tell.telling(arrival, row)
    told = awaited.taken(row.event_pk) if row.outcome == "new" and text is not None else None
    transaction.savepoint_rollback(point)
    if told is not None:
        awaited.keep(*told, key=arrival.key)
    return text, told is not None
