"""Projects that only some see: who, what is hidden from whom, and policies on all that hangs on a project."""

from importlib import import_module

import django.db.models.deletion
from django.db import migrations, models

import memory.ids
from memory.tenants.rls import follows, function, limit, of_project, opening, owned, tie

before = import_module("memory.events.migrations.0003_record")

# What stands for a project of which only the name in a path is known; recall's entries say it so too.
NAMED = """
CREATE FUNCTION named_place(slug text) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT pg_catalog.encode(pg_catalog.substring(pg_catalog.sha256(pg_catalog.convert_to('project ' || slug, 'UTF8')), 1, 16),
                           'hex')::uuid
$$;
"""
PATH_OPEN = r"""
CREATE FUNCTION path_open(path text) RETURNS boolean LANGUAGE plpgsql STABLE SECURITY INVOKER AS $$
BEGIN
  RETURN (public.named_place(substring(lower(path) FROM '^(?:team/|members/[^/]+/)?project/([^/]+)'))
          = ANY (nullif(current_setting('app.hidden', true), '')::uuid[])) IS NOT TRUE;
END $$;
"""

# Owners and admins see every project, others a limited one where they are named. A member for whom keys are named is
# seen for by those alone. A key's own list narrows all this and never widens it. A project that was merged follows the
# one it is a part of.
LOOK_AS = """
CREATE FUNCTION look_as(owner uuid, who uuid, by_key uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
  only_in uuid[];
  has_limits boolean;
  is_admin boolean;
  ids uuid[];
BEGIN
  SELECT t.has_limits, (SELECT k.only_projects FROM tenants_agentkey k WHERE k.id = by_key AND k.tenant_id = owner)
    INTO has_limits, only_in FROM tenants_tenant t WHERE t.id = owner;
  IF has_limits IS FALSE AND only_in IS NULL THEN
    PERFORM set_config('app.hidden', '{}', true);
    RETURN false;
  END IF;
  SELECT m.role IN ('owner', 'admin') INTO is_admin FROM tenants_member m WHERE m.id = who AND m.tenant_id = owner;
  SELECT array_agg(n.id) INTO ids
  FROM events_project p
  JOIN events_project home ON home.id = coalesce(p.merged_into_id, p.id)
  CROSS JOIN LATERAL unnest(ARRAY[p.id, named_place(lower(p.slug))]) AS n(id)
  WHERE p.tenant_id = owner AND NOT (
    (only_in IS NULL OR EXISTS (SELECT FROM events_project q
                                WHERE q.id = ANY (only_in) AND coalesce(q.merged_into_id, q.id) = home.id))
    AND (NOT home.is_limited
      OR ((is_admin IS TRUE OR EXISTS (SELECT FROM events_projectaccess a WHERE a.project_id = home.id AND a.member_id = who))
        AND (by_key IS NULL
          OR NOT EXISTS (SELECT FROM events_projectaccess a
                         WHERE a.project_id = home.id AND a.member_id = who AND a.key_id IS NOT NULL)
          OR EXISTS (SELECT FROM events_projectaccess a
                     WHERE a.project_id = home.id AND a.member_id = who AND a.key_id = by_key)))));
  PERFORM set_config('app.hidden', coalesce(ids, '{}')::text, true);
  RETURN ids IS NOT NULL;
END $$;
"""
# By the SHA-256 of a key, for doors that know no more of who asks. Without such a key nobody looks: all is hidden.
LOOK_WITH = """
CREATE FUNCTION look_with(presented bytea) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
  login record;
BEGIN
  SELECT k.tenant_id, k.member_id, k.id INTO login FROM tenants_agentkey k WHERE k.hash = presented AND k.revoked_at IS NULL;
  IF FOUND THEN RETURN look_as(login.tenant_id, login.member_id, login.id); END IF;
  RETURN look_as((SELECT nullif(current_setting('app.tenant_id', true), '')::uuid), NULL, NULL);
END $$;
"""
# The row of the team is held before the projects are looked at: of two changes at once the second sees the first.
COUNT_LIMITS = """
CREATE FUNCTION count_limits() RETURNS trigger
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, public AS $$
DECLARE
  owner uuid := coalesce(NEW.tenant_id, OLD.tenant_id);
BEGIN
  PERFORM 1 FROM tenants_tenant t WHERE t.id = owner FOR UPDATE;
  UPDATE tenants_tenant t SET has_limits = EXISTS (SELECT FROM events_project p WHERE p.tenant_id = owner AND p.is_limited)
    WHERE t.id = owner;
  RETURN NULL;
END $$;
"""
COUNTING = """
CREATE TRIGGER count_limits AFTER UPDATE OF is_limited ON events_project FOR EACH ROW
  WHEN (OLD.is_limited <> NEW.is_limited) EXECUTE FUNCTION count_limits();
CREATE TRIGGER count_new_limits AFTER INSERT ON events_project FOR EACH ROW WHEN (NEW.is_limited)
  EXECUTE FUNCTION count_limits();
"""
UNCOUNTING = "DROP TRIGGER count_limits ON events_project; DROP TRIGGER count_new_limits ON events_project"
# A key with a new secret is let in where the old one was.
KEEP_ACCESS = """
CREATE FUNCTION keep_access() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
  INSERT INTO events_projectaccess (id, tenant_id, project_id, member_id, key_id)
    SELECT gen_random_uuid(), a.tenant_id, a.project_id, a.member_id, NEW.id FROM events_projectaccess a
    WHERE a.key_id = NEW.rotated_from_id AND a.tenant_id = NEW.tenant_id ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
"""
KEEPING = """
CREATE TRIGGER keep_access AFTER INSERT ON tenants_agentkey FOR EACH ROW WHEN (NEW.rotated_from_id IS NOT NULL)
  EXECUTE FUNCTION keep_access();
"""

# Where `place_project` would put a session, without making anything; NULL is a new project or none.
KNOWN_PLACE = """
CREATE FUNCTION known_place(owner uuid, remote text, root text) RETURNS uuid
LANGUAGE plpgsql STABLE SECURITY INVOKER SET search_path = pg_catalog, public SET enable_seqscan = off AS $$
DECLARE
  found_project uuid;
BEGIN
  IF remote <> '' THEN
    SELECT r.project_id INTO found_project FROM events_projectroot r
      WHERE r.tenant_id = owner AND r.kind = 'remote' AND r.place = remote;
  END IF;
  IF found_project IS NULL AND root <> '' THEN
    SELECT r.project_id INTO found_project FROM events_projectroot r
      WHERE r.tenant_id = owner AND r.kind = 'root' AND r.place = root
        AND (remote = '' OR NOT EXISTS (SELECT FROM events_projectroot o
             WHERE o.tenant_id = owner AND o.project_id = r.project_id AND o.kind = 'remote'));
  END IF;
  IF found_project IS NULL AND remote = '' AND root <> '' THEN
    SELECT r.project_id INTO found_project FROM events_projectroot r
      WHERE r.tenant_id = owner AND r.kind = 'root' AND NOT is_shared_root(r.place) AND starts_with(root, r.place || '/')
      ORDER BY length(r.place) DESC LIMIT 1;
  END IF;
  RETURN found_project;
END $$;
"""
# Whether a session, as {client, key, remote, root}, is or would be in a project that is closed to who looks. To a key
# with a list of its own, what is in none of these projects is closed too: it makes no new ones. What is hidden is put
# aside while it is looked up, or a closed place would pass for a new one.
PLACE_CLOSED = """
CREATE FUNCTION place_is_closed(owner uuid, by_key uuid, s jsonb) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, public SET enable_seqscan = off AS $$
DECLARE
  hidden text := coalesce(nullif(current_setting('app.hidden', true), ''), '{}');
  remote text := s ->> 'remote';
  home uuid;
BEGIN
  IF hidden = '{}' THEN RETURN false; END IF;
  PERFORM set_config('app.hidden', '{}', true);
  SELECT k.project_id INTO home FROM events_session k
    WHERE k.tenant_id = owner AND k.client = s ->> 'client' AND k.key = s ->> 'key';
  IF home IS NULL OR (remote <> '' AND NOT EXISTS (SELECT FROM events_projectroot r
       WHERE r.tenant_id = owner AND r.kind = 'remote' AND r.place = remote)) THEN
    -- A remote that is new to a session in a project is given to the project that has its folder.
    IF home IS NULL OR NOT home = ANY (hidden::uuid[]) THEN home := known_place(owner, remote, s ->> 'root'); END IF;
  END IF;
  PERFORM set_config('app.hidden', hidden, true);
  IF home IS NULL THEN
    RETURN EXISTS (SELECT FROM tenants_agentkey k WHERE k.id = by_key AND k.only_projects IS NOT NULL);
  END IF;
  RETURN home = ANY (hidden::uuid[]);
END $$;
"""

# For who may not see every project: event by event, each looked at before anything is made for it. Storing itself sees
# all, as it must to find sessions and places; where it comes upon an event of a closed session, it says only that.
STORE_LIMITED = """
CREATE FUNCTION store_limited(owner uuid, who uuid, by_key uuid, sessions jsonb, events jsonb, bodies bytea[])
RETURNS TABLE (i int, outcome text, event_id text, session_id text, seq bigint, event_pk uuid, session_pk uuid)
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, public SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  hidden text := current_setting('app.hidden');
  home jsonb;
  stored record;
  is_seen boolean;
BEGIN
  FOR nth IN 0 .. jsonb_array_length(events) - 1 LOOP
    home := sessions -> (events -> nth ->> 's')::int;
    is_seen := NOT place_is_closed(owner, by_key, home);
    IF is_seen THEN
      PERFORM set_config('app.hidden', '{}', true);
      SELECT * INTO stored FROM store_one(owner, who, by_key, home, events -> nth, bodies[(events -> nth ->> 'spill')::int + 1]);
      PERFORM set_config('app.hidden', hidden, true);
      is_seen := session_open(stored.session_pk);
    END IF;
    IF NOT is_seen THEN
      RETURN QUERY SELECT nth, 'closed'::text, ''::text, ''::text, 0::bigint, NULL::uuid, NULL::uuid;
    ELSE
      RETURN QUERY SELECT nth, stored.outcome::text, stored.event_id::text, stored.session_id::text, stored.seq::bigint,
        stored.event_pk::uuid, stored.session_pk::uuid;
    END IF;
  END LOOP;
END $$;
"""

ARGUMENTS = "record_events(bytea, text[], text[], jsonb, jsonb, bytea[])"
STORED = """    FROM store_events(login.tenant_id, login.member_pk, login.key_pk, sessions, events, bodies) r;
"""
RECORD = (
    before.RECORD.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    .replace(
        "  RETURN QUERY\n    SELECT r.i,",
        "  IF login.sees_all THEN PERFORM set_config('app.hidden', '{}', true); END IF;\n"
        "  IF login.sees_all OR NOT look_as(login.tenant_id, login.member_pk, login.key_pk) THEN\n"
        "  RETURN QUERY\n    SELECT r.i,",
    )
    .replace(
        STORED,
        STORED
        + "  ELSE\n  RETURN QUERY\n"
        + "    SELECT r.i, r.outcome, r.event_id, r.session_id, r.seq, r.event_pk, r.session_pk, login.tenant_id, login.member_pk\n"
        + STORED.replace("store_events", "store_limited")
        + "  END IF;\n",
    )
)

OF_SESSION = follows("session_open(session_id)")


class Migration(migrations.Migration):
    dependencies = [("events", "0021_narrow_batches"), ("tenants", "0040_key_projects")]

    operations = [
        migrations.AddField(
            "project", "is_limited", models.BooleanField(db_default=False, default=False)
        ),
        migrations.CreateModel(
            name="ProjectAccess",
            fields=[
                ("id", models.UUIDField(default=memory.ids.new_key, editable=False, primary_key=True, serialize=False)),
                (
                    "key",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenants.agentkey",
                    ),
                ),
                (
                    "member",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenants.member",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="access",
                        to="events.project",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("project", "member", "key"), name="access_is_given_once", nulls_distinct=False
                    )
                ],
            },
        ),
        *owned("events_projectaccess"),
        tie("events_projectaccess", "project_id", "events_project"),
        tie("events_projectaccess", "member_id", "tenants_member"),
        tie("events_projectaccess", "key_id", "tenants_agentkey"),
        function(NAMED, drop="named_place(text)"),
        function(PATH_OPEN, drop="path_open(text)"),
        function(LOOK_AS, drop="look_as(uuid, uuid, uuid)"),
        function(LOOK_WITH, drop="look_with(bytea)"),
        function(KEEP_ACCESS, drop="keep_access()"),
        function(COUNT_LIMITS, drop="count_limits()"),
        migrations.RunSQL(COUNTING, UNCOUNTING),
        migrations.RunSQL(KEEPING, "DROP TRIGGER keep_access ON tenants_agentkey"),
        opening("session_open", "events_session"),
        opening("session_open_as", "events_session", column="public_id", kind="text"),
        opening("event_open", "events_event"),
        function(KNOWN_PLACE, drop="known_place(uuid, text, text)"),
        function(PLACE_CLOSED, drop="place_is_closed(uuid, uuid, jsonb)"),
        function(STORE_LIMITED, drop="store_limited(uuid, uuid, uuid, jsonb, jsonb, bytea[])"),
        migrations.RunSQL(
            function(RECORD, drop=ARGUMENTS).sql,
            before.RECORD.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"),
        ),
        limit("events_project", of_project("id")),
        limit("events_projectroot", of_project()),
        limit("events_projectaccess", of_project()),
        limit("events_session", of_project()),
        limit("events_reading", OF_SESSION),
        limit("events_claim", OF_SESSION),
        limit("events_event", OF_SESSION),
    ]
