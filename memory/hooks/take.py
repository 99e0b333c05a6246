"""Taking a hook call in: keys that were good a minute ago, and calls that arrive together written together."""

import time
from collections.abc import Sequence
from typing import Final

from memory.events.gather import Gatherer
from memory.events.record import Arrival, Recorded, record
from memory.hooks.receive import Call, arrivals

# A call this large keeps its thread busy for long; others must not wait for it.
ALONE_BYTES: Final = 64 * 1024
_KNOWN_FOR: Final = 60.0
_known: dict[bytes, float] = {}


def is_known(key_hash: bytes) -> bool:
    """Whether the key was good a minute ago. The write itself checks it again, so a revoked one ends at once."""
    return _known.get(key_hash, 0.0) >= time.monotonic()


def remember(key_hash: bytes) -> None:
    if len(_known) > 10_000:
        _known.clear()
    _known[key_hash] = time.monotonic() + _KNOWN_FOR


def take(key_hash: bytes, call: Call) -> tuple[Arrival, Recorded]:
    """The call as it was stored. Raises UnknownKey, MayNotRecord, Problem."""
    if _bytes(call) > ALONE_BYTES:
        return _taken(key_hash, [call])[0]
    return _gatherer.record(key_hash, call)


def _taken(key_hash: bytes, calls: Sequence[Call]) -> list[tuple[Arrival, Recorded]]:
    # Looking through three calls for secrets costs little more than one.
    clean = arrivals(calls)
    return list(zip(clean, record(key_hash, clean), strict=True))


def _bytes(call: Call) -> int:
    return len(call.raw or b"")


_gatherer: Final = Gatherer(_taken, size=_bytes)


def headers_of(row: Recorded) -> dict[str, str]:
    """What the answer says of the event beside its body."""
    return {
        "X-Team-Memory-Event": row.event_id,
        "X-Team-Memory-Session": row.session_id,
        "X-Team-Memory-Outcome": "new" if row.outcome == "new" else "repeat",
    }


def as_sent(value: str) -> str:
    """A header as the UTF-8 it was sent in; WSGI hands it over as Latin-1."""
    try:
        return value.encode("latin-1").decode().strip()
    except UnicodeError:
        return value.strip()
