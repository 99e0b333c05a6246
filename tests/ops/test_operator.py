"""Operators: what they do with teams, what they are shown, and that nobody else is."""

import io
import json
import zipfile
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from memory.ops import export, tasks, teams
from memory.tenants import audit, due, people, rls
from memory.tenants.access import member_actor
from memory.tenants.models import AuditEntry, Due, LoginLink, Tenant, User
from tests import database
from tests.cache import made as made_cache
from tests.cache.asked import call
from tests.conftest import Agent, Api, new_agent, new_team
from tests.graph import made as made_graph
from tests.pages import chains, made

BY = teams.Operator("operator", "olga@server.test")
POSTS = ("suspend", "resume", "export", "delete", "keep")


@pytest.fixture
def olga(committed: None) -> User:
    """Runs the server, and is in a small team of her own."""
    _, members = new_team("own", olga="owner")
    User.objects.filter(pk=members["olga"].user_id).update(is_operator=True)
    return User.objects.get(pk=members["olga"].user_id)


@pytest.fixture
def browser(olga: User) -> Client:
    client = Client()
    client.force_login(olga)
    return client


def stale(client: Client) -> Client:
    """The same browser an hour after its last proof."""
    session = client.session
    session["proved_at"] = 0
    session.save()
    return client


def team(slug: str) -> teams.Team:
    return teams.on_server(slug)[0]


def actions(tenant: Any) -> list[str]:
    with rls.tenant_scope(str(tenant.pk)):
        return list(AuditEntry.objects.order_by("seq").values_list("action", flat=True))


def fill(tenant: Any, member: Any) -> None:
    """Something of most kinds, with words that only this team has."""
    session = made.session(tenant, last_prompt=f"{tenant.slug}-only words")
    event = made.event(session, body=json.dumps({"prompt": f"{tenant.slug}-only words"}))
    # Of more than 16 KB, so that its payload lies in the store of bodies.
    large = {
        "session_id": "large",
        "hook_event_name": "UserPromptSubmit",
        "prompt": f"{tenant.slug}-only words " * 2000,
    }
    assert Api(new_agent(member)).post("hooks/claude-code", large).status_code == 200
    made.note(tenant, member, text=f"# {tenant.slug}-only words\n")
    made.proposal(tenant, path=f"general/{tenant.slug}-only.md", rests_on=(event,))
    made.invitation(tenant, member)
    made.message(tenant)
    chains.endpoint(tenant, member, name=f"{tenant.slug}-only endpoint")
    made_graph.chain(tenant)
    made_cache.result(tenant, member)


# Who gets in


def test_a_stranger_is_asked_to_log_in_and_a_member_finds_nothing(logged_in: Any, alice: Any) -> None:
    paths = ["", "new/", "log/", "teams/acme/", *(f"teams/acme/{one}/" for one in POSTS)]
    member = logged_in(alice)
    for path in paths:
        method = "post" if path.strip("/").split("/")[-1] in POSTS else "get"
        assert getattr(Client(), method)(f"/operator/{path}")["Location"].startswith("/login/")
        assert getattr(member, method)(f"/operator/{path}").status_code == 404, path


def test_who_came_by_a_teams_single_sign_on_alone_finds_nothing(browser: Client) -> None:
    session = browser.session
    session["confined"] = True
    session.save()
    assert browser.get("/operator/").status_code == 404


def test_the_database_tells_nobody_else(alice: Any, olga: User) -> None:
    teams.log(BY, "team.create", "acme")
    assert teams.listed(str(alice.user_id)) == [] and teams.one(str(alice.user_id), "acme") is None
    assert teams.logged(str(alice.user_id)) == []
    assert [one.slug for one in teams.listed(str(olga.pk))] == ["acme", "globex", "own"]
    for sql in ("SELECT * FROM tenants_operatorentry", "SELECT * FROM tenant_figures(NULL, '', '', 9)"):
        with pytest.raises(Exception, match="permission denied"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql)


def test_every_change_asks_who_is_there(browser: Client, acme: Tenant) -> None:
    stale(browser)
    for path in ("new/", *(f"teams/acme/{one}/" for one in POSTS)):
        assert browser.post(f"/operator/{path}", {"slug": "acme"})["Location"].startswith("/prove/"), path
    assert team("acme").state == "active"


def test_an_admin_can_not_become_an_operator_by_a_login_link(acme: Tenant, alice: Any, bob: Any) -> None:
    call_command("operator", bob.user.email)
    bob.user.refresh_from_db()
    with rls.tenant_scope(str(acme.pk)), pytest.raises(people.InvalidMember):
        people.login_link_for(bob, by=member_actor(alice))
    assert not LoginLink.objects.exists()


def test_the_command_names_operators(alice: Any, acme: Tenant, capsys: Any) -> None:
    email = alice.user.email
    call_command("operator", email)
    call_command("operator")
    pages = f"Their pages: {settings.PUBLIC_URL}/operator/"
    assert capsys.readouterr().out.splitlines() == [f"{email} is an operator now.", pages, email]
    assert actions(acme)[-1] == "operator.add"
    call_command("operator", email, "--remove")
    assert not User.objects.get(email=email).is_operator
    with pytest.raises(CommandError, match="no account"):
        call_command("operator", "nobody@acme.test")


# The list, and a new team


def test_it_shows_how_much_and_never_what(browser: Client, acme: Tenant, alice: Any) -> None:
    fill(acme, alice)
    page = browser.get("/operator/").content.decode()
    assert "4 members" in page and "2 events<" in page and "acme-only" not in page
    assert "acme-only" not in browser.get("/operator/teams/acme/").content.decode()
    assert "globex" not in browser.get("/operator/?q=ACM").content.decode()
    assert "No team is called so" in browser.get("/operator/?q=%25").content.decode()
    assert browser.get("/operator/teams/none/").status_code == 404


def test_it_makes_a_team_and_shows_the_link_once(browser: Client, alice: Any) -> None:
    asked = {"name": "New Team", "slug": "new", "owner": "nina@new.test"}
    answer = browser.post("/operator/new/", asked)
    link = answer.context["made"].login_url
    assert answer.status_code == 200 and link in answer.content.decode()
    assert browser.get("/operator/teams/new/").content.decode().count("/login/link/") == 0
    assert Client().post(link[link.index("/login/link/") :])["Location"] in ("/t/new/", "/password/?next=/t/new/")
    assert browser.post("/operator/new/", asked).status_code == 422
    assert browser.post("/operator/new/", {**asked, "slug": "No!"}).status_code == 422
    # Who has an account gets no link: it would open all their teams to whoever holds it.
    again = browser.post("/operator/new/", {**asked, "slug": "second", "owner": alice.user.email})
    assert "/login/link/" not in again.content.decode()
    assert [m.tenant.slug for m in people.teams_of(str(alice.user_id))] == ["acme", "second"]


# Suspended


def test_a_suspended_team_is_refused_at_every_door_and_loses_nothing(
    browser: Client, acme: Tenant, alice: Any, agent: Agent, api: Any, logged_in: Any, settings: Any
) -> None:
    settings.CONTACT = "ops@server.test"
    body = {"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": "hello", "cwd": "/x"}
    line = json.dumps({"client": "claude_code", "event": "UserPromptSubmit", "payload": body}) + "\n"
    asked = api(agent)
    assert asked.post("hooks/claude-code", body).status_code == 200
    assert browser.post("/operator/teams/acme/suspend/", {"reason": "unpaid"}).status_code == 302
    answers = [
        asked.get("sessions"),
        asked.post("hooks/claude-code", body),
        asked.post("events/batch", line.encode(), content_type="application/x-ndjson"),
        asked.post("triggers", {"source": "manual", "external_id": "1", "summary": "x"}),
        asked.get("threads/thr_none"),
        asked.post("cache/tools/lookup", call()),
        asked.client.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, content_type="application/json"),
    ]
    for answer in answers:
        assert answer.status_code == 403, answer.content
        assert answer.json()["code"] == "tenant_suspended" and "ops@server.test" in answer.json()["detail"]
    page = logged_in(alice).get("/t/acme/notes/")
    assert page.status_code == 403 and b"is suspended" in page.content and b"ops@server.test" in page.content
    assert b"suspended" in logged_in(alice).get("/teams/").content
    assert Client(headers={"Authorization": "Bearer tm_live_none"}).get("/api/v1/sessions").status_code == 401
    assert browser.post("/operator/teams/acme/suspend/").status_code == 409
    assert browser.post("/operator/teams/acme/resume/").status_code == 302
    assert asked.post("events/batch", line.encode(), content_type="application/x-ndjson").json()["accepted"] == 1
    assert actions(acme)[-2:] == ["team.suspend", "team.resume"]
    log = browser.get("/operator/log/").content.decode()
    assert "team.suspend" in log and "unpaid" in log and "olga@own.test" in log


def test_nothing_works_for_a_suspended_team(acme: Tenant) -> None:
    with rls.tenant_scope(str(acme.pk)):
        held = due.put(str(acme.pk), "retention", "a")
        free = due.put(str(acme.pk), "retention", "b")
    working = due.claim(str(acme.pk), held)
    assert working is not None
    teams.suspend(team("acme"), by=BY)
    assert due.claim(str(acme.pk), free) is None and due.next_of(str(acme.pk), "retention") is None
    with transaction.atomic():
        assert due.sweep() == []
    with rls.tenant_scope(str(acme.pk)), pytest.raises(due.LeaseLost):
        due.hold(working)
    tasks.find_due()
    with rls.tenant_scope(str(acme.pk)):
        assert set(Due.objects.values_list("argument", flat=True)) == {"a", "b"}
    teams.resume(team("acme"), by=BY)
    with transaction.atomic():
        assert {one.pk for one in due.sweep()} >= {held, free}


# Export


def unzipped(answer: Any) -> dict[str, str]:
    file = zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content)))
    assert file.testzip() is None
    return {name: file.read(name).decode() for name in file.namelist()}


def test_an_export_holds_every_row_of_the_team_and_none_of_another(
    browser: Client, acme: Tenant, globex: Tenant, alice: Any, charlie: Any, agent: Agent
) -> None:
    fill(acme, alice)
    fill(globex, charlie)
    files = unzipped(browser.post("/operator/teams/acme/export/"))
    with database.migrator() as everything:
        for table in protected():
            owner = "id" if table == "tenants_tenant" else "tenant_id"
            rows = everything.execute(f"SELECT count(*) FROM {table} WHERE {owner} = %s".encode(), [acme.pk]).fetchone()
            lines = files[f"tables/{table}.ndjson"].splitlines()
            assert rows == (len(lines),), table
            assert all(json.loads(line)[owner] == str(acme.pk) for line in lines), table
        secrets = [
            value.hex()
            for sql in (b"SELECT hash FROM tenants_agentkey", b"SELECT secret FROM graph_endpoint")
            for (value,) in everything.execute(sql).fetchall()
        ]
    whole = "".join(files.values())
    assert "acme-only words acme-only words" in files["tables/graph_body.ndjson"]
    assert "globex" not in whole and "charlie" not in whole
    assert not any(secret in whole for secret in secrets) and agent.secret not in whole and "pbkdf2" not in whole
    assert json.loads(files["people.ndjson"].splitlines()[0])["email"] == "alice@acme.test"
    assert "team.export" in actions(acme)


@pytest.mark.usefixtures("committed")
def test_every_column_of_bytes_says_whether_it_leaves_the_server() -> None:
    columns = {(f"{table.name}.{column}", kind) for table in export.tables() for column, kind in table.columns.items()}
    bytes_of_teams = {name for name, kind in columns if kind == "bytea"}
    assert bytes_of_teams == export.WITHHELD | export.KEPT, "a new one goes into WITHHELD or KEPT"
    telling = ("secret", "password", "token_hash", "sealed", "private_key")
    assert {name for name, _ in columns if any(word in name.split(".")[1] for word in telling)} <= export.WITHHELD


@pytest.mark.usefixtures("committed")
def test_no_table_of_a_team_is_forgotten() -> None:
    """What has a column for the team is known to export and removal, whether a model or SQL alone made it."""
    known = {table.name for table in export.tables()}
    assert known == protected()
    modelled = {
        model._meta.db_table
        for model in apps.get_models(include_auto_created=True)
        if any(field.name == "tenant" for field in model._meta.local_fields)
    }
    assert modelled | {"tenants_tenant", "cache_admin_question"} == known


def protected() -> set[str]:
    """Each table that has rows of teams, found by its column and not by its policy."""
    with database.migrator() as everything:
        rows = everything.execute(
            """SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
               WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition"""
        ).fetchall()
    return {str(name) for (name,) in rows} | {"tenants_tenant"}


# Deletion


def left(pk: Any) -> dict[str, int]:
    """How many rows each table holds of a team."""
    with database.migrator() as everything:
        counts = {}
        for table in protected():
            owner = "id" if table == "tenants_tenant" else "tenant_id"
            sql = f"SELECT count(*) FROM {table} WHERE {owner} = %s".encode()
            counts[table] = int(str(everything.execute(sql, [pk]).fetchall()[0][0]))
        return {table: count for table, count in counts.items() if count}


def test_a_deletion_takes_the_slug_and_can_be_taken_back(browser: Client, acme: Tenant) -> None:
    assert browser.post("/operator/teams/acme/delete/", {"slug": "globex"}).status_code == 422
    assert team("acme").state == "active"
    assert browser.post("/operator/teams/acme/delete/", {"slug": "acme"}).status_code == 302
    found = team("acme")
    assert found.state == "leaving" and found.delete_at is not None
    assert found.delete_at > timezone.now() + timedelta(days=13)
    assert teams.remove_due() == [] and browser.post("/operator/teams/acme/resume/").status_code == 409
    assert b"goes for good" in browser.get("/operator/teams/acme/").content
    assert browser.post("/operator/teams/acme/keep/").status_code == 302
    assert team("acme").state == "suspended"
    assert browser.post("/operator/teams/acme/keep/").status_code == 409
    assert actions(acme)[-2:] == ["team.delete", "team.keep"]


def test_when_its_time_is_over_every_row_goes_and_no_other(
    browser: Client, olga: User, acme: Tenant, globex: Tenant, alice: Any, bob: Any, charlie: Any
) -> None:
    fill(acme, alice)
    fill(globex, charlie)
    with rls.tenant_scope(str(globex.pk)):
        people.add_member(globex, bob.user.email, by=BY.actor(globex))
    logged_in = Client()
    logged_in.force_login(alice.user)
    new_agent(alice)
    before = left(globex.pk)
    teams.mark(team("acme"), by=BY)
    with rls.tenant_scope(str(acme.pk)):
        Tenant.objects.filter(pk=acme.pk).update(delete_at=timezone.now() - timedelta(seconds=1))
    assert tasks.remove_due() == ["acme"] and tasks.remove_due() == []
    assert left(acme.pk) == {} and left(globex.pk) == before
    assert set(User.objects.values_list("email", flat=True)) == {"bob@acme.test", "charlie@globex.test", olga.email}
    assert logged_in.get("/t/acme/").status_code == 302
    with rls.tenant_scope(str(globex.pk)):
        assert audit.verify(globex).breaks == []
    lines = [(line.action, line.target, line.target_id) for line in teams.logged(str(olga.pk))]
    assert ("team.remove", "acme", acme.public_id) in lines
    # The name is free again.
    assert teams.make("acme", name="Acme", owner="new@acme.test", by=BY).login_url


def test_the_database_removes_no_team_before_its_time(acme: Tenant) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM remove_tenant(%s)", [acme.pk])
        assert cursor.fetchone() == (0,)
    assert "tenants_tenant" in left(acme.pk)


def test_the_commands_do_the_same(acme: Tenant, globex: Tenant, capsys: Any) -> None:
    call_command("suspend_tenant", "acme", "--reason", "a leak")
    call_command("tenants")
    said = capsys.readouterr().out
    assert "acme: suspended; 4 members, 0 events, 0 notes" in said and "globex: active" in said
    with pytest.raises(CommandError, match="suspended"):
        call_command("create_tenant", "acme", "--owner", "x@acme.test")
    with pytest.raises(CommandError, match="--yes"):
        call_command("delete_tenant", "acme")
    call_command("delete_tenant", "acme", "--yes")
    call_command("resume_tenant", "acme", "--keep")
    assert team("acme").state == "active"
    call_command("delete_tenant", "acme", "--yes", "--now")
    assert [one.slug for one in teams.on_server()] == ["globex"] and left(acme.pk) == {}
    capsys.readouterr()
    call_command("tenants", "--json")
    assert json.loads(capsys.readouterr().out)["slug"] == "globex"
    with pytest.raises(CommandError, match="no team"):
        call_command("resume_tenant", "acme")
