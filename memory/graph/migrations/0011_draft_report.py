from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("graph", "0010_webhooks")]

    operations = [migrations.AddField("worker", "draft_report", models.TextField(blank=True, db_default=""))]
