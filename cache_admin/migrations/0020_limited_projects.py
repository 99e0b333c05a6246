"""The caches obey the limits that the team set on its projects; they had a list of their own before."""

from importlib import import_module

import django.db.models.deletion
from django.db import migrations, models

from memory.tenants.rls import follows, function, limit, of_project, opening, tie

caches = import_module("cache_admin.migrations.0004_caches_isolation")
speed = import_module("cache_admin.migrations.0005_speed")
counting = import_module("cache_admin.migrations.0006_counting")

MOVED = """
INSERT INTO events_projectaccess (id, tenant_id, project_id, member_id) SELECT id, tenant_id, project_id, member_id
  FROM cache_admin_projectlimit ON CONFLICT DO NOTHING;
UPDATE events_project p SET is_limited = true WHERE EXISTS (SELECT FROM cache_admin_projectlimit l WHERE l.project_id = p.id);
"""


def changed(sql: str, *passages: tuple[str, str]) -> str:
    """The function with each passage replaced, in place of the older one."""
    for old, new in passages:
        if sql.count(old) != 1:
            raise ValueError(f"the older function has not one {old!r}")
        sql = sql.replace(old, new)
    return sql.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)


# Whether a project is limited stands in what a lookup has to know: there a call is never shared beyond the project.
STANDING = changed(
    caches.STANDING,
    ("  merged uuid;\n", "  merged uuid;\n  limited boolean;\n"),
    (
        """    IF EXISTS (SELECT FROM cache_admin_projectlimit l WHERE l.project_id = found_project)
       AND NOT EXISTS (SELECT FROM cache_admin_projectlimit l WHERE l.project_id = found_project AND l.member_id = who) THEN
      found_project := NULL;
    END IF;
""",
        """    IF merged IS NOT NULL THEN SELECT p.is_limited INTO limited FROM events_project p WHERE p.id = merged; END IF;
""",
    ),
    (
        "    SELECT p.id, p.merged_into_id INTO found_project, merged FROM events_project p\n",
        "    SELECT p.id, p.merged_into_id, p.is_limited INTO found_project, merged, limited FROM events_project p\n",
    ),
    (
        "      SELECT p.id, p.merged_into_id INTO found_project, merged FROM events_projectroot r",
        "      SELECT p.id, p.merged_into_id, p.is_limited INTO found_project, merged, limited FROM events_projectroot r",
    ),
    (
        "      coalesce(found_project::text, '-')),\n",
        "      coalesce(found_project::text, '-'), CASE WHEN limited THEN 'limited' END),\n",
    ),
)
BOUND = "  PERFORM set_config('app.tenant_id', login.tenant_id::text, true);\n"
ASKED = "  IF standing.state IS DISTINCT FROM a ->> 'state' THEN\n"
LOOKUP = changed(
    speed._counting_once().replace("CREATE OR REPLACE FUNCTION", "CREATE FUNCTION", 1),
    ("  taken boolean;\n", "  taken boolean;\n  has_hidden boolean;\n"),
    (
        BOUND,
        BOUND
        + "  has_hidden := false;\n"
        + "  IF login.sees_all THEN PERFORM set_config('app.hidden', '{}', true);\n"
        + "  ELSE has_hidden := look_as(login.tenant_id, login.member_pk, login.key_pk); END IF;\n",
    ),
    (
        ASKED,
        "  -- A key with a list of projects shares within them: what others left for the whole team may be of one it can't see.\n"
        "  IF has_hidden AND right(standing.state, 8) <> '.limited' AND EXISTS (\n"
        "      SELECT FROM tenants_agentkey k WHERE k.id = login.key_pk AND k.only_projects IS NOT NULL) THEN\n"
        "    standing.state := standing.state || '.limited';\n"
        "  END IF;\n" + ASKED,
    ),
)
ANALYSES = changed(
    counting.ANALYSES.replace("CREATE OR REPLACE FUNCTION", "CREATE FUNCTION", 1),
    (
        """
        AND ((NOT k.is_limited AND NOT EXISTS (SELECT FROM cache_admin_projectlimit l WHERE l.project_id = k.project_id))
          OR EXISTS (SELECT FROM cache_admin_projectlimit l WHERE l.project_id = k.project_id AND l.member_id = who))
""",
        "\n",
    ),
    ("ORDER BY k.bound_path DESC LIMIT 1", "ORDER BY k.bound_path DESC, k.project_id = place DESC NULLS LAST LIMIT 1"),
)
# In the order of their columns in a table that is made anew.
WITH_PROJECT = ("pair", "decision", "incident")


def of_a_project(model: str) -> list[object]:
    field = models.ForeignKey(
        db_constraint=False,
        null=True,
        on_delete=django.db.models.deletion.SET_NULL,
        related_name="+",
        to="events.project",
    )
    table = f"cache_admin_{model}"
    return [
        migrations.AddField(model, "project", field),
        tie(table, "project_id", "events_project", on_delete="SET NULL"),
        limit(table, of_project()),
    ]


class Migration(migrations.Migration):
    dependencies = [("cache_admin", "0010_decisions"), ("events", "0030_limited_projects")]

    operations = [
        migrations.RunSQL(MOVED, migrations.RunSQL.noop),
        migrations.RunSQL(
            STANDING, caches.STANDING.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)
        ),
        migrations.RunSQL(LOOKUP, speed._counting_once()),
        migrations.RunSQL(ANALYSES, counting.ANALYSES),
        migrations.DeleteModel("ProjectLimit"),
        *(step for model in WITH_PROJECT for step in of_a_project(model)),
        opening("entry_open", "cache_admin_entry"),
        opening("result_open", "cache_admin_result"),
        opening("analysis_open", "cache_admin_analysis"),
        limit("cache_admin_result", of_project()),
        limit("cache_admin_entry", of_project()),
        limit("cache_admin_entrypath", follows("entry_open(entry_id)")),
        limit("cache_admin_question", follows("entry_open(entry_id)")),
        limit("cache_admin_shown", follows("result_open(result_id)")),
        limit("cache_admin_analysis", of_project()),
        limit("cache_admin_analysispath", f"{of_project()} AND ({follows('analysis_open(analysis_id)')})"),
        limit("cache_admin_pathsseen", of_project("project")),
        limit("cache_admin_watermark", follows("session_open(session_id)")),
    ]
