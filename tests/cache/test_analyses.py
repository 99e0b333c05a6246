"""POST /api/v1/cache/analyses/lookup and PUT /api/v1/cache/analyses/{content_hash}/{analysis_type}."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from cache_admin import analyses, tasks
from cache_admin.clean import clean
from cache_admin.models import Analysis, AnalysisPath, Lookup
from memory.events import limits
from memory.tenants.access import command_actor
from memory.tenants.models import Due
from tests.conftest import new_agent
from tests.pages import made

ABC = {"content_hash": "sha256:abc", "analysis_type": "summary", "version": "1"}


@pytest.fixture
def desk(agent: Any, api: Any) -> Any:
    return api(agent)


def put(desk: Any, analysis: Any = "It adds numbers.", **more: Any) -> Any:
    return desk.put("cache/analyses/sha256:abc/summary", {"version": "1", "analysis": analysis, **more})


def look(desk: Any, *items: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    answer = desk.post("cache/analyses/lookup", {"items": list(items), **more})
    assert answer.status_code == 200, answer.content
    said: list[dict[str, Any]] = answer.json()["items"]
    return said


def test_it_is_found_by_content_whoever_asks_and_whatever_the_path(desk: Any, bob: Any, api: Any) -> None:
    assert look(desk, ABC)[0]["status"] == "miss"
    stored = put(desk, {"adds": [1, 2]}, path="src/a.py", model="m1")
    assert stored.status_code == 201 and stored.json()["analysis_id"].startswith("ana_")
    [said] = look(api(new_agent(bob)), {**ABC, "model": "m1", "path": "lib/other.py"})
    assert (said["status"], said["analysis"]) == ("hit", {"adds": [1, 2]})
    assert said["made_by"] == {"version": "1", "model": "m1"}


@pytest.mark.parametrize(
    "other",
    [
        {"version": "2"}, {"model": "m2"}, {"prompt": "v2"}, {"analysis_type": "security"},
        {"parameters": {"depth": 2}}, {"content_hash": "sha256:abd"},
    ],
)  # fmt: skip
def test_each_thing_it_hangs_on_makes_another(desk: Any, other: dict[str, Any]) -> None:
    put(desk)
    assert [one["status"] for one in look(desk, ABC, {**ABC, **other})] == ["hit", "miss"]


def test_one_that_speaks_of_its_path_is_good_at_that_path_alone(desk: Any) -> None:
    assert put(desk, "pkg/__init__.py is empty.", path="pkg/__init__.py").json()["only_at_its_path"] is True
    here, there, nowhere = look(desk, {**ABC, "path": "pkg/__init__.py"}, {**ABC, "path": "x/__init__.py"}, ABC)
    assert (here["status"], there["status"], nowhere["status"]) == ("hit", "miss", "miss")


def test_the_first_write_wins(desk: Any) -> None:
    first = put(desk, "first").json()["analysis_id"]
    second = put(desk, "second")
    assert second.status_code == 200 and second.json()["analysis_id"] == first
    assert second.json()["stored"] is False and look(desk, ABC)[0]["analysis"] == "first"


@pytest.mark.parametrize(
    ("analysis", "reason"), [("", "empty"), ({"error": "no model"}, "error"), ("k=ghp_" + "a1B2" * 9, "secret")]
)
def test_it_keeps_no_failure(desk: Any, analysis: Any, reason: str) -> None:
    assert put(desk, analysis).json() == {"stored": False, "reason": reason}


def test_a_batch_answers_in_its_order(desk: Any) -> None:
    put(desk)
    items = [{**ABC, "content_hash": f"h{number}"} for number in range(1_000)]
    items[500] = ABC
    said = look(desk, *items)
    assert [place for place, one in enumerate(said) if one["status"] == "hit"] == [500] and len(said) == 1_000


def test_a_batch_is_counted_by_what_became_of_it_and_its_paths_by_a_worker(desk: Any, acme: Any, bound: Any) -> None:
    put(desk, path="a.py")
    other = {**ABC, "content_hash": "h"}
    look(desk, *[{**ABC, "path": path} for path in ("a.py", "a.py", "b.py")], other, other, {**other, "version": "2"})
    with bound(acme):
        assert {one.status: one.times for one in Lookup.objects.all()} == {"hit": 3, "miss": 3}
        assert {one.path: one.uses for one in AnalysisPath.objects.all()} == {"a.py": 1}
        [row] = Due.objects.filter(task="cache_paths")
        Due.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    for more in (1, 0):
        tasks.cache_paths(tenant_id=str(acme.pk), due_id=str(row.pk))
        with bound(acme):
            assert {one.path: one.uses for one in AnalysisPath.objects.all()} == {"a.py": 3, "b.py": 1}
            left = Due.objects.filter(task="cache_paths")
            assert left.count() == more, "it comes once more, for what came in meanwhile"
            left.update(due_at=timezone.now() - timedelta(seconds=1))
            row = left.first() or row
    [item] = desk.get("cache/metrics").json()["items"]
    assert (item["lookups"], item["hits"], item["hit_rate"]) == (6, 3, 0.5)


def test_a_path_of_what_is_gone_meanwhile_is_left_out(desk: Any, acme: Any, bound: Any) -> None:
    put(desk)
    look(desk, {**ABC, "path": "a.py"})
    with bound(acme):
        Analysis.objects.all().delete()
    with bound(acme):
        assert analyses.add_up() == 1 and not AnalysisPath.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        {}, {"items": []}, {"items": [1]}, {"items": [{"content_hash": "x"}]}, {"items": [ABC] * 1_001},
        {"items": [{**ABC, "content_hash": "a b"}]}, {"items": [{**ABC, "versoin": "1"}]},
        {"items": [{**ABC, "model": ["m"]}]}, {"items": [{**ABC, "prompt": "\0"}]}, {"items": [{**ABC, "model": 4}]},
    ],
)  # fmt: skip
def test_it_says_what_is_wrong_with_a_batch(desk: Any, body: dict[str, Any]) -> None:
    answer = desk.post("cache/analyses/lookup", body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_field") and answer.json()["field"]


def test_it_needs_a_key_a_scope_and_a_role(committed: None, alice: Any, vera: Any, api: Any) -> None:
    paths = ("cache/analyses/lookup", "cache/analyses/sha256:abc/summary")
    assert Client().post(f"/api/v1/{paths[0]}", {}, content_type="application/json").status_code == 401
    assert Client().put(f"/api/v1/{paths[1]}", {}, content_type="application/json").status_code == 401
    for who in (new_agent(alice, scopes=["read"]), new_agent(vera)):
        assert api(who).post(paths[0], {"items": [ABC]}).status_code == 403
        assert put(api(who)).status_code == 403


def test_it_takes_only_the_right_method(desk: Any) -> None:
    assert desk.get("cache/analyses/lookup").status_code == 405
    assert desk.get("cache/analyses/sha256:abc/summary").status_code == 405


def test_another_team_finds_nothing(desk: Any, globex_agent: Any, api: Any) -> None:
    put(desk)
    other = api(globex_agent)
    assert look(other, ABC)[0] == look(other, {**ABC, "content_hash": "sha256:abc"})[0]
    assert look(other, ABC)[0]["status"] == "miss"
    assert put(other, "theirs").status_code == 201 and look(desk, ABC)[0]["analysis"] == "It adds numbers."


def test_one_from_a_limited_project_stays_there(
    desk: Any, acme: Any, alice: Any, bob: Any, api: Any, bound: Any
) -> None:
    project = made.project(acme, "secret")
    with bound(acme):
        limits.limit(project, [alice], by=command_actor(acme, "t"))
    put(desk, context={"project": project.public_id})
    other = api(new_agent(bob))
    assert (look(desk, ABC)[0]["status"], look(other, ABC)[0]["status"]) == ("hit", "miss")
    hidden = other.post("cache/analyses/lookup", {"items": [ABC], "context": {"project": project.public_id}})
    unknown = other.post("cache/analyses/lookup", {"items": [ABC], "context": {"project": "prj_none"}})
    assert hidden.status_code == unknown.status_code == 404
    assert put(other, "made openly").status_code == 201
    assert look(other, ABC)[0]["analysis"] == "made openly"


def test_use_extends_its_life_and_disuse_ends_it(desk: Any, acme: Any, bound: Any) -> None:
    put(desk, path="a.py")
    with bound(acme):
        Analysis.objects.update(last_used_at=timezone.now() - timedelta(days=29))
    look(desk, {**ABC, "path": "b.py"})
    with bound(acme):
        assert clean(acme)["analyses"] == 0
        assert {one.path: one.uses for one in AnalysisPath.objects.all()} == {"a.py": 1, "b.py": 1}
        Analysis.objects.update(last_used_at=timezone.now() - timedelta(days=31))
        assert clean(acme)["analyses"] == 1
