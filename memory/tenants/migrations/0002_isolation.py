from django.db import migrations

from memory.tenants.rls import append_only, function, owned, protect, tie

KEY_LOGIN = """
CREATE FUNCTION key_login(presented bytea)
RETURNS TABLE (tenant_id uuid, key_pk uuid, key_id text, label text, member_pk uuid, role text, scopes text[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
  SELECT k.tenant_id, k.id, k.public_id, k.name || ' (' || m.handle || ')', m.id, m.role,
         ARRAY(SELECT jsonb_array_elements_text(k.scopes))
  FROM tenants_agentkey k
  JOIN tenants_member m ON m.tenant_id = k.tenant_id AND m.id = k.member_id AND m.removed_at IS NULL
  JOIN tenants_user u ON u.id = m.user_id AND u.is_active
  JOIN tenants_tenant t ON t.id = k.tenant_id AND t.suspended_at IS NULL
  WHERE k.hash = presented AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
$$;
"""
PEEK = """
CREATE FUNCTION peek_login_link(presented bytea) RETURNS TABLE (user_id uuid, slug text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
  SELECT l.user_id, t.slug FROM tenants_loginlink l
  JOIN tenants_tenant t ON t.id = l.tenant_id AND t.suspended_at IS NULL
  JOIN tenants_member m ON m.tenant_id = l.tenant_id AND m.user_id = l.user_id AND m.removed_at IS NULL
  JOIN tenants_user u ON u.id = l.user_id AND u.is_active
  WHERE l.hash = presented AND l.used_at IS NULL AND l.expires_at > now()
$$;
"""
CLAIM = """
CREATE FUNCTION claim_login_link(presented bytea) RETURNS TABLE (user_id uuid, slug text)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
  UPDATE tenants_loginlink l SET used_at = now()
  FROM tenants_tenant t, tenants_member m, tenants_user u
  WHERE l.hash = presented AND l.used_at IS NULL AND l.expires_at > now()
    AND t.id = l.tenant_id AND t.suspended_at IS NULL
    AND m.tenant_id = l.tenant_id AND m.user_id = l.user_id AND m.removed_at IS NULL
    AND u.id = l.user_id AND u.is_active
  RETURNING l.user_id, t.slug
$$;
"""
USER_TENANTS = """
CREATE FUNCTION user_tenants(who uuid)
RETURNS TABLE (tenant_id uuid, member_id uuid, slug text, name text, role text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
  SELECT t.id, m.id, t.slug, t.name, m.role FROM tenants_member m
  JOIN tenants_tenant t ON t.id = m.tenant_id AND t.suspended_at IS NULL
  WHERE m.user_id = who AND m.removed_at IS NULL ORDER BY t.slug
$$;
"""
BY_SLUG = """
CREATE FUNCTION tenant_by_slug(asked text) RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
  SELECT id FROM tenants_tenant WHERE slug = asked AND suspended_at IS NULL
$$;
"""
CLAIM_DUE = """
CREATE FUNCTION claim_due(most integer, lease interval)
RETURNS TABLE (tenant_id uuid, id uuid, task text, argument text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
  -- One sweeper at a time, however many hosts run beat.
  IF NOT pg_try_advisory_xact_lock(hashtext('team-memory sweeper')) THEN RETURN; END IF;
  RETURN QUERY
    UPDATE tenants_due d SET leased_until = clock_timestamp() + lease, owner = ''
    WHERE d.id IN (
      SELECT w.id FROM tenants_due w
      WHERE w.due_at <= clock_timestamp() AND (w.leased_until IS NULL OR w.leased_until < clock_timestamp())
        AND NOT EXISTS (SELECT FROM tenants_tenant t WHERE t.id = w.tenant_id AND t.suspended_at IS NOT NULL)
      ORDER BY w.due_at, w.id LIMIT most FOR UPDATE SKIP LOCKED)
    RETURNING d.tenant_id, d.id, d.task::text, d.argument::text;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0001_initial")]

    operations = [
        protect("tenants_tenant", column="id"),
        *owned("tenants_member"),
        *owned("tenants_agentkey"),
        tie("tenants_agentkey", "member_id", "tenants_member"),
        *owned("tenants_loginlink"),
        *owned("tenants_due"),
        *owned("tenants_auditentry"),
        append_only("tenants_auditentry"),
        *owned("tenants_knownid"),
        append_only("tenants_knownid"),
        protect("tenants_audithead"),
        function(KEY_LOGIN, drop="key_login(bytea)"),
        function(PEEK, drop="peek_login_link(bytea)"),
        function(CLAIM, drop="claim_login_link(bytea)"),
        function(USER_TENANTS, drop="user_tenants(uuid)"),
        function(BY_SLUG, drop="tenant_by_slug(text)"),
        function(CLAIM_DUE, drop="claim_due(integer, interval)"),
    ]
