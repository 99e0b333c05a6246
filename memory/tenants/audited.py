"""What the entries of an audit are about, by name: which note, whose key. A fixed number of queries for any list."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from django.utils.translation import gettext

from memory.ids import kind_of
from memory.tenants.models import AuditEntry, Tenant
from memory.tenants.names import Names

_ID: Final = re.compile(r"[a-z]{3}_[0-9a-z_.-]{2,96}")


def named(tenant: Tenant, entries: Iterable[AuditEntry], names: Names) -> dict[str, str]:
    """Each id that the entries name with what pages call it. What stands in members' own spaces is named to nobody."""
    wanted: dict[str, set[str]] = {}
    for public_id in _ids(entries):
        wanted.setdefault(kind_of(public_id) or "", set()).add(public_id)
    found: dict[str, str] = {}
    if asked := wanted.get("note"):
        notes = tenant.notes.filter(public_id__in=asked, member__isnull=True)
        found |= dict(notes.values_list("public_id", "path"))
    if asked := wanted.get("proposal"):
        proposals = tenant.proposals.filter(public_id__in=asked, note__member__isnull=True)
        for public_id, path in proposals.values_list("public_id", "note__path"):
            found[public_id] = gettext("proposal for %(path)s") % {"path": path}
    if asked := wanted.get("member"):
        members = tenant.members.filter(public_id__in=asked).values_list("public_id", "handle")
        found |= {public_id: names.of(handle) for public_id, handle in members}
    if asked := wanted.get("key"):
        found |= dict(tenant.keys.filter(public_id__in=asked).values_list("public_id", "name"))
    return found


def _ids(entries: Iterable[AuditEntry]) -> Iterator[str]:
    for entry in entries:
        yield from filter(_ID.fullmatch, (entry.target, entry.before, entry.after))
