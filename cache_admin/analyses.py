"""Analyses of file contents: the content is the key, whoever asks and whatever the path."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Any, Final

import orjson
from django.db import connection
from django.utils import timezone

from cache_admin import outcomes
from cache_admin.models import Analysis
from memory import redact, tokens
from memory.events.models import Project
from memory.tenants import due, trip
from memory.tenants.access import Actor
from memory.tenants.models import Tenant

MOST: Final = 1_000
CLEAN_AFTER: Final = timedelta(hours=1)
_ASKED: Final = ("content_hash", "analysis_type", "version", "parameters", "path")

# How many batches are added up at once.
BATCHES: Final = 100
_SEEN: Final = """
INSERT INTO cache_admin_analysispath (id, tenant_id, analysis_id, project_id, path, uses, last_at)
SELECT gen_random_uuid(), %s::uuid, g.a, %s::uuid, g.f, count(*), now()
FROM jsonb_to_recordset(%s::jsonb) AS g(a uuid, f text)
GROUP BY g.a, g.f ORDER BY g.a, g.f
ON CONFLICT (analysis_id, path) DO UPDATE SET uses = cache_admin_analysispath.uses + excluded.uses, last_at = now()
"""


# What was dropped since it was found, or a project that is gone, has no row to add to.
_FOLDED: Final = """
WITH gone AS (
  DELETE FROM cache_admin_pathsseen WHERE id IN
    (SELECT s.id FROM cache_admin_pathsseen s ORDER BY s.at, s.id LIMIT %s FOR UPDATE SKIP LOCKED)
  RETURNING tenant_id, project, analyses, paths, at),
seen AS (
  SELECT o.tenant_id, g.a, g.f, (array_agg(p.id ORDER BY o.at DESC))[1] AS project, count(*) AS uses, max(o.at) AS at
  FROM gone o CROSS JOIN unnest(o.analyses, o.paths) AS g(a, f) JOIN cache_admin_analysis k ON k.id = g.a
  LEFT JOIN events_project p ON p.id = o.project GROUP BY o.tenant_id, g.a, g.f),
added AS (
  INSERT INTO cache_admin_analysispath (id, tenant_id, analysis_id, project_id, path, uses, last_at)
  SELECT gen_random_uuid(), s.tenant_id, s.a, s.project, s.f, s.uses, s.at FROM seen s ORDER BY s.a, s.f
  ON CONFLICT (analysis_id, path) DO UPDATE SET uses = cache_admin_analysispath.uses + excluded.uses,
    last_at = greatest(cache_admin_analysispath.last_at, excluded.last_at))
SELECT count(*) FROM gone
"""


@dataclass(frozen=True)
class Wanted:
    """An analysis that is asked for."""

    content_hash: str
    analysis_type: str
    version: str
    parameters: str = ""
    path: str = ""


@dataclass(frozen=True)
class Made:
    """An analysis that was made."""

    wanted: Wanted
    content: Any
    made_by: Mapping[str, Any]
    duration_ms: int | None = None


@dataclass(frozen=True)
class Kept:
    """What became of it: `stored`, `exists`, or why it is not kept."""

    outcome: str
    analysis_id: str = ""
    is_bound: bool = False


def look(
    tenant: Tenant, wanted: Sequence[Wanted], *, by: Actor, project_pk: str | None
) -> tuple[list[orjson.Fragment], int]:
    """One answer for each, in order, as JSON, and how many were found.

    What is found counts as used, so its 30 days begin again. Where it was seen is added up by a worker (`add_up`).
    """
    columns = [[getattr(one, name) for one in wanted] for name in _ASKED]
    # One round trip that finds, marks and counts.
    sql = "SELECT i, about FROM cache_analyses(%s::uuid, %s::uuid, %s::uuid, %s, %s, %s, %s, %s)"
    found: dict[int, str] = dict(trip.rows(sql, [str(tenant.pk), by.member_pk, project_pk, *columns]))
    return [_answer(one, found.get(place)) for place, one in enumerate(wanted, 1)], len(found)


def add_up() -> int:
    """Add what batches saw at paths to the paths' own rows; gives how many batches. The tenant must be bound."""
    total = 0
    while True:
        with connection.cursor() as cursor:
            cursor.execute(_FOLDED, [BATCHES])
            done = int(cursor.fetchone()[0])
        total += done
        if done < BATCHES:
            return total


def _answer(wanted: Wanted, found: str | None) -> orjson.Fragment:
    about = {
        "status": "hit" if found else "miss",
        "content_hash": wanted.content_hash,
        "analysis_type": wanted.analysis_type,
        "version": wanted.version,
    }
    if found is None:
        return orjson.Fragment(orjson.dumps({**about, "reason": "no_entry"}))
    # The database's own JSON is spliced in: parsing a thousand analyses to write them out again took half the time.
    return orjson.Fragment(orjson.dumps(about)[:-1] + b"," + found[1:].encode())


def keep(tenant: Tenant, made: Made, *, by: Actor, project_pk: str | None) -> Kept:
    """Store an analysis; first write wins. Errors, emptiness and secrets are not kept."""
    why = outcomes.unfit(made.content)
    text = orjson.dumps(made.content).decode()
    if why or redact.has_secret(text):
        return Kept(why or "secret")
    bound = made.wanted.path if speaks_of(text, made.wanted.path) else ""
    limited = project_pk is not None and Project.objects.filter(pk=project_pk, is_limited=True).exists()
    fit = redact.clean(made.content).value
    row = Analysis(
        tenant=tenant,
        project_id=project_pk,
        is_limited=limited,
        content_hash=made.wanted.content_hash,
        analysis_type=made.wanted.analysis_type,
        version=made.wanted.version,
        parameters=made.wanted.parameters,
        bound_path=bound,
        content=fit,
        made_by=dict(made.made_by),
        tokens=tokens.count(text),
        duration_ms=made.duration_ms,
        writer_id=by.member_pk,
        writer_key_id=by.key_pk,
    )
    stored, is_new = _insert(row)
    if stored is None:
        return Kept("exists")
    if made.wanted.path:
        seen = orjson.dumps([{"a": str(stored.pk), "f": made.wanted.path}]).decode()
        with connection.cursor() as cursor:
            cursor.execute(_SEEN, [str(tenant.pk), project_pk, seen])
    due.put(str(tenant.pk), "cache_clean", at=timezone.now() + CLEAN_AFTER)
    return Kept("stored" if is_new else "exists", stored.public_id, bool(bound))


def _insert(row: Analysis) -> tuple[Analysis | None, bool]:
    """The row, or the one that was there first; one made openly of the same content opens it to all.

    Where that one is of a project that the writer does not see, theirs is kept within its own project, or is None.
    """
    same = Analysis.objects.filter(
        tenant=row.tenant,
        content_hash=row.content_hash,
        analysis_type=row.analysis_type,
        version=row.version,
        parameters=row.parameters,
        bound_path=row.bound_path,
        is_limited=row.is_limited,
    )
    if row.is_limited:
        same = same.filter(project=row.project)
    Analysis.objects.bulk_create([row], ignore_conflicts=True)
    stored = same.first()
    if stored is None and not row.is_limited and row.project_id is not None:
        row.is_limited = True
        return _insert(row)
    if stored is None:
        return None, False
    if stored.pk != row.pk and not row.is_limited and stored.project_id != row.project_id:
        Analysis.objects.filter(pk=stored.pk).update(project_id=row.project_id)
    return stored, str(stored.pk) == str(row.pk)


def speaks_of(text: str, path: str) -> bool:
    """Whether an analysis names the path it was made at: then it is none of another path's."""
    if not path:
        return False
    bare = PurePosixPath(path.replace("\\", "/"))
    names = {path, str(bare), bare.name}
    return any(len(name) > 2 and name in text for name in names)
