"""Where a link in a note leads: to the note at that path, or to the one that stood there before it was moved.

Texts are never rewritten for it, so that they stay as they were approved and an export as it was signed.
"""

import posixpath
from collections.abc import Iterable
from urllib.parse import unquote

from django.db.models import Q

from memory.notes import paths
from memory.notes.models import Note, Redirect

MOST_TARGETS = 200


def resolved(note: Note, targets: Iterable[str]) -> dict[str, Note]:
    """The note that each target of a link in `note` names; those that name none are left out.

    A target is a path from the note's own folder, as in an export, or from the top of its space. A note that was moved
    keeps its own relative links too: they are read from its former folders as well.
    """
    wanted = sorted(targets)[:MOST_TARGETS]
    if not wanted:
        return {}
    former = note.redirects.order_by("-created_at").values_list("path_key", flat=True)[:10]
    folders = [posixpath.dirname(path) for path in (note.path, *former)]
    keys = {target: _keys(target, folders) for target in wanted}
    known = _known(note, {key for found in keys.values() for key in found})
    named = {target: next((known[key] for key in found if key in known), None) for target, found in keys.items()}
    return {target: found for target, found in named.items() if found is not None}


def _keys(target: str, folders: list[str]) -> list[str]:
    """The paths that a target may mean, the likeliest first."""
    path = unquote(target.partition("?")[0])
    top = path.lstrip("/").removeprefix("team/")
    meant = [top] if path.startswith("/") else [*(posixpath.join(folder, path) for folder in folders), top]
    keys = []
    for one in meant:
        try:
            keys.append(paths.clean_path(posixpath.normpath(one)).key)
        except paths.InvalidPath:
            continue
    return list(dict.fromkeys(keys))


def _known(note: Note, keys: set[str]) -> dict[str, Note]:
    """Notes by path key: of a private note's own space before the team's, and where one stands before a move."""
    reach = Q(member__isnull=True) | Q(member_id=note.member_id) if note.member_id else Q(member__isnull=True)
    moved = Redirect.objects.filter(reach, path_key__in=keys).select_related("note__member", "note__current")
    found: dict[str, Note] = {}
    for redirect in sorted(moved, key=lambda one: one.member_id is not None):
        if redirect.note.deleted_at is None and redirect.note.current_id is not None:
            found[redirect.path_key] = redirect.note
    live = Note.objects.present().filter(reach, path_key__in=keys).select_related("member", "current")
    found.update({one.path_key: one for one in sorted(live, key=lambda one: one.member_id is not None)})
    return found
