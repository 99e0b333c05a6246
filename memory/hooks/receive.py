"""Hook calls in: parsed, cleaned, recorded, and answered in the harness's own words."""

import hashlib
import json
import uuid
from collections.abc import Sequence
from math import isinf
from typing import Any, Final, NamedTuple

import orjson

from memory import redact
from memory.events import bodies
from memory.events.models import Event
from memory.events.record import Arrival, Home, Recorded
from memory.hooks.payloads import CLIENTS, NOTHING, Seen, Told, canonical
from memory.problems import Problem
from memory.tenants.rest import MAX_DIGITS, exact_json, fast_json
from memory.tenants.rls import tenant_scope

CHUNK_EVENTS: Final = 500
MAX_KEY: Final = 280


class Call(NamedTuple):
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
    # Numbers of the payload that are text now, because readers of JSON would refuse the whole of it.
    unreadable: int = 0


def unknown_client(asked: str) -> Problem:
    names = ", ".join(name.replace("_", "-") for name in CLIENTS)
    return Problem(404, "unknown_client", f"Unknown harness {asked[:60]!r}. Known are {names}.")


def read_call(client: str, raw: bytes, told: Told, key: str) -> Call:
    """The call in a hook's body. Raises Problem 400: success for what is not stored would lose it silently."""
    if not raw.strip():
        raise Problem(400, "empty_body", "The body is empty. Send the hook's JSON object as it came on stdin.")
    value, unreadable = fast_json(raw)
    return Call(client, checked_payload(value), raw, told, key, unreadable=unreadable)


def checked_payload(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not value:
        raise Problem(400, "not_an_object", "A hook's payload is a JSON object with at least one field.")
    return value


def arrivals(calls: Sequence[Call]) -> list[Arrival]:
    """The calls without secrets, read into one shape, with the key that makes each of them one event."""
    looked_at = redact.clean_many([_unproven(call) for call in calls])
    return [_arrival(call, found) for call, found in zip(calls, looked_at, strict=True)]


# Values that stand in every payload of a session. Found clean together once, they need no second look.
_REPEATED: Final = (
    "session_id",
    "transcript_path",
    "cwd",
    "hook_event_name",
    "permission_mode",
    "conversation_id",
    "tool_name",
)
_REPEATED_SET: Final = frozenset(_REPEATED)
_proven: set[tuple[str | None, ...]] = set()
_PROVEN_MOST: Final = 20_000
_PROVEN_LONGEST: Final = 1_000


def _unproven(call: Call) -> list[Any]:
    """What of a call has to be looked through for secrets: the payload, and what was said beside it."""
    payload = call.payload
    shown = payload
    if _repeats(payload) in _proven:
        shown = {name: value for name, value in payload.items() if name not in _REPEATED_SET}
    told = call.told
    if not call.key and told == NOTHING:
        return [shown]
    return [shown, [call.key, _in_words(call.key), told.event, told.remote, told.root]]


def _in_words(key: str) -> str:
    """A key's parts as words: glued to `k-`, an access key is none to the scanner."""
    return key.replace("-", " ").replace(":", " ")


def _repeats(payload: dict[str, Any]) -> tuple[str | None, ...] | None:
    """The values that repeat, where all of them are text; None where one is not."""
    values = tuple(map(payload.get, _REPEATED))
    return values if all(type(value) is str or value is None for value in values) else None


def _prove(payload: dict[str, Any]) -> None:
    values = _repeats(payload)
    if values in _proven or values is None or sum(len(value) for value in values if value) > _PROVEN_LONGEST:
        return
    if len(_proven) >= _PROVEN_MOST:
        _proven.clear()
    _proven.add(values)


def _arrival(call: Call, found: redact.Clean) -> Arrival:
    if found.redactions or found.sanitized:
        # The shown part may be short of repeated values; this time the whole is cleaned, and nothing is remembered.
        told = call.told
        found = redact.clean([_exact(call), [call.key, told.event, told.remote, told.root]])
        payload, (key, event, remote, root) = found.value
        given = fit_key(call.key, key)
        call = call._replace(told=told._replace(event=event, remote=remote, root=root))
        body = dumped(payload)
    else:
        payload = call.payload
        _prove(payload)
        given = given_key(call.key)
        body = faithful(call) or dumped(_exact(call))
    seen = canonical(call.client, payload, call.told)
    return Arrival(
        home=Home(seen.client, seen.session_key, seen.git_remote, seen.workspace_root, seen.is_internal),
        name=seen.name,
        kind=seen.kind,
        key=given if call.key else call.own_key or derived_key(seen),
        key_is_given=bool(call.key),
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
        by_client=bool(call.told.at),
        redactions=found.redactions,
        sanitized=found.sanitized + call.unreadable,
    )


def given_key(key: str) -> str:
    """The caller's key; one that is too long, or looks like ours, by its digest."""
    return _digest_key(key) if len(key) > MAX_KEY or key.startswith(("d:", "r:", "g:")) else key


def fit_key(key: str, cleaned: str) -> str:
    """The caller's key, by its digest where it holds a secret: the rest of it could be another's key too."""
    is_secret = cleaned != key or redact.has_secret(key) or redact.has_secret(_in_words(key))
    return _digest_key(key) if is_secret else given_key(key)


def _digest_key(key: str) -> str:
    return f"g:{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"


def derived_key(seen: Seen) -> str:
    """The same for every report of one call. Where the harness gives nothing to tell calls apart, each is new:
    of two equal prompts without an id, neither is the other's copy.
    """
    if not seen.key:
        return f"r:{uuid.uuid4().hex}"
    whole = "\0".join((seen.client, seen.session_key, seen.key))
    return f"d:{hashlib.sha256(whole.encode()).hexdigest()}"


def _exact(call: Call) -> dict[str, Any]:
    """The payload with every digit of its whole numbers, where its bytes are at hand."""
    return checked_payload(exact_json(call.raw)[0]) if call.raw is not None else call.payload


def faithful(call: Call) -> bytes | None:
    """The bytes as they came, where storing them stores what was looked through and no more.

    Of a doubled key the parser keeps the last value, so a secret in the first would go in unseen.
    """
    if call.raw is None or call.unreadable:
        return None
    if call.raw == dumped(call.payload):
        return call.raw
    try:
        json.loads(call.raw.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None
    return call.raw


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("doubled key")


def dumped(payload: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(payload)
    except (TypeError, ValueError):  # a number beyond 64 bits
        return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def is_conflict(arrival: Arrival, row: Recorded) -> bool:
    """True where the given key holds another payload. The same payload spelt otherwise is the same event: a spool
    may send again, in a batch, what a timed-out call has brought already.
    """
    if row.outcome != "conflict":
        return False
    with tenant_scope(row.tenant_pk):
        kept = bodies.stored(Event.objects.get(pk=row.event_pk))
    return kept is None or one_spelling(kept) != one_spelling(arrival.body)


def one_spelling(body: bytes) -> str:
    """A stored payload in the one spelling that all of its spellings share. `true` is not `1`, and 1.0 is."""
    value = json.loads(body, parse_int=_whole, parse_float=_real, parse_constant=str)
    return json.dumps(value, sort_keys=True)


def _whole(text: str) -> int | str:
    return int(text) if len(text) <= MAX_DIGITS else text


def _real(text: str) -> float | int | str:
    number = float(text)
    if isinf(number):
        return text
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def refusal(arrival: Arrival, row: Recorded) -> Problem | None:
    """Why an event was not stored; None where it was, now or before."""
    if row.outcome == "deleted":
        detail = "This session was deleted: nothing more of it is kept. Start a new session to record again."
        return Problem(410, "session_deleted", detail, id=row.session_id)
    if row.outcome == "closed":
        return project_closed()
    return conflict(row) if is_conflict(arrival, row) else None


def project_closed() -> Problem:
    """403, and not a word of which project: whoever may not see it learns no more than that this key is not let in.

    The hook client keeps what is refused with 403 and brings it by a batch, which refuses its line by this code. Then
    the line stands in the client's refused.log, whole: nothing is lost, and no hook fails.
    """
    detail = (
        "This key may not record in the project of this place. Nothing was stored. An admin opens the project to the"
        " key or its member on the page Projects; a key with a list of projects of its own works in those alone."
    )
    return Problem(403, "project_closed", detail)


def conflict(row: Recorded) -> Problem:
    return Problem(
        409, "idempotency_conflict", "This idempotency key belongs to an event with another payload.", id=row.event_id
    )
