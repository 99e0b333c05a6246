"""What became of each question that was compared with others."""

import django.db.models.deletion
from django.db import migrations, models

import memory.ids
from memory.tenants.rls import owned


class Migration(migrations.Migration):
    dependencies = [("cache_admin", "0009_imported_usage")]

    operations = [
        migrations.CreateModel(
            name="Decision",
            fields=[
                ("id", models.UUIDField(default=memory.ids.new_key, editable=False, primary_key=True, serialize=False)),
                ("tool", models.CharField(max_length=200)),
                ("asked", models.TextField()),
                ("matched", models.TextField(blank=True)),
                ("score", models.FloatField(null=True)),
                ("threshold", models.FloatField()),
                ("outcome", models.CharField(max_length=30)),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("tenant", models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="question_decisions", to="tenants.tenant")),
            ],
        ),
        migrations.AddIndex("decision", models.Index(fields=["at"], name="cache_decisions_by_time")),
        *owned("cache_admin_decision"),
    ]
