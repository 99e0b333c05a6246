"""Whether a team has any approved note, in one round trip: asked with each prompt before anything is looked for."""

from django.db import migrations

from memory.tenants.rls import function

HAS_NOTES = r"""
CREATE FUNCTION has_notes(owner uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, public AS $$
BEGIN
  PERFORM set_config('app.tenant_id', owner::text, true);
  RETURN EXISTS (SELECT FROM notes_note WHERE tenant_id = owner AND current_id IS NOT NULL AND deleted_at IS NULL);
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("recall", "0005_search_isolation"), ("notes", "0001_initial")]

    operations = [function(HAS_NOTES, drop="has_notes(uuid)")]
