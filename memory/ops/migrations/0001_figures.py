from django.db import migrations

from memory.tenants.rls import function

# The time in a UUIDv7. PostgreSQL 18 has a function for it; 16 and 17, which a real server may be, do not.
MOMENT = r"""
CREATE FUNCTION uuidv7_moment(id uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog AS $$
  SELECT to_timestamp(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0)
$$;
"""

# Sums over all teams, for whoever watches the service; not one row says whose it is. Events have no index by time, so
# their lag is read from the last fifty of each session that was active.
FIGURES = r"""
CREATE FUNCTION service_figures() RETURNS TABLE (name text, label text, value double precision)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE here timestamptz := clock_timestamp();
BEGIN
  RETURN QUERY
  WITH lag AS (
    SELECT greatest(0, extract(epoch FROM e.received_at - e.occurred_at))::float8 AS s
    FROM (SELECT o.id, o.last_seq FROM events_session o WHERE o.last_received_at > here - interval '5 min'
          ORDER BY o.last_received_at DESC LIMIT 500) o
    JOIN LATERAL (SELECT v.received_at, v.occurred_at FROM events_event v
                  WHERE v.session_id = o.id AND v.seq > o.last_seq - 50) e ON true
    WHERE e.occurred_at IS NOT NULL AND e.received_at > here - interval '5 min'
  )
  SELECT v.* FROM (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY s) AS half, max(s) AS most FROM lag) l
  CROSS JOIN LATERAL (VALUES ('ingest_lag_seconds', 'middle', coalesce(l.half, 0)),
                             ('ingest_lag_seconds', 'largest', coalesce(l.most, 0)),
                             -- A call that was not spooled comes within the client's 1.5 s.
                             ('spool_age_seconds', '', CASE WHEN l.most > 2 THEN l.most ELSE 0 END)) v;

  RETURN QUERY
  WITH lag AS (
    SELECT extract(epoch FROM uuidv7_moment(r.id) - uuidv7_moment(r.target))::float8 AS s
    FROM (SELECT n.id, n.target FROM recall_entry n ORDER BY n.id DESC LIMIT 500) r
    WHERE uuidv7_moment(r.target) > here - interval '1 hour'
  )
  SELECT v.* FROM (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY s) AS half, max(s) AS most FROM lag WHERE s >= 0) l
  CROSS JOIN LATERAL (VALUES ('readable_lag_seconds', 'middle', coalesce(l.half, 0)),
                             ('readable_lag_seconds', 'largest', coalesce(l.most, 0))) v;

  RETURN QUERY SELECT 'search_waiting', '', count(*)::float8 FROM recall_mark;

  RETURN QUERY
  SELECT v.* FROM (
    SELECT coalesce(sum(s.last_seq - coalesce(w.seq, 0)), 0)::float8 AS unread, count(*)::float8 AS sessions
    FROM events_session s LEFT JOIN dream_watermark w ON w.session_id = s.id
    WHERE NOT s.is_internal AND s.last_seq > coalesce(w.seq, 0)) b
  CROSS JOIN LATERAL (VALUES ('dream_backlog_events', '', b.unread), ('dream_backlog_sessions', '', b.sessions)) v;

  RETURN QUERY SELECT 'dreams', r.state::text, count(*)::float8 FROM dream_run r GROUP BY r.state;

  RETURN QUERY SELECT 'due_rows', d.task::text, count(*) FILTER (WHERE d.due_at <= here)::float8 FROM tenants_due d GROUP BY d.task;
  RETURN QUERY SELECT 'due_held', d.task::text, count(*) FILTER (WHERE d.owner <> '' AND d.leased_until > here)::float8
    FROM tenants_due d GROUP BY d.task;
  RETURN QUERY SELECT 'due_wait_seconds', '', coalesce(max(extract(epoch FROM here - d.due_at)), 0)::float8
    FROM tenants_due d WHERE d.due_at <= here AND d.owner = '';

  RETURN QUERY SELECT 'cache_lookups', c.status::text, sum(c.times)::float8 FROM cache_admin_lookup c
    WHERE c.at > here - interval '15 min' GROUP BY c.status;
  RETURN QUERY SELECT 'cache_saved_tokens', '', coalesce(sum(greatest(0, c.tokens_stored - c.tokens_returned)), 0)::float8
    FROM cache_admin_lookup c WHERE c.at > here - interval '15 min' AND c.status = 'hit';
  RETURN QUERY SELECT 'cache_bytes', '', coalesce(sum(octet_length(c.content)), 0)::float8 FROM cache_admin_content c;

  RETURN QUERY SELECT 'payload_bytes', replace(c.relname::text, 'graph_body_', ''), pg_total_relation_size(c.oid)::float8
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'graph_body'::regclass;
  RETURN QUERY SELECT 'database_bytes', '', pg_database_size(current_database())::float8;
  RETURN QUERY SELECT 'connections', coalesce(a.usename::text, ''), count(*)::float8 FROM pg_stat_activity a
    WHERE a.datname = current_database() GROUP BY a.usename;
  RETURN QUERY SELECT 'proposals_waiting', '', count(*)::float8 FROM notes_proposal p WHERE p.state = 'open';
END $$;
"""


# Once a day for every team, also for one that keeps everything: old marks and old deliveries go in any case.
RETENTION_DUE = r"""
CREATE FUNCTION retention_due(every interval) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE made integer;
BEGIN
  INSERT INTO tenants_due (id, tenant_id, task, argument, due_at, attempts, owner)
  SELECT gen_random_uuid(), t.id, 'retention', '', clock_timestamp(), 0, ''
  FROM tenants_tenant t LEFT JOIN tenants_setting s ON s.tenant_id = t.id AND s.name = 'retention_ran'
  WHERE t.suspended_at IS NULL AND (s.id IS NULL OR s.changed_at < clock_timestamp() - every)
  ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS made = ROW_COUNT;
  RETURN made;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("cache_admin", "0006_counting"),
        ("dream", "0003_retry_and_news"),
        ("events", "0020_retention"),
        ("graph", "0020_retention"),
        ("notes", "0002_isolation"),
        ("recall", "0005_search_isolation"),
        ("tenants", "0020_settings"),
    ]

    operations = [
        migrations.RunSQL(MOMENT, "DROP FUNCTION uuidv7_moment(uuid)"),
        function(FIGURES, drop="service_figures()"),
        function(RETENTION_DUE, drop="retention_due(interval)"),
    ]
