import django.db.models.deletion
from django.db import migrations, models

import memory.ids
import memory.tenants.models
from memory.tenants.rls import owned


class Migration(migrations.Migration):
    dependencies = [("tenants", "0020_settings")]

    operations = [
        migrations.CreateModel(
            name="Message",
            fields=[
                ("id", models.UUIDField(default=memory.ids.new_key, editable=False, primary_key=True, serialize=False)),
                ("public_id", models.CharField(default=memory.tenants.models.message_id, max_length=100)),
                ("occasion", models.CharField(max_length=200)),
                (
                    "channel",
                    models.CharField(
                        choices=[("mail", "Mail"), ("slack", "Slack"), ("webhook", "Webhook")], max_length=8
                    ),
                ),
                ("recipient", models.CharField(max_length=300)),
                ("about", models.CharField(max_length=200)),
                ("sealed", models.BinaryField(null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"), ("sending", "Sending"), ("sent", "Sent"), ("failed", "Not sent"),
                            ("unknown", "Not known"),
                        ],
                        default="waiting", max_length=8,
                    ),
                ),
                ("attempts", models.IntegerField(default=0)),
                ("error", models.CharField(blank=True, max_length=300)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("tried_at", models.DateTimeField(null=True)),
                ("next_at", models.DateTimeField(null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages", to="tenants.tenant",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.UniqueConstraint(fields=("public_id", "tenant"), name="one_message_per_id"),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.UniqueConstraint(fields=("occasion", "tenant"), name="one_message_per_occasion"),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(fields=["tenant", "created_at"], name="tenants_message_latest"),
        ),
        *owned("tenants_message"),
    ]
