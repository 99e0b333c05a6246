"""A session that has stopped is due at once: whoever goes on in another harness is told what this one has learnt."""

from importlib import import_module

from django.db import migrations

before = import_module("dream.migrations.0005_changesets_isolation")

# What was idle, and what failed, keeps to the hours between two dreams. A minute between them bounds what a model costs
# a team whose sessions stop all the time. A dry run is no dream.
DREAM_DUE = """
CREATE OR REPLACE FUNCTION dream_due(idle interval, every interval) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE made integer;
BEGIN
  INSERT INTO tenants_due (id, tenant_id, task, argument, due_at, attempts, owner)
  SELECT gen_random_uuid(), t.id, 'dream', '', clock_timestamp(), 0, ''
  FROM tenants_tenant t
  CROSS JOIN LATERAL (
    SELECT NOT EXISTS (SELECT FROM dream_run r WHERE r.tenant_id = t.id AND r.replays_id IS NULL
                       AND r.created_at > clock_timestamp() - every) AS is_hour
  ) AS clock
  WHERE t.suspended_at IS NULL
    AND NOT EXISTS (SELECT FROM dream_run r WHERE r.tenant_id = t.id
                    AND (r.state IN ('queued', 'running')
                         OR r.replays_id IS NULL AND r.created_at > clock_timestamp() - interval '1 minute'))
    AND (EXISTS (
      SELECT FROM events_session s LEFT JOIN dream_watermark w ON w.session_id = s.id
      WHERE s.tenant_id = t.id AND NOT s.is_internal AND s.last_seq > coalesce(w.seq, 0)
        AND (w.retry_at IS NULL OR w.retry_at <= clock_timestamp())
        AND (s.state IN ('stopped', 'ended') AND s.last_stop_seq > coalesce(w.seq, 0) AND coalesce(w.failures, 0) = 0
             OR clock.is_hour
                AND (s.last_stop_seq > coalesce(w.seq, 0) OR s.last_received_at < clock_timestamp() - idle)))
      OR clock.is_hour AND EXISTS (SELECT FROM dream_quarantined q WHERE q.tenant_id = t.id AND q.is_again))
  ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS made = ROW_COUNT;
  RETURN made;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("dream", "0005_changesets_isolation")]

    operations = [
        migrations.RunSQL(DREAM_DUE, before.DREAM_DUE.format(replays="AND r.replays_id IS NULL", again=before.AGAIN)),
    ]
