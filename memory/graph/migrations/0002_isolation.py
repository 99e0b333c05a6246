from django.db import migrations

from memory.tenants.rls import owned, protect, tie, tie_batches

BODY = """
CREATE TABLE graph_body (
  tenant_id uuid NOT NULL CONSTRAINT graph_body_tenant REFERENCES tenants_tenant (id) ON DELETE CASCADE,
  sha256 bytea NOT NULL,
  stored_on date NOT NULL,
  size bigint NOT NULL,
  codec varchar(8) NOT NULL,
  content bytea NOT NULL,
  PRIMARY KEY (tenant_id, sha256, stored_on)
) PARTITION BY RANGE (stored_on);
-- The content is compressed already; TOAST would only try again.
ALTER TABLE graph_body ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE TABLE graph_body_rest PARTITION OF graph_body DEFAULT;
-- A partition has no policy of its own: it is reached through its parent or not at all.
REVOKE ALL ON graph_body_rest FROM tm_runtime;
"""


class Migration(migrations.Migration):
    dependencies = [("graph", "0001_initial"), ("tenants", "0002_isolation")]

    operations = [
        migrations.RunSQL(BODY, "DROP TABLE graph_body"),
        protect("graph_body"),
        *owned("graph_thread"),
        *owned("graph_trigger"),
        *tie_batches("graph_trigger", {"thread_id": ("graph_thread", "CASCADE")}),
        *owned("graph_worker"),
        tie("graph_worker", "thread_id", "graph_thread", on_delete="SET NULL"),
    ]
