"""Alerts of the caches: raised at an edge, cleared by recovery."""

import django.db.models.deletion
from django.db import migrations, models

import memory.ids
from memory.tenants.rls import owned


class Migration(migrations.Migration):
    dependencies = [("cache_admin", "0007_weekly_pairs")]

    operations = [
        migrations.CreateModel(
            name="Alert",
            fields=[
                ("id", models.UUIDField(default=memory.ids.new_key, editable=False, primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=10)),
                ("tool", models.CharField(max_length=200)),
                ("call_kind", models.CharField(default="tool", max_length=10)),
                ("rate", models.FloatField(null=True)),
                ("usual", models.FloatField(null=True)),
                ("raised_at", models.DateTimeField(auto_now_add=True)),
                ("cleared_at", models.DateTimeField(null=True)),
                ("tenant", models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="cache_alerts", to="tenants.tenant")),
            ],
        ),
        migrations.AddIndex("alert", models.Index(fields=["raised_at"], name="cache_alerts_by_time")),
        migrations.AddConstraint("alert", models.UniqueConstraint(condition=models.Q(("cleared_at__isnull", True)), fields=("tool", "kind", "call_kind", "tenant"), name="an_alert_is_raised_once")),
        *owned("cache_admin_alert"),
    ]
