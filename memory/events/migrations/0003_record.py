"""The hot door's SQL: a batch of events in one round trip, with a dense `seq` under each session's row lock."""

from django.db import migrations

from memory.tenants.rls import function

# A root that many projects share is no project: without a remote, a session there belongs to none.
IS_SHARED = r"""
CREATE FUNCTION is_shared_root(place text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog AS $$
  SELECT place ~* '^(/|/tmp|/var/tmp|/root|/(home|Users)(/[^/]+)?|[a-z]:/?|[a-z]:/users(/[^/]+)?)$'
$$;
"""

NEW_PROJECT = r"""
CREATE FUNCTION new_project(owner uuid, place text) RETURNS uuid
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, public AS $$
DECLARE
  label text := left(coalesce(nullif(regexp_replace(place, '^.*[/:]', ''), ''), 'project'), 100);
  base text := left(coalesce(nullif(trim(both '-' from regexp_replace(lower(label), '[^a-z0-9]+', '-', 'g')), ''), 'project'), 60);
  free text := base;
  fresh uuid := uuidv7_text();
  number int := 1;
BEGIN
  WHILE EXISTS (SELECT FROM events_project WHERE tenant_id = owner AND slug = free) LOOP
    number := number + 1;
    free := base || '-' || number;
  END LOOP;
  INSERT INTO events_project (id, tenant_id, public_id, slug, name, created_at)
    VALUES (fresh, owner, 'prj_' || typeid_suffix(uuidv7_text()), free, label, now());
  RETURN fresh;
END $$;
"""

# PostgreSQL 18 has uuidv7(); 16 and 17, which a real server may be, do not.
UUIDV7 = r"""
CREATE FUNCTION uuidv7_text() RETURNS uuid
LANGUAGE sql VOLATILE SET search_path = pg_catalog AS $$
  SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
    52, 1), 53, 1), 'hex')::uuid
$$;
"""

# Crockford's base32 of a uuid: 130 bits, the first two of them zero, in 26 letters.
SUFFIX = r"""
CREATE FUNCTION typeid_suffix(id uuid) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS $$
  SELECT string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + substring(bits FROM 1 + 5 * place FOR 5)::bit(5)::int, 1), ''
                    ORDER BY place)
  FROM (SELECT B'00' || ('x' || replace(id::text, '-', ''))::bit(128) AS bits) AS whole, generate_series(0, 25) AS place
$$;
"""

PLACE = r"""
CREATE FUNCTION place_project(owner uuid, remote text, root text) RETURNS uuid
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, public SET enable_seqscan = off AS $$
DECLARE
  found_project uuid;
  own_root text := CASE WHEN root = '' OR is_shared_root(root) THEN '' ELSE root END;
BEGIN
  -- One at a time makes projects: two first events of one repository must not make two.
  PERFORM pg_advisory_xact_lock(hashtextextended('project ' || owner, 0));
  IF remote <> '' THEN
    SELECT r.project_id INTO found_project FROM events_projectroot r
      WHERE r.tenant_id = owner AND r.kind = 'remote' AND r.place = remote;
  END IF;
  IF found_project IS NULL AND root <> '' THEN
    -- A root known before its remote takes the remote over, unless it has another: then it is another code base.
    SELECT r.project_id INTO found_project FROM events_projectroot r
      WHERE r.tenant_id = owner AND r.kind = 'root' AND r.place = root
        AND (remote = '' OR NOT EXISTS (SELECT FROM events_projectroot o
             WHERE o.tenant_id = owner AND o.project_id = r.project_id AND o.kind = 'remote'));
  END IF;
  IF found_project IS NULL AND remote = '' AND root <> '' THEN
    SELECT r.project_id INTO found_project FROM events_projectroot r
      WHERE r.tenant_id = owner AND r.kind = 'root' AND NOT is_shared_root(r.place)
        AND starts_with(root, r.place || '/')
      ORDER BY length(r.place) DESC LIMIT 1;
    -- A folder inside a known one needs no mapping of its own.
    own_root := CASE WHEN found_project IS NULL THEN own_root ELSE '' END;
  END IF;
  IF found_project IS NULL THEN
    IF remote = '' AND own_root = '' THEN RETURN NULL; END IF;
    found_project := new_project(owner, coalesce(nullif(remote, ''), own_root));
  END IF;
  IF remote <> '' THEN
    INSERT INTO events_projectroot (id, tenant_id, project_id, kind, place, first_seen_at)
      VALUES (uuidv7_text(), owner, found_project, 'remote', remote, now()) ON CONFLICT DO NOTHING;
  END IF;
  IF own_root <> '' THEN
    INSERT INTO events_projectroot (id, tenant_id, project_id, kind, place, first_seen_at)
      VALUES (uuidv7_text(), owner, found_project, 'root', own_root, now()) ON CONFLICT DO NOTHING;
  END IF;
  RETURN found_project;
END $$;
"""

# The column is indexed, so each change of it writes all of the session's index entries anew, and a busy session's lookups
# wade through thousands of dead ones (1 ms an event, measured). Ten seconds are exact enough for "when was it last heard".
LATELY = r"""
CREATE FUNCTION lately(before timestamptz) RETURNS timestamptz
LANGUAGE sql STABLE AS $$ SELECT CASE WHEN before < now() - interval '10 seconds' THEN now() ELSE before END $$;
"""
ROOM = "ALTER TABLE events_session SET (fillfactor = 60)"

# Sessions first, in the order of their keys, then their locks in the order of their ids.
OPEN = r"""
CREATE FUNCTION open_sessions(owner uuid, who uuid, given jsonb) RETURNS TABLE (s int, session_pk uuid)
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, public
-- Planning this anew takes 4 ms, running it for one event a tenth; and a plan made while the tables are empty must do later too.
SET plan_cache_mode = 'force_generic_plan' SET enable_seqscan = off SET jit = off AS $$
DECLARE
  missing record;
BEGIN
  FOR missing IN
    SELECT g.* FROM jsonb_to_recordset(given) AS g(s int, pk uuid, id text, client text, key text, remote text, root text, internal boolean)
    LEFT JOIN events_session k ON k.tenant_id = owner AND k.client = g.client AND k.key = g.key
    WHERE k.id IS NULL ORDER BY g.client, g.key
  LOOP
    INSERT INTO events_session (id, tenant_id, public_id, client, key, member_id, is_internal, state, source, cwd, model,
        transcript_path, last_prompt, last_seq, last_stop_seq, generation, first_received_at, last_received_at)
      VALUES (missing.pk, owner, missing.id, missing.client, missing.key, who, missing.internal, 'open', '', '', '',
        '', '', 0, 0, 0, now(), now())
      ON CONFLICT (tenant_id, client, key) DO NOTHING;
  END LOOP;
  RETURN QUERY
    SELECT g.s, k.id FROM jsonb_to_recordset(given) AS g(s int, client text, key text)
    JOIN events_session k ON k.tenant_id = owner AND k.client = g.client AND k.key = g.key
    ORDER BY k.id FOR UPDATE OF k;
END $$;
"""

STORE = r"""
CREATE FUNCTION store_events(owner uuid, who uuid, by_key uuid, sessions jsonb, events jsonb, bodies bytea[])
RETURNS TABLE (i int, outcome text, event_id text, session_id text, seq bigint, event_pk uuid, session_pk uuid)
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, public
-- Planning this anew takes 4 ms, running it for one event a tenth; and a plan made while the tables are empty must do later too.
SET plan_cache_mode = 'force_generic_plan' SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
  opened uuid[];
  place record;
BEGIN
  -- Starting up the batch's plan costs 6 ms, an event by plain statements half of one.
  IF jsonb_array_length(events) <= 20 THEN
    IF jsonb_array_length(sessions) > 1 THEN PERFORM open_sessions(owner, who, sessions); END IF;
    FOR nth IN 0 .. jsonb_array_length(events) - 1 LOOP
      RETURN QUERY SELECT nth, o.outcome, o.event_id, o.session_id, o.seq, o.event_pk, o.session_pk
        FROM store_one(owner, who, by_key, sessions -> (events -> nth ->> 's')::int, events -> nth,
          bodies[(events -> nth ->> 'spill')::int + 1]) o;
    END LOOP;
    RETURN;
  END IF;

  -- s is 0, 1, 2 …: the array turns it into the session.
  SELECT array_agg(o.session_pk ORDER BY o.s) INTO opened FROM open_sessions(owner, who, sessions) o;

  FOR place IN
    SELECT k.id, g.remote, g.root FROM jsonb_to_recordset(sessions) AS g(s int, remote text, root text)
    JOIN events_session k ON k.id = opened[g.s + 1]
    WHERE (k.project_id IS NULL AND g.remote || g.root <> '')
       OR (g.remote <> '' AND NOT EXISTS (SELECT FROM events_projectroot r
             WHERE r.tenant_id = owner AND r.kind = 'remote' AND r.place = g.remote))
    ORDER BY g.s
  LOOP
    UPDATE events_session SET project_id = coalesce(place_project(owner, place.remote, place.root), project_id) WHERE id = place.id;
  END LOOP;

  INSERT INTO graph_body (tenant_id, sha256, stored_on, size, codec, content)
    SELECT DISTINCT ON (e.sha) owner, decode(e.sha, 'hex'), date_trunc('month', now())::date, e.size, 'zlib', bodies[e.spill + 1]
    FROM jsonb_to_recordset(events) AS e(sha text, size bigint, spill int, key text)
    WHERE e.spill IS NOT NULL
      AND NOT EXISTS (SELECT FROM events_event k WHERE k.tenant_id = owner AND k.key = e.key)
    ON CONFLICT DO NOTHING;

  RETURN QUERY
  WITH given AS MATERIALIZED (
    SELECT e.*, opened[e.s + 1] AS session
    FROM jsonb_to_recordset(events) AS e(i int, s int, pk uuid, id text, client text, name text, kind text, key text, is_given boolean,
      at timestamptz, agent text, tool text, use text, summary text, sha text, size bigint, spill int, body text, head text,
      tail text, redactions int, sanitized int, prompt text, source text, model text, cwd text, path text, resumed text,
      renews boolean)
  ), looked AS MATERIALIZED (
    SELECT g.*, row_number() OVER (PARTITION BY g.key ORDER BY g.i) AS nth, first_value(g.sha) OVER (PARTITION BY g.key ORDER BY g.i) AS first_sha,
      o.public_id AS old_id, o.seq AS old_seq, o.id AS old_pk, o.session_id AS old_session, o.sha256 AS old_sha
    FROM given g LEFT JOIN events_event o ON o.tenant_id = owner AND o.key = g.key
  ), fresh AS MATERIALIZED (
    SELECT l.*, k.last_seq + row_number() OVER (PARTITION BY l.session ORDER BY l.i) AS seq, k.public_id AS session_id
    FROM looked l JOIN events_session k ON k.id = l.session
    WHERE l.old_pk IS NULL AND l.nth = 1
  ), stored AS (
    INSERT INTO events_event (id, tenant_id, public_id, session_id, seq, client, name, kind, key, key_is_given, occurred_at,
        received_at, agent_key_id, member_id, agent_id, tool, tool_use_id, summary, sha256, size, body, head, tail,
        redactions, sanitized)
      SELECT f.pk, owner, f.id, f.session, f.seq, f.client, f.name, f.kind, f.key, f.is_given, f.at, now(), by_key, who, f.agent, f.tool,
        f.use, f.summary, decode(f.sha, 'hex'), f.size, f.body, f.head, f.tail, f.redactions, f.sanitized
      FROM fresh f
  ), totals AS (
    SELECT f.session, max(f.seq) AS seq, max(f.seq) FILTER (WHERE f.kind IN ('stop', 'end')) AS stop,
      (array_agg(f.kind ORDER BY f.seq DESC) FILTER (WHERE f.kind NOT IN ('notification', 'subagent_stop', 'other')))[1] AS last_kind,
      (array_agg(f.prompt ORDER BY f.seq DESC) FILTER (WHERE f.prompt <> ''))[1] AS prompt,
      (array_agg(f.source ORDER BY f.seq DESC) FILTER (WHERE f.source <> ''))[1] AS source,
      (array_agg(f.model ORDER BY f.seq DESC) FILTER (WHERE f.model <> ''))[1] AS model,
      (array_agg(f.cwd ORDER BY f.seq) FILTER (WHERE f.cwd <> ''))[1] AS cwd,
      (array_agg(f.path ORDER BY f.seq) FILTER (WHERE f.path <> ''))[1] AS path,
      (array_agg(f.resumed ORDER BY f.seq) FILTER (WHERE f.resumed <> ''))[1] AS resumed,
      count(*) FILTER (WHERE f.renews) AS renewals
    FROM fresh f GROUP BY f.session
  ), moved AS (
    UPDATE events_session k SET last_seq = t.seq, last_received_at = lately(k.last_received_at),
      last_stop_seq = coalesce(t.stop, k.last_stop_seq),
      state = CASE t.last_kind WHEN 'stop' THEN 'stopped' WHEN 'end' THEN 'ended' ELSE CASE WHEN t.last_kind IS NULL THEN k.state ELSE 'open' END END,
      last_prompt = coalesce(t.prompt, k.last_prompt), source = coalesce(t.source, k.source),
      model = coalesce(t.model, k.model), generation = k.generation + t.renewals,
      cwd = CASE WHEN k.cwd = '' THEN coalesce(t.cwd, '') ELSE k.cwd END,
      transcript_path = CASE WHEN k.transcript_path = '' THEN coalesce(t.path, '') ELSE k.transcript_path END,
      resumed_from_id = coalesce(k.resumed_from_id, (SELECT p.id FROM events_session p
        WHERE p.tenant_id = owner AND p.client = k.client AND p.key = t.resumed AND p.id <> k.id))
    FROM totals t WHERE k.id = t.session
  )
  SELECT f.i, 'new'::text, f.id::text, f.session_id::text, f.seq, f.pk, f.session FROM fresh f
  UNION ALL
  SELECT l.i, CASE WHEN l.is_given AND l.old_sha <> decode(l.sha, 'hex') THEN 'conflict' ELSE 'repeat' END, l.old_id::text,
    k.public_id::text, l.old_seq, l.old_pk, l.old_session
  FROM looked l JOIN events_session k ON k.id = l.old_session
  UNION ALL
  SELECT l.i, CASE WHEN l.is_given AND l.first_sha <> l.sha THEN 'conflict' ELSE 'repeat' END, f.id::text, f.session_id::text, f.seq, f.pk, f.session
  FROM looked l JOIN fresh f ON f.key = l.key WHERE l.old_pk IS NULL AND l.nth > 1;
END $$;
"""

# One event by plain statements.
STORE_ONE = r"""
CREATE FUNCTION store_one(owner uuid, who uuid, by_key uuid, s jsonb, e jsonb, large bytea)
RETURNS TABLE (outcome text, event_id text, session_id text, seq bigint, event_pk uuid, session_pk uuid)
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, public SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  given_remote text := s ->> 'remote';
  given_root text := s ->> 'root';
  given_kind text := e ->> 'kind';
  given_key text := e ->> 'key';
  digest bytea := decode(e ->> 'sha', 'hex');
  home record;
  old record;
  place bigint;
BEGIN
  -- What is empty is left out by who sends it.
  e := '{"is_given": false, "agent": "", "tool": "", "use": "", "summary": "", "head": "", "tail": "", "redactions": 0,
    "sanitized": 0, "prompt": "", "source": "", "model": "", "cwd": "", "path": "", "resumed": "", "renews": false}' || e;
  SELECT k.id, k.public_id, k.last_seq, k.project_id INTO home FROM events_session k
    WHERE k.tenant_id = owner AND k.client = s ->> 'client' AND k.key = s ->> 'key' FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM open_sessions(owner, who, jsonb_build_array(s || '{"s": 0}'));
    SELECT k.id, k.public_id, k.last_seq, k.project_id INTO home FROM events_session k
      WHERE k.tenant_id = owner AND k.client = s ->> 'client' AND k.key = s ->> 'key' FOR UPDATE;
  END IF;
  IF (home.project_id IS NULL AND given_remote || given_root <> '') OR (given_remote <> '' AND NOT EXISTS (
      SELECT FROM events_projectroot r WHERE r.tenant_id = owner AND r.kind = 'remote' AND r.place = given_remote)) THEN
    UPDATE events_session SET project_id = coalesce(place_project(owner, given_remote, given_root), project_id) WHERE id = home.id;
  END IF;
  SELECT k.public_id, k.seq, k.id, k.session_id, k.sha256, o.public_id AS session_public INTO old
    FROM events_event k JOIN events_session o ON o.id = k.session_id WHERE k.tenant_id = owner AND k.key = given_key;
  IF FOUND THEN
    RETURN QUERY SELECT CASE WHEN (e -> 'is_given')::boolean AND old.sha256 <> digest THEN 'conflict' ELSE 'repeat' END,
      old.public_id::text, old.session_public::text, old.seq, old.id, old.session_id;
    RETURN;
  END IF;
  IF e ? 'spill' THEN
    INSERT INTO graph_body (tenant_id, sha256, stored_on, size, codec, content)
      VALUES (owner, digest, date_trunc('month', now())::date, (e ->> 'size')::bigint, 'zlib', large) ON CONFLICT DO NOTHING;
  END IF;
  place := home.last_seq + 1;
  INSERT INTO events_event (id, tenant_id, public_id, session_id, seq, client, name, kind, key, key_is_given, occurred_at,
      received_at, agent_key_id, member_id, agent_id, tool, tool_use_id, summary, sha256, size, body, head, tail,
      redactions, sanitized)
    VALUES ((e ->> 'pk')::uuid, owner, e ->> 'id', home.id, place, e ->> 'client', e ->> 'name', given_kind, given_key,
      (e -> 'is_given')::boolean, (e ->> 'at')::timestamptz, now(), by_key, who, e ->> 'agent', e ->> 'tool', e ->> 'use',
      e ->> 'summary', digest, (e ->> 'size')::bigint, e ->> 'body', e ->> 'head', e ->> 'tail',
      (e ->> 'redactions')::int, (e ->> 'sanitized')::int);
  UPDATE events_session k SET last_seq = place, last_received_at = lately(k.last_received_at),
      last_stop_seq = CASE WHEN given_kind IN ('stop', 'end') THEN place ELSE k.last_stop_seq END,
      state = CASE WHEN given_kind = 'stop' THEN 'stopped' WHEN given_kind = 'end' THEN 'ended'
        WHEN given_kind IN ('notification', 'subagent_stop', 'other') THEN k.state ELSE 'open' END,
      last_prompt = coalesce(nullif(e ->> 'prompt', ''), k.last_prompt), source = coalesce(nullif(e ->> 'source', ''), k.source),
      model = coalesce(nullif(e ->> 'model', ''), k.model), generation = k.generation + (e -> 'renews')::boolean::int,
      cwd = CASE WHEN k.cwd = '' THEN e ->> 'cwd' ELSE k.cwd END,
      transcript_path = CASE WHEN k.transcript_path = '' THEN e ->> 'path' ELSE k.transcript_path END,
      resumed_from_id = CASE WHEN k.resumed_from_id IS NOT NULL OR e ->> 'resumed' = '' THEN k.resumed_from_id ELSE
        (SELECT p.id FROM events_session p WHERE p.tenant_id = owner AND p.client = k.client AND p.key = e ->> 'resumed' AND p.id <> k.id) END
    WHERE k.id = home.id;
  RETURN QUERY SELECT 'new'::text, e ->> 'id', home.public_id::text, place, (e ->> 'pk')::uuid, home.id;
END $$;
"""

RECORD = r"""
CREATE FUNCTION record_events(key_hash bytea, roles text[], opens text[], sessions jsonb, events jsonb, bodies bytea[])
RETURNS TABLE (i int, outcome text, event_id text, session_id text, seq bigint, event_pk uuid, session_pk uuid,
               tenant_pk uuid, member_pk uuid)
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
DECLARE
  login record;
BEGIN
  SELECT * INTO login FROM key_login(key_hash);
  IF login.key_pk IS NULL THEN RETURN; END IF;
  IF NOT (login.role = ANY (roles) AND login.scopes && opens) THEN
    RETURN QUERY SELECT -1, 'forbidden', ''::text, ''::text, 0::bigint, NULL::uuid, NULL::uuid, login.tenant_id, login.member_pk;
    RETURN;
  END IF;
  PERFORM set_config('app.tenant_id', login.tenant_id::text, true);
  RETURN QUERY
    SELECT r.i, r.outcome, r.event_id, r.session_id, r.seq, r.event_pk, r.session_pk, login.tenant_id, login.member_pk
    FROM store_events(login.tenant_id, login.member_pk, login.key_pk, sessions, events, bodies) r;
  UPDATE tenants_agentkey SET last_used_at = now()
    WHERE id = login.key_pk AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute');
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("events", "0002_isolation"), ("tenants", "0002_isolation"), ("graph", "0002_isolation")]

    operations = [
        function(UUIDV7, drop="uuidv7_text()"),
        function(SUFFIX, drop="typeid_suffix(uuid)"),
        function(IS_SHARED, drop="is_shared_root(text)"),
        function(NEW_PROJECT, drop="new_project(uuid, text)"),
        function(PLACE, drop="place_project(uuid, text, text)"),
        function(LATELY, drop="lately(timestamptz)"),
        migrations.RunSQL(ROOM, "ALTER TABLE events_session RESET (fillfactor)"),
        function(OPEN, drop="open_sessions(uuid, uuid, jsonb)"),
        function(STORE_ONE, drop="store_one(uuid, uuid, uuid, jsonb, jsonb, bytea)"),
        function(STORE, drop="store_events(uuid, uuid, uuid, jsonb, jsonb, bytea[])"),
        function(RECORD, drop="record_events(bytea, text[], text[], jsonb, jsonb, bytea[])"),
    ]
