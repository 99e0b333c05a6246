from django.db import migrations

from memory.tenants.rls import BOUND, function

# Steps can't be changed by the app's role. This one thing may happen to them: a secret is taken out of their words, in
# the bound team only. Their place, their time and what they point at stay.
REDACT = f"""
CREATE FUNCTION redact_step(step text, said text) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
  UPDATE graph_step SET summary = said WHERE public_id = step AND tenant_id = {BOUND} RETURNING true
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("graph", "0021_batches_row_by_row")]

    operations = [function(REDACT, drop="redact_step(text, text)")]
