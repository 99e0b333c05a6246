"""Payloads that retention removes: the row stays and says when; bodies lie in a partition for each month."""

from importlib import import_module

from django.db import migrations, models

from memory.tenants.rls import function

doors = import_module("memory.graph.migrations.0006_chain_doors")
STEADY = doors.STEADY

VIEW = rf"""
CREATE OR REPLACE FUNCTION trigger_view(owner uuid, asked uuid) RETURNS json
LANGUAGE plpgsql STABLE SECURITY INVOKER {STEADY} AS $$
DECLARE
  g record;
  neighbours json := '[]';
  parts json;
  owners json := '[]';
  citing json := '[]';
BEGIN
  -- By pieces, as a thread: most triggers have no owner and nothing that cites them.
  SELECT r.*, t.public_id AS home INTO g FROM graph_trigger r JOIN graph_thread t ON t.id = r.thread_id
    WHERE r.id = asked AND r.tenant_id = owner;
  IF NOT FOUND THEN RETURN NULL; END IF;
  IF g.seq > 1 THEN
    SELECT coalesce(json_agg(n.line ORDER BY n.seq), '[]'::json) INTO neighbours FROM (
      SELECT p.seq, p.public_id || ': ' || p.summary AS line FROM graph_trigger p
      WHERE p.thread_id = g.thread_id AND p.seq < g.seq AND p.deleted_at IS NULL ORDER BY p.seq DESC LIMIT 3) n;
  END IF;
  SELECT coalesce(json_object_agg(r.name, 'GET /api/v1/triggers/' || g.public_id || '/payload?part=' || r.name
      || ' (' || told_size(r.size) || CASE WHEN r.dropped_at IS NOT NULL THEN ', removed on ' || to_char(r.dropped_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')
        || ' by retention)' WHEN r.content IS NULL THEN ', truncated)' ELSE ')' END ORDER BY r.name <> 'payload', r.name), '{{}}'::json)
    INTO parts FROM graph_part r WHERE r.trigger_id = asked;
  PERFORM FROM graph_owner o WHERE o.thread_id = g.thread_id LIMIT 1;
  IF FOUND THEN
    SELECT coalesce(json_agg(w.public_id ORDER BY o.since, w.public_id), '[]'::json) INTO owners
      FROM graph_owner o JOIN graph_worker w ON w.id = o.worker_id AND w.deleted_at IS NULL WHERE o.thread_id = g.thread_id;
  END IF;
  PERFORM FROM graph_citation c WHERE c.cited = g.public_id AND c.tenant_id = owner LIMIT 1;
  IF FOUND THEN
    SELECT coalesce(json_agg(n.public_id), '[]'::json) INTO citing FROM (
      SELECT w.public_id FROM graph_citation c JOIN graph_worker w ON w.id = c.worker_id AND w.deleted_at IS NULL
      WHERE c.cited = g.public_id AND c.tenant_id = owner ORDER BY w.created_at, w.public_id LIMIT 50) n;
  END IF;
  RETURN json_build_object(
    'trigger_id', g.public_id, 'source', g.source, 'external_id', g.external_id, 'thread_id', g.home,
    'seq', g.seq, 'summary', g.summary, 'occurred_at', g.occurred_at, 'received_at', g.received_at,
    'neighbours', neighbours, 'spilled', parts, 'owner_workers', owners, 'cited_by', citing);
END $$;
"""
VIEW_BEFORE = doors.TRIGGER.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")

# A month whose rows are all gone is dropped whole, which gives the room back at once; a month to come gets its
# partition before its first row. Both want a lock that must not be waited for in front of everybody: then it is
# left to the next run. What the rest partition holds of a month stays there.
MONTHS = r"""
CREATE FUNCTION body_months(OUT made int, OUT dropped int)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public SET lock_timeout = '2s' AS $$
DECLARE
  month date;
  part text;
  is_empty boolean;
BEGIN
  made := 0;
  dropped := 0;
  FOR ahead IN 0..1 LOOP
    month := (date_trunc('month', now()) + make_interval(months => ahead))::date;
    part := 'graph_body_' || to_char(month, 'YYYY_MM');
    CONTINUE WHEN to_regclass('public.' || part) IS NOT NULL
      OR EXISTS (SELECT FROM graph_body_rest r WHERE r.stored_on = month);
    EXECUTE format('CREATE TABLE public.%I PARTITION OF public.graph_body FOR VALUES FROM (%L) TO (%L)',
                   part, month, (month + interval '1 month')::date);
    -- A partition has no policy of its own: it is reached through its parent or not at all.
    EXECUTE format('REVOKE ALL ON public.%I FROM tm_runtime', part);
    made := made + 1;
  END LOOP;
  FOR part IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = 'public.graph_body'::regclass AND c.relname ~ '^graph_body_[0-9]{4}_[0-9]{2}$'
        AND c.relname < 'graph_body_' || to_char(now(), 'YYYY_MM') LOOP
    EXECUTE format('SELECT NOT EXISTS (SELECT FROM public.%I)', part) INTO is_empty;
    IF is_empty THEN
      EXECUTE format('DROP TABLE public.%I', part);
      dropped := dropped + 1;
    END IF;
  END LOOP;
EXCEPTION WHEN lock_not_available THEN
  RETURN;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("graph", "0011_draft_report")]

    operations = [
        migrations.AddField("part", "dropped_at", models.DateTimeField(null=True)),
        migrations.AddIndex(
            "part",
            models.Index(
                condition=models.Q(dropped_at__isnull=True), fields=["tenant", "stored_at"], name="graph_part_kept"
            ),
        ),
        migrations.AddIndex(
            "part",
            models.Index(
                condition=models.Q(content__isnull=True, dropped_at__isnull=True),
                fields=["sha256"],
                name="graph_part_spilled",
            ),
        ),
        migrations.AddIndex(
            "worker",
            models.Index(
                condition=models.Q(report_sha256__isnull=False), fields=["report_sha256"], name="graph_worker_spilled"
            ),
        ),
        migrations.RunSQL(VIEW, VIEW_BEFORE),
        function(MONTHS, drop="body_months()"),
        migrations.RunSQL("SELECT body_months()", migrations.RunSQL.noop),
    ]
