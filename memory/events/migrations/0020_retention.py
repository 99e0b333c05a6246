from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("events", "0007_record_deleted"), ("graph", "0020_retention")]

    operations = [
        migrations.AddField("event", "dropped_at", models.DateTimeField(null=True)),
        migrations.AddIndex(
            "event",
            models.Index(
                condition=models.Q(dropped_at__isnull=True), fields=["tenant", "received_at"], name="events_event_kept"
            ),
        ),
        migrations.AddIndex(
            "event",
            models.Index(
                condition=models.Q(body__isnull=True, dropped_at__isnull=True),
                fields=["sha256"],
                name="events_event_spilled",
            ),
        ),
    ]
