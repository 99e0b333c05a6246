from django.db import migrations, models
from django.db.models import Q

import memory.ids
from memory.tenants.rls import function

# Asked only where a key was refused, so that no call that is let in pays for it.
KEY_IS_SUSPENDED = """
CREATE FUNCTION key_is_suspended(presented bytea) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
  SELECT EXISTS (
    SELECT FROM tenants_agentkey k
    JOIN tenants_member m ON m.tenant_id = k.tenant_id AND m.id = k.member_id AND m.removed_at IS NULL
    JOIN tenants_user u ON u.id = m.user_id AND u.is_active
    JOIN tenants_tenant t ON t.id = k.tenant_id AND t.suspended_at IS NOT NULL
    WHERE k.hash = presented AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now()))
$$;
"""
SUSPENDED_TEAMS = """
CREATE FUNCTION suspended_teams(who uuid) RETURNS TABLE (tenant_id uuid, slug text, name text, delete_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
  SELECT t.id, t.slug, t.name, t.delete_at FROM tenants_member m
  JOIN tenants_tenant t ON t.id = m.tenant_id AND t.suspended_at IS NOT NULL
  WHERE m.user_id = who AND m.removed_at IS NULL ORDER BY t.slug
$$;
"""
# What it holds is of many teams: the app's role adds lines, and reads them by operator_log() alone.
ADD_ONLY = "REVOKE SELECT, UPDATE, DELETE ON tenants_operatorentry FROM tm_runtime"
AGAIN = "GRANT SELECT, UPDATE, DELETE ON tenants_operatorentry TO tm_runtime"
OPERATOR_LOG = """
CREATE FUNCTION operator_log(who uuid, before uuid, most integer) RETURNS SETOF tenants_operatorentry
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
  SELECT * FROM tenants_operatorentry e
  WHERE (before IS NULL OR e.id < before)
    AND EXISTS (SELECT FROM tenants_user u WHERE u.id = who AND u.is_active AND u.is_operator)
  ORDER BY e.id DESC LIMIT most
$$;
"""
TO_REMOVE = """
CREATE FUNCTION tenants_to_remove() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
  SELECT id FROM tenants_tenant WHERE delete_at <= clock_timestamp() ORDER BY delete_at, id
$$;
"""
# Every table with the policy of teams, whatever migration made it. The later made first: they point at the earlier,
# and a row that nothing points at any more goes without a cascade.
REMOVE = """
CREATE FUNCTION remove_tenant(gone uuid) RETURNS TABLE (slug text, public_id text, person uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public SET statement_timeout = 0 AS $$
DECLARE
  team record;
  people uuid[];
  of_team regclass;
BEGIN
  -- Whatever the app believes: only a team whose time is over.
  SELECT t.slug, t.public_id INTO team FROM tenants_tenant t
    WHERE t.id = gone AND t.delete_at <= clock_timestamp() FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  people := ARRAY(SELECT m.user_id FROM tenants_member m WHERE m.tenant_id = gone);
  FOR of_team IN
    SELECT p.polrelid::regclass FROM pg_policy p
    WHERE p.polname = 'tenant_isolation' AND p.polrelid <> 'tenants_tenant'::regclass ORDER BY p.polrelid::oid DESC
  LOOP
    EXECUTE format('DELETE FROM %s WHERE tenant_id = $1', of_team) USING gone;
  END LOOP;
  DELETE FROM tenants_tenant t WHERE t.id = gone;
  -- One row with the team, and the people who are in no team now, and run nothing.
  RETURN QUERY SELECT team.slug::text, team.public_id::text, NULL::uuid
    UNION ALL
    SELECT team.slug::text, team.public_id::text, p FROM unnest(people) p
    WHERE NOT EXISTS (SELECT FROM tenants_member m WHERE m.user_id = p)
      AND NOT EXISTS (SELECT FROM tenants_user u WHERE u.id = p AND u.is_operator);
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0040_key_projects")]

    operations = [
        migrations.AddField("user", "is_operator", models.BooleanField(db_default=False, default=False)),
        migrations.AddField("tenant", "delete_at", models.DateTimeField(null=True)),
        migrations.AddConstraint(
            "tenant",
            models.CheckConstraint(
                condition=Q(delete_at=None) | Q(suspended_at__isnull=False), name="what_is_to_be_deleted_is_suspended"
            ),
        ),
        migrations.CreateModel(
            name="OperatorEntry",
            fields=[
                (
                    "id",
                    models.UUIDField(default=memory.ids.new_key, editable=False, primary_key=True, serialize=False),
                ),
                ("at", models.DateTimeField()),
                ("actor_kind", models.CharField(max_length=10)),
                ("actor_label", models.CharField(max_length=200)),
                ("action", models.CharField(max_length=60)),
                ("target", models.CharField(max_length=254)),
                ("target_id", models.CharField(blank=True, max_length=100)),
                ("after", models.CharField(blank=True, max_length=200)),
                ("ip", models.CharField(blank=True, max_length=60)),
                ("request_id", models.CharField(blank=True, max_length=60)),
            ],
        ),
        migrations.RunSQL(ADD_ONLY, AGAIN),
        function(KEY_IS_SUSPENDED, drop="key_is_suspended(bytea)"),
        function(SUSPENDED_TEAMS, drop="suspended_teams(uuid)"),
        function(OPERATOR_LOG, drop="operator_log(uuid, uuid, integer)"),
        function(TO_REMOVE, drop="tenants_to_remove()"),
        function(REMOVE, drop="remove_tenant(uuid)"),
    ]
