"""A question that names a record, by its id, its key, its number or its address: that record comes first."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from django.db.models import Q

from memory.events.models import Event
from memory.graph.models import Step, Thread, Trigger, Worker
from memory.graph.references import references
from memory.notes import paths
from memory.notes.models import NoteQuerySet
from memory.recall import looks
from memory.recall.looks import Reach

MOST_NAMES: Final = 8
MOST_LENGTH: Final = 300
_NUMBER: Final = re.compile(r"^[#!](\d{1,12})$")
_REPOSITORY_NUMBER: Final = re.compile(r"^[\w.-]+(?:/[\w.-]+)+[#!]\d{1,12}$")
_ID: Final = re.compile(r"^(thr|trg|wkr|nte|evt)_[A-Za-z0-9_.-]{1,96}$")


@dataclass(frozen=True)
class Named:
    """A record that the question names, and by what."""

    kind: str
    pk: str
    why: str


def names_in(q: str) -> list[str]:
    """The words of a question that can name a record; the whole of it is one, if it is short."""
    plain = " ".join(q.split())
    whole = [plain] if 0 < len(plain) <= MOST_LENGTH else []
    words = (word.strip("\"'`<>()[]{},;") for word in q[:4_000].split())
    telling = [word.rstrip(".:?!") for word in words if 2 < len(word) <= MOST_LENGTH and re.search(r"[_#!:/]", word)]
    return list(dict.fromkeys([*whole, *telling]))[:MOST_NAMES]


def keys_of(name: str) -> list[str]:
    """The keys a thread may have that is called so: the address of a pull request is also its key."""
    return [name, *(one.key for one in references(name))] if "://" in name else [name]


def named(q: str, reach: Reach, notes: NoteQuerySet) -> list[Named]:
    """What the question names, in the order of its words; `notes` are those in reach."""
    found: list[Named] = []
    for name in names_in(q):
        found += _with_id(name, notes) if _ID.match(name) else _called(name, reach, notes)
    return list({(one.kind, one.pk): one for one in reversed(found)}.values())[::-1]


def _with_id(name: str, notes: NoteQuerySet) -> list[Named]:
    match name[:3]:
        case "thr":
            return _all("thread", Thread.objects.filter(public_id=name, deleted_at__isnull=True), "id")
        case "trg":
            return _all("trigger", Trigger.objects.filter(public_id=name, deleted_at__isnull=True), "id")
        case "wkr":
            return _all("worker", Worker.objects.filter(public_id=name, deleted_at__isnull=True), "id")
        case "nte":
            return _all("note", notes.filter(public_id=name), "id")
    steps = Step.objects.filter(public_id=name).values("thread_id")
    found = _all("thread", Thread.objects.filter(pk__in=steps, deleted_at__isnull=True), "step")
    return found + _all("event", Event.objects.filter(public_id=name, session__is_internal=False), "id")


def _called(name: str, reach: Reach, notes: NoteQuerySet) -> list[Named]:
    if _NUMBER.match(name) or _REPOSITORY_NUMBER.match(name):
        return _numbered(name, reach)
    found = _all("thread", Thread.objects.filter(key__in=keys_of(name), deleted_at__isnull=True), "key")
    found += _all("trigger", Trigger.objects.filter(external_id=name, deleted_at__isnull=True), "key")
    if "/" in name:
        key = paths.path_key(name.removeprefix("team/"))
        found += _all("note", notes.filter(Q(path_key=key) | Q(path_key=f"{key}.md")), "path")
    return found


def _numbered(name: str, reach: Reach) -> list[Named]:
    """Threads whose key ends so: `#412` of any repository, `acme/payments#412` of one."""
    number = re.sub(r"^.*[#!]", "", name)
    found = looks.by_words(replace(reach, kinds=("thread",)), [number], is_all=True, most=200)
    ending = Q(key__iendswith=name) if not name.startswith(("#", "!")) else Q(key__endswith=name)
    threads = Thread.objects.filter(ending, pk__in=[one.target for one in found])
    return _all("thread", threads.filter(deleted_at__isnull=True).order_by("-pk"), "number")


def _all(kind: str, rows: Iterable[object], what: str) -> list[Named]:
    return [Named(kind, str(row.pk), f"Has this {what}") for row in list(rows)[:20]]  # type: ignore[attr-defined]
