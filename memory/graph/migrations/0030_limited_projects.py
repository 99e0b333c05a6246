"""A thread belongs to the project whose git remote its key names; what hangs on it is seen where the thread is."""

from importlib import import_module

from django.db import migrations, models

from memory.tenants.rls import follows, function, limit, of_project, opening

before = import_module("memory.graph.migrations.0005_chain_record")
doors = import_module("memory.graph.migrations.0006_chain_doors")

# `github:acme/payments#412` is of `github.com/acme/payments`, and so are `…@sha`, `…/releases/v1`. As places.py spells
# a remote. '' for a key that names no repository: a chat topic, a mail thread.
REMOTE = r"""
CREATE FUNCTION thread_remote(key text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce((SELECT CASE forge WHEN 'github' THEN 'github.com/' WHEN 'gitlab' THEN 'gitlab.com/' ELSE 'bitbucket.org/' END
      || CASE forge WHEN 'gitlab' THEN pg_catalog.regexp_replace(path, '/(releases|wiki)/.*$', '')
              ELSE pg_catalog.substring(path, '^[^/]+/[^/]+') END
    FROM (SELECT m[1] AS forge, pg_catalog.btrim(m[2], '/') AS path
          FROM pg_catalog.regexp_match(pg_catalog.lower(key), '^(?:deploy:)?(github|gitlab|bitbucket):([^#@!:]+)') AS m) AS named
    WHERE path LIKE '%/%'), '')
$$;
"""
PLACE = """
CREATE FUNCTION place_of_thread() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
  remote text;
BEGIN
  -- A deleted thread loses its key, and stays where it was.
  IF NEW.key IS NULL THEN RETURN NEW; END IF;
  remote := thread_remote(NEW.key);
  NEW.project_id := CASE WHEN remote = '' THEN NULL ELSE (
    SELECT r.project_id FROM events_projectroot r WHERE r.tenant_id = NEW.tenant_id AND r.kind = 'remote' AND r.place = remote) END;
  RETURN NEW;
END $$;
"""
# A remote that becomes known, moves to another project by a merge, or is forgotten takes its threads along. Search reads
# them again, for it keeps the place of each beside its words.
PLACE_ALL = """
CREATE FUNCTION place_threads() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public SET enable_seqscan = off AS $$
DECLARE
  remote text := coalesce(NEW.place, OLD.place);
  owner uuid := coalesce(NEW.tenant_id, OLD.tenant_id);
BEGIN
  WITH placed AS (
    UPDATE graph_thread t SET project_id = NEW.project_id
      WHERE thread_remote(t.key) = remote AND t.tenant_id = owner AND t.project_id IS DISTINCT FROM NEW.project_id RETURNING t.id)
  INSERT INTO recall_mark (tenant_id, kind, target)
    SELECT owner, 'thread', p.id FROM placed p
    UNION ALL SELECT owner, 'trigger', g.id FROM placed p JOIN graph_trigger g ON g.thread_id = p.id
    UNION ALL SELECT owner, 'worker', w.id FROM placed p JOIN graph_worker w ON w.thread_id = p.id;
  RETURN NULL;
END $$;
"""
PLACING = """
CREATE INDEX graph_thread_of_remote ON graph_thread (thread_remote(key), tenant_id) WHERE thread_remote(key) <> '';
CREATE TRIGGER place_of_thread BEFORE INSERT OR UPDATE OF key ON graph_thread
  FOR EACH ROW EXECUTE FUNCTION place_of_thread();
CREATE TRIGGER place_threads AFTER INSERT OR UPDATE OF project_id ON events_projectroot
  FOR EACH ROW WHEN (NEW.kind = 'remote') EXECUTE FUNCTION place_threads();
CREATE TRIGGER unplace_threads AFTER DELETE ON events_projectroot
  FOR EACH ROW WHEN (OLD.kind = 'remote') EXECUTE FUNCTION place_threads();
UPDATE graph_thread t SET project_id = r.project_id FROM events_projectroot r
  WHERE r.kind = 'remote' AND r.tenant_id = t.tenant_id AND r.place = thread_remote(t.key);
"""
UNPLACING = """
DROP TRIGGER place_of_thread ON graph_thread;
DROP TRIGGER place_threads ON events_projectroot;
DROP TRIGGER unplace_threads ON events_projectroot;
DROP INDEX graph_thread_of_remote;
"""

OPENED = "  PERFORM set_config('app.tenant_id', login.tenant_id::text, true);\n"
FOUND = "  SELECT k.tenant_id, k.id, k.public_id,"
ENTER = (
    before.ENTER.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    .replace(FOUND, FOUND + " m.id AS member_id, t.has_limits OR k.only_projects IS NOT NULL AS is_narrow,")
    .replace(
        OPENED,
        OPENED
        + "  IF login.is_narrow THEN PERFORM look_as(login.tenant_id, login.member_id, login.id);\n"
        + "  ELSE PERFORM set_config('app.hidden', '{}', true); END IF;\n",
    )
)
# Of a deleted thing that who asks can't see, and of which it can't be said any more whether they could, they hear what
# they hear of an unknown one.
MISSING = doors.MISSING.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION").replace(
    "AND k.reason = 'deleted';",
    "AND k.reason = 'deleted'\n"
    "      AND (coalesce(nullif(current_setting('app.hidden', true), ''), '{}') = '{}'\n"
    "        OR thread_open_as(asked) OR trigger_open_as(asked) OR worker_open_as(asked));",
)


def again(old: str) -> str:
    return old.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")


class Migration(migrations.Migration):
    dependencies = [
        ("graph", "0022_redact_steps"),
        ("events", "0030_limited_projects"),
        ("recall", "0005_search_isolation"),
    ]

    operations = [
        migrations.AddField(
            "thread", "project_pk", models.UUIDField(db_column="project_id", editable=False, null=True)
        ),
        function(REMOTE, drop="thread_remote(text)"),
        function(PLACE, drop="place_of_thread()"),
        function(PLACE_ALL, drop="place_threads()"),
        migrations.RunSQL(PLACING, UNPLACING),
        opening("thread_open", "graph_thread"),
        opening("thread_open_as", "graph_thread", column="public_id", kind="text"),
        opening("trigger_open", "graph_trigger"),
        opening("trigger_open_as", "graph_trigger", column="public_id", kind="text"),
        opening("worker_open", "graph_worker"),
        opening("worker_open_as", "graph_worker", column="public_id", kind="text"),
        migrations.RunSQL(
            function(ENTER, drop="enter_door(bytea, text[], text[])").sql, again(before.ENTER)
        ),
        migrations.RunSQL(function(MISSING, drop="missing_or_gone(uuid, text)").sql, again(doors.MISSING)),
        limit("graph_thread", of_project()),
        limit("graph_trigger", follows("thread_open(thread_id)")),
        # A worker that is a session is of the session's project as well as of its thread's.
        limit(
            "graph_worker",
            follows(
                "(thread_id IS NULL OR thread_open(thread_id))",
                "(session_public_id = '' OR session_open_as(session_public_id))",
            ),
        ),
        limit(
            "graph_step",
            follows(
                "thread_open(thread_id)",
                "(worker_public_id = '' OR worker_open_as(worker_public_id))",
                "(other_public_id NOT LIKE 'thr\\_%' OR thread_open_as(other_public_id))",
            ),
        ),
        limit("graph_part", follows("trigger_open(trigger_id)")),
        limit("graph_owner", follows("thread_open(thread_id)", "worker_open(worker_id)")),
        limit("graph_inboxentry", follows("worker_open(worker_id)", "trigger_open(trigger_id)")),
        limit("graph_citation", follows("worker_open(worker_id)")),
        limit(
            "graph_link",
            follows("thread_open(from_thread_id)", "(to_thread_id IS NULL OR thread_open(to_thread_id))"),
        ),
    ]
