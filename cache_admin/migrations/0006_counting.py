"""A batch counts and sees paths in a few rows, hits of an entry last, and the nearest question is one round trip."""

from importlib import import_module

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import memory.ids
from memory.tenants.rls import function, owned

_BEFORE = import_module("cache_admin.migrations.0005_speed").ANALYSES
_REPLACE = ("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)

# One row for all that went the same way, and one for all the paths: a thousand of each took four fifths of the time.
ANALYSES = r"""
CREATE OR REPLACE FUNCTION cache_analyses(owner uuid, who uuid, place uuid, h text[], t text[], v text[], p text[], f text[])
RETURNS TABLE (i int, about text)
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, public
SET plan_cache_mode = 'force_generic_plan' SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET jit = off AS $$
#variable_conflict use_column
DECLARE
  found record;
  ids uuid[] := '{}';
  at_paths text[] := '{}';
  hits boolean[] := array_fill(false, ARRAY[cardinality(h)]);
  sizes int[] := array_fill(0, ARRAY[cardinality(h)]);
  times int[] := array_fill(0, ARRAY[cardinality(h)]);
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
    hits[found.i] := true;
    sizes[found.i] := found.tokens;
    times[found.i] := found.ms;
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
    INSERT INTO cache_admin_pathsseen (id, tenant_id, project, analyses, paths, at)
      VALUES (gen_random_uuid(), owner, place, ids, at_paths, now());
    INSERT INTO tenants_due (id, tenant_id, task, argument, due_at, attempts, owner)
      VALUES (gen_random_uuid(), owner, 'cache_paths', '', now() + interval '5 seconds', 0, '')
      ON CONFLICT (tenant_id, task, argument) DO NOTHING;
  END IF;
  INSERT INTO cache_admin_lookup (id, tenant_id, at, tool, kind, status, reason, times, would_hit, tokens_stored, tokens_returned,
      saved_ms, hash_us, lookup_us, embed_us, member)
    SELECT gen_random_uuid(), owner, now(), g.t, 'analysis', CASE WHEN g.hit THEN 'hit' ELSE 'miss' END,
      CASE WHEN g.hit THEN '' ELSE 'no_entry' END, count(*), g.hit, least(2147483647, sum(g.size)), least(2147483647, sum(g.size)),
      least(2147483647, sum(g.ms)), 0, greatest(1, cache_us() / cardinality(h)), 0, who
    FROM unnest(t, hits, sizes, times) AS g(t, hit, size, ms) GROUP BY g.t, g.hit;
END $$;
"""

# Prepared once, in one round trip: parsing and planning took as long as the search itself. An index over all teams'
# vectors finds too few of a small space, so whoever asks says whether the space is worth it.
NEAREST = r"""
CREATE FUNCTION cache_nearest(place bytea, v vector, most int, is_large boolean)
RETURNS TABLE (said text, entry uuid, score float8)
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, public
SET plan_cache_mode = 'force_generic_plan' SET jit = off SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
  IF is_large THEN
    -- Plain HNSW gives up after its first 40 and filters them: under a filter it found 1 to 4 of 10.
    PERFORM set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.ef_search', '100', true),
      set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true);
    -- First the near ones, then whether they still hold: asked the other way round, all entries were read. Of the
    -- near ones the scores are counted again at full precision.
    RETURN QUERY WITH near AS MATERIALIZED (SELECT q.asked, q.entry_id, q.embedding FROM cache_admin_question q
        WHERE q.space = place AND vector_dims(q.embedding) = 384
        ORDER BY (q.embedding::halfvec(384)) <=> v::halfvec(384) LIMIT most)
      SELECT n.asked, n.entry_id, 1 - (n.embedding <=> v) FROM near n, LATERAL
        (SELECT e.expires_at FROM cache_admin_entry e WHERE e.id = n.entry_id OFFSET 0) AS e
      WHERE e.expires_at IS NULL OR e.expires_at > now();
  ELSE
    RETURN QUERY WITH near AS MATERIALIZED (SELECT q.asked, q.entry_id, q.embedding <=> v AS far FROM cache_admin_question q
        WHERE q.space = place AND vector_dims(q.embedding) = vector_dims(v) ORDER BY far LIMIT most)
      SELECT n.asked, n.entry_id, 1 - n.far FROM near n, LATERAL
        (SELECT e.expires_at FROM cache_admin_entry e WHERE e.id = n.entry_id OFFSET 0) AS e
      WHERE e.expires_at IS NULL OR e.expires_at > now();
  END IF;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("cache_admin", "0005_speed"), ("tenants", "0004_limits_isolation")]

    operations = [
        migrations.AddField("cachesetting", "currency", models.CharField(db_default="USD", default="USD", max_length=3)),
        migrations.AddField("entry", "hits", models.BigIntegerField(db_default=0, default=0)),
        migrations.AddField("lookup", "times", models.IntegerField(db_default=1, default=1)),
        migrations.CreateModel(
            name="PathsSeen",
            fields=[
                ("id", models.UUIDField(default=memory.ids.new_key, editable=False, primary_key=True, serialize=False)),
                ("project", models.UUIDField(null=True)),
                ("analyses", django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), size=None)),
                ("paths", django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
                ("at", models.DateTimeField()),
                ("tenant", models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant")),
            ],
            options={"abstract": False},
        ),
        *owned("cache_admin_pathsseen"),
        migrations.RunSQL(ANALYSES, _BEFORE.replace(*_REPLACE)),
        function(NEAREST, drop="cache_nearest(bytea, vector, int, boolean)"),
    ]
