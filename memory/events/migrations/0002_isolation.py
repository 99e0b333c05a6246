from django.db import migrations

from memory.tenants.rls import owned, protect, tie, tie_batches, whole


class Migration(migrations.Migration):
    dependencies = [("events", "0001_initial"), ("graph", "0002_isolation")]

    operations = [
        *owned("events_project"),
        tie("events_project", "merged_into_id", "events_project", on_delete="SET NULL"),
        *owned("events_projectroot"),
        tie("events_projectroot", "project_id", "events_project"),
        *owned("events_session"),
        tie("events_session", "project_id", "events_project", on_delete="SET NULL"),
        tie("events_session", "member_id", "tenants_member", on_delete="SET NULL"),
        tie("events_session", "worker_id", "graph_worker", on_delete="SET NULL"),
        tie("events_session", "resumed_from_id", "events_session", on_delete="SET NULL"),
        # No key of its own to the tenant: its session has one, and each key costs every event a look.
        protect("events_event"),
        whole("events_event"),
        *tie_batches(
            "events_event",
            {
                "session_id": ("events_session", "CASCADE"),
                "agent_key_id": ("tenants_agentkey", "SET NULL"),
                "member_id": ("tenants_member", "SET NULL"),
            },
        ),
    ]
