"""A session that has stopped is due at once: whoever goes on in another harness is told what this one has learnt."""

from importlib import import_module

from django.db import migrations

from memory.tenants.rls import function

before = import_module("dream.migrations.0002_isolation")

ARGUMENTS = "dream_due(interval, interval)"
# What was idle, and what failed, keeps to the hours between two dreams. A minute between them bounds what a model costs
# a team whose sessions stop all the time.
ONCE = """
    AND NOT EXISTS (SELECT FROM dream_run r WHERE r.tenant_id = t.id
                    AND (r.state IN ('queued', 'running') OR r.created_at > clock_timestamp() - interval '1 minute'))
    AND EXISTS (
      SELECT FROM events_session s LEFT JOIN dream_watermark w ON w.session_id = s.id
      WHERE s.tenant_id = t.id AND NOT s.is_internal AND s.last_seq > coalesce(w.seq, 0)
        AND (w.retry_at IS NULL OR w.retry_at <= clock_timestamp())
        AND (s.state IN ('stopped', 'ended') AND s.last_stop_seq > coalesce(w.seq, 0) AND coalesce(w.failures, 0) = 0
             OR (s.last_stop_seq > coalesce(w.seq, 0) OR s.last_received_at < clock_timestamp() - idle)
                AND NOT EXISTS (SELECT FROM dream_run r WHERE r.tenant_id = t.id AND r.created_at > clock_timestamp() - every)))
  ON CONFLICT DO NOTHING;
"""


def now() -> str:
    start = before.DREAM_DUE.index("    AND NOT EXISTS (SELECT FROM dream_run")
    end = before.DREAM_DUE.index("  GET DIAGNOSTICS")
    return (before.DREAM_DUE[:start] + ONCE.lstrip("\n") + before.DREAM_DUE[end:]).replace(
        "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"
    )


class Migration(migrations.Migration):
    dependencies = [("dream", "0005_changesets_isolation")]

    operations = [
        migrations.RunSQL(
            function(now(), drop=ARGUMENTS).sql,
            before.DREAM_DUE.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"),
        ),
    ]
