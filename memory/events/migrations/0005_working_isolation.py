"""Isolation of what sessions work on, and the look for teams where there is something to read."""

from django.db import migrations

from memory.tenants.rls import function, owned, tie

# Sessions with a claim whose thread has come: it has the key, or the branch is seen with it.
ARRIVED = """
CREATE FUNCTION claims_arrived(owner uuid) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY INVOKER SET search_path = pg_catalog, public AS $$
  SELECT c.session_id FROM events_claim c
  JOIN graph_thread g ON g.key = c.key AND g.tenant_id = c.tenant_id AND g.deleted_at IS NULL
  WHERE c.tenant_id = owner AND NOT c.is_settled AND c.key <> ''
  UNION
  SELECT c.session_id FROM events_claim c
  JOIN events_reading r ON r.session_id = c.session_id AND r.home <> ''
  LEFT JOIN graph_mark n ON n.mark = 'github name ' || lower(substr(r.home, 8)) AND n.tenant_id = c.tenant_id
  JOIN graph_mark m ON m.tenant_id = c.tenant_id
    AND m.mark = coalesce(split_part(n.key, ' ', 1), lower(r.home)) || ':refs/heads/' || substr(c.what, 8)
  JOIN graph_thread g ON g.key = m.key AND g.tenant_id = m.tenant_id AND g.deleted_at IS NULL
  WHERE c.tenant_id = owner AND NOT c.is_settled AND c.what LIKE 'branch:%'
$$;
"""

# Sessions of the last day alone are looked at: the index of the latest has them, and an older one that was left is read
# when its team has anything else to read. A session is left alone until it has been quiet for a moment.
DUE = """
CREATE FUNCTION working_due(quiet interval) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE made integer;
BEGIN
  INSERT INTO tenants_due (id, tenant_id, task, argument, due_at, attempts, owner)
  SELECT gen_random_uuid(), t.id, 'working', '', clock_timestamp(), 0, ''
  FROM tenants_tenant t
  WHERE t.suspended_at IS NULL
    AND (EXISTS (SELECT FROM events_session s LEFT JOIN events_reading r ON r.session_id = s.id
                 WHERE s.tenant_id = t.id AND s.last_received_at > now() - interval '1 day'
                   AND s.last_received_at < now() - quiet AND NOT s.is_internal AND s.last_seq > coalesce(r.settled_seq, 0))
      OR EXISTS (SELECT FROM claims_arrived(t.id)))
  ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS made = ROW_COUNT;
  RETURN made;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("events", "0004_working"), ("graph", "0010_webhooks"), ("tenants", "0002_isolation")]

    operations = [
        *owned("events_reading"),
        tie("events_reading", "session_id", "events_session"),
        *owned("events_claim"),
        tie("events_claim", "session_id", "events_session"),
        tie("events_claim", "worker_id", "graph_worker", on_delete="SET NULL"),
        function(ARRIVED, drop="claims_arrived(uuid)"),
        function(DUE, drop="working_due(interval)"),
    ]
