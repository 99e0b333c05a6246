"""Make stored answers unreachable: by path and digest, tool, project, content, key, writer, or all by a new salt.

None of it is what correctness rests on: the digest in the key is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext

from cache_admin import normalize
from cache_admin.models import Analysis, CacheSetting, Entry, Flight
from memory.problems import Problem
from memory.tenants import audit
from memory.tenants.access import Actor, require
from memory.tenants.models import AgentKey, Member, Tenant

MOST_PATHS: Final = 1_000


@dataclass(frozen=True)
class Doomed:
    """What is to go. Of several, each is dropped on its own."""

    paths: Sequence[tuple[str, str]] = ()
    root: str = ""
    project_pk: str | None = None
    tool: str = ""
    content_hash: str = ""
    key: str = ""
    writer: str = ""
    whole_project: bool = False
    everything: bool = False


def invalidate(tenant: Tenant, doomed: Doomed, *, by: Actor) -> int:
    """Drop what is named; gives how many entries and analyses went. Raises Refused, Problem 404 for no such writer."""
    # One agent's edit is every agent's business; another member's whole work is not.
    require(by, "cache.manage" if doomed.writer or doomed.everything else "cache.use")
    gone = sum(_drop(tenant, rows) for rows in _entries(tenant, doomed))
    _ground(tenant, doomed)
    if doomed.content_hash:
        gone += (
            Analysis.objects.filter(tenant=tenant, content_hash=doomed.content_hash)
            .delete()[1]
            .get("cache_admin.Analysis", 0)
        )
    if doomed.writer:
        gone += _analyses_of(tenant, doomed.writer).delete()[1].get("cache_admin.Analysis", 0)
    if doomed.everything:
        gone += _new_salt(tenant)
    audit.record(by, "cache.invalidate", _said(doomed), after=str(gone))
    return gone


def would_go(tenant: Tenant, doomed: Doomed, *, by: Actor) -> tuple[int, int]:
    """How many entries and analyses `invalidate` would drop now; nothing is dropped. Raises Refused, Problem 404."""
    require(by, "cache.manage")
    chosen = [Entry.objects.filter(tenant=tenant)] if doomed.everything else _entries(tenant, doomed)
    analyses = Analysis.objects.none()
    if doomed.content_hash:
        analyses = Analysis.objects.filter(tenant=tenant, content_hash=doomed.content_hash)
    elif doomed.writer:
        analyses = _analyses_of(tenant, doomed.writer)
    return sum(rows.count() for rows in chosen), analyses.count()


def _entries(tenant: Tenant, doomed: Doomed) -> "list[QuerySet[Entry]]":
    rows = Entry.objects.filter(tenant=tenant)
    chosen = [_at_path(rows, path, digest, doomed) for path, digest in doomed.paths]
    if doomed.tool:
        chosen.append(rows.filter(tool=doomed.tool))
    if doomed.whole_project and doomed.project_pk:
        chosen.append(rows.filter(project_id=doomed.project_pk))
    if doomed.content_hash:
        chosen.append(rows.filter(content_hash=doomed.content_hash))
    if doomed.key:
        chosen.append(rows.filter(key=bytes.fromhex(doomed.key)))
    if doomed.writer:
        chosen.append(rows.filter(_written_by(tenant, doomed.writer)))
    return chosen


def _at_path(rows: "QuerySet[Entry]", path: str, digest: str, doomed: Doomed) -> "QuerySet[Entry]":
    """Entries at a path, but those made of its new content."""
    found = rows.filter(paths__path=normalize.place(normalize.path(path, root=doomed.root)))
    if doomed.project_pk:
        found = found.filter(Q(project_id=doomed.project_pk) | Q(project__isnull=True))
    return found.exclude(content_hash=digest) if digest else found


def _written_by(tenant: Tenant, writer: str) -> Q:
    member = Member.objects.filter(tenant=tenant, public_id=writer).first()
    if member is not None:
        return Q(writer=member)
    key = AgentKey.objects.filter(tenant=tenant, public_id=writer).first()
    if key is not None:
        return Q(writer_key=key)
    raise Problem(
        404, "not_found", gettext("Unknown writer. Give a member's id (mem_…) or a key's (key_…)."), id=writer[:200]
    )


def _analyses_of(tenant: Tenant, writer: str) -> "QuerySet[Analysis]":
    return Analysis.objects.filter(_written_by(tenant, writer), tenant=tenant)


def _drop(tenant: Tenant, rows: "QuerySet[Entry]") -> int:
    pks = list(rows.values_list("pk", flat=True))
    return Entry.objects.filter(tenant=tenant, pk__in=pks).delete()[1].get("cache_admin.Entry", 0)


def _ground(tenant: Tenant, doomed: Doomed) -> None:
    """Calls on their way must not land what they read before."""
    flights = Flight.objects.filter(tenant=tenant)
    for path, digest in doomed.paths:
        at_path = flights.filter(inputs__paths__contains=[normalize.place(normalize.path(path, root=doomed.root))])
        (at_path.exclude(inputs__content_hash=digest) if digest else at_path).delete()
    if doomed.tool:
        flights.filter(inputs__tool=doomed.tool).delete()
    if doomed.whole_project and doomed.project_pk:
        flights.filter(inputs__project=doomed.project_pk).delete()
    if doomed.content_hash:
        flights.filter(inputs__content_hash=doomed.content_hash).delete()
    if doomed.key:
        flights.filter(key=bytes.fromhex(doomed.key)).delete()
    if doomed.writer:
        flights.filter(member__public_id=doomed.writer).delete()


def _new_salt(tenant: Tenant) -> int:
    """No key made before can be made again; what is stored goes at once, so that it takes no room."""
    row, is_new = CacheSetting.objects.get_or_create(tenant=tenant, defaults={"salt": 1})
    if not is_new:
        CacheSetting.objects.filter(pk=row.pk).update(salt=F("salt") + 1)
    Flight.objects.filter(tenant=tenant).delete()
    return Entry.objects.filter(tenant=tenant).delete()[1].get("cache_admin.Entry", 0)


def _said(doomed: Doomed) -> str:
    parts = [f"path {path}" for path, _ in doomed.paths[:3]]
    for name in ("tool", "content_hash", "key", "writer"):
        if getattr(doomed, name):
            parts.append(f"{name} {getattr(doomed, name)}")
    parts += ["project"] * doomed.whole_project + ["all"] * doomed.everything
    return ", ".join(parts)[:300]
