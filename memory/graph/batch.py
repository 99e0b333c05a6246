"""A batch of triggers, one a line: stored chunk by chunk; a line that can't be stored is refused alone."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.db import DataError as DjangoDataError
from psycopg import DataError

from memory.graph import content, incoming, linking
from memory.graph.record import Ready, Told, prepared_many
from memory.graph.refusals import of_outcome
from memory.problems import Problem
from memory.tenants import batch, trip
from memory.tenants.batch import Tally
from memory.tenants.races import persistently

log = logging.getLogger(__name__)


class Denied(Exception):
    """The key is unknown, or may not record; `str()` is the door's state."""


@dataclass(slots=True)
class Named(Tally):
    """What became of the lines, and the ids of what was stored and may name a thread."""

    naming: list[str] = field(default_factory=list)


def lines_of(raw: bytes) -> list[bytes]:
    """The lines of a batch's body. Raises Problem 413 too_many_lines, 400."""
    if not raw.strip():
        raise Problem(400, "empty_body", f"The body is empty. Send one JSON object a line, like {incoming.SHAPE}.")
    return batch.lines_of(raw)


def record_lines(
    key_hash: bytes, lines: Iterable[bytes], *, access: tuple[list[str], list[str]], tenant_pk: str | None
) -> Named:
    """Store NDJSON lines, a chunk in a transaction. A line that can't be stored is refused alone. Raises Denied."""
    tally = Named()
    for chunk in batch.chunks(_read(lines, tally)):
        ready = prepared_many([told for _, told in chunk], tenant_pk=tenant_pk)
        outcomes = _stored(key_hash, ready, access)
        for (line, told), one, outcome in zip(chunk, ready, outcomes, strict=True):
            if isinstance(outcome, Problem):
                tally.refuse(line, outcome)
            elif outcome == "new":
                tally.accepted += 1
                if linking.names_something(one, told):
                    tally.naming.append(one.fields["id"])
            else:
                tally.repeated += 1
    return tally


def _read(lines: Iterable[bytes], tally: Named) -> Iterator[tuple[int, Told, int]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            told = incoming.of_value(content.value_of(line))
        except Problem as problem:
            tally.refuse(number, problem)
            continue
        yield number, told, len(line)


def _stored(key_hash: bytes, ready: Sequence[Ready], access: tuple[list[str], list[str]]) -> Iterator[str | Problem]:
    """One transaction for a chunk; where the database refuses a value, each half goes alone."""
    try:
        rows = post(key_hash, ready, access)
    except (DataError, DjangoDataError) as fault:
        if len(ready) == 1:
            log.error("A trigger could not be stored", exc_info=fault)
            yield Problem(400, "not_storable", "The database refused this trigger; the server's log says why.")
            return
        middle = len(ready) // 2
        yield from _stored(key_hash, ready[:middle], access)
        yield from _stored(key_hash, ready[middle:], access)
        return
    for outcome, public_id in rows:
        yield outcome if outcome in ("new", "repeat") else of_outcome(outcome, public_id)


def post(key_hash: bytes, ready: Sequence[Ready], access: tuple[list[str], list[str]]) -> list[tuple[str, str]]:
    """Outcome and id of each, stored in a transaction of its own. Raises Denied."""
    items = orjson.dumps([one.fields for one in ready]).decode()
    is_plain = all(_is_plain(one.fields) for one in ready)
    values = (key_hash, *access, is_plain, items, [one.body for one in ready])
    sql = "SELECT i, outcome, public_id FROM post_triggers(%b, %t, %t, %b, %t::jsonb, %b::bytea[])"
    rows = sorted(persistently(lambda: trip.rows(sql, values)), key=lambda row: int(row[0]))
    if rows and rows[0][0] < 0:
        raise Denied(rows[0][1])
    return [(outcome, public_id) for _, outcome, public_id in rows]


def _is_plain(fields: dict[str, Any]) -> bool:
    """True where the identity is the source's own and the thread is named by key: those go in by one statement."""
    return not (fields["is_given"] or fields["idem"] or fields["thread"]["id"])
