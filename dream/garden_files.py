"""Notes that rest on a file whose content is another one now.

A note cites a file in two ways: a line rests on the event in which an agent read or wrote it, or its text names a path
and a digest (`src/app.py sha256:…`). What the file reads now is known from later events of the project, and from what
agents stored in the caches under a digest. Where neither says anything, the note is left alone.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cache_admin.models import AnalysisPath, EntryPath
from dream.distill_payloads import below, given_to
from dream.windows import payload
from memory.events.models import Event
from memory.notes.findings import Found
from memory.notes.models import Note, Source
from memory.sentences import sentence

READERS: Final = ("Read", "read_file", "ReadFile", "view")
WRITERS: Final = ("Write", "Edit", "MultiEdit", "write_file", "replace", "create_file", "edit_file")
TOOLS: Final = (*READERS, *WRITERS)
# `src/app.py sha256:1f2e…`, also with an @ or brackets between.
_NAMED: Final = re.compile(r"(?<![\w/.@-])([\w.@+-]+(?:/[\w.@+-]+)*)\W{1,3}sha256:([0-9a-f]{12,64})\b")
# Of one file so many later events are opened, the latest first, to find one that shows all of it.
MOST_OPENED: Final = 4
LONGEST: Final = 2_000_000


@dataclass(frozen=True)
class Cited:
    """A file as a note cites it. `digests` are the spellings of its content then; none where it can't be known."""

    note: Note
    project: str
    path: str
    digests: frozenset[str]
    at: datetime


@dataclass(frozen=True)
class Seen:
    """What a file reads at a moment."""

    digests: frozenset[str]
    at: datetime


def stale(notes: Sequence[Note]) -> list[Found]:
    """Notes with a file that reads otherwise now. The tenant must be bound."""
    cited = [*_by_events(notes), *_by_text(notes)]
    if not cited:
        return []
    now = _now({(one.project, one.path) for one in cited}, since=min(one.at for one in cited))
    changed: dict[str, dict[str, tuple[Cited, Seen]]] = defaultdict(dict)
    for one in cited:
        seen = now.get((one.project, one.path))
        if seen and seen.at > one.at and one.digests and not one.digests & seen.digests:
            changed[str(one.note.pk)].setdefault(one.path, (one, seen))
    return [_found(rows) for rows in changed.values()]


def _found(rows: Mapping[str, tuple[Cited, Seen]]) -> Found:
    note = next(iter(rows.values()))[0].note
    paths = sorted(rows)
    named = ", ".join(paths[:3])
    if len(paths) > 3:
        named = sentence("%(paths)s and %(many)s more", paths=named, many=len(paths) - 3)
    last = max(seen.at for _, seen in rows.values())
    words = sentence(
        "%(paths)s changed by %(day)s: check that the note still holds.", paths=named, day=f"{last:%Y-%m-%d}"
    )
    # Another change of the same file is the same finding: the note is as old as it was.
    return Found("stale_file", note, words, "|".join([str(note.current_id), *paths]), lines=tuple(paths))


def _by_events(notes: Sequence[Note]) -> Iterator[Cited]:
    by_revision = {note.current_id: note for note in notes}
    rows = Source.objects.filter(revision__in=list(by_revision), event__tool__in=TOOLS, event__kind="tool_after")
    done = set()
    for row in rows.select_related("event__session__project").order_by("event_id").iterator(200):
        note = by_revision[row.revision_id]
        if (note.pk, row.event_id) in done:
            continue
        done.add((note.pk, row.event_id))
        path = _path(row.event)
        if path and (content := contents(row.event)) is not None:
            yield Cited(note, str(row.event.session.project_id or ""), path, spellings(content), _when(row.event))


def _by_text(notes: Iterable[Note]) -> Iterator[Cited]:
    for note in notes:
        text = note.current.text if note.current else ""
        for path, digest in _NAMED.findall(text):
            at = note.current.created_at if note.current else note.created_at
            yield Cited(note, str(note.project_id or ""), path, frozenset([digest]), at)


def _path(event: Event) -> str:
    """The file of an event as the project's people write it, or ""."""
    session = event.session
    slug = session.project.slug if session.project else ""
    return below(event.summary, root=session.cwd, project=slug) if event.summary else ""


def _when(event: Event) -> datetime:
    return event.occurred_at or event.received_at


def _now(wanted: Collection[tuple[str, str]], *, since: datetime) -> dict[tuple[str, str], Seen]:
    """What each wanted file reads now, as far as anybody saw it whole."""
    latest = _stored(wanted)
    for key, events in _later(wanted, since).items():
        for event in events:
            if key in latest and latest[key].at >= _when(event):
                break
            content = contents(event)
            if content is not None:
                latest[key] = Seen(spellings(content), _when(event))
                break
    # A digest in a text may be shortened; what is compared must be shortened alike.
    return {key: Seen(_with_short(seen.digests), seen.at) for key, seen in latest.items()}


def _later(wanted: Collection[tuple[str, str]], since: datetime) -> dict[tuple[str, str], list[Event]]:
    """The latest events of each wanted file, the last first; opened later, and only as many as it takes."""
    projects = {project for project, _ in wanted if project}
    rows = Event.objects.filter(kind="tool_after", tool__in=TOOLS, received_at__gte=since, dropped_at__isnull=True)
    rows = rows.filter(session__project__in=projects) if "" not in {project for project, _ in wanted} else rows
    found: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for row in rows.select_related("session__project").defer("body", "head", "tail").iterator(500):
        key = (str(row.session.project_id or ""), _path(row))
        if key in wanted:
            found[key].append(row)
    return {key: sorted(rows, key=_when, reverse=True)[:MOST_OPENED] for key, rows in found.items()}


def _stored(wanted: Collection[tuple[str, str]]) -> dict[tuple[str, str], Seen]:
    """What the caches know of the wanted files: the digest under which an agent last stored something of it."""
    found: dict[tuple[str, str], Seen] = {}
    paths = {path for _, path in wanted}
    analysed: Any = AnalysisPath.objects.filter(path__in=paths)
    rows = [*analysed.values_list("project_id", "path", "analysis__content_hash", "last_at")]
    keyed: Any = EntryPath.objects.filter(path__in=[f"$ROOT/{path}" for path in paths])
    # Under another tool the digest may be that of a whole tree.
    keyed = keyed.filter(entry__tool__in=READERS).exclude(entry__content_hash="")
    rows += [
        (project, path.removeprefix("$ROOT/"), digest, at)
        for project, path, digest, at in keyed.values_list(
            "entry__project_id", "path", "entry__content_hash", "entry__created_at"
        )
    ]
    for project, path, digest, at in rows:
        key = (str(project or ""), path)
        plain = digest.removeprefix("sha256:")
        if key in wanted and digest.startswith("sha256:") and (key not in found or found[key].at < at):
            found[key] = Seen(frozenset([plain]), at)
    return found


def contents(event: Event) -> str | None:
    """The whole content of a file after an event, or None where the event does not show it. Pieces tell nothing."""
    if event.size > LONGEST:
        return None
    found, fault = payload(event)
    if fault:
        return None
    given, answer = given_to(found), found.get("tool_response")
    if event.tool in READERS:
        return _read(answer)
    if isinstance(given.get("content"), str):
        return str(given["content"])
    return _edited(given, answer)


def _read(answer: Any) -> str | None:
    shown = answer.get("file") if isinstance(answer, dict) else None
    if not isinstance(shown, dict) or not isinstance(shown.get("content"), str):
        return None
    is_whole = (shown.get("startLine") or 1) == 1 and (shown.get("numLines") or 0) >= (shown.get("totalLines") or 0)
    return str(shown["content"]) if is_whole else None


def _edited(given: Mapping[str, Any], answer: Any) -> str | None:
    """The original with the edits done, as the tool does them."""
    if not isinstance(answer, dict):
        return None
    text = answer.get("originalFile") or answer.get("originalFileContents")
    if not isinstance(text, str):
        return None
    edits = given.get("edits")
    for edit in edits if isinstance(edits, list) else [given]:
        old, new = (edit.get("old_string"), edit.get("new_string")) if isinstance(edit, dict) else (None, None)
        if not isinstance(old, str) or not isinstance(new, str) or not old or old not in text:
            return None
        text = text.replace(old, new) if edit.get("replace_all") else text.replace(old, new, 1)
    return text


def spellings(content: str) -> frozenset[str]:
    """SHA-256 of a content with and without the line end at its end, which readers leave out."""
    bare = content.rstrip("\n")
    return frozenset(
        hashlib.sha256(one.encode("utf-8", "surrogatepass")).hexdigest() for one in (content, bare, bare + "\n")
    )


def _with_short(digests: frozenset[str]) -> frozenset[str]:
    return digests | {digest[:length] for digest in digests for length in range(12, 64)}
