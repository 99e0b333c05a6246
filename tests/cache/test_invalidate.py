"""POST /api/v1/cache/invalidate and POST /api/v1/cache/incidents."""

from hashlib import sha256
from typing import Any

import pytest
from django.test import Client

from cache_admin.models import Entry, Incident
from memory.tenants.models import AuditEntry
from tests.cache.asked import call, stored
from tests.conftest import new_agent
from tests.pages import made


@pytest.fixture
def desk(agent: Any, api: Any) -> Any:
    return api(agent)


def drop(desk: Any, **what: Any) -> int:
    answer = desk.post("cache/invalidate", what)
    assert answer.status_code == 200, answer.content
    return int(answer.json()["removed"])


def is_hit(desk: Any, **more: Any) -> bool:
    return bool(desk.post("cache/tools/lookup", call(**more)).json()["status"] == "hit")


def test_by_path_but_not_of_the_digest_it_has_now(desk: Any) -> None:
    stored(desk, call())
    where = {"root": "/home/dev/shop"}
    assert drop(desk, paths=[{"path": "src/pay.py", "content_hash": "sha256:1"}], **where) == 0
    assert drop(desk, paths=["src/other.py"], **where) == 0 and is_hit(desk)
    assert drop(desk, paths=["/home/dev/shop/src/pay.py"], **where) == 1 and not is_hit(desk)


@pytest.mark.parametrize("by", ["tool", "project", "content_hash", "key"])
def test_by_what_it_is_of(desk: Any, acme: Any, by: str) -> None:
    project = made.project(acme, "shop")
    key = stored(desk, call()).json()["key"]
    what = {"tool": "read_file", "project": project.public_id, "content_hash": "sha256:1", "key": key}
    wrong = {"tool": "Grep", "project": "elsewhere", "content_hash": "sha256:2", "key": "0" * 64}
    assert drop(desk, **{by: wrong[by]}) == 0 and is_hit(desk)
    assert drop(desk, **{by: what[by]}) == 1 and not is_hit(desk)


def test_a_call_on_its_way_does_not_land(desk: Any) -> None:
    missed = desk.post("cache/tools/lookup", call()).json()
    drop(desk, paths=["src/pay.py"], root="/home/dev/shop")
    again = desk.post("cache/tools/lookup", call()).json()
    assert again["status"] == "miss"
    late = desk.put(f"cache/tools/{missed['key']}", {"lease": missed["lease"], "result": "of before"}).json()
    assert (late["stored"], late["reason"]) == (False, "invalidated")
    fresh = desk.put(f"cache/tools/{again['key']}", {"lease": again["lease"], "result": "of after"}).json()
    assert fresh["stored"] is True


def test_by_writer_and_all_are_for_admins(desk: Any, alice: Any, bob: Any, mia: Any, api: Any) -> None:
    admin = api(new_agent(alice, scopes=["cache", "admin"]))
    stored(desk, call())
    for what in ({"writer": alice.public_id}, {"all": True}):
        assert desk.post("cache/invalidate", what).status_code == 403
        assert api(new_agent(mia, scopes=["cache", "admin"])).post("cache/invalidate", what).status_code == 403
    assert drop(admin, writer=bob.public_id) == 0 and is_hit(desk)
    assert drop(admin, writer=alice.public_id) == 1 and not is_hit(desk)
    stored(desk, call(content_hash="sha256:5"))
    assert drop(admin, all=True) == 1
    assert not is_hit(desk, content_hash="sha256:5")
    assert admin.post("cache/invalidate", {"writer": "mem_none"}).status_code == 404


def test_another_teams_entries_stay(desk: Any, globex_agent: Any, api: Any) -> None:
    key = stored(desk, call()).json()["key"]
    for what in ({"key": key}, {"tool": "read_file"}, {"content_hash": "sha256:1"}):
        assert drop(api(globex_agent), **what) == 0
    assert is_hit(desk)


@pytest.mark.parametrize("path", ["cache/invalidate", "cache/incidents"])
def test_they_need_a_key_a_scope_a_role_and_post(path: str, committed: None, alice: Any, vera: Any, api: Any) -> None:
    assert Client().post(f"/api/v1/{path}", {}, content_type="application/json").status_code == 401
    for who in (new_agent(alice, scopes=["read"]), new_agent(vera)):
        assert api(who).post(path, {"tool": "x"}).status_code == 403
    assert api(new_agent(alice)).get(path).status_code == 405


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"paths": "x"},
        {"paths": [1]},
        {"tol": "x"},
        {"tool": 1},
        {"paths": {}, "tool": "x"},
        {"all": "yes"},
        {"paths": ["a\0b"]},
        {"paths": [{"path": "\0"}]},
        {"paths": [""]},
        {"paths": [{"path": "a", "digest": "b"}]},
    ],
)
def test_it_says_what_is_wrong(desk: Any, body: dict[str, Any]) -> None:
    answer = desk.post("cache/invalidate", body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_field")


def test_names_of_any_length_are_kept_and_dropped(desk: Any) -> None:
    """A project of 130 letters and a path of 3,000 were 500 when the answer came in, after the tool had run."""
    path = "src/" + "/".join(sha256(bytes([number])).hexdigest() for number in range(60)) + ".py"
    for context in ({"project": "https://git.shop.test/" + "group/" * 160}, {"scope": "thread", "thread": "t" * 200}):
        body = call(arguments={"path": path}, context=context)
        assert stored(desk, body).status_code == 201 and desk.post("cache/tools/lookup", body).json()["status"] == "hit"
    assert drop(desk, paths=[path]) == 2
    item = {"content_hash": "sha256:1", "analysis_type": "a", "version": "1", "path": path}
    assert desk.post("cache/analyses/lookup", {"items": [item]}).json()["field"] == "items[0].path"


def test_a_reported_answer_goes_and_is_on_record(desk: Any, acme: Any, bound: Any) -> None:
    kept = stored(desk, call()).json()
    answer = desk.post("cache/incidents", {"result_id": kept["result_id"], "detail": "the file says otherwise"})
    assert answer.status_code == 201 and answer.json()["incident_id"].startswith("inc_")
    assert answer.json()["removed"] == 1 and not is_hit(desk)
    with bound(acme):
        incident = Incident.objects.get()
        assert (incident.kind, incident.tool) == ("report", "read_file") and "src/pay.py" in incident.document
    assert desk.get("cache/metrics").json()["total"]["staleness_incidents"] == 1


def test_an_incident_about_nothing_is_404(desk: Any, globex_agent: Any, api: Any) -> None:
    kept = stored(desk, call()).json()
    none = kept["result_id"][:-4] + "0000"
    theirs, unknown = (
        api(globex_agent).post("cache/incidents", {"result_id": one}) for one in (kept["result_id"], none)
    )
    assert theirs.status_code == unknown.status_code == 404
    assert theirs.content.replace(kept["result_id"].encode(), b"") == unknown.content.replace(none.encode(), b"")
    assert api(globex_agent).post("cache/incidents", {"key": kept["key"]}).status_code == 404
    assert desk.post("cache/incidents", {}).status_code == 400
    assert is_hit(desk)


def test_what_went_is_in_the_audit(desk: Any, acme: Any, bound: Any) -> None:
    stored(desk, call())
    drop(desk, tool="read_file")
    with bound(acme):
        entry = AuditEntry.objects.filter(action="cache.invalidate").get()
        assert (entry.target, entry.after) == ("tool read_file", "1") and not Entry.objects.exists()
