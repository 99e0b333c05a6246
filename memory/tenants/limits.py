"""How many calls a key may make a minute. Every door counts here, once a request, before it does anything.

A bucket of one minute's calls, which fills as they would come evenly (GCRA): one statement takes from it, under the
bucket's row lock, in a transaction of its own. Inside a door's transaction the lock would last until that one commits,
and all calls of one key would queue behind the disk. A busy key takes calls ahead, up to 10 ms of its rate: then most
calls cost no statement at all, and what all processes let through is still never more than the limit.
"""

import math
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from django.db import connection

from memory.problems import Problem
from memory.tenants.trip import apart

_SPEND: Final = "SELECT rate, granted, wait FROM spend_key(%b, %s::int, %s::int, %t, %t::jsonb)"
# A lowered limit and a rise in pace are seen after so long.
_AHEAD_FOR: Final = 1.0
_MOST_KEYS: Final = 10_000
# Doubled eight times before it is more than one call: what a quiet key did is told at once.
_SLOWLY: Final = 2.0**-8


@dataclass
class _Ahead:
    """Calls that this process took from a key's bucket and has not used, and those it used and has not told of."""

    left: int = 0
    until: float = 0.0
    size: float = _SLOWLY
    used: "Counter[str]" = field(default_factory=Counter)


_ahead: dict[bytes, _Ahead] = {}
_lock: Final = threading.Lock()


def admit(key_hash: bytes, door: str, calls: int = 1) -> None:
    """Let `calls` calls of a key in. Raises Problem 429. Of an unknown key the door itself says that it is unknown."""
    mine = _taken(key_hash, door, calls) if calls > 0 else None
    if mine is None:
        return
    if connection.in_atomic_block:
        raise RuntimeError("admit() needs a transaction of its own: it commits without waiting for the disk.")
    size, used = mine
    values = (key_hash, calls, size, door, orjson.dumps(used).decode())
    [(rate, granted, wait)] = apart(_SPEND, values)
    if rate is None:
        return
    if granted is None:
        _untold(key_hash, Counter(used) - Counter({door: calls}))
        raise limited(rate, wait)
    with _lock:
        ahead = _ahead.setdefault(key_hash, _Ahead())
        ahead.left += granted - min(calls, rate)
        ahead.until = time.monotonic() + _AHEAD_FOR


def _taken(key_hash: bytes, door: str, calls: int) -> tuple[int, dict[str, int]] | None:
    """None where calls taken before cover these; else how many to take, and what was used meanwhile."""
    now = time.monotonic()
    with _lock:
        if len(_ahead) > _MOST_KEYS:
            _ahead.clear()
        ahead = _ahead.setdefault(key_hash, _Ahead())
        ahead.used[door] += calls
        is_fresh = ahead.until > now
        if is_fresh and ahead.left >= calls:
            ahead.left -= calls
            return None
        # Twice as many while they are used up in time, else one by one.
        ahead.size = min(ahead.size * 2, 1 << 16) if is_fresh else _SLOWLY
        if not is_fresh:
            ahead.left = 0
        used, ahead.used = dict(ahead.used), Counter()
        return max(int(ahead.size), calls), used


def _untold(key_hash: bytes, used: "Counter[str]") -> None:
    with _lock:
        _ahead.setdefault(key_hash, _Ahead()).used.update(used)


def limited(rate: int, wait: float) -> Problem:
    """429, and when to come again."""
    seconds = max(1, math.ceil(wait))
    return Problem(
        429,
        "rate_limited",
        f"This key may make {rate:,} calls a minute. Nothing was done: send the same again in {seconds} s. Whoever made"
        " the key can raise its limit on the Keys page.",
        headers={"Retry-After": str(seconds)},
        limit=rate,
        retry_after=seconds,
    )


def door_of(environ: dict[str, Any]) -> str:
    """The first word of an address below the API, e.g. hooks."""
    path: str = environ.get("PATH_INFO", "")
    return path.removeprefix("/api/v1").strip("/").partition("/")[0][:24]
