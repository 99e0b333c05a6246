"""Row level security: what the runtime role can and can't see, whatever the code above it does."""

import uuid
from typing import Any

import pytest
from django.apps import apps
from django.db import IntegrityError, InternalError, ProgrammingError, connection, transaction
from psycopg.errors import ForeignKeyViolation

from memory import ids
from memory.tenants import rls
from memory.tenants.models import AuditEntry, Member, Tenant
from tests import database
from tests.conftest import Agent

UNOWNED = {
    "tenants_browser",
    "axes_accessattempt",
    "axes_accessattemptexpiration",
    "axes_accessfailurelog",
    "axes_accesslog",
    "mfa_authenticator",  # a person's codes and passkeys, in all their teams
    "account_emailaddress",  # of django-allauth; nothing is kept in these two
    "account_emailconfirmation",
    "tenants_user",
    "tenants_operatorentry",  # of many teams: the runtime role adds lines and reads none
    "django_session",
    "django_content_type",
    "django_migrations",
    "auth_group",
    "auth_permission",
    "auth_group_permissions",
}


def rows(sql: str, *values: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall()


@pytest.mark.usefixtures("committed")
def test_the_tests_run_as_a_role_that_is_bound() -> None:
    assert rows("SELECT current_user, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user") == [
        ("tm_runtime", False)
    ]


@pytest.mark.usefixtures("committed")
def test_every_table_of_a_tenant_is_protected() -> None:
    found = rows(
        """SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity,
                  (SELECT string_agg(polname::text || polcmd::text || CASE WHEN polpermissive THEN '' ELSE '!' END, ','
                                     ORDER BY polname DESC) FROM pg_policy WHERE polrelid = c.oid)
           FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT c.relispartition"""
    )
    known = ("tenant_isolation*", "tenant_isolation*,project_limit*!")
    unprotected = {name for name, forced, policies in found if not forced or policies not in known}
    assert unprotected == UNOWNED


# Tables of a team whose rows belong to no project, each with why. A new table gets a policy by `rls.limit`, or a line.
UNLIMITED = {
    # The team itself, its people, keys, settings, and what leaves it.
    "tenants_tenant", "tenants_member", "tenants_agentkey", "tenants_keyspend", "tenants_keyday", "tenants_invitation",
    "tenants_loginlink", "tenants_setting", "tenants_message", "tenants_signon", "tenants_identity", "tenants_arrival",
    "notes_newschoice",
    # A project stands in one by its id at most, which names nothing to who does not see it.
    "tenants_savedfilter",
    # Admins alone read it, and they see every project.
    "tenants_audithead", "tenants_auditentry", "graph_endpoint", "graph_delivery", "graph_mark",
    # Read by workers, or by their own door that asks the things themselves; `lookup.absent` keeps known ids to itself.
    "tenants_due", "tenants_knownid", "recall_mark", "graph_body", "graph_answer", "cache_admin_flight",
    "cache_admin_content",
    # Figures of a team or a tool, without a word of any project.
    "cache_admin_cachesetting", "cache_admin_toolpolicy", "cache_admin_lookup", "cache_admin_toolday",
    "cache_admin_alert", "cache_admin_pairsweek", "cache_admin_usage", "dream_run", "dream_budget", "dream_spent",
    "dream_gardening",
}  # fmt: skip


@pytest.mark.usefixtures("committed")
def test_every_table_that_reaches_a_project_obeys_its_limit() -> None:
    limited, owned = (
        {name for (name,) in rows("SELECT polrelid::regclass::text FROM pg_policy WHERE polname = %s", policy)}
        for policy in ("project_limit", "tenant_isolation")
    )
    assert owned - limited == UNLIMITED, "give the table rls.limit(…), or say above why it has no project"


@pytest.mark.usefixtures("committed")
def test_whatever_binds_a_team_says_who_looks() -> None:
    """A function that binds and leaves what is hidden as it was would show everything to everybody."""
    binding = {
        name
        for name, body in rows("SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace")
        if "set_config('app.tenant_id'" in body and "look_as(" not in body
    }
    assert binding == {"has_notes"}  # it says no more than whether there is a note


@pytest.mark.usefixtures("committed")
def test_a_partition_is_reached_only_through_its_parent() -> None:
    for (name,) in rows("SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r'"):
        assert rows("SELECT has_table_privilege(%s, 'SELECT')", name) == [(False,)]


def test_every_model_of_a_tenant_has_composite_keys(committed: None) -> None:
    """A plain foreign key is checked past row level security: it would link, and betray, another team's rows."""
    tied = {
        (table, column)
        for table, column in rows(
            """SELECT c.conrelid::regclass::text, a.attname FROM pg_constraint c
               JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey) AND a.attname <> 'tenant_id'
               WHERE c.contype = 'f' AND array_length(c.conkey, 1) = 2
               UNION ALL
               SELECT tgrelid::regclass::text, of_column
               FROM pg_trigger, unnest(string_to_array(encode(tgargs, 'escape'), '\\000')) AS of_column
               WHERE tgname = tgrelid::regclass::text || '_tied'"""
        )
    }
    for model in apps.get_models():
        columns = {f.name for f in model._meta.fields}
        if "tenant" not in columns:
            continue
        for field in model._meta.fields:
            target = field.related_model
            if target in (None, Tenant) or "tenant" not in {f.name for f in target._meta.fields}:  # type: ignore[union-attr]
                continue
            assert (model._meta.db_table, field.column) in tied, f"{model.__name__}.{field.name}"


TIES = [("session_id", "events_session"), ("agent_key_id", "tenants_agentkey"), ("member_id", "tenants_member")]


@pytest.fixture
def events(acme: Tenant, globex: Tenant, agent: Agent, globex_agent: Agent, api: Any) -> dict[str, tuple[Any, ...]]:
    """An event of each of two teams: its key, session, agent key and member."""
    for one in (agent, globex_agent):
        payload = {"session_id": "s", "hook_event_name": "Stop"}
        assert api(one).post("hooks/claude-code", payload).status_code == 200
    with database.migrator() as every:
        found = every.execute("SELECT tenant_id::text, id, session_id, agent_key_id, member_id FROM events_event")
        rows = {row[0]: row[1:] for row in found.fetchall()}
    return {"own": rows[str(acme.pk)], "other": rows[str(globex.pk)]}


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("of_other", [True, False])
def test_an_event_names_no_row_of_another_team_and_none_that_is_not_there(
    events: dict[str, tuple[Any, ...]], acme: Tenant, place: int, of_other: bool
) -> None:
    column = TIES[place][0]
    named = events["other"][place + 1] if of_other else uuid.uuid4()
    with database.migrator() as every:
        with pytest.raises(ForeignKeyViolation, match="not there"):
            every.execute(
                f"UPDATE events_event SET seq = 7, {column} = %s WHERE id = %s".encode(), [named, events["own"][0]]
            )
        copied = f"""
            INSERT INTO events_event SELECT (jsonb_populate_record(e, jsonb_build_object('id', gen_random_uuid(),
              'public_id', 'evt_copy', 'key', 'copy', 'seq', 9, '{column}', %s::text))).* FROM events_event e
            WHERE id = %s"""
        with pytest.raises(ForeignKeyViolation, match="not there"):
            every.execute(copied.encode(), [str(named), events["own"][0]])
        every.execute(copied.encode(), [str(events["own"][place + 1]), events["own"][0]])
        assert every.execute("SELECT count(*) FROM events_event WHERE tenant_id = %s", [acme.pk]).fetchone() == (2,)


@pytest.mark.parametrize("place", range(3))
def test_an_event_loses_what_is_deleted_and_goes_with_its_session(
    events: dict[str, tuple[Any, ...]], place: int
) -> None:
    column, target = TIES[place]
    # Other tables name a member by keys that refuse; this is of events alone.
    with database.migrator() as every, every.transaction(force_rollback=True):
        every.execute("SET CONSTRAINTS ALL DEFERRED")
        every.execute(f"DELETE FROM {target} WHERE id = %s".encode(), [events["own"][place + 1]])
        left = every.execute("SELECT id, session_id, agent_key_id, member_id FROM events_event").fetchall()
    kept = list(events["own"])
    # A member's keys go with them.
    kept[2], kept[place + 1] = None if column == "member_id" else kept[2], None
    expected = {events["other"]} if column == "session_id" else {events["other"], tuple(kept)}
    assert set(left) == expected


GRAPH_TIES = [
    ("graph_trigger", "thread_id", "graph_thread", "seq = 7"),
    ("graph_step", "thread_id", "graph_thread", "seq = 7"),
    ("graph_part", "trigger_id", "graph_trigger", "name = 'other'"),
]


@pytest.mark.parametrize(("table", "column", "target", "apart"), GRAPH_TIES)
def test_the_graph_names_no_row_of_another_team_and_goes_with_what_it_names(
    table: str, column: str, target: str, apart: str, agent: Agent, globex_agent: Agent, api: Any
) -> None:
    for one in (agent, globex_agent):
        said = {"source": "ci", "external_id": "1", "summary": "s", "payload": {"a": 1}}
        assert api(one).post("triggers", said).status_code == 201
    with database.migrator() as every:
        found = every.execute(f"SELECT tenant_id, id FROM {target}".encode()).fetchall()
        own, other = sorted(found, key=lambda row: row[0] != agent.member.tenant_id)
        for named in (other[1], uuid.uuid4()):
            with pytest.raises(ForeignKeyViolation, match="not there"):
                moved = f"UPDATE {table} SET {apart}, {column} = %s WHERE tenant_id = %s"
                every.execute(moved.encode(), [named, own[0]])
            given = """'{"seq": 9, "public_id": "copy", "external_id": "copy", "name": "copy"}'"""
            copied = f"""
                INSERT INTO {table} SELECT (jsonb_populate_record(e, to_jsonb(e) || {given}
                  || jsonb_build_object('id', gen_random_uuid(), '{column}', %s::text))).*
                FROM {table} e WHERE tenant_id = %s"""
            with pytest.raises(ForeignKeyViolation, match="not there"):
                every.execute(copied.encode(), [str(named), own[0]])
        every.execute(f"DELETE FROM {target} WHERE id = %s".encode(), [own[1]])
        assert every.execute(f"SELECT DISTINCT tenant_id FROM {table}".encode()).fetchall() == [(other[0],)]


def test_it_sees_nothing_without_a_tenant(teams: dict[str, Any]) -> None:
    assert Member.objects.count() == 0
    assert Tenant.objects.count() == 0


def test_it_sees_its_own_rows_only(teams: dict[str, Any]) -> None:
    with rls.tenant_scope(str(teams["acme"].pk)):
        assert {m.handle for m in Member.objects.all()} == {"alice", "bob", "vera", "mia"}
        assert [t.slug for t in Tenant.objects.all()] == ["acme"]


def test_the_binding_ends_with_its_transaction(teams: dict[str, Any]) -> None:
    with rls.tenant_scope(str(teams["acme"].pk)):
        pass
    assert Member.objects.count() == 0


def test_a_transaction_belongs_to_one_tenant(teams: dict[str, Any]) -> None:
    with rls.tenant_scope(str(teams["acme"].pk)), pytest.raises(rls.AlreadyBound):
        rls.bind(str(teams["globex"].pk))


def test_binding_needs_a_transaction(teams: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError):
        rls.bind(str(teams["acme"].pk))


def test_it_can_not_write_for_another_tenant(teams: dict[str, Any]) -> None:
    with pytest.raises(ProgrammingError, match="row-level security"), rls.tenant_scope(str(teams["globex"].pk)):
        Member.objects.create(tenant=teams["acme"], user=teams["charlie"].user, handle="mole", role="owner")


def test_a_link_to_another_tenant_fails_like_a_link_to_nothing(teams: dict[str, Any]) -> None:
    from memory.events.models import Project, ProjectRoot

    with rls.tenant_scope(str(teams["acme"].pk)):
        theirs = Project.objects.create(tenant=teams["acme"], slug="shop", name="Shop")
    messages = []
    for target in (str(theirs.pk), str(uuid.uuid4())):
        with pytest.raises(IntegrityError) as caught, rls.tenant_scope(str(teams["globex"].pk)):
            ProjectRoot.objects.create(tenant=teams["globex"], project_id=target, kind="root", place="/x")
        messages.append(str(caught.value).replace(target, "ID").split("DETAIL")[0])
    assert messages[0] == messages[1]


def test_the_nil_tenant_can_not_exist(committed: None) -> None:
    with database.migrator() as cleaner, pytest.raises(Exception, match="nil_is_no_tenant"):
        cleaner.execute(
            "INSERT INTO tenants_tenant (id, public_id, slug, name, created_at)"
            " VALUES (%s, 'ten_x', 'nil', 'nil', now())",
            [rls.NIL],
        )


@pytest.mark.parametrize("statement", ["UPDATE tenants_auditentry SET action = 'x'", "DELETE FROM tenants_auditentry"])
def test_the_audit_can_only_grow(teams: dict[str, Any], agent: Any, statement: str) -> None:
    with pytest.raises(ProgrammingError, match="permission denied"), rls.tenant_scope(str(teams["acme"].pk)):
        rows(statement)
    with rls.tenant_scope(str(teams["acme"].pk)):
        assert AuditEntry.objects.count() == 1


@pytest.mark.usefixtures("committed")
def test_the_ways_across_tenants_are_those_named() -> None:
    found = rows("SELECT proname FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace")
    assert {name for (name,) in found} <= set(rls.CROSSINGS)


@pytest.mark.usefixtures("committed")
def test_a_definer_function_has_a_fixed_search_path() -> None:
    loose = rows(
        """SELECT proname FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace
           AND NOT EXISTS (SELECT FROM unnest(proconfig) c WHERE c LIKE 'search_path=%%')"""
    )
    assert loose == []


def test_a_failed_statement_leaves_no_binding(teams: dict[str, Any]) -> None:
    with pytest.raises((InternalError, ProgrammingError)), transaction.atomic():
        rls.bind(str(teams["acme"].pk))
        rows("SELECT nonsense")
    assert Member.objects.count() == 0
    assert ids.kind_of(teams["acme"].public_id) == "tenant"
