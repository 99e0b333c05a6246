"""What the graph's hot doors and its short lane ask: one round trip that checks the key, binds, and reads or writes."""

from typing import Any, Final

import orjson

from memory.graph import hot, linking
from memory.graph.record import Told, prepared_many
from memory.paging import Page, invalid_cursor, peek
from memory.tenants import trip
from memory.tenants.races import persistently

READ: Final = (hot.roles("graph.read"), hot.scopes("graph.read"))
RECORD: Final = (hot.roles("graph.record"), hot.scopes("graph.record"))
_READS: Final = {
    kind: f"SELECT state, body FROM read_{kind}(%b, {hot.literals(*READ)}, %t)"  # noqa: S608 - no value of a caller
    for kind in ("thread", "trigger")
}
_STEPS: Final = f"SELECT * FROM read_steps(%b, {hot.literals(*READ)}, %t, %s::bigint, %s::int)"  # noqa: S608
_POST: Final = f"SELECT state, body, tenant FROM post_trigger(%b, {hot.literals(*RECORD)}, %t::jsonb, %b)"  # noqa: S608


class NotOk(Exception):
    """A hot door's answer that is no success: its state, and what it says of it."""

    def __init__(self, state: str, said: str | None = None) -> None:
        super().__init__(state)
        self.state, self.said = state, said


def found(kind: str, key_hash: bytes, public_id: str, *, by: trip.Asking = trip.rows) -> bytes:
    """The inline view of a thread or trigger as JSON. Raises NotOk."""
    [(state, body)] = by(_READS[kind], (key_hash, public_id))
    if state != "ok":
        raise NotOk(state, body)
    return str(body).encode()


def steps(key_hash: bytes, thread_id: str, query: Any, *, by: trip.Asking = trip.rows) -> bytes:
    """A page of steps as JSON. Raises NotOk, Problem 400."""
    limit, cursor, after = peek(query)
    past = after[0] if after else 0
    if not isinstance(past, int) or not 0 <= past < 2**62:
        raise invalid_cursor()
    [(state, tenant, body, last_seq, many)] = by(_STEPS, (key_hash, thread_id, past, limit))
    if state != "ok":
        raise NotOk(state, body)
    page = Page.of_cursor(cursor, limit=limit, scope=f"{tenant}:steps:{thread_id}")
    more = page.next_cursor([last_seq] if last_seq is not None else None)
    answer = f'{{"items":[{body}],"next_cursor":"{more}","has_more":{"true" if many > limit else "false"}}}'
    return answer.encode()


def stored(key_hash: bytes, told: Told, *, tenant_pk: str | None, by: trip.Asking = trip.rows) -> tuple[str, bytes]:
    """Whether the trigger is new or a repeat, and its inline view; its links are made. Raises NotOk, Problem."""
    ready = prepared_many([told], tenant_pk=tenant_pk)[0]
    values = (key_hash, orjson.dumps(ready.fields).decode(), ready.body)
    [(state, body, tenant)] = persistently(lambda: by(_POST, values))
    if state not in ("new", "repeat"):
        raise NotOk(state, body)
    if linking.names_something(ready, told):
        linking.triggers(str(tenant), [orjson.loads(body)["trigger_id"]])
    return state, str(body).encode()
