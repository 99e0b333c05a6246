import django.db.models.deletion
from django.db import migrations, models

import memory.ids
from memory.tenants.rls import owned


class Migration(migrations.Migration):
    dependencies = [("tenants", "0061_saved_filters")]

    operations = [
        migrations.AddField(
            model_name="signon",
            name="protocol",
            field=models.CharField(
                choices=[("oidc", "OpenID Connect"), ("saml", "SAML 2.0")], default="oidc", max_length=4
            ),
        ),
        migrations.AlterField(
            model_name="signon", name="client_id", field=models.CharField(blank=True, max_length=300)
        ),
        migrations.AddField(
            model_name="signon", name="sso_url", field=models.CharField(blank=True, default="", max_length=2000),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="signon", name="certificates", field=models.JSONField(blank=True, default=list)
        ),
        migrations.CreateModel(
            name="Arrival",
            fields=[
                ("id", models.UUIDField(default=memory.ids.new_key, editable=False, primary_key=True, serialize=False)),
                ("assertion", models.BinaryField()),
                ("asked", models.BinaryField()),
                ("claims", models.BinaryField(blank=True)),
                ("at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE,
                        related_name="+", to="tenants.tenant",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="arrival",
            constraint=models.UniqueConstraint(fields=("assertion", "tenant"), name="an_assertion_is_taken_once"),
        ),
        migrations.AddIndex(
            model_name="arrival", index=models.Index(fields=["asked", "tenant"], name="tenants_arrival_asked")
        ),
        *owned("tenants_arrival"),
    ]
