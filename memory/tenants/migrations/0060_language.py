from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0050_operators")]

    operations = [
        migrations.AddField("user", "language", models.CharField(blank=True, db_default="", default="", max_length=10)),
    ]
