"""A team's existing history as files: hook logs, Claude Code transcripts, Codex rollouts. Reading only."""

import gzip
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from memory.problems import Problem
from memory.tenants.rest import exact_json

SUFFIXES: Final = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
# The first lines of a file tell its format; some begin with a line or two of something else.
_LOOK_AT: Final = 20


@dataclass(frozen=True, slots=True)
class Step:
    """One event out of a file. `key` is its identity unless the payload brings a better one."""

    payload: dict[str, Any]
    key: str
    at: str = ""
    tool_use_id: str = ""


@dataclass(frozen=True)
class History:
    """One session out of a file."""

    path: Path
    kind: str
    client: str
    session_key: str
    steps: list[Step]
    git_remote: str = ""


@dataclass
class Skipped:
    """What was not taken, and why."""

    path: Path
    why: str


@dataclass
class Lines:
    """The JSON objects of a file, and how many lines were none."""

    path: Path
    broken: int = 0
    reasons: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        with gzip.open(self.path, "rb") if self.path.suffix == ".gz" else self.path.open("rb") as lines:
            try:
                yield from self._objects(lines)
            except (OSError, EOFError, zlib.error) as exc:
                self.reasons.append(f"ends early: {exc}")

    def _objects(self, lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
        for line in lines:
            if not line.strip():
                continue
            try:
                value, _ = exact_json(line)
            except Problem:
                # A line cut off by a crash is common at the end of a live transcript.
                self.broken += 1
                continue
            if isinstance(value, dict):
                yield value
            else:
                self.broken += 1


def files(paths: Iterable[Path]) -> list[Path]:
    """The files to look at, folders walked, each once, in order."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            inside = sorted(inner for inner in path.rglob("*.*") if inner.name.endswith(SUFFIXES) and inner.is_file())
            found.update(dict.fromkeys(inside))
        else:
            found[path] = None
    return list(found)


def kind_of(path: Path) -> str | None:
    """`hook log`, `transcript`, `rollout`, or None where it is none of them."""
    for place, line in enumerate(Lines(path)):
        if isinstance(line.get("payload"), dict):
            if "hook_event_name" in line["payload"] and "seq" in line:
                return "hook log"
            if isinstance(line.get("type"), str) and "timestamp" in line:
                return "rollout"
        if "sessionId" in line and isinstance(line.get("type"), str) and "message" in line:
            return "transcript"
        if place >= _LOOK_AT:
            break
    return None


def hook_log(path: Path) -> tuple[list[History], Lines]:
    """The sessions of a hook log: a line is {"seq", "ts", "tool_use_id", "payload"}, one event each."""
    lines = Lines(path)
    sessions: dict[str, list[Step]] = {}
    for line in lines:
        payload = line.get("payload")
        if not isinstance(payload, dict) or not payload:
            lines.broken += 1
            continue
        session = str(payload.get("session_id") or payload.get("conversation_id") or path.name.split(".")[0])
        key = f"log:{session}:{line.get('seq')}"
        sessions.setdefault(session, []).append(
            Step(payload, key, str(line.get("ts") or ""), str(line.get("tool_use_id") or ""))
        )
    histories = [
        History(path, "hook log", _client(steps[0].payload), session, steps) for session, steps in sessions.items()
    ]
    return histories, lines


def _client(payload: dict[str, Any]) -> str:
    return "cursor" if "cursor_version" in payload else "claude_code"
