"""A login link opens what its person had when it was made, and nothing that they became since.

Whoever made it may hold it still: an admin of one team, whose member joined another team or became an owner meanwhile.
"""

from django.db import migrations

from memory.tenants.rls import function

END = """
CREATE FUNCTION end_login_links(who uuid) RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
  WITH ended AS (
    UPDATE tenants_loginlink SET expires_at = now() WHERE user_id = who AND used_at IS NULL AND expires_at > now()
    RETURNING 1)
  SELECT count(*) FROM ended
$$;
"""
END_OF_MEMBER = """
CREATE FUNCTION end_links_of_member() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
  PERFORM end_login_links(NEW.user_id);
  RETURN NULL;
END $$;
"""
WATCHING = """
CREATE TRIGGER begun_member AFTER INSERT ON tenants_member FOR EACH ROW EXECUTE FUNCTION end_links_of_member();
CREATE TRIGGER changed_member AFTER UPDATE ON tenants_member FOR EACH ROW
  WHEN (NEW.role <> OLD.role OR NEW.removed_at IS DISTINCT FROM OLD.removed_at) EXECUTE FUNCTION end_links_of_member();
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0062_saml")]

    operations = [
        function(END, drop="end_login_links(uuid)"),
        function(END_OF_MEMBER, drop="end_links_of_member()"),
        migrations.RunSQL(
            WATCHING, "DROP TRIGGER begun_member ON tenants_member; DROP TRIGGER changed_member ON tenants_member"
        ),
    ]
