"""Usage out of imported transcripts: how far each session was read, and which teams have something to read."""

from django.db import migrations, models

from memory.tenants.rls import function

# A session that is only told by hooks holds no usage, and its mark goes on all the same: nobody reads it again.
USAGE_DUE = r"""
CREATE FUNCTION usage_due() RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE made integer;
BEGIN
  INSERT INTO tenants_due (id, tenant_id, task, argument, due_at, attempts, owner)
  SELECT gen_random_uuid(), t.id, 'cache_usage', '', clock_timestamp(), 0, ''
  FROM tenants_tenant t
  WHERE t.suspended_at IS NULL
    AND EXISTS (SELECT FROM events_session s LEFT JOIN cache_admin_watermark w ON w.session_id = s.id
                WHERE s.tenant_id = t.id AND s.deleted_at IS NULL
                  AND s.last_received_at > now() - interval '7 days' AND s.last_seq > coalesce(w.usage_seq, 0))
  ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS made = ROW_COUNT;
  RETURN made;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("cache_admin", "0008_alerts"), ("events", "0007_record_deleted"), ("tenants", "0004_limits_isolation")]

    operations = [
        migrations.AddField("watermark", "usage_seq", models.BigIntegerField(db_default=0, default=0)),
        function(USAGE_DUE, drop="usage_due()"),
    ]
