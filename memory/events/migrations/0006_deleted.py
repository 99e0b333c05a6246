from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("events", "0005_working_isolation")]

    operations = [
        migrations.AddField("session", "deleted_at", models.DateTimeField(null=True)),
    ]
