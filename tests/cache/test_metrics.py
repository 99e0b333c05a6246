"""GET /api/v1/cache/metrics and POST /api/v1/usage, and what workers do with old rows."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from cache_admin import seen, tasks, usage
from cache_admin.clean import clean
from cache_admin.models import CacheSetting, Content, Entry, Flight, Lookup, ToolDay, Usage
from memory.tenants import due
from memory.tenants.models import Due
from tests.cache.asked import call, stored
from tests.conftest import new_agent
from tests.pages import made

WORD = "word "


@pytest.fixture
def desk(agent: Any, api: Any) -> Any:
    return api(agent)


def test_forty_reads_of_twelve_files_save_42_000_tokens(desk: Any) -> None:
    context = {"project": "shop", "root": "/home/dev/shop", "session": "ses_a"}
    for number in range(40):
        body = call(arguments={"path": f"f{number % 12}.txt"}, content_hash=f"sha256:{number % 12}", context=context)
        said = desk.post("cache/tools/lookup", body).json()
        if said["status"] == "miss":
            text = WORD * 1_499 + str(number % 10)
            answer = {"lease": said["lease"], "result": text, "session": "ses_a", "duration_ms": 20}
            assert desk.put(f"cache/tools/{said['key']}", answer).status_code == 201
    total = desk.get("cache/metrics", by="tool").json()["total"]
    assert (total["hits"], total["misses"], total["hit_rate"]) == (28, 12, 0.7)
    assert 41_900 <= total["tokens_saved"] <= 42_100 and total["tokens_returned"] == 0
    assert total["time_saved_ms"] == 28 * 20


def test_forty_eight_analyses_of_files_of_which_few_change(desk: Any) -> None:
    computed = 0
    for day in range(2):
        items = []
        for number in range(48):
            changed = day == 1 and number < 13
            items.append({"content_hash": f"h{number}-{int(changed)}", "analysis_type": "deps", "version": "1"})
        for one, said in zip(items, desk.post("cache/analyses/lookup", {"items": items}).json()["items"], strict=True):
            if said["status"] == "miss":
                computed += day == 1
                desk.put(f"cache/analyses/{one['content_hash']}/deps", {"version": "1", "analysis": {"imports": 3}})
    assert computed == 13 and 1 - computed / 48 >= 0.70


def test_each_way_out_is_counted_by_its_reason(desk: Any) -> None:
    stored(desk, call())
    desk.post("cache/tools/lookup", call())
    desk.post("cache/tools/lookup", call("foo"))
    desk.post("cache/tools/lookup", call("Bash"))
    stored(desk, call(content_hash="sha256:2"), "boom", is_error=True)
    answer = desk.get("cache/metrics", by="tool").json()
    [line] = [item for item in answer["items"] if item["tool"] == "read_file"]
    assert (line["lookups"], line["hits"], line["misses"], line["cacheable_lookups"]) == (3, 1, 2, 2)
    assert line["hit_rate"] == 0.5
    assert line["miss_reasons"] == {"content_changed": 1, "no_entry": 1}
    assert line["not_cacheable_reasons"] == {"error": 1}
    assert answer["total"]["bypass_reasons"] == {"side_effects": 1, "unknown_tool": 1}
    assert line["overhead_us"]["lookup"]["p95"] > 0


def test_nothing_asked_is_no_rate(desk: Any) -> None:
    answer = desk.get("cache/metrics").json()
    assert answer["items"] == [] and answer["total"]["hit_rate"] is None


@pytest.mark.parametrize(
    "query",
    [
        {"by": "x"}, {"from": "soon"}, {"from": "2026-02-01", "to": "2026-01-01"}, {"frm": "x"},
        {"to": "0001-01-05"}, {"to": "9999-12-31"}, {"from": "9999-12-31", "to": "9999-12-31"},
    ],
)  # fmt: skip
def test_it_says_what_is_wrong(desk: Any, query: dict[str, str]) -> None:
    answer = desk.get("cache/metrics", **query)
    assert answer.status_code == 400 and answer.json()["detail"]


def test_they_need_a_key_and_a_scope(committed: None, alice: Any, vera: Any, api: Any) -> None:
    assert Client().get("/api/v1/cache/metrics").status_code == 401
    assert api(new_agent(alice, scopes=["ingest"])).get("cache/metrics").status_code == 403
    assert api(new_agent(vera)).get("cache/metrics").status_code == 200
    assert api(new_agent(alice)).post("cache/metrics").status_code == 405
    assert api(new_agent(vera)).post("usage", {}).status_code == 403
    assert api(new_agent(alice)).get("usage").status_code == 405


def test_another_team_sees_none_of_it(desk: Any, globex_agent: Any, api: Any) -> None:
    stored(desk, call())
    assert api(globex_agent).get("cache/metrics").json()["items"] == []


def test_days_that_are_over_become_sums_that_say_the_same(desk: Any, acme: Any, bound: Any) -> None:
    stored(desk, call())
    desk.post("cache/tools/lookup", call())
    with bound(acme):
        Lookup.objects.update(at=timezone.now() - timedelta(days=2))
    before = desk.get("cache/metrics").json()
    with bound(acme):
        assert clean(acme)["lookups"] == 2 and clean(acme)["lookups"] == 0
        assert not Lookup.objects.exists() and ToolDay.objects.count() == 1
    assert desk.get("cache/metrics").json() == before


def test_hits_of_an_entry_are_counted_beyond_the_day(desk: Any, acme: Any, bound: Any) -> None:
    stored(desk, call())
    for _ in range(3):
        desk.post("cache/tools/lookup", call())
    with bound(acme):
        Lookup.objects.update(at=timezone.now() - timedelta(days=2))
        clean(acme)
        clean(acme)
    desk.post("cache/tools/lookup", call())
    with bound(acme):
        [entry] = Entry.objects.all()
        assert (entry.hits, seen.hits([entry])) == (3, {str(entry.result_id): 4})


def test_what_is_over_goes(desk: Any, acme: Any, bound: Any) -> None:
    stored(desk, call())
    desk.post("cache/tools/lookup", call(content_hash="sha256:2"))
    with bound(acme):
        Entry.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        Flight.objects.update(until=timezone.now() - timedelta(days=2))
        gone = clean(acme)
        assert (gone["entries"], gone["flights"]) == (1, 1) and not Entry.objects.exists()


def test_over_the_quota_the_idlest_goes_first(desk: Any, acme: Any, bound: Any) -> None:
    idle = stored(desk, call(content_hash="sha256:1"), "a" * 600).json()
    fresh = stored(desk, call(content_hash="sha256:2"), "b" * 600).json()
    with bound(acme):
        CacheSetting.objects.create(tenant=acme, quota_bytes=1_000)
        Entry.objects.filter(content_hash="sha256:1").update(last_hit_at=timezone.now() - timedelta(days=1))
        assert clean(acme)["evicted"] == 1
        assert [one.content_hash for one in Entry.objects.all()] == ["sha256:2"] and Content.objects.count() == 1
    gone = desk.get(f"results/{idle['result_id']}")
    assert (gone.status_code, gone.json()["code"]) == (410, "result_expired")
    assert desk.get(f"results/{fresh['result_id']}").status_code == 200


def test_the_worker_comes_again_as_long_as_there_is_something(desk: Any, acme: Any, bound: Any) -> None:
    stored(desk, call())
    with bound(acme):
        assert {row.task for row in Due.objects.all()} == {"cache_clean", "cache_follow", "cache_watch"}
        Due.objects.update(due_at=timezone.now() - timedelta(seconds=1))
        rows = {row.task: str(row.pk) for row in Due.objects.all()}
    tasks.cache_clean(tenant_id=str(acme.pk), due_id=rows["cache_clean"])
    tasks.cache_watch(tenant_id=str(acme.pk), due_id=rows["cache_watch"])
    tasks.cache_follow(tenant_id=str(acme.pk), due_id=rows["cache_follow"])
    tasks.cache_follow(tenant_id=str(acme.pk), due_id=rows["cache_follow"])  # gone: nothing happens
    with bound(acme):
        assert {row.task: row.due_at > timezone.now() for row in Due.objects.all()} == {
            "cache_clean": True,
            "cache_follow": True,
            "cache_watch": True,
        }


PATCH = "*** Begin Patch\n*** Update File: src/pay.py\n@@\n-a\n+b\n*** End Patch"


@pytest.mark.parametrize(
    ("tool", "given"),
    [("Edit", {"file_path": "/home/dev/shop/src/pay.py"}), ("apply_patch", {"command": PATCH})],
    ids=["Edit", "apply_patch"],
)
def test_a_reported_write_drops_what_was_read_there(
    desk: Any, acme: Any, bound: Any, tool: str, given: dict[str, str]
) -> None:
    stored(desk, call(arguments={"path": "/home/dev/shop/src/pay.py"}))
    session = made.session(acme, cwd="/home/dev/shop")
    made.event(session, kind="tool_after", tool=tool, body=json.dumps({"tool_input": given}))
    with bound(acme):
        due_id = due.put(str(acme.pk), "cache_follow")
        Due.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    tasks.cache_follow(tenant_id=str(acme.pk), due_id=due_id)
    with bound(acme):
        assert not Entry.objects.exists() and not Due.objects.filter(task="cache_follow").exists()


ANTHROPIC = {"input_tokens": 10, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 60, "output_tokens": 5}
OPENAI = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}}


@pytest.mark.parametrize("given", [ANTHROPIC, OPENAI])
def test_both_providers_formulas_give_their_own_rate(given: dict[str, Any]) -> None:
    taken = usage.read(given)
    assert usage.hit_rate(taken.fresh, taken.read, taken.written) == 0.6


def test_a_message_counts_once(desk: Any, acme: Any, bound: Any) -> None:
    body = {"message_id": "msg_1", "model": "m", "harness": "claude-code", "usage": ANTHROPIC}
    assert desk.post("usage", body).json() == {"recorded": 1, "repeated": 0}
    assert desk.post("usage", {"items": [body, {**body, "message_id": "msg_2"}]}).json() == {
        "recorded": 1,
        "repeated": 1,
    }
    with bound(acme):
        today = timezone.now().date()
        [row] = usage.rates(acme, since=today, until=today)
        assert (row["messages"], row["read"], row["hit_rate"]) == (2, 120, 0.6) and Usage.objects.count() == 2


@pytest.mark.parametrize(
    "given", [{}, {"input_tokens": -1}, {"input_tokens": True}, {"input_tokens": ""}, {"tokens": 3}]
)
def test_figures_in_no_form_are_refused(desk: Any, given: dict[str, Any]) -> None:
    answer = desk.post("usage", {"message_id": "m", "model": "m", "usage": given})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_field")


@pytest.mark.parametrize(
    "at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1999-12-31T00:00:00Z", "now"]
)
def test_a_message_of_no_time_is_refused(desk: Any, at: str) -> None:
    """Such rows were kept, and then no page could read them."""
    answer = desk.post("usage", {"message_id": "m", "model": "m", "usage": ANTHROPIC, "at": at})
    assert (answer.status_code, answer.json()["field"]) == (400, "items[0].at")
