from django.db import migrations

from memory.tenants.rls import function

COLUMNS = """
  tenant_id uuid, public_id text, slug text, name text, created_at timestamptz, suspended_at timestamptz,
  delete_at timestamptz, members bigint, sessions bigint, events bigint, notes bigint, active_at timestamptz
"""
# Events by the sessions' own counts: to count a million rows for a page would take a second. Only the teams of the
# page are counted at all.
FIGURES = f"""
CREATE FUNCTION tenant_figures(one text, words text, after text, most integer) RETURNS TABLE ({COLUMNS})
LANGUAGE sql STABLE SECURITY INVOKER SET search_path = pg_catalog, public AS $$
  SELECT t.id, t.public_id, t.slug, t.name, t.created_at, t.suspended_at, t.delete_at,
    (SELECT count(*) FROM tenants_member m WHERE m.tenant_id = t.id AND m.removed_at IS NULL),
    s.many, s.events,
    (SELECT count(*) FROM notes_note n WHERE n.tenant_id = t.id AND n.deleted_at IS NULL AND n.current_id IS NOT NULL),
    GREATEST(s.latest, (
      -- Its own people and agents, not the operator who suspends it.
      SELECT a.at FROM tenants_auditentry a WHERE a.tenant_id = t.id AND a.actor_kind IN ('member', 'key')
      ORDER BY a.seq DESC LIMIT 1))
  FROM (
    SELECT * FROM tenants_tenant f
    WHERE (one IS NULL OR f.slug = one) AND position(lower(words) IN lower(f.slug || ' ' || f.name)) > 0
      AND f.slug COLLATE "C" > after
    ORDER BY f.slug COLLATE "C" LIMIT most) t
  CROSS JOIN LATERAL (
    SELECT count(*) AS many, coalesce(sum(e.last_seq), 0)::bigint AS events, max(e.last_received_at) AS latest
    FROM events_session e WHERE e.tenant_id = t.id AND e.deleted_at IS NULL) s
  ORDER BY t.slug COLLATE "C"
$$;
"""
SIGNATURE = "tenant_figures(text, text, text, integer)"
# The commands on the server read it as the backup role, which sees every row; the app's role asks by an operator.
ONLY_BACKUP = f"""
REVOKE ALL ON FUNCTION {SIGNATURE} FROM PUBLIC, tm_runtime;
GRANT EXECUTE ON FUNCTION {SIGNATURE} TO tm_backup;
"""
OPERATOR_TENANTS = f"""
CREATE FUNCTION operator_tenants(who uuid, one text, words text, after text, most integer) RETURNS TABLE ({COLUMNS})
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
BEGIN
  IF EXISTS (SELECT FROM tenants_user u WHERE u.id = who AND u.is_active AND u.is_operator) THEN
    RETURN QUERY SELECT * FROM tenant_figures(one, words, after, most);
  END IF;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("events", "0030_limited_projects"),
        ("notes", "0015_limited_projects"),
        ("ops", "0001_figures"),
        ("tenants", "0050_operators"),
    ]

    operations = [
        migrations.RunSQL(FIGURES + ONLY_BACKUP, f"DROP FUNCTION {SIGNATURE}"),
        function(OPERATOR_TENANTS, drop="operator_tenants(uuid, text, text, text, integer)"),
    ]
