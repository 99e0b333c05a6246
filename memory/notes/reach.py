"""Whose notes are whose: the team's space, and the private space of each member."""

from dataclasses import dataclass

from django.db.models import Q
from django.db.models.functions import Collate

from memory.events.models import Project
from memory.notes import paths
from memory.notes.models import Note, NoteQuerySet, Proposal, ProposalQuerySet
from memory.tenants.access import Actor
from memory.tenants.models import Member

TEAM = "team"
PRIVATE = "members/"


class UnknownSpace(ValueError):
    """There is no such space, or it is another member's; both look the same."""


@dataclass(frozen=True)
class Space:
    """The team's space, or one member's."""

    member: Member | None

    @property
    def name(self) -> str:
        return f"{PRIVATE}{self.member.handle}" if self.member else TEAM


def space_of(name: str, *, by: Actor) -> Space:
    """The space called `team` or `members/<handle>`. Raises UnknownSpace, also for another member's."""
    if name == TEAM:
        return Space(None)
    handle = name.removeprefix(PRIVATE)
    if handle == name or "\0" in handle or by.member_pk is None:
        raise UnknownSpace(name)
    member = Member.objects.current().filter(pk=by.member_pk, handle=handle).first()
    if member is None:
        raise UnknownSpace(name)
    return Space(member)


def notes(member_pk: str | None) -> NoteQuerySet:
    """The notes a member may see: the team's, and their own."""
    return Note.objects.filter(Q(member__isnull=True) | Q(member_id=member_pk)) if member_pk else _team()


def proposals(member_pk: str | None) -> ProposalQuerySet:
    """The proposals a member may see: those on notes they may see."""
    mine = Q(note__member_id=member_pk) if member_pk else Q()
    return (
        Proposal.objects.filter(Q(note__member__isnull=True) | mine)
        if member_pk
        else Proposal.objects.filter(note__member__isnull=True)
    )


def below(rows: NoteQuerySet, folder: str) -> NoteQuerySet:
    """Those of the notes that stand below a folder, whose name is in lower case, by the index of the tree.

    A range of bytes: a pattern is no use to an index under row level security.
    """
    return rows.alias(by_bytes=Collate("path_key", "C")).filter(by_bytes__gte=f"{folder}/", by_bytes__lt=f"{folder}0")


def _team() -> NoteQuerySet:
    return Note.objects.filter(member__isnull=True)


def is_limited(note: Note) -> bool:
    """Whether the note is of a project that not all of the team sees."""
    slug = paths.project_slug(paths.NotePath(note.path, note.path_key)) or ""
    named = Q(slug=slug) | Q(merged__slug=slug)
    own = Q(pk=note.project_id) | Q(merged=note.project_id) if note.project_id else Q(pk__in=[])
    return Project.objects.filter(named | own, tenant_id=note.tenant_id, is_limited=True).exists()
