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
from cache_admin.models import Analysis, ProjectLimit
from memory import redact, tokens
from memory.tenants import due
from memory.tenants.access import Actor
from memory.tenants.models import Tenant

MOST: Final = 1_000
CLEAN_AFTER: Final = timedelta(hours=1)

# OFFSET 0 keeps the planner from turning the loop around: each content is looked up by its index.
_FIND: Final = """
SELECT g.i, a.id, a.public_id, a.content::text, a.made_by::text, a.created_at, a.tokens,
  coalesce(a.duration_ms, 0), a.bound_path <> ''
FROM jsonb_to_recordset(%s::jsonb) AS g(i int, h varchar, t varchar, v varchar, p varchar, f varchar)
CROSS JOIN LATERAL (SELECT * FROM cache_admin_analysis k WHERE k.content_hash = g.h AND k.analysis_type = g.t
  AND k.version = g.v AND k.parameters = g.p AND k.bound_path IN ('', g.f) OFFSET 0) AS a
WHERE (NOT a.is_limited AND NOT EXISTS (SELECT FROM cache_admin_projectlimit l WHERE l.project_id = a.project_id))
   OR EXISTS (SELECT FROM cache_admin_projectlimit l WHERE l.project_id = a.project_id AND l.member_id = %s::uuid)
"""
_USED: Final = """
UPDATE cache_admin_analysis SET last_used_at = now()
WHERE id IN (SELECT id FROM cache_admin_analysis
  WHERE id = ANY (%s::uuid[]) AND last_used_at < now() - interval '1 hour' ORDER BY id FOR UPDATE SKIP LOCKED)
"""
_SEEN: Final = """
INSERT INTO cache_admin_analysispath (id, tenant_id, analysis_id, project_id, path, uses, last_at)
SELECT gen_random_uuid(), %s::uuid, g.a, %s::uuid, g.f, count(*), now()
FROM jsonb_to_recordset(%s::jsonb) AS g(a uuid, f text)
GROUP BY g.a, g.f ORDER BY g.a, g.f
ON CONFLICT (analysis_id, path) DO UPDATE SET uses = cache_admin_analysispath.uses + excluded.uses, last_at = now()
"""
_COUNT: Final = """
INSERT INTO cache_admin_lookup (id, tenant_id, at, tool, kind, status, reason, would_hit, tokens_stored,
  tokens_returned, saved_ms, hash_us, lookup_us, embed_us, member)
SELECT gen_random_uuid(), %s::uuid, now(), g.t, 'analysis', g.s, g.r, g.s = 'hit', g.k, g.k, g.ms, 0, 0, 0, %s::uuid
FROM jsonb_to_recordset(%s::jsonb) AS g(t text, s text, r text, k int, ms int)
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


def look(tenant: Tenant, wanted: Sequence[Wanted], *, by: Actor, project_pk: str | None) -> list[dict[str, Any]]:
    """One answer for each, in order; what is found counts as used, so its 30 days begin again."""
    found = _found(wanted, by)
    _mark_used(tenant, wanted, found, project_pk)
    _count(tenant, wanted, found, by)
    return [_answer(one, found.get(place)) for place, one in enumerate(wanted)]


def _found(wanted: Sequence[Wanted], by: Actor) -> dict[int, tuple[Any, ...]]:
    asked = [
        {
            "i": place,
            "h": one.content_hash,
            "t": one.analysis_type,
            "v": one.version,
            "p": one.parameters,
            "f": one.path,
        }
        for place, one in enumerate(wanted)
    ]
    with connection.cursor() as cursor:
        # Before the first ANALYZE the planner reads the whole table for a batch.
        cursor.execute(
            "SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off"
        )
        cursor.execute(_FIND, [orjson.dumps(asked).decode(), by.member_pk])
        found: dict[int, tuple[Any, ...]] = {}
        for row in cursor.fetchall():
            # One that speaks of this very path is closer than one that speaks of none.
            if row[0] not in found or row[8]:
                found[row[0]] = row[1:]
        return found


def _mark_used(
    tenant: Tenant, wanted: Sequence[Wanted], found: Mapping[int, tuple[Any, ...]], project_pk: str | None
) -> None:
    if not found:
        return
    seen = [{"a": str(row[0]), "f": wanted[place].path} for place, row in found.items() if wanted[place].path]
    with connection.cursor() as cursor:
        cursor.execute(_USED, [[str(row[0]) for row in found.values()]])
        if seen:
            cursor.execute(_SEEN, [str(tenant.pk), project_pk, orjson.dumps(seen).decode()])


def _count(tenant: Tenant, wanted: Sequence[Wanted], found: Mapping[int, tuple[Any, ...]], by: Actor) -> None:
    rows = [
        {
            "t": one.analysis_type,
            "s": "hit" if place in found else "miss",
            "r": "" if place in found else "no_entry",
            "k": found[place][5] if place in found else 0,
            "ms": found[place][6] if place in found else 0,
        }
        for place, one in enumerate(wanted)
    ]
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [str(tenant.pk), by.member_pk, orjson.dumps(rows).decode()])


def _answer(wanted: Wanted, row: tuple[Any, ...] | None) -> dict[str, Any]:
    about = {
        "content_hash": wanted.content_hash,
        "analysis_type": wanted.analysis_type,
        "version": wanted.version,
    }
    if row is None:
        return {"status": "miss", "reason": "no_entry", **about}
    return {
        "status": "hit",
        **about,
        "analysis_id": row[1],
        "analysis": orjson.Fragment(row[2].encode()),
        "made_by": orjson.Fragment(row[3].encode()),
        "stored_at": row[4],
    }


def keep(tenant: Tenant, made: Made, *, by: Actor, project_pk: str | None) -> Kept:
    """Store an analysis; first write wins. Errors, emptiness and secrets are not kept."""
    why = outcomes.unfit(made.content)
    text = orjson.dumps(made.content).decode()
    if why or redact.has_secret(text):
        return Kept(why or "secret")
    bound = made.wanted.path if speaks_of(text, made.wanted.path) else ""
    limited = project_pk is not None and ProjectLimit.objects.filter(tenant=tenant, project_id=project_pk).exists()
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
    if made.wanted.path:
        seen = orjson.dumps([{"a": str(stored.pk), "f": made.wanted.path}]).decode()
        with connection.cursor() as cursor:
            cursor.execute(_SEEN, [str(tenant.pk), project_pk, seen])
    due.put(str(tenant.pk), "cache_clean", at=timezone.now() + CLEAN_AFTER)
    return Kept("stored" if is_new else "exists", stored.public_id, bool(bound))


def _insert(row: Analysis) -> tuple[Analysis, bool]:
    """The row, or the one that was there first; one made openly of the same content opens it to all."""
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
    made = Analysis.objects.bulk_create([row], ignore_conflicts=True)[0]
    stored = same.first() or made
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
