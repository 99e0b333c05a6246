from django.db import migrations

from memory.tenants.rls import append_only, owned, protect, tie, tie_batches

# A step is never changed or removed; only its words may be wiped, when what they speak of is deleted.
WIPE = "GRANT UPDATE (summary) ON graph_step TO tm_runtime"
# Most updates of a busy thread stay on its page and touch no index.
ROOM = "ALTER TABLE graph_thread SET (fillfactor = 70)"

# A trigger's thread has a key to the tenant; one more would cost each trigger a look.
LIGHTER = "ALTER TABLE graph_trigger DROP CONSTRAINT graph_trigger_tenant"
HEAVIER = """ALTER TABLE graph_trigger ADD CONSTRAINT graph_trigger_tenant
  FOREIGN KEY (tenant_id) REFERENCES tenants_tenant (id) ON DELETE CASCADE"""


class Migration(migrations.Migration):
    dependencies = [("graph", "0003_chain")]

    operations = [
        # Their threads and workers have a key to the tenant; one more would cost each row a look.
        protect("graph_step"),
        *tie_batches("graph_step", {"thread_id": ("graph_thread", "CASCADE")}),
        append_only("graph_step"),
        migrations.RunSQL(WIPE, "REVOKE UPDATE (summary) ON graph_step FROM tm_runtime"),
        protect("graph_part"),
        *tie_batches("graph_part", {"trigger_id": ("graph_trigger", "CASCADE")}),
        protect("graph_owner"),
        tie("graph_owner", "thread_id", "graph_thread"),
        tie("graph_owner", "worker_id", "graph_worker"),
        protect("graph_inboxentry"),
        tie("graph_inboxentry", "worker_id", "graph_worker"),
        tie("graph_inboxentry", "trigger_id", "graph_trigger"),
        protect("graph_citation"),
        tie("graph_citation", "worker_id", "graph_worker"),
        *owned("graph_link"),
        tie("graph_link", "from_thread_id", "graph_thread"),
        tie("graph_link", "to_thread_id", "graph_thread"),
        *owned("graph_answer"),
        migrations.RunSQL(LIGHTER, HEAVIER),
        migrations.RunSQL(ROOM, "ALTER TABLE graph_thread RESET (fillfactor)"),
    ]
