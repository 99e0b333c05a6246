"""POST /api/v1/cache/tools/lookup and PUT /api/v1/cache/tools/{key}."""

import time
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.test import Client
from django.utils import timezone

from cache_admin import policies
from cache_admin.models import Entry, Flight, Incident, Lookup
from memory.events import limits
from memory.tenants.access import command_actor
from tests.cache.asked import call, stored
from tests.conftest import new_agent
from tests.pages import made


@pytest.fixture
def desk(agent: Any, api: Any) -> Any:
    return api(agent)


def look(desk: Any, body: dict[str, Any]) -> dict[str, Any]:
    answer = desk.post("cache/tools/lookup", body)
    assert answer.status_code == 200, answer.content
    said: dict[str, Any] = answer.json()
    return said


def test_it_misses_once_and_then_hits(desk: Any) -> None:
    missed = desk.post("cache/tools/lookup", call())
    said = missed.json()
    assert (said["status"], said["reason"]) == ("miss", "no_entry") and said["lease"].startswith("lse_")
    assert missed["Cache-Status"].startswith('team-memory; fwd=uri-miss; key="')
    put = desk.put(f"cache/tools/{said['key']}", {"lease": said["lease"], "result": "x = 1", "duration_ms": 40})
    assert put.status_code == 201 and put.json()["stored"] is True and "stored" in put["Cache-Status"]
    hit = desk.post("cache/tools/lookup", call())
    assert hit.json()["status"] == "hit" and hit.json()["result"] == "x = 1"
    assert hit.json()["result_id"] == put.json()["result_id"] and hit.json()["age_s"] >= 0
    assert hit["Cache-Status"].startswith("team-memory; hit; key=")


def test_it_needs_a_key(committed: None) -> None:
    answer = Client().post("/api/v1/cache/tools/lookup", {}, content_type="application/json")
    assert answer.status_code == 401 and answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["cache/tools/lookup"])
def test_it_needs_the_scope_and_the_role(path: str, alice: Any, vera: Any, api: Any) -> None:
    for who in (new_agent(alice, scopes=["read"]), new_agent(vera)):
        answer = api(who).post(path, call())
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


def test_it_knows_only_post(desk: Any) -> None:
    assert desk.get("cache/tools/lookup").status_code == 405
    assert desk.post("cache/tools/" + "0" * 64).status_code == 405


def test_it_hides_another_teams_entries(desk: Any, globex_agent: Any, api: Any) -> None:
    key = stored(desk, call()).json()["key"]
    other = api(globex_agent)
    theirs = look(other, call())
    assert theirs["status"] == "miss" and theirs["key"] != key
    refused = other.put(f"cache/tools/{key}", {"lease": theirs["lease"], "result": "poison"})
    unknown = other.put(f"cache/tools/{'0' * 64}", {"lease": theirs["lease"], "result": "poison"})
    assert refused.status_code == unknown.status_code == 409 and refused.content == unknown.content
    assert look(desk, call())["result"] == "def pay(): ..."


def test_an_unknown_project_id_is_404_and_a_foreign_one_too(desk: Any, globex: Any, bound: Any) -> None:
    from memory.events.models import Project

    with bound(globex):
        foreign = Project.objects.create(tenant=globex, slug="theirs", name="theirs").public_id
    none = foreign[:-4] + "0000"
    answers = [desk.post("cache/tools/lookup", call(context={"project": one})) for one in (foreign, none)]
    assert [one.status_code for one in answers] == [404, 404]
    assert answers[0].content.replace(foreign.encode(), b"") == answers[1].content.replace(none.encode(), b"")


def test_the_result_is_json_where_the_tool_gave_json(desk: Any) -> None:
    value = {"rows": [1, 9007199254740993, 1e2], "ok": True, "text": "é"}
    assert stored(desk, call(), value).status_code == 201
    assert look(desk, call())["result"] == value


@pytest.mark.parametrize(
    ("tool", "more", "reason"),
    [
        ("foo", {}, "unknown_tool"),
        ("Bash", {"arguments": {"command": "git status"}}, "side_effects"),
        ("Bash", {"arguments": {"command": "cat a > b"}}, "side_effects"),
        ("send_email", {}, "side_effects"),
        ("mcp__jira__create_issue", {"hints": {"readOnlyHint": False}}, "side_effects"),
        ("mcp__jira__create_issue", {}, "unknown_tool"),
        ("read_file", {"content_hash": ""}, "no_content_hash"),
        ("read_file", {"arguments": {"path": "a", "token": "ghp_" + "a1B2" * 9}}, "secret"),
        ("read_file", {"arguments": {"path": "https://u:p@x.com/"}}, "secret"),
        ("read_file", {"arguments": {"path": "https://x.com/?token=abc"}}, "secret"),
        ("read_file", {"context": {}}, "no_project"),
    ],
)
def test_it_says_why_it_steps_aside(desk: Any, tool: str, more: dict[str, Any], reason: str) -> None:
    for _ in range(2):
        said = look(desk, call(tool, **more))
        assert said == {"status": "bypass", "reason": reason}


def test_what_is_observed_always_runs_and_is_compared(desk: Any, acme: Any, bound: Any) -> None:
    body = call("get_exchange_rate", arguments={"pair": "EURUSD"}, content_hash="")
    for rate in (1.1, 1.1, 1.2):
        said = look(desk, body)
        assert (said["status"], said["reason"]) == ("bypass", "observe")
        desk.put(f"cache/tools/{said['key']}", {"lease": said["lease"], "result": {"rate": rate}})
    with bound(acme):
        assert Lookup.objects.filter(status="observe", would_hit=True).count() == 2
        assert [one.kind for one in Incident.objects.all()] == ["would_be_stale"]


@pytest.mark.parametrize(
    ("result", "more", "reason"),
    [
        ({"isError": True, "content": []}, {}, "error"),
        ({"success": False, "error": "timeout"}, {}, "error"),
        ("HTTP 429 Too Many Requests", {}, "error"),
        ({"results": []}, {}, "empty"),
        ("some output", {"exit_code": 1}, "error"),
        ("fine", {"is_error": True}, "error"),
        ({"truncated": True, "content": "x"}, {}, "truncated"),
        ("", {}, "empty"),
        ("key = ghp_" + "a1B2" * 9, {}, "secret"),
        ("new text", {"content_hash": "sha256:2"}, "content_changed"),
    ],
)
def test_it_keeps_no_failure(desk: Any, acme: Any, bound: Any, result: Any, more: dict[str, Any], reason: str) -> None:
    put = stored(desk, call(), result, **more)
    assert put.status_code == 200 and put.json()["stored"] is False and put.json()["reason"] == reason
    assert look(desk, call())["status"] == "miss"  # the lease came back at once
    with bound(acme):
        assert Lookup.objects.filter(status="unfit", reason=reason).count() == 1


def test_a_second_asker_waits_and_an_expired_lease_passes_on(desk: Any, acme: Any, bound: Any) -> None:
    first = look(desk, call())
    second = desk.post("cache/tools/lookup", call())
    assert second.json()["status"] == "wait" and 0 < second.json()["retry_after"] <= 2
    assert second["Retry-After"] and "collapsed" in second["Cache-Status"] and "lease" not in second.json()
    assert look(desk, call(lease=first["lease"]))["status"] == "miss"  # the leader makes it last longer
    with bound(acme):
        assert Lookup.objects.filter(status="miss").count() == 1, "which asks nothing"
        Flight.objects.update(until=timezone.now() - timedelta(seconds=1))
    third = look(desk, call())
    assert third["status"] == "miss" and third["lease"] != first["lease"]
    late = desk.put(f"cache/tools/{first['key']}", {"lease": first["lease"], "result": "first"})
    assert late.json()["stored"] is True
    lost = desk.put(f"cache/tools/{first['key']}", {"lease": third["lease"], "result": "third"})
    assert lost.status_code == 200 and lost.json()["reason"] == "exists"
    assert look(desk, call())["result"] == "first"


def test_a_lease_is_good_for_one_key_of_one_agent(desk: Any, bob: Any, api: Any) -> None:
    missed = look(desk, call())
    other = look(desk, call(content_hash="sha256:9"))
    for lease in (other["lease"], "lse_" + "0" * 48, "x"):
        put = desk.put(f"cache/tools/{missed['key']}", {"lease": lease, "result": "poison"})
        assert (put.status_code, put.json()["code"]) == (409, "no_lease")
    put = api(new_agent(bob)).put(f"cache/tools/{missed['key']}", {"lease": missed["lease"], "result": "poison"})
    assert put.status_code == 409


def test_an_expired_entry_is_a_miss_and_goes(desk: Any, acme: Any, alice: Any, bound: Any) -> None:
    with bound(acme):
        policies.save(acme, "search_web", by=command_actor(acme, "t"), mode="serve", worst_outcome="nothing", ttl_s=900)
    body = call("search_web", arguments={"query": "Django  RLS"}, content_hash="")
    stored(desk, body, "found")
    again = look(desk, call("search_web", arguments={"query": "django rls "}, content_hash=""))
    assert again["status"] == "hit" and 0 < again["ttl_s"] <= 900
    with bound(acme):
        Entry.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    answer = desk.post("cache/tools/lookup", body)
    assert (answer.json()["status"], answer.json()["reason"]) == ("miss", "expired")
    assert "fwd=stale" in answer["Cache-Status"]
    with bound(acme):
        assert not Entry.objects.exists()


def test_new_content_is_a_miss_that_says_so(desk: Any) -> None:
    stored(desk, call(), "old text")
    said = look(desk, call(content_hash="sha256:2"))
    assert (said["status"], said["reason"]) == ("miss", "content_changed")


def test_a_session_is_told_once(desk: Any) -> None:
    context = {"project": "shop", "session": "ses_1"}
    stored(desk, call(context=context), "text", session="ses_1")
    said = look(desk, call(context=context))
    assert said["unchanged"] is True and "result" not in said and said["result_id"].startswith("res_")
    assert look(desk, call(context={**context, "session": "ses_2"}))["result"] == "text"
    assert look(desk, call(context=context, want="result"))["result"] == "text"
    held = look(desk, call(have=[said["result_id"]]))
    assert held["unchanged"] is True


def test_a_long_result_comes_as_its_summary(desk: Any) -> None:
    code = "\n".join(f"def step_{number}():\n    return {number}\n" for number in range(60))
    put = stored(desk, call(), code, kind="pay.py").json()
    said = look(desk, call())
    assert said["summary"] == put["summary"] and "hidden" in said["summary"] and len(said["summary"]) < len(code)
    assert look(desk, call(want="result"))["result"] == code
    assert desk.get(f"results/{said['result_id']}").content.decode() == code


def test_a_members_answer_is_that_members_alone(
    desk: Any, acme: Any, alice: Any, bob: Any, api: Any, bound: Any
) -> None:
    other = api(new_agent(bob))
    stored(desk, call(context={"project": "shop", "scope": "member"}), "mine")
    assert look(other, call(context={"project": "shop", "scope": "member"}))["status"] == "miss"
    assert look(other, call(context={"project": "shop"}))["status"] == "miss"
    stored(desk, call(context={"project": "shop", "thread": "thr_pr_1", "scope": "thread"}), "the thread's")
    assert look(other, call(context={"thread": "thr_pr_1", "scope": "thread"}))["result"] == "the thread's"
    assert look(other, call(context={"thread": "thr_pr_2", "scope": "thread"}))["status"] == "miss"
    stored(desk, call(content_hash="sha256:7"), "the project's")
    assert look(other, call(content_hash="sha256:7"))["result"] == "the project's"
    assert look(other, call(content_hash="sha256:7", context={"project": "other"}))["status"] == "miss"


def test_a_changed_policy_forgets_what_was_stored(desk: Any, acme: Any, bound: Any) -> None:
    stored(desk, call(), "text")
    flying = look(desk, call(content_hash="sha256:2"))
    with bound(acme):
        policies.save(acme, "read_file", by=command_actor(acme, "t"), scope="team")
    assert look(desk, call())["status"] == "miss"
    late = desk.put(f"cache/tools/{flying['key']}", {"lease": flying["lease"], "result": "old policy's"}).json()
    assert late["reason"] == "invalidated"


def test_a_revoked_key_ends_at_once(agent: Any, desk: Any, acme: Any, bound: Any) -> None:
    stored(desk, call(), "text")
    with bound(acme):
        acme.keys.update(revoked_at=timezone.now())
    assert desk.post("cache/tools/lookup", call()).status_code == 401


def test_two_spellings_are_one_call(desk: Any) -> None:
    stored(desk, call(), "text")
    for path in ("./src/pay.py", "src/pay.py", "/home/dev/shop/src/pay.py", "src\\pay.py", "src/./x/../pay.py"):
        assert look(desk, call(arguments={"path": path}))["status"] == "hit", path
    elsewhere = call(
        arguments={"path": "D:\\work\\shop\\src\\pay.py"}, context={"project": "shop", "root": "d:\\work\\shop"}
    )
    assert look(desk, elsewhere)["status"] == "hit"


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ('{"tool":"read_file","arguments":{"n":NaN}}', "invalid_json"),
        ('{"tool":"read_file","arguments":{"a":1,"a":2}}', "invalid_json"),
        ("[]", "invalid_json"),
        ("{}", "invalid_field"),
        ('{"tool":"a b"}', "invalid_field"),
        ('{"tool":"a\\u202eb"}', "invalid_field"),
        ('{"tool":"read_file","argumnets":{}}', "invalid_field"),
        ('{"tool":"read_file","context":{"scope":"world"}}', "invalid_field"),
        ('{"tool":"read_file","arguments":' + "[" * 80 + "]" * 80 + "}", "nested_too_deeply"),
        ('{"tool":"read_file","lease_s":0}', "invalid_field"),
        ('{"tool":"read_file","content_hash":"undefined"}', "invalid_field"),
        ('{"tool":"read_file","content_hash":"sha256:"}', "invalid_field"),
        ('{"tool":"read_file","content_hash":" "}', "invalid_field"),
        ('{"tool":"read_file","have":{}}', "invalid_field"),
    ],
)
def test_it_refuses_what_it_can_not_read(desk: Any, raw: str, code: str) -> None:
    answer = desk.client.post("/api/v1/cache/tools/lookup", raw, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, code)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('{"n":1e999}', "not_a_number"), ('{"path":"a\\u0000"}', "nul"), ('{"a\\u0000":1}', "nul"),
        ('{"n":"\\ud800"}', "not_canonical"),
    ],
)  # fmt: skip
def test_arguments_that_have_no_key_pass_by(desk: Any, arguments: str, reason: str) -> None:
    raw = f'{{"tool":"read_file","arguments":{arguments},"context":{{"project":"shop"}},"content_hash":"x"}}'
    answer = desk.client.post("/api/v1/cache/tools/lookup", raw, content_type="application/json")
    assert answer.json() == {"status": "bypass", "reason": reason}


def timed(tool: str, tenant: Any, bound: Any, **more: Any) -> None:
    """A tool that is served by time."""
    with bound(tenant):
        policies.save(tenant, tool, by=command_actor(tenant, "t"), **{
            "mode": "serve", "worst_outcome": "nothing", "ttl_s": 900, "by_content": False, **more
        })  # fmt: skip


@pytest.mark.parametrize("scope", ["member", "thread"])
def test_by_time_a_narrower_scope_is_no_way_into_another_project(desk: Any, acme: Any, bound: Any, scope: str) -> None:
    """Only a content hash tells apart what two projects hold at one path."""
    timed("read_file", acme, bound)
    context = {"thread": "thr_1", "scope": scope}
    one, other = (call(context={**context, "project": name}, content_hash="") for name in ("shop", "blog"))
    stored(desk, one, "the shop's")
    assert (look(desk, one)["status"], look(desk, other)["status"]) == ("hit", "miss")


def test_what_is_found_in_a_limited_project_is_not_the_teams(
    desk: Any, acme: Any, alice: Any, bob: Any, api: Any, bound: Any
) -> None:
    timed("search_web", acme, bound, scope="team")
    timed("lookup_company", acme, bound, scope="thread")
    project, other = made.project(acme, "secret"), api(new_agent(bob))

    def asked(tool: str, place: str, words: str) -> dict[str, Any]:
        return call(tool, arguments={"query": words}, context={"project": place, "thread": "thr_1"}, content_hash="")

    stored(desk, asked("search_web", "secret", "before"), "found before")
    assert look(other, asked("search_web", "shop", "before"))["status"] == "hit", "it was open"
    with bound(acme):
        limits.limit(project, [alice], by=command_actor(acme, "t"))
    assert look(other, asked("search_web", "shop", "before"))["status"] == "miss"
    for tool in ("search_web", "lookup_company"):
        stored(desk, asked(tool, "secret", "after"), "found after")
        assert look(desk, asked(tool, "secret", "after"))["status"] == "hit"
        for place in ("shop", "secret"):
            assert look(other, asked(tool, place, "after"))["status"] in ("miss", "wait"), place


def test_the_time_of_an_answer_runs_from_its_lease(desk: Any, acme: Any, bound: Any) -> None:
    """A laptop that slept between the run and the store says that the run took a second."""
    timed("search_web", acme, bound)
    body = call("search_web", arguments={"query": "a"}, content_hash="")
    with mock.patch("cache_admin.lookup.time.time", return_value=time.time() - 800):
        first = look(desk, body)
    longer = look(desk, {**body, "lease": first["lease"]})  # made to last longer, the run is no younger
    put = desk.put(f"cache/tools/{first['key']}", {"lease": longer["lease"], "result": "x", "duration_ms": 1000})
    assert put.json()["stored"] is True and 0 < look(desk, body)["ttl_s"] <= 100
    with bound(acme):
        Entry.objects.all().delete()
    with mock.patch("cache_admin.lookup.time.time", return_value=time.time() - 3000):
        slept = look(desk, body)
    with bound(acme):
        Flight.objects.update(until=timezone.now() - timedelta(seconds=1))
    look(desk, body)  # another runs meanwhile; who comes late may land, and what it read is too old
    desk.put(f"cache/tools/{slept['key']}", {"lease": slept["lease"], "result": "old", "duration_ms": 1000})
    assert look(desk, body)["status"] == "miss"


def test_an_entry_from_the_future_is_of_no_known_age(desk: Any, acme: Any, bound: Any) -> None:
    timed("search_web", acme, bound)
    body = call("search_web", arguments={"query": "a"}, content_hash="")
    stored(desk, body, "found")
    with bound(acme):  # as if the clock had been set back
        Entry.objects.update(
            created_at=timezone.now() + timedelta(hours=1), expires_at=timezone.now() + timedelta(hours=2)
        )
    assert (look(desk, body)["status"], look(desk, call())["status"]) == ("miss", "miss")
