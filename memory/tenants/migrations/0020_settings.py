from django.db import migrations, models

import memory.ids
from memory.tenants.rls import owned


class Migration(migrations.Migration):
    dependencies = [("tenants", "0004_limits_isolation")]

    operations = [
        migrations.CreateModel(
            name="Setting",
            fields=[
                ("id", models.UUIDField(default=memory.ids.new_key, editable=False, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=60)),
                ("value", models.TextField(blank=True)),
                ("secret", models.BinaryField(null=True)),
                ("changed_by", models.CharField(max_length=200)),
                ("changed_at", models.DateTimeField(auto_now=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False, db_index=False, on_delete=models.CASCADE, related_name="settings", to="tenants.tenant"
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="setting",
            constraint=models.UniqueConstraint(fields=("name", "tenant"), name="a_setting_is_set_once"),
        ),
        *owned("tenants_setting"),
    ]
