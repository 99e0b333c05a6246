from django.db import migrations

from memory.tenants.rls import owned, tie


class Migration(migrations.Migration):
    dependencies = [("cache_admin", "0001_initial"), ("events", "0002_isolation")]

    operations = [
        *owned("cache_admin_result"),
        *owned("cache_admin_analysis"),
        tie("cache_admin_analysis", "project_id", "events_project", on_delete="SET NULL"),
    ]
