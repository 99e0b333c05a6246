"""Where the ids and the links in a note's text lead."""

import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from django.db.models import Q, QuerySet
from django.urls import reverse

from memory.notes import paths, reading
from memory.notes.markdown import ids_in, paths_in
from memory.notes.models import Redirect
from memory.tenants.access import Actor
from memory.tenants.models import Member, Tenant

LinkFor: TypeAlias = Callable[[str], str | None]
MOST: Final = 300


@dataclass(frozen=True)
class Links:
    """What `markdown.render` asks for: the page of an id, and the page of a note by its path."""

    link_for: LinkFor
    page_for: LinkFor


def of(tenant: Tenant, text: str, *, by: Actor, path: str = "", member: Member | None = None) -> Links:
    """The links of a text that stands at `path`, to what this reader may open. A path that was moved leads on."""
    return Links(_ids(tenant, text, by).get, _pages(tenant, text, by, path, member).get)


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


def _pages(tenant: Tenant, text: str, by: Actor, path: str, member: Member | None) -> dict[str, str]:
    keys = {address: key for address in sorted(paths_in(text))[:MOST] if (key := _key(address, path))}
    if not keys:
        return {}
    spaces = Q(member=None) | Q(member=member) if member else Q(member=None)
    seen = reading.visible(by).filter(spaces)
    # The team's first: a member's own note at the same path takes its place.
    found = sorted(seen.filter(path_key__in=keys.values()), key=lambda note: note.member_id is not None)
    notes = {note.path_key: note for note in found}
    rows = Redirect.objects.filter(spaces, path_key__in=set(keys.values()) - set(notes))
    moved = {row.path_key: row.note_id for row in rows}
    there = {note.pk: note for note in seen.filter(pk__in=moved.values())}
    notes |= {key: there[pk] for key, pk in moved.items() if pk in there}
    return {
        address: reverse("note", args=[tenant.slug, notes[key].public_id]) + _place(address)
        for address, key in keys.items()
        if key in notes
    }


def _place(address: str) -> str:
    _, mark, place = address.partition("#")
    return mark + place


def _key(address: str, path: str) -> str | None:
    """The path that an address means: from the root where it begins with a family, else from the note's folder."""
    said = unquote(address.partition("#")[0]).lstrip("/")
    first = said.partition("/")[0].casefold()
    whole = said if first in paths.FAMILIES else posixpath.join(posixpath.dirname(path), said)
    try:
        return paths.clean_path(posixpath.normpath(whole)).key
    except paths.InvalidPath:
        return None
