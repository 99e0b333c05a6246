from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0021_messages")]

    operations = [
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(
                condition=models.Q(("action", "note.read_private")),
                fields=["before", "-seq"],
                name="tenants_private_readings",
            ),
        ),
    ]
