"""Once a week the inbox counts the pairs of questions that wait."""

import django.db.models.deletion
from django.db import migrations, models

import memory.ids
from memory.tenants.rls import owned


class Migration(migrations.Migration):
    dependencies = [("cache_admin", "0006_counting")]

    operations = [
        migrations.CreateModel(
            name="PairsWeek",
            fields=[
                ("id", models.UUIDField(default=memory.ids.new_key, editable=False, primary_key=True, serialize=False)),
                ("week", models.DateField()),
                ("tenant", models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant")),
            ],
        ),
        migrations.AddConstraint("pairsweek", models.UniqueConstraint(fields=("tenant", "week"), name="pairs_are_told_of_once_a_week")),
        *owned("cache_admin_pairsweek"),
    ]
