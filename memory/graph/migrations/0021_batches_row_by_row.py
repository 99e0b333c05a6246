"""A batch of triggers by single looks into single indexes, whatever the planner knows.

Plans that were made before the first ANALYZE joined all of a team's threads and triggers: a batch of 100 took 800 ms in
a new team's first minute, and takes 20 now.
"""

from importlib import import_module

from django.db import migrations

from memory.tenants.rls import function

before = import_module("memory.graph.migrations.0006_chain_doors")
STEADY = before.STEADY

STORE_PLAIN = rf"""
CREATE OR REPLACE FUNCTION store_plain(owner uuid, by_key text, items jsonb, contents bytea[])
RETURNS TABLE (i int, outcome text, public_id text)
LANGUAGE plpgsql VOLATILE SECURITY INVOKER {STEADY} AS $$
#variable_conflict use_column
DECLARE
  asked record;
  passed record;
  found_thread uuid;
  place bigint;
  keys text[];
  homes uuid[];
  lasts bigint[];
  olds uuid[];
  fresh uuid[];
  outcomes text[];
  names text[];
  touched int[];
  counts bigint[];
  seqs bigint[];
  firsts bigint[];
BEGIN
  -- Row by row, and not by a join: whatever the planner knows of the tables, each of these is one look into one index.
  FOR asked IN
    SELECT DISTINCT ON (g.key) g.key, g.thread FROM (
      SELECT e.thread ->> 'key' AS key, e.thread, e.n FROM ROWS FROM (jsonb_to_recordset(items) AS (thread jsonb)) WITH ORDINALITY AS e(thread, n)) g
    ORDER BY g.key, g.n
  LOOP
    SELECT k.id INTO found_thread FROM graph_thread k WHERE k.key = asked.key AND k.tenant_id = owner;
    keys := keys || asked.key;
    homes := homes || found_thread;
  END LOOP;
  -- A repeat opens no thread, so they are looked for first where one is to be opened.
  IF array_position(homes, NULL) IS NOT NULL THEN
    SELECT array_agg((SELECT o.id FROM graph_trigger o
        WHERE o.external_id = g.external AND o.source = g.source AND o.tenant_id = owner) ORDER BY g.n) INTO olds
      FROM ROWS FROM (jsonb_to_recordset(items) AS (source text, external text)) WITH ORDINALITY AS g(source, external, n);
  END IF;
  -- Threads are made in the order of their keys.
  FOR place IN 1 .. cardinality(keys) LOOP
    CONTINUE WHEN homes[place] IS NOT NULL;
    SELECT e.value -> 'thread' AS thread INTO asked FROM jsonb_array_elements(items) WITH ORDINALITY AS e(value, n)
      WHERE olds[e.n] IS NULL AND e.value -> 'thread' ->> 'key' = keys[place] ORDER BY e.n LIMIT 1;
    CONTINUE WHEN NOT FOUND;
    SELECT o.pk INTO found_thread FROM open_thread(owner, asked.thread) o;
    homes[place] := found_thread;
  END LOOP;
  -- They are locked in the order of their ids: of two batches that cross, one waits for the other.
  FOR asked IN SELECT h.id FROM unnest(homes) AS h(id) WHERE h.id IS NOT NULL ORDER BY h.id LOOP
    PERFORM 1 FROM graph_thread t WHERE t.id = asked.id FOR NO KEY UPDATE;
  END LOOP;
  FOR place IN 1 .. cardinality(keys) LOOP
    SELECT t.last_seq INTO asked FROM graph_thread t WHERE t.id = homes[place];
    lasts := lasts || asked.last_seq;
  END LOOP;
  -- Again, under the locks: another batch may have brought them meanwhile.
  SELECT array_agg((SELECT o.id FROM graph_trigger o
      WHERE o.external_id = g.external AND o.source = g.source AND o.tenant_id = owner) ORDER BY g.n) INTO olds
    FROM ROWS FROM (jsonb_to_recordset(items) AS (source text, external text)) WITH ORDINALITY AS g(source, external, n);
  INSERT INTO graph_body (tenant_id, sha256, stored_on, size, codec, content)
    SELECT owner, decode(g.sha, 'hex'), date_trunc('month', now())::date, g.size, g.codec, contents[g.n]
    FROM ROWS FROM (jsonb_to_recordset(items) AS (spill boolean, sha text, size bigint, codec text)) WITH ORDINALITY
      AS g(spill, sha, size, codec, n)
    WHERE g.spill ORDER BY g.sha ON CONFLICT DO NOTHING;
  WITH looked AS MATERIALIZED (
    SELECT g.n, g.pk, g.id, g.fp, olds[g.n] AS old_pk, array_position(keys, g.thread ->> 'key') AS home,
      first_value(g.n) OVER (PARTITION BY g.source, coalesce(g.external, g.id), g.external IS NULL ORDER BY g.n) AS first
    FROM ROWS FROM (jsonb_to_recordset(items) AS (pk uuid, id text, source text, external text, fp text, thread jsonb)) WITH ORDINALITY
      AS g(pk, id, source, external, fp, thread, n)
  ), fresh AS MATERIALIZED (
    SELECT l.n, l.pk, l.id, l.fp, l.home, lasts[l.home] + row_number() OVER (PARTITION BY l.home ORDER BY l.n) AS seq
    FROM looked l WHERE l.old_pk IS NULL AND l.first = l.n
  ), wide AS MATERIALIZED (
    SELECT f.*, e.* FROM fresh f, jsonb_to_record(items -> (f.n - 1)::int) AS e(source text, external text, at timestamptz, summary text,
        step text, spill boolean, media text, size bigint, sha text, redactions int, sanitized int)
  ), stored AS (
    INSERT INTO graph_trigger (id, tenant_id, public_id, thread_id, seq, source, external_id, fingerprint, occurred_at,
        received_at, summary, by)
      SELECT f.pk, owner, f.id, homes[f.home], f.seq, f.source, f.external, decode(f.fp, 'hex'), f.at, clock_timestamp(), f.summary, by_key
      FROM wide f
  ), parts AS (
    INSERT INTO graph_part (trigger_id, name, tenant_id, media_type, size, sha256, redactions, sanitized, content, stored_at)
      SELECT f.pk, 'payload', owner, f.media, f.size, decode(f.sha, 'hex'), f.redactions, f.sanitized,
        CASE WHEN f.spill THEN NULL ELSE contents[f.n] END, now()
      FROM wide f WHERE f.sha IS NOT NULL
  ), steps AS (
    INSERT INTO graph_step (thread_id, seq, tenant_id, public_id, kind, trigger_public_id, worker_public_id, other_public_id, summary, at)
      SELECT homes[f.home], f.seq, owner, f.step, 'trigger', f.id, '', '', f.summary, clock_timestamp() FROM wide f
  ), totals AS MATERIALIZED (
    SELECT f.home, count(*) AS many, max(f.seq) AS seq, min(f.n) AS first FROM fresh f GROUP BY f.home
  )
  SELECT array_agg(CASE
        WHEN l.old_pk IS NULL THEN CASE WHEN l.first = l.n THEN 'new' WHEN f.fp = l.fp THEN 'repeat' ELSE 'conflict' END
        WHEN o.deleted_at IS NOT NULL THEN 'deleted'
        WHEN o.fingerprint <> decode(l.fp, 'hex') THEN 'conflict' ELSE 'repeat' END ORDER BY l.n),
      array_agg(coalesce(o.public_id, f.id)::text ORDER BY l.n),
      (SELECT array_agg(f.pk ORDER BY f.n) FROM fresh f), (SELECT array_agg(t.home ORDER BY t.home) FROM totals t),
      (SELECT array_agg(t.many ORDER BY t.home) FROM totals t), (SELECT array_agg(t.seq ORDER BY t.home) FROM totals t),
      (SELECT array_agg(t.first ORDER BY t.home) FROM totals t)
    INTO outcomes, names, fresh, touched, counts, seqs, firsts
    FROM looked l LEFT JOIN fresh f ON f.n = l.first
    LEFT JOIN LATERAL (SELECT k.deleted_at, k.fingerprint, k.public_id FROM graph_trigger k WHERE k.id = l.old_pk OFFSET 0) o
      ON l.old_pk IS NOT NULL;
  FOR place IN 1 .. coalesce(cardinality(touched), 0) LOOP
    UPDATE graph_thread h SET last_seq = seqs[place], trigger_count = h.trigger_count + counts[place], last_at = clock_timestamp(),
        active_at = CASE WHEN h.active_at < now() - interval '10 seconds' THEN clock_timestamp() ELSE h.active_at END,
        title = CASE WHEN h.title = '' THEN coalesce(items -> (firsts[place] - 1)::int -> 'thread' ->> 'title', '') ELSE h.title END
      WHERE h.id = homes[touched[place]];
  END LOOP;
  FOR passed IN SELECT DISTINCT o.worker_id FROM unnest(touched) AS t(home), graph_owner o
      WHERE o.thread_id = homes[t.home] AND o.pass_through ORDER BY o.worker_id LOOP
    SELECT w.last_inbox_seq INTO place FROM graph_worker w WHERE w.id = passed.worker_id AND w.deleted_at IS NULL FOR NO KEY UPDATE;
    CONTINUE WHEN NOT FOUND;
    INSERT INTO graph_inboxentry (worker_id, seq, tenant_id, trigger_id, at)
      SELECT passed.worker_id, place + row_number() OVER (ORDER BY u.n), owner, u.pk, clock_timestamp()
      FROM unnest(fresh) WITH ORDINALITY AS u(pk, n) JOIN graph_trigger g ON g.id = u.pk
      JOIN graph_owner o ON o.thread_id = g.thread_id AND o.worker_id = passed.worker_id AND o.pass_through;
    UPDATE graph_worker w SET last_inbox_seq = (SELECT max(b.seq) FROM graph_inboxentry b WHERE b.worker_id = w.id)
      WHERE w.id = passed.worker_id;
  END LOOP;
  RETURN QUERY SELECT (a.n - 1)::int, a.outcome, a.name FROM ROWS FROM (unnest(outcomes), unnest(names)) WITH ORDINALITY AS a(outcome, name, n);
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("graph", "0020_retention")]

    operations = [
        migrations.RunSQL(
            function(STORE_PLAIN, drop="store_plain(uuid, text, jsonb, bytea[])").sql,
            before.STORE_PLAIN.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"),
        ),
    ]
