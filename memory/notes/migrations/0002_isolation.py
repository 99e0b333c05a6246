from django.db import migrations

from memory.tenants.rls import append_only, owned, tie


class Migration(migrations.Migration):
    dependencies = [("notes", "0001_initial"), ("events", "0002_isolation")]

    operations = [
        *owned("notes_note"),
        *owned("notes_revision"),
        tie("notes_note", "member_id", "tenants_member"),
        tie("notes_note", "project_id", "events_project", on_delete="SET NULL"),
        tie("notes_note", "current_id", "notes_revision", on_delete="SET NULL"),
        tie("notes_revision", "note_id", "notes_note"),
        tie("notes_revision", "approved_by_id", "tenants_member", on_delete="SET NULL"),
        append_only("notes_revision"),
        *owned("notes_proposal"),
        tie("notes_proposal", "note_id", "notes_note"),
        tie("notes_proposal", "base_id", "notes_revision", on_delete="SET NULL"),
        tie("notes_proposal", "decided_by_id", "tenants_member", on_delete="SET NULL"),
        *owned("notes_source"),
        tie("notes_source", "proposal_id", "notes_proposal"),
        tie("notes_source", "revision_id", "notes_revision"),
        tie("notes_source", "event_id", "events_event"),
        *owned("notes_tombstone"),
        tie("notes_tombstone", "note_id", "notes_note"),
    ]
