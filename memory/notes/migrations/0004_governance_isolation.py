from django.db import migrations

from memory.tenants.rls import BOUND, function, owned, tie

# Revisions can't be changed by the app's role. This one thing may happen to them: their words are taken out, in the
# bound team only. Number, hash, author and sources stay, so the history still says that there was a text, and which.
BLANK = f"""
CREATE FUNCTION blank_revision(revision uuid, said text) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
  UPDATE notes_revision
  SET text = said, title = '', description = '', reason = '', blanked_at = clock_timestamp()
  WHERE id = revision AND tenant_id = {BOUND}
  RETURNING true
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("notes", "0003_governance")]

    operations = [
        *owned("notes_redirect"),
        tie("notes_redirect", "note_id", "notes_note"),
        tie("notes_redirect", "member_id", "tenants_member"),
        *owned("notes_rule"),
        *owned("notes_autosaved"),
        tie("notes_autosaved", "member_id", "tenants_member"),
        tie("notes_autosaved", "note_id", "notes_note"),
        *owned("notes_notereport"),
        tie("notes_notereport", "note_id", "notes_note"),
        tie("notes_notereport", "revision_id", "notes_revision"),
        tie("notes_notereport", "closed_by_id", "tenants_member", on_delete="SET NULL"),
        tie("notes_proposal", "seen_by_id", "tenants_member", on_delete="SET NULL"),
        tie("notes_tombstone", "proposal_id", "notes_proposal", on_delete="SET NULL"),
        function(BLANK, drop="blank_revision(uuid, text)"),
    ]
