"""What the page of a change shows: the fields and lines that differ, what they rest on, and what became of it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext

from memory.notes.diff import DiffLine, Fold, Word, fold, word_diff, words_between
from memory.notes.frontmatter import Document, Value
from memory.notes.lines import normal
from memory.notes.models import Proposal, Revision, Source
from memory.notes.reading import BY_RULES, MOST_SOURCES, document
from memory.tenants.models import AuditEntry

# What a table of fields would hide from the reviewer: a comment among them.
_COMMENT = re.compile(r"(?:^|\s)#", re.MULTILINE)


@dataclass(frozen=True)
class Field:
    """One field of the frontmatter on both sides, unseen characters made visible."""

    name: str
    old: str
    new: str

    @property
    def mark(self) -> str:
        if self.old == self.new:
            return "same"
        return "changed" if self.old and self.new else "added" if self.new else "removed"

    @property
    def words(self) -> tuple[Word, ...]:
        return words_between(self.old, self.new)


@dataclass(frozen=True)
class Change:
    """A change as a page shows it: its fields, then the lines of its body."""

    fields: tuple[Field, ...]
    lines: list[DiffLine | Fold]


def between(old: str, new: str) -> Change:
    """Two texts: fields as a table, the bodies word by word. What a table can't show exactly stands in the lines."""
    before, after = document(old), document(new)
    fields = tuple(_fields(before, after))
    is_told = any(field.mark != "same" for field in fields) or before.body != after.body or old == new
    if any(_COMMENT.search(side.raw_frontmatter) for side in (before, after)) or not is_told:
        return Change((), fold(word_diff(old, new)))
    return Change(fields, fold(word_diff(before.body, after.body)))


def _fields(before: Document, after: Document) -> Iterable[Field]:
    for name in {**after.fields, **before.fields}:
        sides = [_words(side.fields.get(name, "")) for side in (before, after)]
        yield Field(_seen(name), _seen(sides[0]), _seen(sides[1]))


def _words(value: Value) -> str:
    if isinstance(value, list):
        return ", ".join(map(_words, value))
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_words(inner)}" for key, inner in value.items())
    return value


def _seen(text: str) -> str:
    return Word("added", text).visible


@dataclass(frozen=True)
class Evidence:
    """The sources of a text: those of the lines a change adds, and those of the lines that stood there before."""

    new: list[Source]
    old: list[Source]
    count: int


def evidence(proposal: Proposal, *, text: str, base: str) -> Evidence:
    """What the lines of `text` rest on; a source whose line is not in the text any more is left out."""
    place: dict[str, int] = {}
    for number, line in enumerate(text.split("\n")):
        place.setdefault(normal(line), number)
    known = {normal(line) for line in base.split("\n")} - {""}
    found: list[tuple[bool, int, str]] = []
    for pk, line in proposal.sources.order_by("position", "pk").values_list("pk", "line"):
        said = normal(line)
        if said in place or not said:
            found.append((said in known, place.get(said, 0), str(pk)))
    found.sort()
    new = [pk for is_known, _, pk in found if not is_known]
    old = [pk for is_known, _, pk in found if is_known]
    rows = _sources([*new[:MOST_SOURCES], *old[:MOST_SOURCES]])
    return Evidence(
        [rows[pk] for pk in new[:MOST_SOURCES]], [rows[pk] for pk in old[:MOST_SOURCES]], len(new) + len(old)
    )


def _sources(pks: list[str]) -> dict[str, Source]:
    rows = Source.objects.filter(pk__in=pks).select_related("event", "event__session")
    return {str(row.pk): row for row in rows.defer("event__body", "event__head", "event__tail")}


def let_in(proposal: Proposal) -> Revision | None:
    """The revision that approving the proposal made, which a reviewer may have edited; the audit knows it."""
    if proposal.state != "approved":
        return None
    made = AuditEntry.objects.filter(action="note.approve", target=proposal.public_id, outcome="done")
    after = made.order_by("seq").values_list("after", flat=True).first()
    return proposal.note.revisions.filter(public_id=after).first() if after else None


def is_edited(proposal: Proposal, revision: Revision | None) -> bool:
    """True where what was let in is not what was proposed. A deletion that was let in makes no revision."""
    if revision is None or revision.pk == proposal.base_id:
        return False
    return proposal.operation == "delete" or revision.text != proposal.text


def with_proposals(revisions: Iterable[Revision]) -> list[Revision]:
    """The revisions of a note, each with the `proposal` it came from, or None where a person wrote it."""
    rows = list(revisions)
    came = AuditEntry.objects.filter(action="note.approve", after__in=[row.public_id for row in rows], outcome="done")
    proposal_of = dict(came.order_by("seq").values_list("target", "after"))
    found = Proposal.objects.filter(public_id__in=list(proposal_of))
    by_revision = {proposal_of[one.public_id]: one for one in found}
    for row in rows:
        proposal = by_revision.get(row.public_id)
        is_deletion = proposal is not None and proposal.base_id == row.pk
        if proposal is not None:
            proposal.said = proposal.reason if proposal.reason != BY_RULES else gettext("By rules, without a model.")  # type: ignore[attr-defined]
        row.proposal = None if is_deletion else proposal  # type: ignore[attr-defined]
        row.is_edited = is_edited(proposal, row) if proposal else False  # type: ignore[attr-defined]
    return rows
