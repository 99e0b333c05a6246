"""Looking through a team's entries, by words, signs, meaning and spelling.

Each look is one SECURITY DEFINER function of the database. It takes the team from the transaction's own binding and
writes it into its condition: under row level security alone an index of words or of vectors is not used at all, and a
nearest-neighbour index would be filtered after it has chosen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from memory.events.models import Project
from memory.recall.entries import word_number
from memory.recall.kinds import named_place, place_of
from memory.recall.models import Entry
from memory.recall.scope import same_project
from memory.tenants.rls import NIL

Key = tuple[str, str]


@dataclass(frozen=True)
class Reach:
    """Where a question may look: which kinds, whose private things, which projects (None: all), which thread."""

    tenant_pk: str
    kinds: tuple[str, ...]
    readers: tuple[str, ...]
    places: tuple[str, ...] | None = None
    thread: str | None = None

    @property
    def parameters(self) -> list[Any]:
        places = None if self.places is None else list(self.places)
        return [list(self.kinds), list(self.readers), places, self.thread]


def reach_of(
    tenant_pk: str,
    *,
    kinds: Sequence[str],
    member_pk: str | None,
    project: Project | None = None,
    thread_pk: str | None = None,
) -> Reach:
    """What a member may find: what is everybody's and their own; of a project's things only those of `project`."""
    readers = (NIL, member_pk) if member_pk else (NIL,)
    return Reach(tenant_pk, tuple(kinds), readers, _places(project) if project else None, thread_pk)


def _places(project: Project) -> tuple[str, ...]:
    projects = same_project(project)
    return (
        NIL,
        *(place_of(str(one.pk)) for one in projects),
        *(named_place(one.slug.casefold()) for one in projects),
    )


@dataclass(frozen=True)
class Look:
    """A thing that a look has found. `score` grows without limit; `share` is how much of the question it covers."""

    kind: str
    target: str
    score: float
    share: float = 1.0
    found: tuple[str, ...] = ()
    is_exact: bool = False

    @property
    def key(self) -> Key:
        return (self.kind, self.target)


def by_words(reach: Reach, terms: Sequence[str], *, is_all: bool, needle: str = "", most: int) -> list[Look]:
    """Things that have words of the question, best first; with `is_all` those that have all of them."""
    numbers = {word_number(reach.tenant_pk, term): term for term in terms}
    rows = _rows(
        "SELECT kind, target, score, share, found, is_exact"
        " FROM search_words(%s, %s::uuid[], %s::uuid[], %s, %s::bigint[], %s, %s, %s)",
        [*reach.parameters, list(numbers), is_all, needle, most],
    )
    place = {number: at for at, number in enumerate(numbers)}
    # Named in the order of the question: two that are as rare as each other have no other.
    return [
        Look(kind, str(target), score, share, tuple(numbers[n] for n in sorted(found, key=place.__getitem__)), is_exact)
        for kind, target, score, share, found, is_exact in rows
    ]


def by_text(reach: Reach, needle: str, *, most: int) -> list[Look]:
    """Of the newest things those that have the very characters, newest first."""
    rows = _rows(
        "SELECT kind, target FROM search_text(%s, %s::uuid[], %s::uuid[], %s, %s, %s)",
        [*reach.parameters, needle, most],
    )
    return [Look(kind, str(target), 1.0 / number, is_exact=True) for number, (kind, target) in enumerate(rows, start=1)]


def by_meaning(reach: Reach, maker: str, vector: str, length: int, *, most: int) -> list[Look]:
    """Things with a passage like the question, each once, with the likeness of its best passage."""
    rows = _rows(
        "SELECT kind, target, likeness FROM search_meaning(%s, %s::uuid[], %s::uuid[], %s, %s, %s, %s, %s)",
        [*reach.parameters, maker, vector, length, most],
    )
    best: dict[Key, Look] = {}
    for kind, target, likeness in rows:
        best.setdefault((kind, str(target)), Look(kind, str(target), likeness))
    return list(best.values())


def by_spelling(typed: Sequence[str], enough: float) -> dict[str, str]:
    """For each mistyped word the known one that is most like it."""
    rows = _rows(
        "SELECT asked, word FROM search_spelling(%s, %s) ORDER BY asked, likeness, word DESC", [list(typed), enough]
    )
    return dict(rows)


def in_reach(reach: Reach, keys: Sequence[Key]) -> set[Key]:
    """Those of the things that the question may find."""
    found = Entry.objects.filter(target__in={pk for _, pk in keys}, kind__in=reach.kinds, reader__in=reach.readers)
    found = found.filter(place__in=reach.places) if reach.places is not None else found
    found = found.filter(thread=reach.thread) if reach.thread else found
    return {(kind, str(target)) for kind, target in found.values_list("kind", "target")}


def _rows(sql: str, parameters: Sequence[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[Any] = cursor.fetchall()
    return rows
