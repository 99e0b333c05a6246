"""The graph's SQL, second half: what the hot doors answer, made where the rows are."""

from django.db import migrations

from memory.tenants.rls import function

STEADY = "SET search_path = pg_catalog, public SET plan_cache_mode = 'force_generic_plan' SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off"

# Without a search path of its own, which would keep it from being taken into the statement.
SIZE = r"""
CREATE FUNCTION told_size(bytes bigint) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN bytes = 1 THEN '1 byte' WHEN bytes < 1024 THEN bytes || ' bytes'
    WHEN bytes < 1024 * 1024 THEN round(bytes / 1024.0) || ' KB' ELSE round(bytes / 1048576.0, 1) || ' MB' END
$$;
"""

# Several small plans, of which most are left out, start in two thirds of the time of one large plan: most threads have
# no owner and no link, and to see that costs less than to put together nothing.
THREAD = rf"""
CREATE FUNCTION thread_view(owner uuid, asked text) RETURNS json
LANGUAGE plpgsql STABLE SECURITY INVOKER {STEADY} AS $$
DECLARE
  t record;
  owners json := '[]';
  workers json := '[]';
  links json := '[]';
  is_linked boolean;
BEGIN
  SELECT r.* INTO t FROM graph_thread r WHERE r.public_id = asked AND r.tenant_id = owner AND r.deleted_at IS NULL;
  IF NOT FOUND THEN RETURN NULL; END IF;
  PERFORM FROM graph_owner o WHERE o.thread_id = t.id LIMIT 1;
  IF FOUND THEN
    SELECT coalesce(json_agg(w.public_id ORDER BY o.since, w.public_id), '[]'::json) INTO owners
      FROM graph_owner o JOIN graph_worker w ON w.id = o.worker_id AND w.deleted_at IS NULL WHERE o.thread_id = t.id;
  END IF;
  IF t.worker_count > 0 THEN
    SELECT coalesce(json_agg(n.public_id), '[]'::json) INTO workers FROM (
      SELECT w.public_id FROM graph_worker w WHERE w.thread_id = t.id AND w.deleted_at IS NULL
      ORDER BY w.created_at DESC, w.public_id LIMIT 20) n;
  END IF;
  PERFORM FROM graph_link l WHERE l.from_thread_id = t.id LIMIT 1;
  is_linked := FOUND;
  IF NOT is_linked THEN
    PERFORM FROM graph_link l WHERE l.to_thread_id = t.id LIMIT 1;
    is_linked := FOUND;
  END IF;
  IF is_linked THEN
    SELECT coalesce(json_agg(json_strip_nulls(json_build_object('kind', n.kind, 'direction', n.direction,
        'thread_id', n.public_id, 'key', nullif(n.key, ''), 'made_by', n.made_by, 'because_of', nullif(n.because_of, '')))
        ORDER BY n.made_at, n.id), '[]'::json) INTO links FROM (
      SELECT l.kind, 'to' AS direction, o.public_id, coalesce(o.key, l.to_key) AS key, l.made_by, l.because_of, l.made_at, l.id
        FROM graph_link l LEFT JOIN graph_thread o ON o.id = l.to_thread_id AND o.deleted_at IS NULL
        WHERE l.from_thread_id = t.id AND l.removed_at IS NULL AND (l.to_thread_id IS NULL OR o.id IS NOT NULL)
      UNION ALL
      SELECT l.kind, 'from', o.public_id, o.key, l.made_by, l.because_of, l.made_at, l.id
        FROM graph_link l JOIN graph_thread o ON o.id = l.from_thread_id AND o.deleted_at IS NULL
        WHERE l.to_thread_id = t.id AND l.removed_at IS NULL
      ORDER BY made_at, id LIMIT 50) n;
  END IF;
  RETURN json_build_object(
    'thread_id', t.public_id, 'key', t.key, 'title', t.title, 'state', t.state, 'summary', t.summary,
    'owner_workers', owners, 'workers', workers,
    'counts', json_build_object('triggers', t.trigger_count, 'workers', t.worker_count, 'events', t.last_seq),
    'links', links, 'created_at', t.created_at, 'last_at', t.last_at);
END $$;
"""

TRIGGER = rf"""
CREATE FUNCTION trigger_view(owner uuid, asked uuid) RETURNS json
LANGUAGE plpgsql STABLE SECURITY INVOKER {STEADY} AS $$
BEGIN
  RETURN (SELECT json_build_object(
    'trigger_id', g.public_id, 'source', g.source, 'external_id', g.external_id, 'thread_id', t.public_id,
    'seq', g.seq, 'summary', g.summary, 'occurred_at', g.occurred_at, 'received_at', g.received_at,
    'neighbours', CASE WHEN g.seq = 1 THEN '[]'::json ELSE coalesce((SELECT json_agg(n.line ORDER BY n.seq) FROM (
      SELECT p.seq, p.public_id || ': ' || p.summary AS line FROM graph_trigger p
      WHERE p.thread_id = g.thread_id AND p.seq < g.seq AND p.deleted_at IS NULL ORDER BY p.seq DESC LIMIT 3) n), '[]'::json) END,
    'spilled', coalesce((SELECT json_object_agg(r.name, 'GET /api/v1/triggers/' || g.public_id || '/payload?part=' || r.name
        || ' (' || told_size(r.size) || CASE WHEN r.content IS NULL THEN ', truncated)' ELSE ')' END ORDER BY r.name <> 'payload', r.name)
      FROM graph_part r WHERE r.trigger_id = g.id), '{{}}'::json),
    'owner_workers', coalesce((SELECT json_agg(w.public_id ORDER BY o.since, w.public_id)
      FROM graph_owner o JOIN graph_worker w ON w.id = o.worker_id AND w.deleted_at IS NULL WHERE o.thread_id = t.id), '[]'::json),
    'cited_by', coalesce((SELECT json_agg(n.public_id) FROM (
      SELECT w.public_id FROM graph_citation c JOIN graph_worker w ON w.id = c.worker_id AND w.deleted_at IS NULL
      WHERE c.cited = g.public_id AND c.tenant_id = owner ORDER BY w.created_at, w.public_id LIMIT 50) n), '[]'::json))
  FROM graph_trigger g JOIN graph_thread t ON t.id = g.thread_id WHERE g.id = asked AND g.tenant_id = owner);
END $$;
"""

# For an id that has no row: was there ever one? A registry row outlives even what retention removes.
MISSING = rf"""
CREATE FUNCTION missing_or_gone(owner uuid, asked text, OUT state text, OUT at text)
LANGUAGE plpgsql STABLE SECURITY INVOKER {STEADY} AS $$
BEGIN
  SELECT to_json(k.at) #>> '{{}}' INTO at FROM tenants_knownid k
    WHERE k.tenant_id = owner AND k.public_id = asked AND k.reason = 'deleted';
  state := CASE WHEN at IS NULL THEN 'missing' ELSE 'gone' END;
END $$;
"""

READ_THREAD = """
CREATE FUNCTION read_thread(key_hash bytea, roles text[], opens text[], asked text, OUT state text, OUT body text)
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, public AS $$
DECLARE
  door record;
BEGIN
  door := enter_door(key_hash, roles, opens);
  state := door.state;
  IF state <> 'ok' THEN RETURN; END IF;
  body := thread_view(door.tenant, asked)::text;
  IF body IS NULL THEN
    SELECT m.state, m.at INTO state, body FROM missing_or_gone(door.tenant, asked) m;
  END IF;
END $$;
"""

READ_TRIGGER = """
CREATE FUNCTION read_trigger(key_hash bytea, roles text[], opens text[], asked text, OUT state text, OUT body text)
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, public SET enable_seqscan = off SET jit = off AS $$
DECLARE
  door record;
  found_row record;
BEGIN
  door := enter_door(key_hash, roles, opens);
  state := door.state;
  IF state <> 'ok' THEN RETURN; END IF;
  SELECT r.id, r.deleted_at INTO found_row FROM graph_trigger r WHERE r.public_id = asked AND r.tenant_id = door.tenant;
  IF found_row.id IS NULL OR found_row.deleted_at IS NOT NULL THEN
    SELECT m.state, m.at INTO state, body FROM missing_or_gone(door.tenant, asked) m;
    RETURN;
  END IF;
  body := trigger_view(door.tenant, found_row.id)::text;
END $$;
"""

# Planned once: how many rows a limit leaves is not known to such a plan, and without bitmaps it still reads in order.
STEPS = rf"""
CREATE FUNCTION read_steps(key_hash bytea, roles text[], opens text[], asked text, past bigint, most int,
  OUT state text, OUT tenant uuid, OUT body text, OUT last_seq bigint, OUT many int)
LANGUAGE plpgsql VOLATILE SECURITY INVOKER {STEADY} SET enable_bitmapscan = off AS $$
DECLARE
  door record;
  thread record;
BEGIN
  door := enter_door(key_hash, roles, opens);
  state := door.state;
  tenant := door.tenant;
  IF state <> 'ok' THEN RETURN; END IF;
  SELECT t.id, t.deleted_at INTO thread FROM graph_thread t WHERE t.public_id = asked AND t.tenant_id = door.tenant;
  IF thread.id IS NULL OR thread.deleted_at IS NOT NULL THEN
    SELECT m.state, m.at INTO state, body FROM missing_or_gone(door.tenant, asked) m;
    RETURN;
  END IF;
  -- Put together as text: 50 objects built and stripped of nulls take twice as long. Ids and kinds have nothing
  -- that JSON would escape.
  SELECT coalesce(string_agg(n.line, ',' ORDER BY n.seq) FILTER (WHERE n.place <= most), ''),
      max(n.seq) FILTER (WHERE n.place <= most), count(*)
    INTO body, last_seq, many
    FROM (SELECT s.seq, row_number() OVER (ORDER BY s.seq) AS place,
        '{{"seq":' || s.seq || ',"kind":"' || s.kind || '","id":"' || s.public_id
        || CASE WHEN s.trigger_public_id = '' THEN '' ELSE '","trigger_id":"' || s.trigger_public_id END
        || CASE WHEN s.worker_public_id = '' THEN '' ELSE '","worker_id":"' || s.worker_public_id END
        || CASE WHEN s.other_public_id = '' THEN '' ELSE '","other_id":"' || s.other_public_id END
        || '","summary":' || to_json(s.summary) || ',"at":' || to_json(s.at) || '}}' AS line
      FROM graph_step s WHERE s.thread_id = thread.id AND s.seq > past ORDER BY s.seq LIMIT most + 1) n;
END $$;
"""

POST = r"""
CREATE FUNCTION post_trigger(key_hash bytea, roles text[], opens text[], t jsonb, content bytea,
  OUT state text, OUT body text, OUT tenant uuid)
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, public SET enable_seqscan = off SET jit = off AS $$
DECLARE
  door record;
  stored record;
BEGIN
  door := enter_door(key_hash, roles, opens);
  state := door.state;
  tenant := door.tenant;
  IF state <> 'ok' THEN RETURN; END IF;
  SELECT * INTO stored FROM store_trigger(door.tenant, door.by_key, t, content);
  state := stored.outcome;
  IF state IN ('new', 'repeat') THEN body := trigger_view(door.tenant, stored.pk)::text;
  ELSE body := coalesce(stored.public_id, stored.thread_id); END IF;
END $$;
"""

# A join under row level security finds its index only by plain columns: `->>` is not leakproof, and a condition with it
# is held back behind the policy (seen: all of a team's threads read for each line). So keys are taken out first.
#
# Many triggers whose identity is the source's own and whose threads are named by key: one statement for all of them,
# a fifth of what one by one takes. Threads are made in the order of their keys and locked in the order of their ids:
# of two batches that cross, one waits for the other.
STORE_PLAIN = rf"""
CREATE FUNCTION store_plain(owner uuid, by_key text, items jsonb, contents bytea[])
RETURNS TABLE (i int, outcome text, public_id text)
LANGUAGE plpgsql VOLATILE SECURITY INVOKER {STEADY} AS $$
#variable_conflict use_column
DECLARE
  missing record;
  passed record;
  place bigint;
  fresh uuid[];
  touched uuid[];
  answers jsonb;
BEGIN
  FOR missing IN
    WITH asked AS MATERIALIZED (SELECT g.*, g.thread ->> 'key' AS key
      FROM jsonb_to_recordset(items) AS g(source text, external text, thread jsonb))
    SELECT DISTINCT ON (g.key) g.thread FROM asked g
    LEFT JOIN graph_thread k ON k.key = g.key AND k.tenant_id = owner
    LEFT JOIN graph_trigger o ON o.external_id = g.external AND o.source = g.source AND o.tenant_id = owner
    WHERE k.id IS NULL AND o.id IS NULL ORDER BY g.key
  LOOP
    PERFORM open_thread(owner, missing.thread);
  END LOOP;
  PERFORM 1 FROM graph_thread h WHERE h.id IN (
      WITH asked AS MATERIALIZED (SELECT DISTINCT g.thread ->> 'key' AS key FROM jsonb_to_recordset(items) AS g(thread jsonb))
      SELECT k.id FROM asked g JOIN graph_thread k ON k.key = g.key AND k.tenant_id = owner)
    ORDER BY h.id FOR NO KEY UPDATE;
  INSERT INTO graph_body (tenant_id, sha256, stored_on, size, codec, content)
    SELECT owner, decode(g.sha, 'hex'), date_trunc('month', now())::date, g.size, g.codec, contents[g.n]
    FROM ROWS FROM (jsonb_to_recordset(items) AS (spill boolean, sha text, size bigint, codec text)) WITH ORDINALITY
      AS g(spill, sha, size, codec, n)
    WHERE g.spill ORDER BY g.sha ON CONFLICT DO NOTHING;
  WITH given AS MATERIALIZED (
    SELECT g.*, g.thread ->> 'key' AS key, row_number() OVER (PARTITION BY g.source, coalesce(g.external, g.id), g.external IS NULL ORDER BY g.n) AS nth,
      first_value(g.fp) OVER (PARTITION BY g.source, coalesce(g.external, g.id), g.external IS NULL ORDER BY g.n) AS first_fp,
      first_value(g.id) OVER (PARTITION BY g.source, coalesce(g.external, g.id), g.external IS NULL ORDER BY g.n) AS first_id
    FROM ROWS FROM (jsonb_to_recordset(items) AS (pk uuid, id text, source text, external text, fp text, at timestamptz, summary text,
        step text, thread jsonb, spill boolean, media text, size bigint, sha text, redactions int, sanitized int)) WITH ORDINALITY
      AS g(pk, id, source, external, fp, at, summary, step, thread, spill, media, size, sha, redactions, sanitized, n)
  ), looked AS MATERIALIZED (
    SELECT g.*, o.id AS old_pk, o.public_id AS old_id, o.fingerprint AS old_fp, o.deleted_at AS old_deleted
    FROM given g LEFT JOIN graph_trigger o ON o.external_id = g.external AND o.source = g.source AND o.tenant_id = owner
  ), fresh AS MATERIALIZED (
    SELECT l.*, k.id AS home, k.last_seq + row_number() OVER (PARTITION BY k.id ORDER BY l.n) AS seq
    FROM looked l JOIN graph_thread k ON k.key = l.key AND k.tenant_id = owner
    WHERE l.old_pk IS NULL AND l.nth = 1
  ), stored AS (
    INSERT INTO graph_trigger (id, tenant_id, public_id, thread_id, seq, source, external_id, fingerprint, occurred_at,
        received_at, summary, by)
      SELECT f.pk, owner, f.id, f.home, f.seq, f.source, f.external, decode(f.fp, 'hex'), f.at, clock_timestamp(), f.summary, by_key
      FROM fresh f
  ), parts AS (
    INSERT INTO graph_part (trigger_id, name, tenant_id, media_type, size, sha256, redactions, sanitized, content, stored_at)
      SELECT f.pk, 'payload', owner, f.media, f.size, decode(f.sha, 'hex'), f.redactions, f.sanitized,
        CASE WHEN f.spill THEN NULL ELSE contents[f.n] END, now()
      FROM fresh f WHERE f.sha IS NOT NULL
  ), steps AS (
    INSERT INTO graph_step (thread_id, seq, tenant_id, public_id, kind, trigger_public_id, worker_public_id, other_public_id, summary, at)
      SELECT f.home, f.seq, owner, f.step, 'trigger', f.id, '', '', f.summary, clock_timestamp() FROM fresh f
  ), totals AS (
    SELECT f.home, count(*) AS many, max(f.seq) AS seq, (array_agg(f.thread ->> 'title' ORDER BY f.n))[1] AS title
    FROM fresh f GROUP BY f.home
  ), moved AS (
    UPDATE graph_thread h SET last_seq = t.seq, trigger_count = h.trigger_count + t.many, last_at = clock_timestamp(),
        active_at = CASE WHEN h.active_at < now() - interval '10 seconds' THEN clock_timestamp() ELSE h.active_at END,
        title = CASE WHEN h.title = '' THEN coalesce(t.title, '') ELSE h.title END
      FROM totals t WHERE h.id = t.home
  )
  SELECT (SELECT array_agg(f.pk ORDER BY f.n) FROM fresh f), (SELECT array_agg(t.home) FROM totals t),
    jsonb_agg(jsonb_build_object('i', l.n - 1, 'outcome', CASE
        WHEN l.old_pk IS NULL THEN CASE WHEN l.nth = 1 THEN 'new' WHEN l.first_fp = l.fp THEN 'repeat' ELSE 'conflict' END
        WHEN l.old_deleted IS NOT NULL THEN 'deleted'
        WHEN l.old_fp <> decode(l.fp, 'hex') THEN 'conflict' ELSE 'repeat' END,
      'public_id', coalesce(l.old_id, l.first_id)))
    INTO fresh, touched, answers FROM looked l;
  FOR passed IN SELECT DISTINCT o.worker_id FROM graph_owner o WHERE o.thread_id = ANY (touched) AND o.pass_through ORDER BY o.worker_id LOOP
    SELECT w.last_inbox_seq INTO place FROM graph_worker w WHERE w.id = passed.worker_id AND w.deleted_at IS NULL FOR NO KEY UPDATE;
    CONTINUE WHEN NOT FOUND;
    INSERT INTO graph_inboxentry (worker_id, seq, tenant_id, trigger_id, at)
      SELECT passed.worker_id, place + row_number() OVER (ORDER BY u.n), owner, u.pk, clock_timestamp()
      FROM unnest(fresh) WITH ORDINALITY AS u(pk, n) JOIN graph_trigger g ON g.id = u.pk
      JOIN graph_owner o ON o.thread_id = g.thread_id AND o.worker_id = passed.worker_id AND o.pass_through;
    UPDATE graph_worker w SET last_inbox_seq = (SELECT max(b.seq) FROM graph_inboxentry b WHERE b.worker_id = w.id)
      WHERE w.id = passed.worker_id;
  END LOOP;
  RETURN QUERY SELECT a.i, a.outcome, a.public_id FROM jsonb_to_recordset(answers) AS a(i int, outcome text, public_id text);
END $$;
"""

POST_MANY = r"""
CREATE FUNCTION post_triggers(key_hash bytea, roles text[], opens text[], is_plain boolean, items jsonb, contents bytea[])
RETURNS TABLE (i int, outcome text, public_id text)
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, public SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
  door record;
  stored record;
  one record;
BEGIN
  door := enter_door(key_hash, roles, opens);
  IF door.state <> 'ok' THEN RETURN QUERY SELECT -1, door.state, ''::text; RETURN; END IF;
  IF is_plain THEN
    RETURN QUERY SELECT s.i, s.outcome, s.public_id FROM store_plain(door.tenant, door.by_key, items, contents) s;
    RETURN;
  END IF;
  PERFORM 1 FROM graph_thread h WHERE h.id IN (
      WITH asked AS MATERIALIZED (
        SELECT e -> 'thread' ->> 'id' AS id, e -> 'thread' ->> 'key' AS key FROM jsonb_array_elements(items) e)
      SELECT k.id FROM asked g JOIN graph_thread k ON k.public_id = g.id AND k.tenant_id = door.tenant
      UNION ALL
      SELECT k.id FROM asked g JOIN graph_thread k ON k.key = g.key AND k.tenant_id = door.tenant)
    ORDER BY h.id FOR NO KEY UPDATE;
  FOR one IN SELECT (e.ordinality - 1)::int AS place, e.value FROM jsonb_array_elements(items) WITH ORDINALITY e LOOP
    SELECT * INTO stored FROM store_trigger(door.tenant, door.by_key, one.value, contents[one.place + 1]);
    i := one.place;
    outcome := stored.outcome;
    public_id := coalesce(stored.public_id, stored.thread_id);
    RETURN NEXT;
  END LOOP;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("graph", "0005_chain_record")]

    operations = [
        function(SIZE, drop="told_size(bigint)"),
        function(THREAD, drop="thread_view(uuid, text)"),
        function(TRIGGER, drop="trigger_view(uuid, uuid)"),
        function(MISSING, drop="missing_or_gone(uuid, text)"),
        function(READ_THREAD, drop="read_thread(bytea, text[], text[], text)"),
        function(READ_TRIGGER, drop="read_trigger(bytea, text[], text[], text)"),
        function(STEPS, drop="read_steps(bytea, text[], text[], text, bigint, integer)"),
        function(POST, drop="post_trigger(bytea, text[], text[], jsonb, bytea)"),
        function(STORE_PLAIN, drop="store_plain(uuid, text, jsonb, bytea[])"),
        function(POST_MANY, drop="post_triggers(bytea, text[], text[], boolean, jsonb, bytea[])"),
    ]
