from django.db import migrations

from memory.tenants.rls import owned, tie

# As before, and: a dry run is no dream, and an event that a person wants read again is something to dream.
DREAM_DUE = """
CREATE OR REPLACE FUNCTION dream_due(idle interval, every interval) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE made integer;
BEGIN
  -- A team is due when a session has events past its watermark and a Stop, or has been idle for hours.
  INSERT INTO tenants_due (id, tenant_id, task, argument, due_at, attempts, owner)
  SELECT gen_random_uuid(), t.id, 'dream', '', clock_timestamp(), 0, ''
  FROM tenants_tenant t
  WHERE t.suspended_at IS NULL
    AND NOT EXISTS (SELECT FROM dream_run r WHERE r.tenant_id = t.id
                    AND (r.state IN ('queued', 'running')
                         OR (r.created_at > clock_timestamp() - every {replays})))
    AND (EXISTS (
      SELECT FROM events_session s LEFT JOIN dream_watermark w ON w.session_id = s.id
      WHERE s.tenant_id = t.id AND NOT s.is_internal AND s.last_seq > coalesce(w.seq, 0)
        AND (s.last_stop_seq > coalesce(w.seq, 0) OR s.last_received_at < clock_timestamp() - idle)
        AND (w.retry_at IS NULL OR w.retry_at <= clock_timestamp()))
      {again})
  ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS made = ROW_COUNT;
  RETURN made;
END $$;
"""
AGAIN = "OR EXISTS (SELECT FROM dream_quarantined q WHERE q.tenant_id = t.id AND q.is_again)"


class Migration(migrations.Migration):
    dependencies = [("dream", "0004_changesets")]

    operations = [
        tie("dream_run", "replays_id", "dream_run"),
        *owned("dream_sessiongist"),
        tie("dream_sessiongist", "session_id", "events_session"),
        tie("dream_sessiongist", "run_id", "dream_run", on_delete="SET NULL"),
        *owned("dream_budget"),
        *owned("dream_spent"),
        migrations.RunSQL(
            DREAM_DUE.format(replays="AND r.replays_id IS NULL", again=AGAIN),
            DREAM_DUE.format(replays="", again=""),
        ),
    ]
