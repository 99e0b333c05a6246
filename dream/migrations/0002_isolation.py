from django.db import migrations

from memory.tenants.rls import function, owned, tie

DREAM_DUE = """
CREATE FUNCTION dream_due(idle interval, every interval) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE made integer;
BEGIN
  -- A team is due when a session has events past its watermark and a Stop, or has been idle for hours.
  INSERT INTO tenants_due (id, tenant_id, task, argument, due_at, attempts, owner)
  SELECT gen_random_uuid(), t.id, 'dream', '', clock_timestamp(), 0, ''
  FROM tenants_tenant t
  WHERE t.suspended_at IS NULL
    AND NOT EXISTS (SELECT FROM dream_run r WHERE r.tenant_id = t.id
                    AND (r.state IN ('queued', 'running') OR r.created_at > clock_timestamp() - every))
    AND EXISTS (
      SELECT FROM events_session s LEFT JOIN dream_watermark w ON w.session_id = s.id
      WHERE s.tenant_id = t.id AND NOT s.is_internal AND s.last_seq > coalesce(w.seq, 0)
        AND (s.last_stop_seq > coalesce(w.seq, 0) OR s.last_received_at < clock_timestamp() - idle)
        AND (w.retry_at IS NULL OR w.retry_at <= clock_timestamp()))
  ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS made = ROW_COUNT;
  RETURN made;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("dream", "0001_initial"), ("notes", "0002_isolation")]

    operations = [
        *owned("dream_run"),
        *owned("dream_window"),
        tie("dream_window", "run_id", "dream_run"),
        tie("dream_window", "session_id", "events_session"),
        *owned("dream_change"),
        tie("dream_change", "run_id", "dream_run"),
        tie("dream_change", "proposal_id", "notes_proposal"),
        *owned("dream_watermark"),
        tie("dream_watermark", "session_id", "events_session"),
        *owned("dream_quarantined"),
        tie("dream_quarantined", "session_id", "events_session"),
        *owned("dream_digest"),
        tie("dream_digest", "project_id", "events_project"),
        function(DREAM_DUE, drop="dream_due(interval, interval)"),
    ]
