"""Which revision each line of a note came with."""

from collections.abc import Iterable
from dataclasses import dataclass

from memory.notes.align import Budget, matches
from memory.notes.models import Note, Revision, Source


@dataclass(frozen=True)
class Line:
    """A line of the current text, the revision that brought it, and the events it rests on."""

    number: int
    text: str
    revision: Revision
    sources: tuple[Source, ...] = ()


def lines_of(note: Note) -> list[Line]:
    """Every line of the current text. A revision whose words were taken out brings no line."""
    if note.current is None:
        return []
    number = note.current.number
    rows = note.revisions.filter(number__lte=number, blanked_at=None).select_related("approved_by").order_by("number")
    sources: dict[str, list[Source]] = {}
    for source in note.current.sources.select_related("event__session").order_by("position", "pk"):
        sources.setdefault(source.line, []).append(source)
    found = enumerate(_origins(rows), start=1)
    return [Line(at, text, revision, tuple(sources.get(text, ()))) for at, (text, revision) in found]


def _origins(revisions: Iterable[Revision]) -> list[tuple[str, Revision]]:
    told: list[tuple[str, Revision]] = []
    for revision in revisions:
        new = [(text, revision) for text in revision.text.split("\n")]
        for before, after in matches([text for text, _ in told], [text for text, _ in new], Budget()):
            new[after] = told[before]
        told = new
    return told
