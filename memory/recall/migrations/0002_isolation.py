from django.db import migrations

from memory.tenants.rls import owned, tie


class Migration(migrations.Migration):
    dependencies = [("recall", "0001_initial"), ("notes", "0002_isolation")]

    operations = [
        *owned("recall_telling"),
        tie("recall_telling", "session_id", "events_session"),
        tie("recall_telling", "event_id", "events_event"),
        tie("recall_telling", "member_id", "tenants_member", on_delete="SET NULL"),
        *owned("recall_toldnote"),
        tie("recall_toldnote", "telling_id", "recall_telling"),
        tie("recall_toldnote", "note_id", "notes_note"),
        tie("recall_toldnote", "revision_id", "notes_revision"),
    ]
