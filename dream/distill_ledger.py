"""The state between two runs: counts and short facts per subject, bounded, and merged in any order of sessions.

Every merge is a sum, a union or "the latest wins", so the order in which sessions arrive does not matter. Only where
a table is full (see LIMITS) does the order decide which of the rarest entries it lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from dream.distill_shapes import MAX_CITATIONS, SeenEvent

VERSION = 3
UNTIMED = "0"
MAX_STATE = 256 * 1024
LIMITS = {
    "forms": 420, "files": 320, "asks": 120, "rules": 60, "prefs": 40, "decisions": 60, "facts": 30,
    "scripts": 70, "refs": 120, "history": 170, "agents": 30, "servers": 30, "fixes": 90, "sessions": 60,
    "dirs": 60, "tongues": 30, "banners": 40,
}  # fmt: skip
MAX_TRAIL_BYTES = 56 * 1024
MAX_TRAIL_STEPS = 400

Table = dict[str, dict[str, Any]]


def new_state() -> dict[str, Any]:
    return {
        "version": VERSION,
        "events": 0,
        "clients": {},
        "members": {},
        "trails": {},
        **{table: {} for table in LIMITS},
    }


def order(event: SeenEvent) -> str:
    """Sorts by time where it is known, then by id: ids are given in the order of arrival."""
    return f"{event.at.isoformat() if event.at else UNTIMED}|{event.id}"


def cite(row: dict[str, Any], *ids: str) -> None:
    """Keep the three latest of the events that a row comes from."""
    row["ev"] = sorted({*row.get("ev", []), *ids}, reverse=True)[:MAX_CITATIONS]


def count(table: Table, key: str, event: SeenEvent, **plus: int) -> dict[str, Any]:
    """The row of a key with its counters raised and the event cited."""
    row = table.setdefault(key, {})
    for name, by in plus.items():
        row[name] = row.get(name, 0) + by
    cite(row, event.id)
    return row


def latest(table: Table, key: str, event: SeenEvent, **values: Any) -> None:
    """Set the row of a key unless a later event has set it."""
    when = order(event)
    if when >= table.get(key, {}).get("when", ""):
        table[key] = {"when": when, "ev": [event.id], **values}


def trim(state: dict[str, Any]) -> None:
    """Bring every table to its limit: the entries with the highest worth stay."""
    for table, limit in LIMITS.items():
        rows: Table = state[table]
        if len(rows) > limit:
            worth = _WORTH.get(table, _by_count)
            kept = sorted(rows, key=lambda key: (worth(rows[key]), key), reverse=True)[:limit]
            state[table] = {key: rows[key] for key in kept}
    _shrink(state)


def _shrink(state: dict[str, Any]) -> None:
    """The whole state stays below MAX_STATE, even if every entry is as long as it may be."""
    while len(json.dumps(state, ensure_ascii=False).encode()) > MAX_STATE:
        table = max(LIMITS, key=lambda name: len(json.dumps(state[name], ensure_ascii=False)))
        rows: Table = state[table]
        worth = _WORTH.get(table, _by_count)
        kept = sorted(rows, key=lambda key: (worth(rows[key]), key), reverse=True)[: len(rows) * 3 // 4]
        state[table] = {key: rows[key] for key in kept}


def _by_count(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row.get("n", 0), row.get("when", ""), row.get("ev", [""])[:1])


def _by_time(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row.get("when", ""), row.get("ev", [""])[:1])


_WORTH: dict[str, Callable[[dict[str, Any]], tuple[Any, ...]]] = {
    "forms": lambda row: (
        row.get("ok", 0),
        row.get("failed", 0),
        row.get("before", 0),
        row.get("ok_ev", row.get("ev", [""]))[:1],
    ),
    "files": lambda row: (row.get("edits", 0) * 2 + row.get("reads", 0), row.get("ev", [""])[:1]),
    "history": _by_time,
    "sessions": _by_time,
    "decisions": _by_time,
    "refs": _by_time,
}


def ranked(table: Table, worth: Callable[[dict[str, Any]], Any] | None = None) -> list[tuple[str, dict[str, Any]]]:
    """The rows of a table, the worthiest first, ties by key."""
    key = worth or _by_count
    return sorted(sorted(table.items()), key=lambda item: key(item[1]), reverse=True)


def live_trails(trails: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Which sessions' trails stay open for more events, and which are closed now to keep the state small."""
    newest = sorted(trails, key=lambda session: (trails[session]["when"], session), reverse=True)
    kept: list[str] = []
    size = 0
    for session in newest:
        size += len(json.dumps(trails[session], ensure_ascii=False))
        if size > MAX_TRAIL_BYTES:
            break
        kept.append(session)
    return kept, [session for session in newest if session not in kept]


def names(rows: Iterable[str], limit: int) -> str:
    """`a`, `b` and 3 more."""
    listed = list(rows)
    text = ", ".join(f"`{row}`" for row in listed[:limit])
    return text + (f" and {len(listed) - limit} more" if len(listed) > limit else "")


def first_cited(rows: list[tuple[str, dict[str, Any]]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row["ev"][0] for _, row in rows))[:3]


def runs_of(row: dict[str, Any]) -> int:
    return int(max(row.get("before", 0), row.get("after", 0)) + row.get("chained", 0))
