"""What is told and found obeys the limits of projects, in the functions that see past policies too."""

from importlib import import_module

from django.db import migrations

from memory.tenants.rls import NOTHING_HIDDEN, follows, function, limit, of_project, opening

before = import_module("memory.recall.migrations.0005_search_isolation")

ARGUMENTS = "search_reach(text[], uuid[], uuid[], uuid)"
TENANT = "    || format(' AND x.kind = ANY (%L::text[])', kinds)\n"
REACH = before.REACH.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION").replace(
    TENANT,
    TENANT
    + "    || CASE WHEN coalesce(nullif(current_setting('app.hidden', true), ''), '{}') = '{}' THEN ''\n"
    + "         ELSE format(' AND x.place <> ALL (%L::uuid[])', current_setting('app.hidden')) END\n",
)
# The words that a team has written are of all its projects: who may not see them all is offered none of them.
TRGM = "    WHERE w.word % t.one AND w.tenant_id = owner"
SPELLING = before.SPELLING.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION").replace(
    TRGM, TRGM + " AND coalesce(nullif(current_setting('app.hidden', true), ''), '{}') = '{}'"
)

def again(old: str) -> str:
    return old.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")


class Migration(migrations.Migration):
    dependencies = [
        ("recall", "0006_has_notes"),
        ("notes", "0015_limited_projects"),
        ("events", "0030_limited_projects"),
    ]

    operations = [
        migrations.RunSQL(function(REACH, drop=ARGUMENTS).sql, again(before.REACH)),
        migrations.RunSQL(function(SPELLING, drop="search_spelling(text[], real)").sql, again(before.SPELLING)),
        opening("telling_open", "recall_telling"),
        limit("recall_telling", follows("session_open(session_id)")),
        limit("recall_toldnote", follows("telling_open(telling_id)", "note_open(note_id)")),
        limit("recall_notewords", follows("note_open(note_id)")),
        # A place is a project's id, or what stands for its name: both are among what is hidden.
        limit("recall_entry", of_project("place")),
        limit("recall_vector", of_project("place")),
        limit("recall_word", NOTHING_HIDDEN),
    ]
