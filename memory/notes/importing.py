"""Taking an archive's notes in: what is new or changed is written or proposed, what meets other changes is merged.

The manifest says which text each file was exported as; that revision is the common ancestor.
"""

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from django.db import DatabaseError, OperationalError

from memory.notes import foreign, merging, paths, review, rules, texts
from memory.notes.bundle import Bundle, File
from memory.notes.holding import LostUpdate, live
from memory.notes.models import Note
from memory.notes.review import Draft
from memory.sentences import sentence
from memory.tenants import audit
from memory.tenants.access import Actor, Refused
from memory.tenants.models import Member, Tenant
from memory.tenants.races import is_race
from memory.tenants.rls import Work

log = logging.getLogger(__name__)
# Files a transaction: a second of work or less, and what it has locked is free again.
AT_ONCE: Final = 25


@dataclass(frozen=True)
class Imported:
    """What became of one file."""

    path: str
    outcome: str
    note: str | None = None
    proposal: str | None = None
    detail: str = ""


@dataclass(frozen=True)
class Space:
    """Where the notes go, and who brings them."""

    tenant: Tenant
    member: Member | None
    by: Actor

    def note(self, key: str) -> Note | None:
        rows = Note.objects.filter(tenant=self.tenant, member=self.member, path_key=key)
        return rows.select_related("current").first()


def take(bundle: Bundle, space: Space, work: Work, *, reason: str = "Imported.") -> list[Imported]:
    """Every file with what became of it, in order of the path. Importing the same twice changes nothing.

    It commits a few files at a time, so that nobody waits for all of them. What is in stays in, whatever becomes of
    the rest: a file that the database refuses is `failed`, and is taken in when the same is sent again.
    """
    files = sorted(bundle.files, key=lambda one: one.path.key)
    return _by_parts([_Piece(one.path.shown, partial(bring, one, space, reason=reason)) for one in files], space, work)


def take_all_foreign(files: list[tuple[str, bytes]], space: Space, work: Work) -> list[Imported]:
    """Other tools' files, as pairs of name and bytes, each as `take_foreign` takes it; a few at a time as in `take`."""
    return _by_parts([_Piece(name, partial(take_foreign, name, raw, space)) for name, raw in files], space, work)


@dataclass(frozen=True)
class _Piece:
    """A file, and what takes it in."""

    name: str
    bring: Callable[[], Imported]


def _by_parts(pieces: list[_Piece], space: Space, work: Work) -> list[Imported]:
    parts = [pieces[at : at + AT_ONCE] for at in range(0, len(pieces), AT_ONCE)]
    return [one for part in parts for one in _part(part, space, work)]


def _part(pieces: list[_Piece], space: Space, work: Work) -> list[Imported]:
    """A few files in a transaction of their own; where it fails, each of them in one."""
    try:
        with work.part(), audit.gathered(space.by):
            return [piece.bring() for piece in pieces]
    except DatabaseError as error:
        if isinstance(error, OperationalError) and not is_race(error):
            raise
        cause = type(error.__cause__ or error).__name__
    if len(pieces) > 1:
        return [one for piece in pieces for one in _part([piece], space, work)]
    log.warning("a note could not be taken in: %s", cause)
    return [
        Imported(pieces[0].name, "failed", detail=sentence("It could not be stored just now. Send the same again."))
    ]


def is_foreign(name: str) -> bool:
    """Whether a file is another tool's memory: markdown by itself, and no archive of notes."""
    return name.lower().endswith(foreign.ENDINGS)


def take_foreign(name: str, raw: bytes, space: Space) -> Imported:
    """Another tool's file (CLAUDE.md, a Cursor rule) as a proposal, whoever brings it. The same again is no new one."""
    path = foreign.path_of((name.replace("\\", "/").rsplit("/", 1)[-1],), base="general/imported")
    try:
        text = foreign.text_of(raw)
        note = space.note(paths.path_key(path))
        known = note.proposals.filter(text=text).order_by("-created_at").first() if note else None
        if note is not None and known is not None:
            return Imported(path, "unchanged", note.public_id if live(note) else None, known.public_id)
        current = live(note) if note else None
        draft = Draft(
            path, text, reason=sentence("Imported from %(name)s.", name=name[:100]), member=space.member,
            base=current.number if current else None,
        )  # fmt: skip
        made = review.propose(space.tenant, draft, by=space.by)
    except (foreign.Unreadable, paths.InvalidPath, review.InvalidNote, rules.Locked, LostUpdate) as error:
        return Imported(path, "refused", detail=str(error))
    if made is None:
        return Imported(path, "unchanged", note.public_id if note else None)
    return Imported(path, "proposed", made.note.public_id, made.public_id)


def counts(imported: list[Imported]) -> dict[str, int]:
    return dict(sorted(Counter(one.outcome for one in imported).items()))


def bring(
    file: File, space: Space, *, reason: str, base: Callable[[Note | None], str | None] | None = None
) -> Imported:
    """One file, taken in; `base` gives the common ancestor where the archive's hash does not."""
    path = file.path.shown
    try:
        theirs = texts.clean(file.text, space.by).text
        note = space.note(file.path.key)
        current = live(note) if note else None
        ours = current.text if current else None
        ancestor = base(note) if base else _ancestor(note, file, theirs)
        outcome = merging.merge(ancestor, ours, theirs)
        if outcome.kind in ("same", "ours"):
            return Imported(path, "unchanged", note.public_id if note else None)
        wanted = outcome.text if outcome.is_clean else merging.on_top(ancestor, ours, theirs)
        if outcome.is_clean and (written := _written(space, path, wanted or "", current.number if current else None)):
            word = "created" if current is None else "merged" if outcome.kind == "merged" else "updated"
            return Imported(path, word, written)
        return _proposed(space, path, wanted or "", outcome, reason)
    except review.InvalidNote as error:
        return Imported(path, "refused", detail=str(error))
    except (rules.Locked, LostUpdate) as error:
        return Imported(path, "refused", detail=str(error))


def _ancestor(note: Note | None, file: File, theirs: str) -> str | None:
    """The text that the file was exported as; an older text of the note itself is its own ancestor."""
    if note is None:
        return None
    for digest in (file.sha256, None):
        if digest is not None and (found := _with_hash(note, digest)) is not None:
            return found
    return theirs if note.revisions.filter(text=theirs).exists() else None


def _with_hash(note: Note, digest: str) -> str | None:
    try:
        raw = bytes.fromhex(digest)
    except ValueError:
        return None
    found = note.revisions.filter(sha256=raw, blanked_at=None).first()
    return found.text if found else None


def _written(space: Space, path: str, text: str, base: int | None) -> str | None:
    """The note, where this actor may write it at once; None where it has to be proposed."""
    if space.by.kind not in texts.UNCITED:
        return None
    try:
        written = review.write(space.tenant, path=path, text=text, by=space.by, member=space.member, base=base)
    except (rules.NeedsTwo, Refused):
        return None
    return written.note.public_id


def _proposed(space: Space, path: str, text: str, outcome: merging.Outcome, reason: str) -> Imported:
    why = reason
    if not outcome.is_clean:
        why += " " + sentence("The note was changed here too; where both meet, this is the import.")
    made = review.propose(space.tenant, Draft(path, text, reason=why, member=space.member), by=space.by)
    if made is None:
        return Imported(path, "unchanged")
    word = "conflict" if not outcome.is_clean else "proposed" if made.state == "open" else "updated"
    return Imported(path, word, made.note.public_id, made.public_id, why)
