"""Another path for a note. The old one leads to it from then on, in addresses and in other notes' links."""

from django.db import transaction
from django.utils.translation import gettext

from memory.notes import paths, rules
from memory.notes.holding import live, locked, require_may
from memory.notes.models import Note, Redirect
from memory.notes.publish import project_of
from memory.tenants import audit
from memory.tenants.access import Actor


class PathTaken(Exception):
    """Another note stands, stood or is proposed at the path."""


def move(note: Note, to: str, *, by: Actor) -> Note:
    """Move the note at once. Raises Refused, InvalidPath, PathTaken, Locked, NeedsTwo."""
    target = paths.clean_path(to)
    with transaction.atomic():
        note = locked(note)
        require_may(by, "note.edit", note)
        rules.require_one(note, by, "" if note.member_id else target.key)
        before = note.path
        apply(note, target, by=by)
        audit.record(by, "note.move", note.public_id, before=before, after=note.path)
    return note


def require_free(note: Note, target: paths.NotePath) -> None:
    """Raises PathTaken, and Locked where the rule of the target locks it."""
    there = Note.objects.filter(tenant_id=note.tenant_id, member=note.member, path_key=target.key)
    other = there.exclude(pk=note.pk).first()
    if other is not None:
        words = gettext("A note was deleted or is proposed at %(shown)s already. Choose another path.")
        if live(other):
            words = gettext("There is a note at %(shown)s already. Choose another path.")
        raise PathTaken(words % {"shown": target.shown})
    if note.member_id is None:
        rule = rules.at(str(note.tenant_id), target.key)
        if rule.mode == "locked":
            raise rules.Locked(
                gettext("The rule %(glob)s locks %(shown)s. Choose another path.")
                % {"glob": rule.glob, "shown": target.shown}
            )


def apply(note: Note, target: paths.NotePath, *, by: Actor) -> None:
    """Give the note its new path; the caller holds its row and has asked who may. Raises PathTaken, Locked."""
    require_free(note, target)
    if target.key != note.path_key:
        known = Redirect.objects.filter(member=note.member)
        known.filter(path_key=target.key).delete()
        known.update_or_create(
            tenant_id=note.tenant_id, member=note.member, path_key=note.path_key, defaults={"note": note}
        )
    note.path, note.path_key = target.shown, target.key
    note.project = project_of(note)
    note.save(update_fields=["path", "path_key", "project"])
