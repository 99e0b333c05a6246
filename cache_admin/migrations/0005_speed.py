"""Half the width for questions' vectors, one round trip for a batch of analyses, and no miss for a lease made longer."""

from importlib import import_module

from django.db import migrations

from memory.tenants.rls import function

# At half precision twice as many vectors lie in a page; the scores that are served are of the full ones.
NEAREST = """
DROP INDEX cache_questions_nearest;
CREATE INDEX cache_questions_nearest ON cache_admin_question USING hnsw ((embedding::halfvec(384)) halfvec_cosine_ops)
  WHERE vector_dims(embedding) = 384;
"""
NEAREST_BEFORE = """
DROP INDEX cache_questions_nearest;
CREATE INDEX cache_questions_nearest ON cache_admin_question USING hnsw ((embedding::vector(384)) vector_cosine_ops)
  WHERE vector_dims(embedding) = 384;
"""

# What a batch finds, marks as used, sees at paths and counts, in one round trip: four of them took most of its time.
ANALYSES = r"""
CREATE FUNCTION cache_analyses(owner uuid, who uuid, place uuid, h text[], t text[], v text[], p text[], f text[])
RETURNS TABLE (i int, about text)
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, public
SET plan_cache_mode = 'force_generic_plan' SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET jit = off AS $$
#variable_conflict use_column
DECLARE
  found record;
  ids uuid[] := '{}';
  at_paths text[] := '{}';
  hits int[] := '{}';
  sizes int[] := '{}';
  times int[] := '{}';
  idle uuid[] := '{}';
BEGIN
  FOR found IN
    SELECT g.i, a.* FROM unnest(h, t, v, p, f) WITH ORDINALITY AS g(h, t, v, p, f, i)
    CROSS JOIN LATERAL (
      SELECT k.id, k.tokens, coalesce(k.duration_ms, 0) AS ms, k.last_used_at,
        json_build_object('analysis_id', k.public_id, 'analysis', k.content, 'made_by', k.made_by, 'stored_at', k.created_at)::text AS about
      FROM cache_admin_analysis k
      WHERE k.content_hash = g.h AND k.analysis_type = g.t AND k.version = g.v AND k.parameters = g.p
        AND k.bound_path IN ('', g.f) AND k.tenant_id = owner
        AND ((NOT k.is_limited AND NOT EXISTS (SELECT FROM cache_admin_projectlimit l WHERE l.project_id = k.project_id))
          OR EXISTS (SELECT FROM cache_admin_projectlimit l WHERE l.project_id = k.project_id AND l.member_id = who))
      -- One that speaks of this very path is closer than one that speaks of none.
      ORDER BY k.bound_path DESC LIMIT 1) AS a
  LOOP
    hits := hits || found.i::int;
    sizes := sizes || found.tokens;
    times := times || found.ms;
    IF found.last_used_at < now() - interval '1 hour' THEN idle := idle || found.id; END IF;
    IF f[found.i] <> '' THEN
      ids := ids || found.id;
      at_paths := at_paths || f[found.i];
    END IF;
    i := found.i;
    about := found.about;
    RETURN NEXT;
  END LOOP;
  IF cardinality(idle) > 0 THEN
    UPDATE cache_admin_analysis SET last_used_at = now()
      WHERE id IN (SELECT k.id FROM cache_admin_analysis k WHERE k.id = ANY (idle) ORDER BY k.id FOR UPDATE SKIP LOCKED);
  END IF;
  IF cardinality(ids) > 0 THEN
    INSERT INTO cache_admin_analysispath (id, tenant_id, analysis_id, project_id, path, uses, last_at)
      SELECT gen_random_uuid(), owner, g.a, place, g.f, count(*), now() FROM unnest(ids, at_paths) AS g(a, f)
      GROUP BY g.a, g.f ORDER BY g.a, g.f
      ON CONFLICT (analysis_id, path) DO UPDATE SET uses = cache_admin_analysispath.uses + excluded.uses, last_at = now();
  END IF;
  INSERT INTO cache_admin_lookup (id, tenant_id, at, tool, kind, status, reason, would_hit, tokens_stored, tokens_returned,
      saved_ms, hash_us, lookup_us, embed_us, member)
    SELECT gen_random_uuid(), owner, now(), g.t, 'analysis', CASE WHEN x.i IS NULL THEN 'miss' ELSE 'hit' END,
      CASE WHEN x.i IS NULL THEN 'no_entry' ELSE '' END, x.i IS NOT NULL, coalesce(x.size, 0), coalesce(x.size, 0),
      coalesce(x.ms, 0), 0, 0, 0, who
    FROM unnest(t) WITH ORDINALITY AS g(t, i) LEFT JOIN unnest(hits, sizes, times) AS x(i, size, ms) ON x.i = g.i;
END $$;
"""

_LOOKUP = import_module("cache_admin.migrations.0004_caches_isolation").LOOKUP
# Whoever makes a lease last longer asks nothing: counted as a miss, each long run would spoil the hit rate.
_COUNTED = """  INSERT INTO cache_admin_lookup (id, tenant_id, at, tool, kind, status, reason, would_hit, tokens_stored, tokens_returned, saved_ms,
      hash_us, lookup_us, embed_us, member)
    VALUES ((a ->> 'log')::uuid, login.tenant_id, now(), asked_tool, a ->> 'kind',
      CASE WHEN NOT is_serving"""
_COUNTED_ONCE = _COUNTED.replace("    VALUES (", "    SELECT ")
_END = "(a ->> 'hash_us')::int, cache_us(), 0, login.member_pk);\n  IF NOT is_serving THEN"
_END_ONCE = (
    "(a ->> 'hash_us')::int, cache_us(), 0, login.member_pk\n"
    "    WHERE NOT (taken AND a ->> 'held' <> '' AND flight.was_held);\n  IF NOT is_serving THEN"
)
_RETURNING = "RETURNING f.until INTO flight;"
_RETURNING_ONCE = "RETURNING f.until, coalesce(f.inputs -> 'before', '[]') ? (a ->> 'held') AS was_held INTO flight;"


def _counting_once() -> str:
    text = _LOOKUP.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)
    for old, new in ((_COUNTED, _COUNTED_ONCE), (_END, _END_ONCE), (_RETURNING, _RETURNING_ONCE)):
        if text.count(old) != 1:
            raise AssertionError("the lookup is not the one that this migration changes")
        text = text.replace(old, new)
    return text


class Migration(migrations.Migration):
    dependencies = [("cache_admin", "0004_caches_isolation")]

    operations = [
        migrations.RunSQL(NEAREST, NEAREST_BEFORE),
        function(ANALYSES, drop="cache_analyses(uuid, uuid, uuid, text[], text[], text[], text[], text[])"),
        migrations.RunSQL(_counting_once(), _LOOKUP.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)),
    ]
