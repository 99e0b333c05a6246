"""A forge's events out of files: taken as its deliveries are, each once, however often a file is read."""

import gzip
import hashlib
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from django.db import DataError

from memory.graph import content
from memory.graph.summaries import github as lines
from memory.graph.webhooks import github, receive
from memory.graph.webhooks.taken import Taken, moment
from memory.problems import Problem
from memory.tenants.models import Tenant
from memory.tenants.rest import exact_json

SUFFIXES: Final = tuple(f"{kind}{packed}" for kind in (".jsonl", ".ndjson") for packed in ("", ".gz", ".xz"))
_SHAPE: Final = 'is no {"event": …, "payload": {…}}'


@dataclass
class Report:
    """What was taken, and what was not and why."""

    files: int = 0
    new: int = 0
    repeated: int = 0
    threads: set[str] = field(default_factory=set)
    _skipped: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def skip(self, path: Path, why: str, line: int = 0) -> None:
        """Note a line, or a file, that was not taken."""
        self._skipped.setdefault((str(path), why), []).append(line)

    @property
    def skipped(self) -> list[str]:
        """One line for each file and reason."""
        return [f"{_place(path, lines)}: {why}" for (path, why), lines in self._skipped.items()]


def _place(path: str, lines: list[int]) -> str:
    """The file, and which of its lines: all of many would be a page."""
    if lines == [0]:
        return path
    shown = ", ".join(map(str, lines[:5]))
    more = f" and {len(lines) - 5} more" if len(lines) > 5 else ""
    return f"{path}, line{'s' if len(lines) > 1 else ''} {shown}{more}"


def take(tenant_pk: str, paths: Iterable[Path], *, step: Callable[[int, int], None]) -> Report:
    """Take in all that the paths hold, file by file, each event in a transaction of its own."""
    report = Report()
    found = files(paths)
    for done, path in enumerate(found, 1):
        report.files += 1
        try:
            for number, line in enumerate(_read(path), 1):
                if line.strip():
                    _one(Tenant(pk=tenant_pk), line, (path, number), report)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as exc:
            report.skip(path, f"can't be read to its end: {exc}")
        step(done, len(found))
    return report


def files(paths: Iterable[Path]) -> list[Path]:
    """The files to look at, folders walked, each once, in order."""
    found: dict[Path, None] = {}
    for path in paths:
        inside = [inner for inner in path.rglob("*.*") if inner.name.endswith(SUFFIXES)] if path.is_dir() else [path]
        found.update(dict.fromkeys(sorted(inside)))
    return list(found)


def _read(path: Path) -> Iterator[bytes]:
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opened(path, "rb") as stored:  # type: ignore[operator]
        yield from stored


def _one(tenant: Tenant, line: bytes, place: tuple[Path, int], report: Report) -> None:
    try:
        told = taken(line)
        recorded = receive.store(tenant, told, source="github")
    except (Problem, ValueError, DataError) as why:
        report.skip(place[0], str(getattr(why, "detail", None) or why), place[1])
        return
    report.threads.add(recorded.trigger.thread.public_id)
    if recorded.is_new:
        report.new += 1
    else:
        report.repeated += 1


def taken(line: bytes) -> Taken:
    """A line, read as the delivery it tells of. Raises ValueError."""
    try:
        value, _ = exact_json(line)
    except Problem:
        raise ValueError("is no JSON") from None
    body = value.get("payload") if isinstance(value, dict) else None
    event = value.get("event") if isinstance(value, dict) else None
    if not isinstance(body, dict) or not body or not isinstance(event, str) or not event:
        raise ValueError(_SHAPE)
    payload = content.dumped(body)
    told = github.placed(event.lower(), _whole(event, body), payload, external_id=_identity(value, event, payload))
    if told.key == "github:events":
        raise ValueError("names no repository, so it belongs to no thread")
    at = moment(value.get("ts"), value.get("timestamp"), value.get("created_at"))
    # A kept body may have lost what its kind is told by; the line beside it says so.
    summary = told.summary or lines.line(event.lower(), _whole(event, body))
    return replace(told, occurred_at=told.occurred_at or at, summary=summary)


def _whole(event: str, body: dict[str, Any]) -> dict[str, Any]:
    """A merge kept by its number alone still says whose it is."""
    number = body.get("number")
    if event == "pull_request" and "pull_request" not in body and isinstance(number, int):
        return body | {"pull_request": {"number": number, "merged": body.get("merged") is True}}
    return body


def _identity(value: dict[str, Any], event: str, payload: bytes) -> str:
    """The delivery's own id, else what makes it this one and no other: the same line again is the same event."""
    for name in ("delivery", "delivery_id", "guid"):
        if isinstance(value.get(name), str) and value[name]:
            return str(value[name])
    digest = hashlib.sha256(f"{event}\n{value.get('ts', '')}\n".encode() + payload)
    return f"archive:{digest.hexdigest()[:40]}"
