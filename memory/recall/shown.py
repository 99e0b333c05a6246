"""A hit as it is answered: what it is called, the piece of its text that the question met, and why it was found."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from memory.events.models import Event
from memory.graph.models import Thread, Trigger, Worker
from memory.notes.lines import body_of
from memory.notes.models import NoteQuerySet
from memory.recall import words
from memory.recall.kinds import report_of
from memory.recall.looks import Key

SNIPPET: Final = 240
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True)
class Record:
    """What an answer says of a thing."""

    kind: str
    public_id: str
    title: str
    summary: str
    text: str
    thread: str | None = None
    path: str | None = None

    def show(self, terms: Sequence[str], needle: str) -> dict[str, Any]:
        about = {
            "kind": self.kind,
            "id": self.public_id,
            "title": self.title[:300],
            "summary": self.summary[:500],
            "snippet": snippet(self.text or self.summary or self.title, terms, needle),
        }
        if self.thread is not None:
            about["thread_id"] = self.thread
        if self.path is not None:
            about["path"] = self.path
        return about


def records(keys: Sequence[Key], notes: NoteQuerySet) -> dict[Key, Record]:
    """The things as they are now: what was deleted, or may not be seen any more, is not among them."""
    pks: dict[str, list[str]] = {}
    for kind, pk in keys:
        pks.setdefault(kind, []).append(pk)
    found: dict[Key, Record] = {}
    for thread in Thread.objects.filter(pk__in=pks.get("thread", []), deleted_at__isnull=True):
        title = thread.title or thread.key or ""
        found["thread", str(thread.pk)] = Record("thread", thread.public_id, title, thread.summary, thread.summary)
    live = {"deleted_at__isnull": True}
    for trigger in Trigger.objects.filter(pk__in=pks.get("trigger", []), **live).select_related("thread"):
        if trigger.thread.deleted_at is None:
            found["trigger", str(trigger.pk)] = Record(
                "trigger",
                trigger.public_id,
                trigger.thread.title or trigger.source,
                trigger.summary,
                trigger.summary,
                trigger.thread.public_id,
            )
    for worker in Worker.objects.filter(pk__in=pks.get("worker", []), **live).select_related("thread"):
        report = report_of(worker)
        home = worker.thread.public_id if worker.thread else None
        found["worker", str(worker.pk)] = Record(
            "worker", worker.public_id, worker.task, first_line(report), report, home
        )
    for note in notes.filter(pk__in=pks.get("note", [])).select_related("current", "member"):
        revision = note.current
        if revision is not None:
            title, about = revision.title or note.path, revision.description
            body = body_of(revision.text)
            found["note", str(note.pk)] = Record(
                "note", note.public_id, title, about or first_line(body), body, path=f"{note.space}/{note.path}"
            )
    events = Event.objects.filter(pk__in=pks.get("event", []), session__is_internal=False)
    for event in events.select_related("session"):
        found["event", str(event.pk)] = Record("event", event.public_id, event.name, event.summary, event.summary)
    return found


def first_line(text: str) -> str:
    return next((line.strip("# \t") for line in text.splitlines() if line.strip("# \t")), "")


def snippet(text: str, terms: Sequence[str], needle: str) -> str:
    """Up to 240 characters of the text around where the question meets it."""
    plain = " ".join(text.split())
    if len(plain) <= SNIPPET:
        return plain
    start = max(0, min(_place(plain[:20_000], terms, needle) - SNIPPET // 3, len(plain) - SNIPPET))
    if start and (space := plain.find(" ", start, start + 30)) != -1:
        start = space + 1
    end = min(start + SNIPPET, len(plain))
    if end < len(plain) and (space := plain.rfind(" ", end - 30, end)) > start:
        end = space
    return f"{'…' if start else ''}{plain[start:end].strip()}{'…' if end < len(plain) else ''}"


def _place(plain: str, terms: Sequence[str], needle: str) -> int:
    """Where the question's very characters stand, else where most of its words stand close together."""
    if needle:
        at = plain.casefold().find(needle)
        if at >= 0:
            return at
    asked = set(terms)
    places = []
    for word in _WORD.finditer(plain):
        if asked.intersection(words.terms(word.group())):
            places.append(word.start())
    if not places:
        return 0
    return max(places, key=lambda at: (sum(at <= other < at + SNIPPET * 2 // 3 for other in places), -at))
