"""A question without its event: what would be told now, where the event itself comes later, after those before it."""

from django.db import transaction

from memory.events.record import Arrival, store
from memory.hooks import tell
from memory.hooks.receive import Call, arrivals
from memory.tenants.access import Actor, require
from memory.tenants.rls import tenant_scope


def told_without_event(actor: Actor, call: Call) -> tuple[Arrival, str | None]:
    """The arrival and the text for it; nothing is kept. Raises Refused.

    A client with a backlog sends its events in their order, so this one must not be stored before them; yet the agent
    waits now. What is told is worked out as if it were stored, and all of it is taken back.
    """
    require(actor, "event.record")
    [arrival] = arrivals([call])
    with tenant_scope(actor.tenant_pk):
        [row] = store(actor.tenant_pk, actor.member_pk, [arrival])
        text = tell.telling(arrival, row)
        transaction.set_rollback(True)
    return arrival, text
