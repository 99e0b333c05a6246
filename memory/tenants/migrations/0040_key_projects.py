from importlib import import_module

import django.contrib.postgres.fields
from django.db import migrations, models

from memory.tenants.rls import function

before = import_module("memory.tenants.migrations.0002_isolation")

# Of nearly every key that comes it is known here, without another look, that nothing is hidden from it.
KEY_LOGIN = before.KEY_LOGIN.replace("role text, scopes text[])", "role text, scopes text[], sees_all boolean)").replace(
    "         ARRAY(SELECT jsonb_array_elements_text(k.scopes))\n",
    "         ARRAY(SELECT jsonb_array_elements_text(k.scopes)), NOT t.has_limits AND k.only_projects IS NULL\n",
)
DROP = "DROP FUNCTION key_login(bytea);"


class Migration(migrations.Migration):
    dependencies = [("tenants", "0030_sign_on")]

    operations = [
        migrations.AddField(
            model_name="agentkey",
            name="only_projects",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.UUIDField(), blank=True, null=True, size=None
            ),
        ),
        migrations.AddField(
            model_name="tenant",
            name="has_limits",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.RunSQL(
            DROP + function(KEY_LOGIN, drop="key_login(bytea)").sql,
            DROP + function(before.KEY_LOGIN, drop="key_login(bytea)").sql,
        ),
    ]
