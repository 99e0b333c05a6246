import django.db.models.deletion
from django.db import migrations, models

import memory.ids
from memory.tenants.rls import owned, tie

ROLES = [
    ("owner", "Owner"), ("admin", "Admin"), ("reviewer", "Reviewer"), ("member", "Member"), ("viewer", "Viewer"),
]


class Migration(migrations.Migration):
    dependencies = [("tenants", "0022_private_readings")]

    operations = [
        migrations.CreateModel(
            name="SignOn",
            fields=[
                ("id", models.UUIDField(default=memory.ids.new_key, editable=False, primary_key=True, serialize=False)),
                ("issuer", models.CharField(max_length=500)),
                ("client_id", models.CharField(max_length=300)),
                ("secret", models.BinaryField()),
                ("domains", models.CharField(blank=True, max_length=1000)),
                ("role", models.CharField(blank=True, choices=ROLES, max_length=12)),
                ("is_required", models.BooleanField(default=False)),
                ("is_for_owners", models.BooleanField(default=False)),
                ("connected_at", models.DateTimeField()),
                ("changed_by", models.CharField(max_length=200)),
                ("changed_at", models.DateTimeField(auto_now=True)),
                (
                    "tenant",
                    models.OneToOneField(
                        db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name="sign_on",
                        to="tenants.tenant",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="signon",
            constraint=models.CheckConstraint(
                condition=models.Q(("role__in", ["", "reviewer", "member", "viewer"])),
                name="nobody_joins_by_sign_on_as_an_admin",
            ),
        ),
        *owned("tenants_signon"),
        migrations.CreateModel(
            name="Identity",
            fields=[
                ("id", models.UUIDField(default=memory.ids.new_key, editable=False, primary_key=True, serialize=False)),
                ("issuer", models.CharField(max_length=500)),
                ("subject", models.CharField(max_length=255)),
                ("linked_at", models.DateTimeField(auto_now_add=True)),
                ("last_at", models.DateTimeField()),
                (
                    "member",
                    models.ForeignKey(
                        db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE,
                        related_name="identities", to="tenants.member",
                    ),
                ),
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
            model_name="identity",
            constraint=models.UniqueConstraint(
                fields=("subject", "issuer", "tenant"), name="one_member_per_identity"
            ),
        ),
        migrations.AddConstraint(
            model_name="identity",
            constraint=models.UniqueConstraint(
                fields=("member", "issuer"), name="one_identity_per_member_and_provider"
            ),
        ),
        *owned("tenants_identity"),
        tie("tenants_identity", "member_id", "tenants_member"),
    ]
