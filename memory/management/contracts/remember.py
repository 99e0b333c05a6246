"""Before a migration: which records there are, by id and digest. After it: the same ids lead to the same records."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from memory.management.contracts.client import Answer, Broken, Door, Unusable, encoded
from memory.management.contracts.run import Outcome, measure
from memory.management.contracts.visit import DOORS, VIEW_IDS

FORMAT: Final = "team-memory contracts 1"
STEPS: Final = 1_000
PAYLOADS: Final = 256 * 1024 * 1024
_PAGE: Final = 200
# By kind: what never changes, and what a team at work may change. All else follows from other records.
_FIXED: Final = {
    "thr": ("thread_id", "key", "created_at"),
    "trg": ("trigger_id", "thread_id", "source", "summary"),
    "wkr": ("worker_id", "thread_id", "task", "created_at"),
}
_MOVING: Final = {
    "thr": ("title", "state", "summary", "owner_workers"),
    "trg": (),
    "wkr": ("state", "report", "report_head", "report_tail", "cites", "session_id"),
}
# What is deleted takes its words out of the events, and is an event itself.
_WORDS: Final = "event summaries"
_NAMES: Final = {"thr": "threads", "trg": "triggers", "wkr": "workers"}


@dataclass
class Memory:
    """What was seen: for each id its status, the digest of each field, and where it was found."""

    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    payload_bytes: int = 0

    def of(self, prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
        return ((one, record) for one, record in self.records.items() if one.startswith(f"{prefix}_"))


def digest(value: Any) -> str:
    """A value's digest; half of SHA-256 is plenty against chance."""
    raw = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True, ensure_ascii=True).encode()
    return hashlib.sha256(raw).hexdigest()[:32]


def walk(door: Door, *, most: int) -> Memory:
    """Walk the team's threads, what is in them and who worked on them, up to `most` records. Raises Broken."""
    memory = Memory()
    cursor: dict[str, str] = {}
    while True:
        page = door.get("threads", limit=_PAGE, **cursor).must(200).object()
        for row in page["items"]:
            if len(memory.records) >= most:
                memory.left_out.append(f"every thread after {most:,} records (--most takes more)")
                return memory
            _thread(door, memory, row["thread_id"], most=most)
        if not page["has_more"]:
            return memory
        cursor = {"cursor": page["next_cursor"]}


def _thread(door: Door, memory: Memory, thread_id: str, *, most: int) -> None:
    answer = door.get(f"threads/{encoded(thread_id)}").must(200, 410)
    if answer.status == 410:
        return
    view = answer.object()
    items, is_cut = _steps(door, thread_id, STEPS)
    fields = _digests("thr", view) | _of_steps(items)
    memory.records[thread_id] = {"status": 200, "fields": fields, "in": thread_id, "steps": len(items)}
    if is_cut:
        memory.left_out.append(f"events of {thread_id} after the first {STEPS:,}")
    workers = {*view.get("owner_workers", ()), *view.get("workers", ())}
    if len(workers) < view.get("counts", {}).get("workers", 0):
        memory.left_out.append(f"workers of {thread_id} that it does not name")
    triggers = [item["trigger_id"] for item in items if item.get("trigger_id")]
    for public_id in dict.fromkeys([*triggers, *sorted(workers)]):
        if public_id in memory.records:
            continue
        if len(memory.records) >= most:
            memory.left_out.append(f"records of {thread_id} after {most:,} records (--most takes more)")
            return
        memory.records[public_id] = {"in": thread_id} | _record(door, public_id, memory)


def _steps(door: Door, thread_id: str, most: int) -> tuple[list[dict[str, Any]], bool]:
    items: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        limit = max(1, min(_PAGE, most - len(items)))
        page = door.get(f"threads/{encoded(thread_id)}/events", limit=limit, **cursor).must(200).object()
        items += page["items"]
        if not page["has_more"] or not page["items"] or len(items) >= most:
            return items[:most], bool(page["has_more"])
        cursor = {"cursor": page["next_cursor"]}


def _of_steps(items: list[dict[str, Any]]) -> dict[str, str]:
    fixed = [[item.get(name) for name in ("seq", "kind", "id", "trigger_id", "at")] for item in items]
    return {"events": digest(fixed), _WORDS: digest([item.get("summary") for item in items])}


def _digests(prefix: str, view: dict[str, Any]) -> dict[str, str]:
    return {name: digest(view.get(name)) for name in (*_FIXED[prefix], *_MOVING[prefix])}


def _record(door: Door, public_id: str, memory: Memory) -> dict[str, Any]:
    """Status and digests of a trigger or worker; of a trigger its payloads too."""
    prefix = public_id[:3]
    answer = door.get(f"{DOORS[prefix]}/{encoded(public_id)}").must(200, 410)
    if answer.status == 410:
        return {"status": 410, "fields": {}}
    answer.must_hold(VIEW_IDS[prefix], public_id)
    fields = _digests(prefix, answer.object())
    if prefix == "trg":
        for part in sorted(answer.object().get("spilled") or {}):
            if memory.payload_bytes > PAYLOADS:
                memory.left_out.append(f"payload {part} of {public_id}: over {PAYLOADS >> 20} MB were read")
                continue
            stored = _payload(door, public_id, part)
            memory.payload_bytes += len(stored.body)
            fields[f"payload {part}"] = digest(stored.body) if stored.status == 200 else str(stored.status)
    return {"status": 200, "fields": fields}


def _payload(door: Door, trigger_id: str, part: str) -> Answer:
    return door.get(f"triggers/{encoded(trigger_id)}/payload", part=part).must(200, 404, 410)


def write(memory: Memory, path: Path, *, address: str) -> None:
    """Keep what was seen; all of it or nothing. Raises Unusable."""
    said = {
        "format": FORMAT,
        "base_url": address,
        "at": datetime.now(UTC).isoformat(),
        "left_out": memory.left_out,
        "records": memory.records,
    }
    half = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        half.write_text(json.dumps(said, indent=0), encoding="utf-8")
        half.replace(path)
    except OSError as why:
        half.unlink(missing_ok=True)
        raise Unusable(f"{path} can't be written: {why.strerror}.") from None


def read(path: Path) -> Memory:
    """What was remembered in a file. Raises Unusable."""
    try:
        said = json.loads(path.read_bytes())
    except OSError as why:
        raise Unusable(f"{path} can't be read: {why.strerror}.") from None
    except ValueError:
        said = None
    if not isinstance(said, dict) or said.get("format") != FORMAT or not isinstance(said.get("records"), dict):
        raise Unusable(f"{path} was not written by --remember.")
    return Memory(said["records"], list(said.get("left_out", ())))


def verify(door: Door, memory: Memory, outcomes: list[Outcome], notes: list[str]) -> None:
    """Ask for each remembered id again; an outcome for each kind, with every record that is not the same."""
    grown: set[str] = set()
    moved: list[str] = []
    for prefix, name in _NAMES.items():
        records = list(memory.of(prefix))
        outcome = Outcome(
            f"remembered-{name}", f"Each of {len(records):,} remembered {name} has its id and its record."
        )
        outcomes.append(outcome)
        measure(outcome, door, partial(_again, door, records, outcome, grown, moved))
    if moved:
        notes.append(f"{len(moved)} fields were changed with new events of their threads since: not compared.")
    notes.extend(f"not remembered: {line}" for line in memory.left_out)


def _again(
    door: Door, records: Iterable[tuple[str, dict[str, Any]]], outcome: Outcome, grown: set[str], moved: list[str]
) -> None:
    for public_id, record in records:
        try:
            now = _now(door, public_id, record, grown)
        except Broken as broken:
            outcome.broken.append(broken)
            continue
        for name, before in record["fields"].items():
            after = now.get(name, "missing")
            if after == before:
                continue
            if (name == _WORDS or name in _MOVING[public_id[:3]]) and record["in"] in grown:
                moved.append(f"{public_id} {name}")
                continue
            request = f"GET /api/v1/{DOORS[public_id[:3]]}/{public_id}"
            got = f"another one (digest {after[:12]})"
            outcome.broken.append(Broken(request, expected=f"{name} as remembered (digest {before[:12]})", got=got))


def _now(door: Door, public_id: str, record: dict[str, Any], grown: set[str]) -> dict[str, str]:
    """The digests of a record as it is now. Raises Broken where it is not there any more, or there again."""
    prefix = public_id[:3]
    answer = door.get(f"{DOORS[prefix]}/{encoded(public_id)}").must(record["status"], because="as it was remembered")
    if record["status"] != 200:
        return {}
    answer.must_hold(VIEW_IDS[prefix], public_id)
    view = answer.object()
    fields = _digests(prefix, view)
    if prefix == "thr":
        known = record["steps"]
        items, is_cut = _steps(door, public_id, max(1, known))
        fields |= _of_steps(items[:known])
        if is_cut or len(items) > known:
            grown.add(public_id)
    for name in record["fields"]:
        if name.startswith("payload "):
            stored = _payload(door, public_id, name.removeprefix("payload "))
            fields[name] = digest(stored.body) if stored.status == 200 else str(stored.status)
    return fields
