"""Finding notes, revisions and proposals that an actor may see; what they may not see does not exist."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from memory.notes import paths, reach, shapes
from memory.notes.models import Note, NoteQuerySet, Proposal, Redirect, Revision
from memory.paging import Page
from memory.problems import Problem, not_found
from memory.tenants.access import Actor

STATES = ("open", "approved", "rejected", "superseded", "all")


def list_scope(by: Actor, name: str) -> str:
    """What a cursor of this list is good for: this member's view of it."""
    return f"{by.tenant_pk}:{by.member_pk}:{name}"


@dataclass(frozen=True)
class Place:
    """A note's address: its space and path."""

    space: reach.Space
    path: paths.NotePath

    def __str__(self) -> str:
        return f"{self.space.name}/{self.path.shown}"


def place(address: str, *, by: Actor) -> Place:
    """The place that `team/PATH` or `members/HANDLE/PATH` names. Raises Problem 400 invalid_path, 404."""
    head, _, rest = address.partition("/")
    if head == "members":
        handle, _, rest = rest.partition("/")
        head = f"members/{handle}"
    try:
        space = reach.space_of(head, by=by)
    except reach.UnknownSpace:
        raise not_found(address) from None
    try:
        return Place(space, paths.clean_path(rest))
    except paths.InvalidPath as error:
        raise Problem(400, "invalid_path", error.advice, reason=error.reason) from None


def note_at(where: Place) -> Note | None:
    """The approved note at a place."""
    notes = Note.objects.live().select_related("current", "member", "project")
    return notes.filter(member=where.space.member, path_key=where.path.key).first()


def moved(where: Place) -> Note | None:
    """The note that stood at a place before it was moved."""
    rows = Redirect.objects.filter(member=where.space.member, path_key=where.path.key)
    found = rows.select_related("note__member", "note__current").first()
    return found.note if found and found.note.deleted_at is None and found.note.current else None


def note(note_id: str, *, by: Actor, is_live: bool = True) -> Note:
    """An approved note; with `is_live=False` also one that was deleted. Raises Problem 404."""
    notes = reach.notes(by.member_pk).filter(current__isnull=False)
    notes = notes.live() if is_live else notes
    found = notes.select_related("current__approved_by", "member", "project").filter(public_id=_fit(note_id)).first()
    if found is None:
        raise not_found(note_id)
    return found


def revision(of: Note, number: str | None) -> Revision:
    """A note's revision by number, the current one for None. Raises Problem 404."""
    if number is None and of.current is not None:
        return of.current
    asked = int(number) if number and number.isascii() and number.isdigit() and len(number) < 10 else 0
    found = of.revisions.select_related("approved_by").filter(number=asked).first()
    if found is None:
        raise not_found(f"{of.public_id}@{number}")
    return found


def proposal(proposal_id: str, *, by: Actor) -> Proposal:
    """A proposal on a note that the actor may see. Raises Problem 404."""
    found = _proposals(by).filter(public_id=_fit(proposal_id)).first()
    if found is None:
        raise not_found(proposal_id)
    return found


def proposals(state: str, note_id: str | None, page: Page, *, by: Actor) -> Sequence[Proposal]:
    """One page of proposals and one row more, newest first. Raises Problem 400 invalid_state."""
    if state not in STATES:
        raise Problem(400, "invalid_state", f"state is one of {', '.join(STATES)}.")
    rows = _proposals(by).order_by("-public_id")
    rows = rows if state == "all" else rows.filter(state=state)
    rows = rows.filter(note__public_id=_fit(note_id)) if note_id is not None else rows
    rows = rows.filter(public_id__lt=page.after[0]) if page.after else rows
    return list(rows[: page.limit + 1])


@dataclass(frozen=True)
class Asked:
    """What a list of notes is asked for."""

    space: str | None = None
    prefix: str = ""


@dataclass(frozen=True)
class Listed:
    """A note in a list, its place in that order, and why it was found."""

    note: Note
    position: list[Any]
    why: str | None = None

    def show(self) -> dict[str, Any]:
        assert self.note.current is not None, "only approved notes are listed"  # noqa: S101
        shown = shapes.note(self.note, self.note.current)
        return shown if self.why is None else {**shown, "why": self.why}


def listed(asked: Asked, page: Page, *, by: Actor) -> list[Listed]:
    """One page of approved notes by path, and one row more. Raises Problem 404 for an unknown space."""
    rows = within(asked, by=by).select_related("current__approved_by", "member", "project").order_by("path_key", "pk")
    if page.after:
        path_key, pk = page.after
        rows = rows.filter(Q(path_key__gt=path_key) | Q(path_key=path_key, pk__gt=pk))
    return [Listed(note, [note.path_key, str(note.pk)]) for note in rows[: page.limit + 1]]


def within(asked: Asked, *, by: Actor) -> NoteQuerySet:
    """The approved notes of a space below a prefix."""
    rows = reach.notes(by.member_pk).live()
    if asked.space is not None:
        try:
            rows = rows.filter(member=reach.space_of(asked.space, by=by).member)
        except reach.UnknownSpace:
            raise not_found(asked.space) from None
    return rows.filter(path_key__startswith=paths.path_key(_fit(asked.prefix))) if asked.prefix else rows


def _proposals(by: Actor) -> QuerySet[Proposal]:
    return reach.proposals(by.member_pk).select_related("note__member", "base", "decided_by")


def _fit(text: str) -> str:
    """A text that PostgreSQL takes: NUL can't be in any id or path."""
    return text.replace("\0", "\ufffd")
