"""A note held for a change: found or made at its path, locked, and who may change it."""

from typing import Final

from django.utils.translation import gettext

from memory.notes import paths
from memory.notes.models import Note, Proposal, Redirect, Revision
from memory.notes.publish import Author, Version, project_of
from memory.tenants import access
from memory.tenants.access import Actor
from memory.tenants.models import Member, Tenant

APPROVED: Final = 0


class LostUpdate(Exception):
    """The note changed since it was read. `current` is its number now, None where there is no note."""

    def __init__(self, current: int | None) -> None:
        super().__init__(
            gettext("The note is at revision %(current)s now.") % {"current": current}
            if current
            else gettext("There is no such note now.")
        )
        self.current = current


def note_at(tenant: Tenant, path: paths.NotePath, member: Member | None) -> Note:
    """The note at a path, made where there is none. A path that a note was moved away from leads to that note."""
    moved = Redirect.objects.filter(tenant=tenant, member=member, path_key=path.key).select_related("note").first()
    if moved is not None and not Note.objects.filter(tenant=tenant, member=member, path_key=path.key).exists():
        return moved.note
    note, is_new = Note.objects.get_or_create(
        tenant=tenant, member=member, path_key=path.key, defaults={"path": path.shown}
    )
    if is_new:
        note.project = project_of(note)
        note.save(update_fields=["project"])
    return note


def locked(note: Note) -> Note:
    """The note as it is now, its row held until the transaction ends."""
    return Note.objects.select_for_update(of=("self",)).select_related("current").get(pk=note.pk)


def id_of(revision: Revision | None) -> str:
    return revision.public_id if revision else ""


def live(note: Note) -> Revision | None:
    """The approved text; a deleted note has none."""
    return note.current if note.deleted_at is None else None


def as_proposed(proposal: Proposal, by: Actor) -> Version:
    author = Author(proposal.author_kind, proposal.author_id, proposal.author_label)
    return Version(proposal.text, author, APPROVED, approver(by), proposal.reason)


def by_person(text: str, by: Actor) -> Version:
    return Version(text, Author(by.kind, by.id, by.label), APPROVED, approver(by))


def approver(by: Actor) -> Member | None:
    return Member.objects.filter(pk=by.member_pk).first() if by.member_pk else None


def require_own(member: Member | None, by: Actor) -> None:
    """Into a private space only its member and their agents write, and the team's dreams."""
    if member is not None and by.kind != "dream" and by.member_pk != str(member.pk):
        raise access.Refused("note.propose")


def may(by: Actor, action: str, note: Note) -> bool:
    """In their own space members decide, whatever their role; nobody else sees it."""
    if note.member_id is None:
        return by.may(action)
    return by.kind == "member" and by.member_pk == str(note.member_id) and by.may("note.propose")


def require_may(by: Actor, action: str, note: Note) -> None:
    if not may(by, action, note):
        raise access.Refused(action)
