"""The graph's SQL, first half: a trigger into its thread in one round trip, with a dense `seq` under the thread's lock."""

from django.db import migrations

from memory.tenants.rls import function

# The functions' plans must do while the tables are empty and later: no sequential scans, no planning anew.
STEADY = "SET search_path = pg_catalog, public SET plan_cache_mode = 'force_generic_plan' SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off"

# PostgreSQL 18 has uuidv7(); 16 and 17, which a real server may be, do not.
FRESH_UUID = r"""
CREATE FUNCTION graph_fresh_uuid() RETURNS uuid
LANGUAGE sql VOLATILE SET search_path = pg_catalog AS $$
  SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
    52, 1), 53, 1), 'hex')::uuid
$$;
"""

# Crockford's base32 of a uuid: 130 bits, the first two of them zero, in 26 letters.
STEP_ID = r"""
CREATE FUNCTION graph_step_id() RETURNS text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, public AS $$
  SELECT 'evt_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz',
                              1 + substring(bits FROM 1 + 5 * place FOR 5)::bit(5)::int, 1), '' ORDER BY place)
  FROM (SELECT B'00' || ('x' || replace(graph_fresh_uuid()::text, '-', ''))::bit(128) AS bits) AS whole,
       generate_series(0, 25) AS place
$$;
"""

# As `key_login` of the tenants, and the binding with it: one function of one cached plan takes half as long as the two,
# and a look at when the key was used last costs nothing beside it. It is a way across tenants like that one.
ENTER = r"""
CREATE FUNCTION enter_door(key_hash bytea, roles text[], opens text[], OUT state text, OUT tenant uuid, OUT by_key text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
  login record;
BEGIN
  SELECT k.tenant_id, k.id, k.public_id, k.last_used_at, k.scopes ?| opens AND m.role = ANY (roles) AS may INTO login
    FROM tenants_agentkey k
    JOIN tenants_member m ON m.tenant_id = k.tenant_id AND m.id = k.member_id AND m.removed_at IS NULL
    JOIN tenants_user u ON u.id = m.user_id AND u.is_active
    JOIN tenants_tenant t ON t.id = k.tenant_id AND t.suspended_at IS NULL
    WHERE k.hash = key_hash AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now());
  IF NOT FOUND THEN state := 'unknown_key'; RETURN; END IF;
  tenant := login.tenant_id;
  by_key := login.public_id;
  IF NOT login.may THEN state := 'forbidden'; RETURN; END IF;
  PERFORM set_config('app.tenant_id', login.tenant_id::text, true);
  IF login.last_used_at IS NULL OR login.last_used_at < now() - interval '1 minute' THEN
    UPDATE tenants_agentkey k SET last_used_at = now()
      WHERE k.id = login.id AND (k.last_used_at IS NULL OR k.last_used_at < now() - interval '1 minute');
  END IF;
  state := 'ok';
END $$;
"""

ADD_STEP = rf"""
CREATE FUNCTION add_step(owner uuid, thread uuid, step jsonb, OUT seq bigint, OUT public_id text)
LANGUAGE plpgsql VOLATILE SECURITY INVOKER {STEADY} AS $$
#variable_conflict use_column
DECLARE
  place bigint;
  made text := coalesce(step ->> 'id', graph_step_id());
BEGIN
  -- The lock that orders the thread: whoever has it commits before the next one gets a number.
  UPDATE graph_thread t SET last_seq = t.last_seq + 1, last_at = clock_timestamp(),
      active_at = CASE WHEN t.active_at < now() - interval '10 seconds' THEN clock_timestamp() ELSE t.active_at END
    WHERE t.id = thread AND t.tenant_id = owner RETURNING t.last_seq INTO place;
  INSERT INTO graph_step (thread_id, seq, tenant_id, public_id, kind, trigger_public_id, worker_public_id, other_public_id, summary, at)
    VALUES (thread, place, owner, made, step ->> 'kind', coalesce(step ->> 'trigger', ''), coalesce(step ->> 'worker', ''),
      coalesce(step ->> 'other', ''), coalesce(step ->> 'summary', ''), clock_timestamp());
  seq := place;
  public_id := made;
END $$;
"""

RESOLVE = rf"""
CREATE FUNCTION resolve_links(owner uuid, thread uuid, known_key text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY INVOKER {STEADY} AS $$
#variable_conflict use_column
DECLARE
  waiting record;
BEGIN
  FOR waiting IN
    SELECT l.id, l.kind, l.removed_at, l.because_of, f.public_id FROM graph_link l JOIN graph_thread f ON f.id = l.from_thread_id
    WHERE l.to_key = known_key AND l.tenant_id = owner AND l.to_thread_id IS NULL AND l.from_thread_id <> thread
    ORDER BY l.made_at, l.id
  LOOP
    UPDATE graph_link SET to_thread_id = thread WHERE id = waiting.id;
    IF waiting.removed_at IS NULL THEN
      PERFORM add_step(owner, thread, jsonb_build_object('kind', 'linked', 'other', waiting.public_id,
        'summary', 'Linked from ' || waiting.public_id || ' (' || waiting.kind || ')'));
    END IF;
  END LOOP;
END $$;
"""

# `asked` is {id?, is_given, key?, pk, fresh, title}: the thread that it names, made where it is new.
OPEN_THREAD = rf"""
CREATE FUNCTION open_thread(owner uuid, asked jsonb, OUT outcome text, OUT pk uuid, OUT public_id text)
LANGUAGE plpgsql VOLATILE SECURITY INVOKER {STEADY} AS $$
#variable_conflict use_column
DECLARE
  given_id text := asked ->> 'id';
  given_key text := asked ->> 'key';
  old record;
  made uuid;
BEGIN
  FOR attempt IN 1..2 LOOP
    IF given_id IS NOT NULL THEN
      SELECT t.id, t.public_id, t.key, t.deleted_at INTO old FROM graph_thread t WHERE t.public_id = given_id AND t.tenant_id = owner;
    ELSE
      SELECT t.id, t.public_id, t.key, t.deleted_at INTO old FROM graph_thread t WHERE t.key = given_key AND t.tenant_id = owner;
    END IF;
    IF FOUND THEN
      pk := old.id;
      public_id := old.public_id;
      outcome := CASE WHEN old.deleted_at IS NOT NULL THEN 'thread_deleted'
        WHEN given_id IS NOT NULL AND given_key IS NOT NULL AND old.key IS DISTINCT FROM given_key THEN 'thread_conflict' ELSE 'old' END;
      IF outcome = 'thread_conflict' AND old.key IS NULL AND NOT EXISTS (
          SELECT FROM graph_thread t WHERE t.key = given_key AND t.tenant_id = owner) THEN
        UPDATE graph_thread SET key = given_key WHERE id = old.id;
        PERFORM resolve_links(owner, old.id, given_key);
        outcome := 'old';
      END IF;
      RETURN;
    END IF;
    IF given_id IS NOT NULL AND EXISTS (
        SELECT FROM tenants_knownid k WHERE k.tenant_id = owner AND k.public_id = given_id AND k.reason = 'deleted') THEN
      outcome := 'thread_deleted'; public_id := given_id; RETURN;
    END IF;
    IF given_id IS NOT NULL AND NOT (asked -> 'is_given')::boolean THEN
      outcome := 'unknown_thread'; public_id := given_id; RETURN;
    END IF;
    INSERT INTO graph_thread (id, tenant_id, public_id, key, title, state, summary, last_seq, trigger_count, worker_count,
        created_at, last_at, active_at)
      VALUES ((asked ->> 'pk')::uuid, owner, coalesce(given_id, asked ->> 'fresh'), given_key, coalesce(asked ->> 'title', ''),
        coalesce(asked ->> 'state', 'open'), coalesce(asked ->> 'summary', ''), 0, 0, 0, clock_timestamp(), clock_timestamp(), clock_timestamp())
      ON CONFLICT DO NOTHING RETURNING id INTO made;
    IF made IS NOT NULL THEN
      pk := made;
      public_id := coalesce(given_id, asked ->> 'fresh');
      IF given_id IS NOT NULL THEN
        INSERT INTO tenants_knownid (tenant_id, public_id, reason, at) VALUES (owner, given_id, 'given', now()) ON CONFLICT DO NOTHING;
      END IF;
      IF given_key IS NOT NULL THEN PERFORM resolve_links(owner, made, given_key); END IF;
      outcome := 'new';
      RETURN;
    END IF;
  END LOOP;
  -- Neither new nor old: the id is free, but another thread has the key.
  outcome := 'thread_conflict';
  public_id := given_id;
END $$;
"""

STORE = rf"""
CREATE FUNCTION store_trigger(owner uuid, by_key text, t jsonb, content bytea,
  OUT outcome text, OUT pk uuid, OUT public_id text, OUT thread_id text)
LANGUAGE plpgsql VOLATILE SECURITY INVOKER {STEADY} AS $$
#variable_conflict use_column
DECLARE
  given_id text := CASE WHEN (t -> 'is_given')::boolean THEN t ->> 'id' END;
  old record;
  home record;
  place bigint;
  passed record;
BEGIN
  pk := NULL;
  IF t ->> 'idem' IS NOT NULL THEN
    SELECT g.id, g.public_id, g.fingerprint, g.deleted_at, g.thread_id INTO old FROM graph_trigger g
      WHERE g.idempotency_key = t ->> 'idem' AND g.tenant_id = owner;
    pk := old.id;
  END IF;
  IF pk IS NULL AND given_id IS NOT NULL THEN
    SELECT g.id, g.public_id, g.fingerprint, g.deleted_at, g.thread_id INTO old FROM graph_trigger g
      WHERE g.public_id = given_id AND g.tenant_id = owner;
    pk := old.id;
  END IF;
  IF pk IS NULL AND t ->> 'external' IS NOT NULL THEN
    SELECT g.id, g.public_id, g.fingerprint, g.deleted_at, g.thread_id INTO old FROM graph_trigger g
      WHERE g.external_id = t ->> 'external' AND g.source = t ->> 'source' AND g.tenant_id = owner;
    pk := old.id;
  END IF;
  IF pk IS NOT NULL THEN
    public_id := old.public_id;
    outcome := CASE WHEN old.deleted_at IS NOT NULL THEN 'deleted'
      WHEN old.fingerprint <> decode(t ->> 'fp', 'hex') OR given_id <> old.public_id THEN 'conflict' ELSE 'repeat' END;
    SELECT h.public_id INTO thread_id FROM graph_thread h WHERE h.id = old.thread_id;
    RETURN;
  END IF;
  IF given_id IS NOT NULL AND EXISTS (
      SELECT FROM tenants_knownid k WHERE k.tenant_id = owner AND k.public_id = given_id AND k.reason = 'deleted') THEN
    outcome := 'deleted'; public_id := given_id; RETURN;
  END IF;
  SELECT * INTO home FROM open_thread(owner, t -> 'thread');
  thread_id := home.public_id;
  IF home.outcome NOT IN ('new', 'old') THEN outcome := home.outcome; RETURN; END IF;

  pk := (t ->> 'pk')::uuid;
  public_id := t ->> 'id';
  IF (t -> 'spill')::boolean THEN
    INSERT INTO graph_body (tenant_id, sha256, stored_on, size, codec, content)
      VALUES (owner, decode(t ->> 'sha', 'hex'), date_trunc('month', now())::date, (t -> 'size')::bigint, t ->> 'codec', content)
      ON CONFLICT DO NOTHING;
  END IF;
  IF given_id IS NOT NULL THEN
    INSERT INTO tenants_knownid (tenant_id, public_id, reason, at) VALUES (owner, given_id, 'given', now()) ON CONFLICT DO NOTHING;
  END IF;
  -- The lock that orders the thread: whoever has it commits before the next one gets a number.
  UPDATE graph_thread h SET last_seq = h.last_seq + 1, trigger_count = h.trigger_count + 1, last_at = clock_timestamp(),
      active_at = CASE WHEN h.active_at < now() - interval '10 seconds' THEN clock_timestamp() ELSE h.active_at END,
      title = CASE WHEN h.title = '' THEN coalesce(t -> 'thread' ->> 'title', '') ELSE h.title END
    WHERE h.id = home.pk AND h.deleted_at IS NULL RETURNING h.last_seq INTO place;
  IF NOT FOUND THEN outcome := 'thread_deleted'; pk := NULL; RETURN; END IF;
  INSERT INTO graph_trigger (id, tenant_id, public_id, thread_id, seq, source, external_id, idempotency_key, fingerprint,
      occurred_at, received_at, summary, by)
    VALUES (pk, owner, public_id, home.pk, place, t ->> 'source', t ->> 'external', t ->> 'idem', decode(t ->> 'fp', 'hex'),
      (t ->> 'at')::timestamptz, clock_timestamp(), t ->> 'summary', by_key);
  IF t ->> 'sha' IS NOT NULL THEN
    INSERT INTO graph_part (trigger_id, name, tenant_id, media_type, size, sha256, redactions, sanitized, content, stored_at)
      VALUES (pk, 'payload', owner, t ->> 'media', (t -> 'size')::bigint, decode(t ->> 'sha', 'hex'), (t -> 'redactions')::int,
        (t -> 'sanitized')::int, CASE WHEN (t -> 'spill')::boolean THEN NULL ELSE content END, now());
  END IF;
  INSERT INTO graph_step (thread_id, seq, tenant_id, public_id, kind, trigger_public_id, worker_public_id, other_public_id, summary, at)
    VALUES (home.pk, place, owner, t ->> 'step', 'trigger', public_id, '', '', t ->> 'summary', clock_timestamp());
  FOR passed IN SELECT o.worker_id FROM graph_owner o WHERE o.thread_id = home.pk AND o.pass_through ORDER BY o.worker_id LOOP
    UPDATE graph_worker w SET last_inbox_seq = w.last_inbox_seq + 1 WHERE w.id = passed.worker_id AND w.deleted_at IS NULL
      RETURNING w.last_inbox_seq INTO place;
    IF FOUND THEN
      INSERT INTO graph_inboxentry (worker_id, seq, tenant_id, trigger_id, at) VALUES (passed.worker_id, place, owner, pk, clock_timestamp());
    END IF;
  END LOOP;
  outcome := 'new';
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("graph", "0004_chain_isolation"), ("tenants", "0002_isolation")]

    operations = [
        function(FRESH_UUID, drop="graph_fresh_uuid()"),
        function(STEP_ID, drop="graph_step_id()"),
        function(ENTER, drop="enter_door(bytea, text[], text[])"),
        function(ADD_STEP, drop="add_step(uuid, uuid, jsonb)"),
        function(RESOLVE, drop="resolve_links(uuid, uuid, text)"),
        function(OPEN_THREAD, drop="open_thread(uuid, jsonb)"),
        function(STORE, drop="store_trigger(uuid, text, jsonb, bytea)"),
    ]
