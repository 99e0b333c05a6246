from django.db import migrations

from memory.tenants.rls import function, owned, protect, tie

# One statement takes from the bucket of one minute's calls, under its row's lock (GCRA): `spent_until` is when the
# bucket will be full again. What a busy key takes ahead is at most 10 ms of its rate, and never more than there is.
SPEND = r"""
CREATE FUNCTION spend_key(presented bytea, calls int, ahead int, door text, used jsonb,
  OUT rate int, OUT granted int, OUT wait float8)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
DECLARE
  asked record;
  want int;
  step interval;
  full_at timestamptz;
BEGIN
  SELECT k.id, k.tenant_id, k.rate_limit, k.last_used_at INTO asked FROM tenants_agentkey k
    WHERE k.hash = presented AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now());
  IF NOT FOUND THEN RETURN; END IF;
  -- A count lost in a crash does no harm, and waiting for the disk would cost each call a millisecond.
  PERFORM set_config('synchronous_commit', 'off', true);
  rate := asked.rate_limit;
  step := make_interval(secs => trunc(60e6 / rate) / 1e6);
  -- A batch larger than the bucket takes a full one, or it could never come in.
  calls := least(calls, rate);
  FOREACH want IN ARRAY ARRAY[greatest(calls, least(ahead, rate / 6000)), calls] LOOP
    INSERT INTO tenants_keyspend AS s (key_id, tenant_id, spent_until)
      VALUES (asked.id, asked.tenant_id, clock_timestamp() + want * step)
      ON CONFLICT (key_id) DO UPDATE SET spent_until = greatest(s.spent_until, clock_timestamp()) + want * step
        WHERE greatest(s.spent_until, clock_timestamp()) + want * step <= clock_timestamp() + interval '1 minute';
    IF FOUND THEN granted := want; EXIT; END IF;
  END LOOP;
  IF granted IS NULL THEN
    SELECT s.spent_until INTO full_at FROM tenants_keyspend s WHERE s.key_id = asked.id;
    wait := extract(epoch FROM full_at + calls * step - clock_timestamp() - interval '1 minute');
    INSERT INTO tenants_keyday AS d (id, tenant_id, key_id, day, door, calls, refused)
      VALUES (gen_random_uuid(), asked.tenant_id, asked.id, (now() AT TIME ZONE 'UTC')::date, door, 0, calls)
      ON CONFLICT (key_id, day, door) DO UPDATE SET refused = d.refused + excluded.refused;
    RETURN;
  END IF;
  INSERT INTO tenants_keyday AS d (id, tenant_id, key_id, day, door, calls, refused)
    SELECT gen_random_uuid(), asked.tenant_id, asked.id, (now() AT TIME ZONE 'UTC')::date, u.key, u.value::bigint, 0
    FROM jsonb_each_text(used) u ORDER BY u.key
    ON CONFLICT (key_id, day, door) DO UPDATE SET calls = d.calls + excluded.calls;
  IF asked.last_used_at IS NULL OR asked.last_used_at < now() - interval '1 minute' THEN
    UPDATE tenants_agentkey k SET last_used_at = now()
      WHERE k.id = asked.id AND (k.last_used_at IS NULL OR k.last_used_at < now() - interval '1 minute');
  END IF;
END $$;
"""
PEEK = """
CREATE FUNCTION peek_invitation(presented bytea)
RETURNS TABLE (tenant_id uuid, invitation_id uuid, slug text, name text, email text, role text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
  SELECT t.id, i.id, t.slug, t.name, i.email, i.role FROM tenants_invitation i
  JOIN tenants_tenant t ON t.id = i.tenant_id AND t.suspended_at IS NULL
  JOIN tenants_member m ON m.tenant_id = i.tenant_id AND m.id = i.invited_by_id AND m.removed_at IS NULL
  WHERE i.hash = presented AND i.accepted_at IS NULL AND i.withdrawn_at IS NULL AND i.expires_at > now()
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0003_limits_and_invitations")]

    operations = [
        tie("tenants_agentkey", "rotated_from_id", "tenants_agentkey", on_delete="SET NULL"),
        protect("tenants_keyspend"),
        tie("tenants_keyspend", "key_id", "tenants_agentkey"),
        *owned("tenants_keyday"),
        tie("tenants_keyday", "key_id", "tenants_agentkey"),
        *owned("tenants_invitation"),
        tie("tenants_invitation", "invited_by_id", "tenants_member"),
        function(SPEND, drop="spend_key(bytea, int, int, text, jsonb)"),
        function(PEEK, drop="peek_invitation(bytea)"),
    ]
