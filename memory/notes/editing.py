"""Saving what a person wrote in the editor: published or proposed, and both sides brought together where two wrote."""

import re
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext

from memory.notes import frontmatter, paths, reading, review, rules
from memory.notes.frontmatter import Document, InvalidFrontmatter, with_fields
from memory.notes.holding import live
from memory.notes.merging import merge
from memory.notes.models import Note, Proposal, Revision
from memory.tenants.access import Actor
from memory.tenants.models import Member, Tenant

EMPTY: Final = with_fields("", title="", description="", kind="general") + "\n"
_MARKER: Final = re.compile(r"^(?:<<<<<<< mine|>>>>>>> theirs)\r?$", re.MULTILINE)
MOST_KINDS: Final = 40


@dataclass(frozen=True)
class Wanted:
    """A text that somebody wants to stand at a path; `base` is the number of the revision it was begun from."""

    path: str
    text: str
    message: str = ""
    is_private: bool = False
    base: int | None = None


@dataclass(frozen=True)
class Made:
    """What a save came to: a note, a proposal, or neither, where nothing was changed."""

    note: Note | None = None
    proposal: Proposal | None = None
    waits_for_two: bool = False


@dataclass(frozen=True)
class Both:
    """Two people's changes in one text, with marker lines where they meet; `current` is what the other one saved."""

    text: str
    is_clean: bool
    current: Revision


def publishes(note: Note | None, *, is_private: bool, by: Actor) -> bool:
    """Whether this person's text holds at once."""
    if note is None:
        return is_private or by.may("note.edit")
    if note.member_id:
        return True
    verdict = rules.verdict(note)
    return by.may("note.edit") and not verdict.four_eyes and verdict.lets_decide(by)


def save(tenant: Tenant, note: Note | None, wanted: Wanted, *, member: Member | None, by: Actor) -> Made:
    """Write or propose. Raises Refused, InvalidPath, InvalidNote, Locked, and LostUpdate where somebody was quicker."""
    owner = note.member if note else member if wanted.is_private else None
    path = note.path if note else wanted.path
    waits = False
    if publishes(note, is_private=wanted.is_private, by=by):
        try:
            text = review.write(tenant, path=path, text=wanted.text, by=by, member=owner, base=wanted.base)
            return Made(note=text.note)
        except rules.NeedsTwo:
            waits = True
    there = note or _at(path, owner)
    current = live(there) if there else None
    # A proposal would be put on top of what the other one wrote, and words could give way unseen.
    if (current.number if current else None) != wanted.base:
        raise review.LostUpdate(current.number if current else None)
    draft = review.Draft(path, wanted.text, reason=wanted.message, member=owner, base=wanted.base)
    return Made(proposal=review.propose(tenant, draft, by=by), waits_for_two=waits)


def together(note: Note, text: str, base: int | None) -> Both | None:
    """What the text and the one that was saved meanwhile come to; None where the note was deleted."""
    current = live(Note.objects.select_related("current").get(pk=note.pk))
    if current is None:
        return None
    begun = revision(note, base)
    if begun is None:
        return Both(merge(None, text, current.text).text or "", False, current)
    outcome = merge(begun.text, text, current.text)
    if outcome.is_clean:
        return Both(outcome.text or "", True, current)
    by_field = _by_field(begun.text, text, current.text)
    return Both(*by_field, current) if by_field else Both(outcome.text or "", False, current)


def _by_field(base: str, mine: str, theirs: str) -> tuple[str, bool] | None:
    """The same, where each field is a place of its own: two lines beside each other are one place to a merge of lines.

    None where both changed one field, or a frontmatter can't be read.
    """
    try:
        old, my, their = (frontmatter.split(text) for text in (base, mine, theirs))
    except InvalidFrontmatter:
        return None
    names = {*old.fields, *my.fields, *their.fields}
    changed = {name: my.fields.get(name) for name in names if my.fields.get(name) != old.fields.get(name)}
    if any(their.fields.get(name) not in (old.fields.get(name), value) for name, value in changed.items()):
        return None
    body = merge(old.body, my.body, their.body)
    head = my.raw_frontmatter if their.raw_frontmatter == old.raw_frontmatter else their.raw_frontmatter
    text = head + (body.text or "")
    try:
        return (with_fields(text, **changed) if head == their.raw_frontmatter else text), body.is_clean
    except InvalidFrontmatter:
        return None


def revision(note: Note | None, number: int | None) -> Revision | None:
    """The revision that a text was begun from, if its words are still there."""
    if note is None or number is None:
        return None
    if note.current is not None and note.current.number == number:
        return note.current
    return note.revisions.filter(number=number, blanked_at=None).first()


def unresolved(text: str) -> str:
    """What to say of a text in which both sides of a conflict still stand; empty where none does."""
    found = _MARKER.search(text)
    if found is None:
        return ""
    line = text.count("\n", 0, found.start()) + 1
    return gettext(
        "Line %(line)s still marks two versions. Keep the words you want, and take the marker lines out."
    ) % {"line": line}


def checked(text: str) -> tuple[Document, list[str]]:
    """The text in its parts, and why it could not be saved as it is."""
    try:
        document = frontmatter.split(text)
    except InvalidFrontmatter as error:
        return Document(None, "", text), [reading.plain_words(str(error))]
    return document, [problem.detail for problem in frontmatter.check(document, by_person=True)]


def kinds(tenant: Tenant) -> list[str]:
    """The kinds that this team's notes have, to choose from."""
    rows = Note.objects.present().filter(tenant=tenant, member__isnull=True)
    kinds = rows.values_list("current__kind", flat=True).order_by("current__kind")
    found: list[str] = []
    # From one kind to the next by the index: DISTINCT would read every note for the few words there are.
    while len(found) < MOST_KINDS:
        following = kinds.filter(current__kind__gt=found[-1] if found else "").first()
        if following is None:
            break
        found.append(following)
    return found


def _at(path: str, member: Member | None) -> Note | None:
    try:
        key = paths.clean_path(path).key
    except paths.InvalidPath:
        return None
    return Note.objects.select_related("current").filter(member=member, path_key=key).first()
