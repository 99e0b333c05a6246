import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

import memory.graph.webhooks.models
import memory.ids
from memory.tenants.rls import function, owned, tie

# Whose endpoint an address is. It gives no secret away: what it takes to check a proof is read once the tenant is bound.
WHOSE = """
CREATE FUNCTION webhook_endpoint(asked text, asked_kind text) RETURNS TABLE (tenant_id uuid, endpoint_pk uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
  SELECT e.tenant_id, e.id FROM graph_endpoint e
  JOIN tenants_tenant t ON t.id = e.tenant_id AND t.suspended_at IS NULL
  WHERE e.public_id = asked AND e.kind = asked_kind
$$;
"""


def _tenant(related_name):
    return models.ForeignKey(
        db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name=related_name,
        to="tenants.tenant",
    )


def _id():
    return models.UUIDField(default=memory.ids.new_key, editable=False, primary_key=True, serialize=False)


class Migration(migrations.Migration):
    dependencies = [("graph", "0006_chain_doors"), ("tenants", "0002_isolation")]

    operations = [
        migrations.CreateModel(
            name="Endpoint",
            fields=[
                ("id", _id()),
                ("public_id", models.CharField(default=memory.graph.webhooks.models.endpoint_id, max_length=100)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("github", "GitHub"), ("gitlab", "GitLab"), ("slack", "Slack"), ("mail", "Mail"),
                            ("generic", "Any other"),
                        ],
                        max_length=10,
                    ),
                ),
                ("name", models.CharField(max_length=120)),
                ("source", models.CharField(max_length=60)),
                ("proof", models.JSONField(default=dict)),
                ("field_map", models.JSONField(default=dict)),
                ("secret", models.BinaryField()),
                ("previous_secret", models.BinaryField(null=True)),
                ("previous_until", models.DateTimeField(null=True)),
                ("created_by", models.CharField(blank=True, max_length=100)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("rotated_at", models.DateTimeField(null=True)),
                ("paused_at", models.DateTimeField(null=True)),
                ("tenant", _tenant("endpoints")),
            ],
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", _id()),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("accepted", "Accepted"), ("repeated", "Repeated"), ("ignored", "Ignored"), ("refused", "Refused"),
                        ],
                        max_length=10,
                    ),
                ),
                ("code", models.CharField(blank=True, max_length=60)),
                ("detail", models.CharField(blank=True, max_length=300)),
                ("delivery_id", models.CharField(blank=True, max_length=300)),
                ("event", models.CharField(blank=True, max_length=100)),
                ("size", models.BigIntegerField(default=0)),
                ("trigger_public_id", models.CharField(blank=True, max_length=100)),
                ("thread_public_id", models.CharField(blank=True, max_length=100)),
                ("times", models.IntegerField(default=1)),
                ("tenant", _tenant("+")),
                (
                    "endpoint",
                    models.ForeignKey(
                        db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries", to="graph.endpoint",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["endpoint", "status", "-at"], name="graph_delivery_latest")],
            },
        ),
        migrations.CreateModel(
            name="Mark",
            fields=[
                ("id", _id()),
                ("mark", models.CharField(max_length=400)),
                ("key", models.CharField(max_length=300)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ("tenant", _tenant("+")),
            ],
        ),
        migrations.AddConstraint(
            model_name="endpoint",
            constraint=models.UniqueConstraint(fields=("public_id", "tenant"), name="one_endpoint_per_id"),
        ),
        migrations.AddConstraint(
            model_name="endpoint",
            constraint=models.UniqueConstraint(fields=("name", "tenant"), name="one_endpoint_per_name"),
        ),
        migrations.AddConstraint(
            model_name="endpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["github", "gitlab", "slack", "mail", "generic"])),
                name="an_endpoint_has_a_known_kind",
            ),
        ),
        migrations.AddConstraint(
            model_name="mark",
            constraint=models.UniqueConstraint(fields=("mark", "tenant"), name="one_thread_per_mark"),
        ),
        *owned("graph_endpoint"),
        *owned("graph_delivery"),
        tie("graph_delivery", "endpoint_id", "graph_endpoint"),
        *owned("graph_mark"),
        function(WHOSE, drop="webhook_endpoint(text, text)"),
    ]
