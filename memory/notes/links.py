"""Where the ids and the links in a note's text lead.

A link by path leads to the note at that path, or to the one that stood there before it was moved. Texts are never
rewritten for it, so that they stay as they were approved and an export as it was signed.
"""

import posixpath
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from django.db.models import Q, QuerySet
from django.urls import reverse

from memory.notes import paths, reading
from memory.notes.markdown import ids_in, targets_in
from memory.notes.models import Note, Redirect
from memory.tenants.access import Actor
from memory.tenants.models import Member, Tenant

LinkFor: TypeAlias = Callable[[str], str | None]
MOST: Final = 300
MOST_TARGETS: Final = 200
MOST_FORMER: Final = 10


@dataclass(frozen=True)
class Links:
    """What `markdown.render` asks for: the page of an id, and the page of a note by its path."""

    link_for: LinkFor
    page_for: LinkFor


def of(tenant: Tenant, text: str, *, by: Actor, path: str = "", member: Member | None = None) -> Links:
    """The links of a text that stands, or will stand, at `path`."""
    member_pk = str(member.pk) if member else None
    return _links(tenant, text, by, resolved(targets_in(text), path=path, member_pk=member_pk))


def of_note(tenant: Tenant, note: Note, text: str, *, by: Actor) -> Links:
    """The links of a note's text. One that was moved keeps its own relative links too: they are read from its former
    folders as well.
    """
    former = list(note.redirects.order_by("-created_at").values_list("path_key", flat=True)[:MOST_FORMER])
    member_pk = str(note.member_id) if note.member_id else None
    found = resolved(targets_in(text), path=note.path, former=former, member_pk=member_pk)
    return _links(tenant, text, by, found)


def _links(tenant: Tenant, text: str, by: Actor, notes: dict[str, Note]) -> Links:
    pages = {target: reverse("note", args=[tenant.slug, note.public_id]) for target, note in notes.items()}
    return Links(_ids(tenant, text, by).get, pages.get)


def _ids(tenant: Any, text: str, by: Actor) -> dict[str, str]:
    asked = ids_in(text)
    if not asked:
        return {}
    pages: dict[str, QuerySet[Any]] = {
        "evt": tenant.events.all(),
        "ses": tenant.sessions.all(),
        "nte": reading.visible(by),
        "trg": tenant.triggers.filter(deleted_at__isnull=True),
        "thr": tenant.threads.filter(deleted_at__isnull=True),
        "wkr": tenant.workers.filter(deleted_at__isnull=True),
    }
    names = {"evt": "event", "ses": "session", "nte": "note", "trg": "trigger", "thr": "thread", "wkr": "worker"}
    found = {}
    for prefix, rows in pages.items():
        some = sorted(one for one in asked if one.startswith(f"{prefix}_"))[:MOST]
        if some:
            for public_id in rows.filter(public_id__in=some).values_list("public_id", flat=True):
                found[public_id] = reverse(names[prefix], args=[tenant.slug, public_id])
    return found


def resolved(
    targets: Iterable[str], *, path: str, former: Sequence[str] = (), member_pk: str | None = None
) -> dict[str, Note]:
    """The note that each target of a link in a text at `path` names; those that name none are left out.

    A target is a path from the text's own folder, as in an export, or from the top of its space.
    """
    wanted = sorted(targets)[:MOST_TARGETS]
    if not wanted:
        return {}
    folders = [posixpath.dirname(one) for one in (path, *former)]
    keys = {target: _keys(target, folders) for target in wanted}
    known = _known(member_pk, {key for found in keys.values() for key in found})
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


def _known(member_pk: str | None, keys: set[str]) -> dict[str, Note]:
    """Notes by path key: of a private note's own space before the team's, and where one stands before a move."""
    reach = Q(member__isnull=True) | Q(member_id=member_pk) if member_pk else Q(member__isnull=True)
    moved = Redirect.objects.filter(reach, path_key__in=keys).select_related("note__member", "note__current")
    found: dict[str, Note] = {}
    for redirect in sorted(moved, key=lambda one: one.member_id is not None):
        if redirect.note.deleted_at is None and redirect.note.current_id is not None:
            found[redirect.path_key] = redirect.note
    live = Note.objects.present().filter(reach, path_key__in=keys).select_related("member", "current")
    found.update({one.path_key: one for one in sorted(live, key=lambda one: one.member_id is not None)})
    return found
