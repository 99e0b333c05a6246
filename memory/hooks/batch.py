"""A batch of hook calls, one a line: stored chunk by chunk; a line that can't be stored is refused alone."""

import logging
from collections.abc import Iterable, Iterator
from typing import Any, Final

from django.db import DatabaseError
from django.db import DataError as DjangoDataError
from psycopg import DataError
from psycopg import Error as PsycopgError

from memory.events.record import Arrival, MayNotRecord, Recorded, UnknownKey, record
from memory.hooks import tell
from memory.hooks.payloads import Told, known_client
from memory.hooks.receive import Call, arrivals, checked_payload, refusal, unknown_client
from memory.problems import Problem
from memory.tenants.batch import Tally, chunks
from memory.tenants.rest import exact_json

log = logging.getLogger(__name__)
# Faults that are not the line's: the caller has to come again with it.
_NOT_THE_LINE: Final = (DatabaseError, PsycopgError, UnknownKey, MayNotRecord)


def record_lines(key_hash: bytes, lines: Iterable[bytes], *, told: Told) -> Tally:
    """Store a batch of NDJSON lines. A line that can't be stored is refused alone. Raises UnknownKey, MayNotRecord."""
    tally = Tally()
    for chunk in chunks(_calls(lines, told, tally)):
        outcomes = _stored(key_hash, [call for _, call in chunk])
        for (line, _), outcome in zip(chunk, outcomes, strict=True):
            if isinstance(outcome, Problem):
                tally.refuse(line, outcome)
            elif outcome.outcome == "new":
                tally.accepted += 1
            else:
                tally.repeated += 1
    return tally


def _calls(lines: Iterable[bytes], told: Told, tally: Tally) -> Iterator[tuple[int, Call, int]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            call = read_line(line, told)
        except Exception as fault:
            tally.refuse(number, fault if isinstance(fault, Problem) else _refused(fault))
            continue
        yield number, call, len(line)


def read_line(line: bytes, told: Told) -> Call:
    """The call in one line of a batch. Raises Problem 400."""
    value, unreadable = exact_json(line)
    if not isinstance(value, dict) or not isinstance(value.get("client"), str):
        raise Problem(400, "invalid_line", 'A line is {"client", "event"?, "key"?, "occurred_at"?, "payload"}.')
    client = known_client(value["client"])
    if client is None:
        raise unknown_client(value["client"])
    payload = checked_payload(value.get("payload"))
    beside = Told(
        event=_said(value, "event"),
        remote=_said(value, "git_remote") or told.remote,
        root=_said(value, "workspace_root") or told.root,
        at=_said(value, "occurred_at"),
        is_internal=told.is_internal or value.get("internal") is True,
    )
    return Call(client, payload, None, beside, _said(value, "key"), unreadable=unreadable)


def _said(value: dict[str, Any], name: str) -> str:
    said = value.get(name, "")
    if said is None or said == "":
        return ""
    if not isinstance(said, str | int | float):
        raise Problem(400, "invalid_line", f"{name!r} is text.")
    return str(said)


def _stored(key_hash: bytes, calls: list[Call]) -> Iterator[Recorded | Problem]:
    """One transaction for a chunk, which is 15 times as fast as one for each; where it fails, each half goes alone."""
    try:
        ready = arrivals(calls)
        rows = record(key_hash, ready)
        tell.settle(ready, rows)
    except Exception as fault:
        if isinstance(fault, _NOT_THE_LINE) and not isinstance(fault, DataError | DjangoDataError):
            raise
        if len(calls) == 1:
            yield _refused(fault)
            return
        middle = len(calls) // 2
        yield from _stored(key_hash, calls[:middle])
        yield from _stored(key_hash, calls[middle:])
        return
    for arrival, row in zip(ready, rows, strict=True):
        yield _outcome(arrival, row)


def _refused(fault: Exception) -> Problem:
    """The fault of one line, which the others must not suffer for; the log has the trace."""
    log.error("An event could not be stored", exc_info=fault)
    if isinstance(fault, DataError | DjangoDataError):
        return Problem(400, "not_storable", "The database refused this event; the server's log says why.")
    return Problem(400, "not_readable", "This event could not be read; the server's log says why.")


def _outcome(arrival: Arrival, row: Recorded) -> Recorded | Problem:
    try:
        return refusal(arrival, row) or row
    except Exception as fault:
        if isinstance(fault, _NOT_THE_LINE):
            raise
        return _refused(fault)
