"""Isolation of the caches' tables, the vectors of questions, and the hot door's SQL."""

from django.db import migrations

from memory.tenants.rls import function, owned, tie

QUESTION = """
CREATE TABLE cache_admin_question (
  id uuid NOT NULL PRIMARY KEY,
  tenant_id uuid NOT NULL,
  -- Team, tool, audience, model of the vectors and what else the answer hangs on: compared as a whole, never embedded.
  space bytea NOT NULL,
  tool varchar(200) NOT NULL,
  asked text NOT NULL,
  entry_id uuid NOT NULL,
  embedding vector NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT a_question_is_asked_once UNIQUE (entry_id)
);
CREATE INDEX cache_questions_of_space ON cache_admin_question (space);
CREATE INDEX cache_questions_nearest ON cache_admin_question USING hnsw ((embedding::vector(384)) vector_cosine_ops)
  WHERE vector_dims(embedding) = 384;
"""

# What a lookup in the app has to know before it can make a key. `state` names it all in one text: as long as the app
# has it right, a lookup is one round trip.
STANDING = r"""
CREATE FUNCTION cache_standing(owner uuid, who uuid, asked_tool text, asked_project text, asked_remote text)
RETURNS TABLE (state text, policy jsonb, salt int, project uuid)
LANGUAGE plpgsql STABLE SECURITY INVOKER SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
DECLARE
  row record;
  kept int;
  found_project uuid;
  merged uuid;
BEGIN
  SELECT p.* INTO row FROM cache_admin_toolpolicy p WHERE p.tool = asked_tool AND p.tenant_id = owner;
  SELECT s.salt INTO kept FROM cache_admin_cachesetting s WHERE s.tenant_id = owner;
  IF asked_project <> '' THEN
    SELECT p.id, p.merged_into_id INTO found_project, merged FROM events_project p
      WHERE p.tenant_id = owner AND (CASE WHEN starts_with(asked_project, 'prj_') THEN p.public_id ELSE p.slug END) = asked_project;
    IF found_project IS NULL AND asked_remote <> '' THEN
      SELECT p.id, p.merged_into_id INTO found_project, merged FROM events_projectroot r JOIN events_project p ON p.id = r.project_id
        WHERE r.tenant_id = owner AND r.kind = 'remote' AND r.place = asked_remote;
    END IF;
    found_project := coalesce(merged, found_project);
    IF EXISTS (SELECT FROM cache_admin_projectlimit l WHERE l.project_id = found_project)
       AND NOT EXISTS (SELECT FROM cache_admin_projectlimit l WHERE l.project_id = found_project AND l.member_id = who) THEN
      found_project := NULL;
    END IF;
  END IF;
  RETURN QUERY SELECT concat_ws('.', owner, who, coalesce(row.id::text, '-'), coalesce(row.revision, 0), coalesce(kept, 0),
      coalesce(found_project::text, '-')),
    CASE WHEN row.id IS NULL THEN NULL ELSE to_jsonb(row) END, coalesce(kept, 0), found_project;
END $$;
"""

LOOKUP = r"""
CREATE FUNCTION cache_lookup(key_hash bytea, roles text[], opens text[], a jsonb)
RETURNS TABLE (status text, reason text, about jsonb, content bytea)
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, public
SET plan_cache_mode = 'force_generic_plan' SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
  login record;
  standing record;
  hit record;
  flight record;
  asked_key bytea := decode(a ->> 'key', 'hex');
  asked_tool text := a ->> 'tool';
  asked_session text := a ->> 'session';
  is_serving boolean := (a ->> 'mode') = 'serve';
  why text := 'no_entry';
  is_known boolean := false;
  is_new boolean;
  is_shadow boolean := false;
  given text;
  said_tokens int;
  packed bytea;
  packing text;
  taken boolean;
BEGIN
  SELECT * INTO login FROM key_login(key_hash);
  IF login.key_pk IS NULL THEN RETURN QUERY SELECT 'unauthenticated', '', NULL::jsonb, NULL::bytea; RETURN; END IF;
  IF NOT (login.role = ANY (roles) AND login.scopes && opens) THEN
    RETURN QUERY SELECT 'forbidden', '', NULL::jsonb, NULL::bytea; RETURN;
  END IF;
  PERFORM set_config('app.tenant_id', login.tenant_id::text, true);
  SELECT * INTO standing FROM cache_standing(login.tenant_id, login.member_pk, asked_tool, a ->> 'project', a ->> 'remote');
  IF standing.state IS DISTINCT FROM a ->> 'state' THEN
    RETURN QUERY SELECT 'renew', '', jsonb_build_object('tenant', login.tenant_id, 'member', login.member_pk, 'state', standing.state,
      'policy', standing.policy, 'salt', standing.salt, 'project', standing.project), NULL::bytea;
    RETURN;
  END IF;
  UPDATE tenants_agentkey SET last_used_at = now()
    WHERE id = login.key_pk AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute');

  IF a ->> 'bypass' <> '' THEN
    INSERT INTO cache_admin_lookup (id, tenant_id, at, tool, kind, status, reason, would_hit, tokens_stored, tokens_returned, saved_ms,
        hash_us, lookup_us, embed_us, member)
      VALUES ((a ->> 'log')::uuid, login.tenant_id, now(), asked_tool, a ->> 'kind', 'bypass', a ->> 'bypass', false, 0, 0, 0,
        (a ->> 'hash_us')::int, cache_us(), 0, login.member_pk);
    RETURN QUERY SELECT 'bypass', a ->> 'bypass', NULL::jsonb, NULL::bytea;
    RETURN;
  END IF;

  FOR attempt IN 1 .. 2 LOOP
    SELECT e.id, e.document, e.expires_at, e.created_at, e.duration_ms, e.last_hit_at, r.id AS result, r.public_id, r.sha256, r.summary,
        r.summariser, r.tokens, r.summary_tokens, r.is_json, r.chars
      INTO hit FROM cache_admin_entry e JOIN cache_admin_result r ON r.id = e.result_id
      WHERE e.key = asked_key AND e.tenant_id = login.tenant_id;
    IF FOUND AND hit.document <> a ->> 'document' THEN
      why := 'other_document';
    -- One that was made in the future lives by a clock that was set back since: nobody knows how old it is.
    ELSIF FOUND AND (hit.expires_at <= now() OR (hit.expires_at IS NOT NULL AND hit.created_at > now() + interval '1 minute')) THEN
      DELETE FROM cache_admin_entry WHERE id = hit.id;
      why := 'expired';
    ELSIF FOUND THEN
      is_known := true;
    ELSIF why = 'no_entry' AND EXISTS (SELECT FROM cache_admin_entry e
        WHERE e.identity = decode(a ->> 'identity', 'hex') AND e.tenant_id = login.tenant_id) THEN
      why := 'content_changed';
    END IF;

    IF is_known AND is_serving THEN
      IF asked_session <> '' THEN
        INSERT INTO cache_admin_shown (id, tenant_id, session, result_id, at)
          VALUES (gen_random_uuid(), login.tenant_id, asked_session, hit.result, now()) ON CONFLICT (result_id, session) DO NOTHING;
        GET DIAGNOSTICS is_new = ROW_COUNT;
      ELSE
        is_new := true;
      END IF;
      IF (a -> 'have') ? hit.public_id THEN is_new := false; END IF;
      given := CASE WHEN a ->> 'want' = 'result' THEN 'text' WHEN NOT is_new THEN 'unchanged' WHEN hit.summary <> '' THEN 'summary' ELSE 'text' END;
      IF given = 'text' THEN
        SELECT c.content, c.codec INTO packed, packing FROM cache_admin_content c WHERE c.sha256 = hit.sha256 AND c.tenant_id = login.tenant_id;
        IF packed IS NULL THEN
          DELETE FROM cache_admin_entry WHERE id = hit.id;
          is_known := false;
          why := 'evicted';
        END IF;
      END IF;
    END IF;

    IF is_known AND is_serving THEN
      IF (a ->> 'shadow')::int > 0 AND random() * 100 < (a ->> 'shadow')::int THEN
        INSERT INTO cache_admin_flight AS f (id, tenant_id, key, lease, granted_at, until, inputs, document, member_id)
          VALUES (gen_random_uuid(), login.tenant_id, asked_key, a ->> 'lease', clock_timestamp(),
            clock_timestamp() + make_interval(secs => (a ->> 'lease_s')::int), (a -> 'inputs') || '{"shadow": true}', a ->> 'document', login.member_pk)
          ON CONFLICT (key, tenant_id) DO NOTHING;
        GET DIAGNOSTICS is_shadow = ROW_COUNT;
      END IF;
      said_tokens := CASE given WHEN 'unchanged' THEN 0 WHEN 'summary' THEN hit.summary_tokens ELSE hit.tokens END;
      UPDATE cache_admin_entry SET last_hit_at = now() WHERE id = hit.id AND last_hit_at < now() - interval '1 minute';
      INSERT INTO cache_admin_lookup (id, tenant_id, at, tool, kind, status, reason, would_hit, result_pk, tokens_stored, tokens_returned,
          saved_ms, hash_us, lookup_us, embed_us, member)
        VALUES ((a ->> 'log')::uuid, login.tenant_id, now(), asked_tool, a ->> 'kind', 'hit', given, true, hit.result, hit.tokens, said_tokens,
          coalesce(hit.duration_ms, 0), (a ->> 'hash_us')::int, cache_us(), 0, login.member_pk);
      RETURN QUERY SELECT 'hit', given, jsonb_build_object('result_id', hit.public_id, 'is_json', hit.is_json, 'codec', packing,
        'summary', CASE WHEN given = 'summary' THEN hit.summary END, 'chars', hit.chars, 'age_s', extract(epoch FROM now() - hit.created_at),
        'ttl_s', extract(epoch FROM hit.expires_at - now()), 'stored_at', hit.created_at, 'revalidate', is_shadow), packed;
      RETURN;
    END IF;

    -- Who only observes never waits: the tool runs each time, and what it says is compared with what is stored.
    INSERT INTO cache_admin_flight AS f (id, tenant_id, key, lease, granted_at, until, inputs, document, member_id)
      VALUES (gen_random_uuid(), login.tenant_id, asked_key, a ->> 'lease', clock_timestamp(),
        clock_timestamp() + make_interval(secs => (a ->> 'lease_s')::int), a -> 'inputs', a ->> 'document', login.member_pk)
      ON CONFLICT (key, tenant_id) DO UPDATE SET lease = excluded.lease, granted_at = excluded.granted_at, until = excluded.until,
        document = excluded.document, member_id = excluded.member_id,
        -- Who held the lease before may still land: the call is the same, and nothing was invalidated since.
        inputs = excluded.inputs || jsonb_build_object('before', CASE WHEN jsonb_array_length(coalesce(f.inputs -> 'before', '[]')) < 50
          THEN coalesce(f.inputs -> 'before', '[]') || to_jsonb(f.lease) ELSE f.inputs -> 'before' END)
        WHERE f.until <= clock_timestamp() OR f.lease = a ->> 'held' OR NOT is_serving OR f.inputs ? 'shadow'
      RETURNING f.until INTO flight;
    taken := FOUND;
    EXIT WHEN is_known OR NOT is_serving OR NOT taken OR attempt = 2;
    -- Between our look and our lease another may have landed: its entry and the end of its flight came in one commit.
    EXIT WHEN NOT EXISTS (SELECT FROM cache_admin_entry e WHERE e.key = asked_key AND e.tenant_id = login.tenant_id
      AND (e.expires_at IS NULL OR e.expires_at > now()) AND e.document = a ->> 'document');
    DELETE FROM cache_admin_flight WHERE key = asked_key AND tenant_id = login.tenant_id AND lease = a ->> 'lease';
  END LOOP;

  INSERT INTO cache_admin_lookup (id, tenant_id, at, tool, kind, status, reason, would_hit, tokens_stored, tokens_returned, saved_ms,
      hash_us, lookup_us, embed_us, member)
    VALUES ((a ->> 'log')::uuid, login.tenant_id, now(), asked_tool, a ->> 'kind',
      CASE WHEN NOT is_serving THEN 'observe' WHEN taken THEN 'miss' ELSE 'wait' END,
      CASE WHEN is_serving AND NOT taken THEN 'in_flight' ELSE why END, is_known,
      CASE WHEN is_known THEN hit.tokens ELSE 0 END, 0, 0, (a ->> 'hash_us')::int, cache_us(), 0, login.member_pk);
  IF NOT is_serving THEN
    RETURN QUERY SELECT 'bypass', 'observe', jsonb_build_object('until', flight.until), NULL::bytea;
  ELSIF taken THEN
    RETURN QUERY SELECT 'miss', why, jsonb_build_object('until', flight.until), NULL::bytea;
  ELSE
    -- The longer it takes, the less often they ask: a third of what has passed, and never beyond the lease.
    RETURN QUERY SELECT 'wait', 'in_flight', jsonb_build_object('until', f.until, 'retry_after',
        round(least(2, greatest(0.05, extract(epoch FROM clock_timestamp() - f.granted_at) / 3),
          greatest(0.05, extract(epoch FROM f.until - clock_timestamp()) + 0.01))::numeric, 2)), NULL::bytea
      FROM cache_admin_flight f WHERE f.key = asked_key AND f.tenant_id = login.tenant_id;
    IF NOT FOUND THEN
      RETURN QUERY SELECT 'wait', 'in_flight', jsonb_build_object('retry_after', 0.05), NULL::bytea;
    END IF;
  END IF;
END $$;
"""

TIME_TAKEN = r"""
CREATE FUNCTION cache_us() RETURNS int LANGUAGE sql VOLATILE SET search_path = pg_catalog AS $$
  SELECT (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000000)::int
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("cache_admin", "0003_caches"), ("events", "0003_record"), ("tenants", "0002_isolation")]

    operations = [
        migrations.RunSQL(QUESTION, "DROP TABLE cache_admin_question"),
        *(
            step
            for name in (
                "cachesetting", "toolpolicy", "projectlimit", "content", "entry", "entrypath", "flight", "shown", "lookup",
                "toolday", "incident", "analysispath", "pair", "usage", "watermark", "question",
            )
            for step in owned(f"cache_admin_{name}")
        ),
        tie("cache_admin_toolpolicy", "updated_by_id", "tenants_member", on_delete="SET NULL"),
        tie("cache_admin_projectlimit", "project_id", "events_project"),
        tie("cache_admin_projectlimit", "member_id", "tenants_member"),
        tie("cache_admin_result", "owner_id", "tenants_member", on_delete="SET NULL"),
        tie("cache_admin_result", "project_id", "events_project", on_delete="SET NULL"),
        tie("cache_admin_result", "writer_key_id", "tenants_agentkey", on_delete="SET NULL"),
        tie("cache_admin_entry", "project_id", "events_project"),
        tie("cache_admin_entry", "result_id", "cache_admin_result"),
        tie("cache_admin_entry", "writer_id", "tenants_member", on_delete="SET NULL"),
        tie("cache_admin_entry", "writer_key_id", "tenants_agentkey", on_delete="SET NULL"),
        tie("cache_admin_entrypath", "entry_id", "cache_admin_entry"),
        tie("cache_admin_flight", "member_id", "tenants_member"),
        tie("cache_admin_shown", "result_id", "cache_admin_result"),
        tie("cache_admin_incident", "reporter_id", "tenants_member", on_delete="SET NULL"),
        tie("cache_admin_analysis", "writer_id", "tenants_member", on_delete="SET NULL"),
        tie("cache_admin_analysis", "writer_key_id", "tenants_agentkey", on_delete="SET NULL"),
        tie("cache_admin_analysispath", "analysis_id", "cache_admin_analysis"),
        tie("cache_admin_analysispath", "project_id", "events_project"),
        tie("cache_admin_pair", "decided_by_id", "tenants_member", on_delete="SET NULL"),
        tie("cache_admin_watermark", "session_id", "events_session"),
        tie("cache_admin_question", "entry_id", "cache_admin_entry"),
        function(TIME_TAKEN, drop="cache_us()"),
        function(STANDING, drop="cache_standing(uuid, uuid, text, text, text)"),
        function(LOOKUP, drop="cache_lookup(bytea, text[], text[], jsonb)"),
    ]
