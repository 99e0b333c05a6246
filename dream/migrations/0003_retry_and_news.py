from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dream", "0002_isolation")]

    operations = [
        migrations.AddField("run", "is_whole", models.BooleanField(default=False)),
        migrations.AddField("run", "retry_at", models.DateTimeField(null=True)),
        migrations.AddField("digest", "has_news", models.BooleanField(default=False)),
    ]
