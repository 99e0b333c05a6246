"""A deleted session takes no more events: what comes later under its key is told so, and nothing of it is kept."""

from importlib import import_module

from django.db import migrations

from memory.tenants.rls import function

before = import_module("memory.events.migrations.0003_record")

ONE_ARGUMENTS = "store_one(uuid, uuid, uuid, jsonb, jsonb, bytea)"
MANY_ARGUMENTS = "store_events(uuid, uuid, uuid, jsonb, jsonb, bytea[])"
READ = "SELECT k.id, k.public_id, k.last_seq, k.project_id INTO home"
PLACED = "  IF (home.project_id IS NULL AND given_remote"
REFUSE_ONE = """  IF home.deleted_at IS NOT NULL THEN
    RETURN QUERY SELECT 'deleted'::text, ''::text, home.public_id::text, 0::bigint, NULL::uuid, home.id;
    RETURN;
  END IF;
"""
# Each passage of the older functions, and what stands there now.
ONE = [(READ, READ.replace("k.project_id", "k.project_id, k.deleted_at")), (PLACED, REFUSE_ONE + PLACED)]
MANY = [
    (
        "    WHERE (k.project_id IS NULL AND g.remote",
        "    WHERE k.deleted_at IS NULL AND (k.project_id IS NULL AND g.remote",
    ),
    ("       OR (g.remote <> ''", "       OR k.deleted_at IS NULL AND (g.remote <> ''"),
    (
        "e(sha text, size bigint, spill int, key text)",
        "e(sha text, size bigint, spill int, key text, s int)",
    ),
    (
        "    WHERE e.spill IS NOT NULL\n",
        "    WHERE e.spill IS NOT NULL\n"
        "      AND NOT EXISTS (SELECT FROM events_session d WHERE d.id = opened[e.s + 1] AND d.deleted_at IS NOT NULL)\n",
    ),
    (
        "    WHERE l.old_pk IS NULL AND l.nth = 1\n",
        "    WHERE l.old_pk IS NULL AND l.nth = 1 AND k.deleted_at IS NULL\n",
    ),
    (
        "  FROM looked l JOIN events_session k ON k.id = l.old_session\n",
        "  FROM looked l JOIN events_session k ON k.id = l.old_session\n"
        "  UNION ALL\n"
        "  SELECT l.i, 'deleted'::text, ''::text, k.public_id::text, 0::bigint, NULL::uuid, l.session\n"
        "  FROM looked l JOIN events_session k ON k.id = l.session WHERE l.old_pk IS NULL AND k.deleted_at IS NOT NULL\n",
    ),
]


def now(sql: str, passages: list[tuple[str, str]]) -> str:
    """The function with each passage replaced, in place of the older one."""
    for old, new in passages:
        if old not in sql:
            raise ValueError(f"the older function has no {old!r}")
        sql = sql.replace(old, new)
    return sql.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")


def replaced(sql: str, passages: list[tuple[str, str]], drop: str) -> migrations.RunSQL:
    step = function(now(sql, passages), drop=drop)
    return migrations.RunSQL(step.sql, sql.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))


class Migration(migrations.Migration):
    dependencies = [("events", "0006_deleted")]

    operations = [
        replaced(before.STORE_ONE, ONE, ONE_ARGUMENTS),
        replaced(before.STORE, MANY, MANY_ARGUMENTS),
    ]
