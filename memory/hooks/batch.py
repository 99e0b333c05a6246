"""A batch of hook calls, one a line: stored chunk by chunk; a line that can't be stored is refused alone."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import DatabaseError
from django.db import DataError as DjangoDataError
from psycopg import DataError
from psycopg import Error as PsycopgError

from memory.events.record import Arrival, MayNotRecord, Recorded, UnknownKey, record
from memory.hooks.payloads import Told, known_client
from memory.hooks.receive import CHUNK_EVENTS, Call, arrivals, checked_payload, refusal, unknown_client
from memory.problems import Problem
from memory.tenants.rest import exact_json, refuse_too_many_values

log = logging.getLogger(__name__)
CHUNK_BYTES: Final = 4 * 1024 * 1024
MAX_LINES: Final = 50_000
# The whole of it: each line may hold as many as a body does, and 32 MB are room for many such lines.
MAX_VALUES: Final = 1_000_000
MOST_TOLD: Final = 1_000
# Faults that are not the line's: the caller has to come again with it.
_NOT_THE_LINE: Final = (DatabaseError, PsycopgError, UnknownKey, MayNotRecord)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line of a batch that was not stored, and why."""

    line: int
    code: str
    detail: str


@dataclass(slots=True)
class Tally:
    """What became of the lines."""

    accepted: int = 0
    repeated: int = 0
    refused: list[Refusal] = field(default_factory=list)

    def told(self) -> list[Refusal]:
        """The refused lines in their order; of very many the first, and one more that counts the others."""
        self.refused.sort(key=lambda refusal: refusal.line)
        shown, rest = self.refused[:MOST_TOLD], self.refused[MOST_TOLD:]
        if not rest:
            return shown
        more = f"{len(rest):,} lines from this one on were refused too."
        return [*shown, Refusal(rest[0].line, "more_refused", more)]


def lines_of(raw: bytes) -> list[bytes]:
    """The lines of a batch's body. Raises Problem 413 too_many_lines, 400 too_many_values."""
    if raw.count(b"\n") > MAX_LINES:
        raise Problem(413, "too_many_lines", f"A batch holds {MAX_LINES:,} lines at most.", limit=MAX_LINES)
    refuse_too_many_values(raw, MAX_VALUES)
    return raw.split(b"\n")


def record_lines(key_hash: bytes, lines: Iterable[bytes], *, told: Told) -> Tally:
    """Store a batch of NDJSON lines. A line that can't be stored is refused alone. Raises UnknownKey, MayNotRecord."""
    tally = Tally()
    for chunk in _chunks(_calls(lines, told, tally)):
        outcomes = _stored(key_hash, [call for _, call in chunk])
        for (line, _), outcome in zip(chunk, outcomes, strict=True):
            if isinstance(outcome, Problem):
                tally.refused.append(Refusal(line, outcome.code, outcome.detail))
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
            problem = fault if isinstance(fault, Problem) else _refused(fault)
            tally.refused.append(Refusal(number, problem.code, problem.detail))
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


def _chunks(calls: Iterable[tuple[int, Call, int]]) -> Iterator[list[tuple[int, Call]]]:
    chunk: list[tuple[int, Call]] = []
    size = 0
    for number, call, length in calls:
        if chunk and (len(chunk) >= CHUNK_EVENTS or size + length > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append((number, call))
        size += length
    if chunk:
        yield chunk


def _stored(key_hash: bytes, calls: list[Call]) -> Iterator[Recorded | Problem]:
    """One transaction for a chunk, which is 15 times as fast as one for each; where it fails, each half goes alone."""
    try:
        ready = arrivals(calls)
        rows = record(key_hash, ready)
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
