"""Hook calls in: parsed, cleaned, recorded, and answered in the harness's own words."""

import hashlib
import json
import logging
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson
from django.db import DataError as DjangoDataError
from psycopg import DataError

from memory import redact
from memory.events import bodies
from memory.events.models import Event
from memory.events.record import Arrival, Home, Recorded, record
from memory.hooks.payloads import CLIENTS, NOTHING, Seen, Told, canonical, known_client
from memory.problems import Problem
from memory.tenants.rest import strict_json
from memory.tenants.rls import tenant_scope

log = logging.getLogger(__name__)
CHUNK_EVENTS: Final = 500
CHUNK_BYTES: Final = 4 * 1024 * 1024
MAX_KEY: Final = 280


@dataclass(frozen=True, slots=True)
class Call:
    """One hook call as it came: the harness, the payload, and what was said beside it.

    `key` is the caller's. `own_key` is ours, for calls out of files, whose place in the file tells them apart.
    """

    client: str
    payload: dict[str, Any]
    raw: bytes | None = None
    told: Told = NOTHING
    key: str = ""
    tool_use_id: str = ""
    own_key: str = ""


def unknown_client(asked: str) -> Problem:
    names = ", ".join(name.replace("_", "-") for name in CLIENTS)
    return Problem(404, "unknown_client", f"Unknown harness {asked[:60]!r}. Known are {names}.")


def read_payload(raw: bytes) -> dict[str, Any]:
    """The JSON object of a hook's body. Raises Problem 400: success for what is not stored would lose it silently."""
    if not raw.strip():
        raise Problem(400, "empty_body", "The body is empty. Send the hook's JSON object as it came on stdin.")
    return checked_payload(strict_json(raw))


def checked_payload(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not value:
        raise Problem(400, "not_an_object", "A hook's payload is a JSON object with at least one field.")
    return value


def read_line(line: bytes, told: Told) -> Call:
    """The call in one line of a batch. Raises Problem 400."""
    value = strict_json(line)
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
    return Call(client, payload, None, beside, _said(value, "key"))


def _said(value: dict[str, Any], name: str) -> str:
    said = value.get(name, "")
    if said is None or said == "":
        return ""
    if not isinstance(said, str | int | float):
        raise Problem(400, "invalid_line", f"{name!r} is text.")
    return str(said)


def arrivals(calls: Sequence[Call]) -> list[Arrival]:
    """The calls without secrets, read into one shape, with the key that makes each of them one event."""
    looked_at = redact.clean_many([_unproven(call) for call in calls])
    return [_arrival(call, found) for call, found in zip(calls, looked_at, strict=True)]


# Values that stand in every payload of a session. Found clean under this name once, they need no second look.
_REPEATED: Final = (
    "session_id",
    "transcript_path",
    "cwd",
    "hook_event_name",
    "permission_mode",
    "conversation_id",
    "tool_name",
)
_proven: set[tuple[str, str]] = set()
_PROVEN_MOST: Final = 20_000


def _unproven(call: Call) -> list[Any]:
    """What of a call has to be looked through for secrets: the payload, and what was said beside it."""
    payload = call.payload
    known = [name for name in _REPEATED if (name, payload.get(name)) in _proven] if _is_plain(payload) else []
    shown = {name: value for name, value in payload.items() if name not in known} if known else payload
    told = call.told
    return [shown, [call.key, told.event, told.remote, told.root]] if call.key or told != NOTHING else [shown]


def _is_plain(payload: dict[str, Any]) -> bool:
    return all(isinstance(payload.get(name), str | None) for name in _REPEATED)


def _prove(payload: dict[str, Any]) -> None:
    if len(_proven) > _PROVEN_MOST:
        _proven.clear()
    for name in _REPEATED:
        value = payload.get(name)
        if isinstance(value, str) and len(value) <= 300:
            _proven.add((name, value))


def _arrival(call: Call, found: redact.Clean) -> Arrival:
    if found.redactions or found.sanitized:
        # The shown part may be short of repeated values; this time the whole is cleaned, and nothing is remembered.
        told = call.told
        found = redact.clean([call.payload, [call.key, told.event, told.remote, told.root]])
        payload, (key, event, remote, root) = found.value
        call = replace(call, key=key, told=replace(told, event=event, remote=remote, root=root))
        body = dumped(payload)
    else:
        payload = call.payload
        _prove(payload)
        body = dumped(payload) if call.raw is None or not is_faithful(call.raw, payload) else call.raw
    seen = canonical(call.client, payload, call.told)
    given = bool(call.key)
    return Arrival(
        home=Home(seen.client, seen.session_key, seen.git_remote, seen.workspace_root, seen.is_internal),
        name=seen.name,
        kind=seen.kind,
        key=given_key(call.key) if given else call.own_key or derived_key(seen),
        key_is_given=given,
        body=body,
        occurred_at=seen.occurred_at,
        agent_id=seen.agent_id,
        tool=seen.tool,
        tool_use_id=seen.tool_use_id or call.tool_use_id,
        summary=seen.summary,
        prompt=seen.prompt,
        source=seen.source,
        model=seen.model,
        cwd=seen.cwd,
        transcript_path=seen.transcript_path,
        resumed_from=seen.resumed_from,
        renews=seen.renews,
        redactions=found.redactions,
        sanitized=found.sanitized,
    )


def given_key(key: str) -> str:
    """The caller's key; one that is too long, or looks like ours, by its digest."""
    if len(key) > MAX_KEY or key.startswith(("d:", "r:", "g:")):
        return f"g:{hashlib.sha256(key.encode()).hexdigest()}"
    return key


def derived_key(seen: Seen) -> str:
    """The same for every report of one call. Where the harness gives nothing to tell calls apart, each is new:
    of two equal prompts without an id, neither is the other's copy.
    """
    if not seen.key:
        return f"r:{uuid.uuid4().hex}"
    whole = "\0".join((seen.client, seen.session_key, seen.key))
    return f"d:{hashlib.sha256(whole.encode()).hexdigest()}"


def is_faithful(raw: bytes, payload: dict[str, Any]) -> bool:
    """True where storing the bytes stores what was looked through and no more.

    Of a doubled key the parser keeps the last value, so a secret in the first would go in unseen.
    """
    if raw == dumped(payload):
        return True
    try:
        json.loads(raw.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return False
    return True


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("doubled key")


def dumped(payload: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(payload)
    except (TypeError, ValueError):  # a number beyond 64 bits
        return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line of a batch that was not stored, and why."""

    line: int
    code: str
    detail: str


@dataclass(slots=True)
class Tally:
    accepted: int
    repeated: int
    refused: list[Refusal]


def record_lines(key_hash: bytes, lines: Iterable[bytes], *, told: Told) -> Tally:
    """Store a batch of NDJSON lines. A line that can't be stored is refused alone."""
    tally = Tally(0, 0, [])
    for chunk in _chunks(_calls(lines, told, tally)):
        for line, outcome in zip(
            (line for line, _ in chunk), _stored(key_hash, [call for _, call in chunk]), strict=True
        ):
            if isinstance(outcome, Problem):
                tally.refused.append(Refusal(line, outcome.code, outcome.detail))
            elif outcome.outcome == "new":
                tally.accepted += 1
            else:
                tally.repeated += 1
    tally.refused.sort(key=lambda refusal: refusal.line)
    return tally


def _calls(lines: Iterable[bytes], told: Told, tally: Tally) -> Iterator[tuple[int, Call, int]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield number, read_line(line, told), len(line)
        except Problem as problem:
            tally.refused.append(Refusal(number, problem.code, problem.detail))


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
    """One transaction for a chunk, which is 15 times as fast as one for each; where it fails, each goes alone."""
    ready = arrivals(calls)
    try:
        rows = record(key_hash, ready)
    except (DataError, DjangoDataError):
        if len(calls) == 1:
            log.exception("An event could not be stored")
            yield Problem(400, "not_storable", "The database refused this event; the server's log says why.")
            return
        for call in calls:
            yield from _stored(key_hash, [call])
        return
    for arrival, row in zip(ready, rows, strict=True):
        yield conflict(row) if is_conflict(arrival, row) else row


def is_conflict(arrival: Arrival, row: Recorded) -> bool:
    """True where the given key holds another payload. The same payload spelt otherwise is the same event: a spool
    may send again, in a batch, what a timed-out call has brought already.
    """
    if row.outcome != "conflict":
        return False
    with tenant_scope(row.tenant_pk):
        kept = bodies.stored(Event.objects.get(pk=row.event_pk))
    return kept is None or bool(orjson.loads(kept) != orjson.loads(arrival.body))


def conflict(row: Recorded) -> Problem:
    return Problem(
        409, "idempotency_conflict", "This idempotency key belongs to an event with another payload.", id=row.event_id
    )
