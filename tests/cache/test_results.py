"""POST /api/v1/results and GET /api/v1/results/{id}."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from cache_admin.models import CacheSetting, Content, Result
from memory.events import limits
from memory.tenants.access import command_actor
from tests.conftest import new_agent
from tests.pages import made

LOG = "\n".join(
    [f"2026-11-29T10:00:{number % 60:02d}Z INFO worker {number} took {number * 7} ms" for number in range(400)]
    + ["2026-11-29T10:07:00Z ERROR payment 4711 failed: card declined"]
)


@pytest.fixture
def desk(agent: Any, api: Any) -> Any:
    return api(agent)


def test_it_keeps_the_whole_and_gives_a_summary(desk: Any) -> None:
    answer = desk.post("results", {"content": LOG, "tool": "Bash"})
    said = answer.json()
    assert answer.status_code == 201 and answer["Location"] == f"/api/v1/results/{said['result_id']}"
    assert said["full_length_chars"] == len(LOG) and said["summariser"] == "logs"
    assert "payment 4711 failed: card declined" in said["summary"] and len(said["summary"]) < len(LOG) / 4
    assert said["summary_tokens"] < said["tokens"] and f"/api/v1/results/{said['result_id']}" in said["note"]
    assert desk.get(f"results/{said['result_id']}").content.decode() == LOG


def test_what_is_short_comes_back_whole(desk: Any) -> None:
    said = desk.post("results", {"content": {"a": [1, 2]}}).json()
    assert said["summary"] == '{"a":[1,2]}' and said["summariser"] == "whole" and "whole" in said["note"]
    got = desk.get(f"results/{said['result_id']}")
    assert got.json() == {"a": [1, 2]} and got["Content-Type"] == "application/json"


def test_parts_by_lines_pattern_and_range(desk: Any) -> None:
    where = f"results/{desk.post('results', {'content': LOG}).json()['result_id']}"
    rows = LOG.splitlines()
    assert desk.get(where, lines="2-3").content.decode() == "\n".join(rows[1:3])
    assert desk.get(where, lines="400-").content.decode() == "\n".join(rows[399:])
    assert desk.get(where, lines="-1").content.decode() == rows[-1]
    assert desk.get(where, lines="7").content.decode() == rows[6]
    assert desk.get(where, grep="card (declined|lost)").content.decode() == f"401:{rows[400]}"
    assert desk.get(where, grep="card", context="1").content.decode() == f"400-{rows[399]}\n401:{rows[400]}"
    assert desk.get(where, grep="no such words").content == b""
    part = desk.client.get(f"/api/v1/{where}", headers={"Range": "bytes=0-9"})
    assert part.status_code == 206 and part.content == LOG[:10].encode()
    assert part["Content-Range"] == f"bytes 0-9/{len(LOG)}"


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"lines": "x"}, 400, "invalid_lines"),
        ({"lines": "0-3"}, 416, "no_such_lines"),
        ({"lines": "9-3"}, 416, "no_such_lines"),
        ({"lines": "99999-"}, 416, "no_such_lines"),
        ({"grep": "("}, 400, "invalid_pattern"),
        ({"grep": "(?=a)"}, 400, "invalid_pattern"),
        ({"grep": "a" * 600}, 400, "invalid_pattern"),
        ({"grep": "a", "context": "99"}, 400, "invalid_parameter"),
        ({"line": "3"}, 400, "unknown_parameter"),
    ],
)
def test_a_bad_part_is_refused(desk: Any, query: dict[str, str], status: int, code: str) -> None:
    where = f"results/{desk.post('results', {'content': LOG}).json()['result_id']}"
    answer = desk.get(where, **query)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_pattern_takes_no_longer_than_the_text(desk: Any) -> None:
    where = f"results/{desk.post('results', {'content': 'a' * 50_000 + chr(10) + 'b'}).json()['result_id']}"
    assert desk.get(where, grep="(a*)*(a|aa)+$|c").status_code == 200


def test_it_needs_a_key_a_scope_and_a_role(committed: None, alice: Any, vera: Any, api: Any) -> None:
    assert Client().post("/api/v1/results", {}, content_type="application/json").status_code == 401
    assert api(new_agent(alice, scopes=["read"])).post("results", {"content": "x"}).status_code == 403
    assert api(new_agent(vera)).post("results", {"content": "x"}).status_code == 403
    kept = api(new_agent(alice)).post("results", {"content": "x"}).json()["result_id"]
    assert api(new_agent(vera)).get(f"results/{kept}").status_code == 200  # who may only read, reads
    assert api(new_agent(alice, scopes=["ingest"])).get(f"results/{kept}").status_code == 403


def test_another_teams_and_unknown_ids_are_the_same_404(desk: Any, globex_agent: Any, api: Any) -> None:
    kept = desk.post("results", {"content": "x"}).json()["result_id"]
    none = kept[:-4] + "0000"
    theirs, unknown = (api(globex_agent).get(f"results/{one}") for one in (kept, none))
    assert theirs.status_code == unknown.status_code == 404
    assert theirs.content.replace(kept.encode(), b"") == unknown.content.replace(none.encode(), b"")


def test_a_members_own_result_is_read_by_that_member_alone(desk: Any, bob: Any, api: Any) -> None:
    kept = desk.post("results", {"content": "x", "scope": "member"}).json()["result_id"]
    assert desk.get(f"results/{kept}").status_code == 200
    assert api(new_agent(bob)).get(f"results/{kept}").status_code == 404


def test_it_takes_only_the_right_method(desk: Any) -> None:
    assert desk.get("results").status_code == 405
    kept = desk.post("results", {"content": "x"}).json()["result_id"]
    assert desk.delete(f"results/{kept}").status_code == 405


@pytest.mark.parametrize("body", [{}, {"content": "x", "scope": "world"}, {"content": "x", "ttl_s": 0}, {"contnt": 1}])
def test_it_says_which_field_is_wrong(desk: Any, body: dict[str, Any]) -> None:
    answer = desk.post("results", body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_field") and answer.json()["field"]


def test_secrets_are_taken_out_and_counted(desk: Any) -> None:
    secret = "ghp_" + "a1B2" * 9
    said = desk.post("results", {"content": f"token is {secret}"}).json()
    assert said["redactions"] == 1 and secret not in said["summary"]
    assert secret not in desk.get(f"results/{said['result_id']}").content.decode()


def test_what_has_expired_says_so(desk: Any, acme: Any, bound: Any) -> None:
    kept = desk.post("results", {"content": "x", "ttl_s": 60}).json()["result_id"]
    with bound(acme):
        Result.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    answer = desk.get(f"results/{kept}")
    assert (answer.status_code, answer.json()["code"]) == (410, "result_expired")


def test_over_the_quota_it_says_how_much_is_used(desk: Any, acme: Any, bound: Any) -> None:
    with bound(acme):
        CacheSetting.objects.create(tenant=acme, quota_bytes=10)
    answer = desk.post("results", {"content": "twenty characters...."})
    assert (answer.status_code, answer.json()["code"]) == (507, "over_quota")
    assert answer.json()["quota_bytes"] == 10
    with bound(acme):
        assert not Content.objects.exists()


def test_equal_texts_are_kept_once(desk: Any, acme: Any, bound: Any) -> None:
    for _ in range(3):
        desk.post("results", {"content": LOG})
    with bound(acme):
        assert Content.objects.count() == 1 and Result.objects.count() == 3


def test_lines_are_those_of_the_text_that_a_harness_wrapped(desk: Any) -> None:
    """The summary counts the lines of the text; of its JSON there is one."""
    kept = desk.post("results", {"content": {"stdout": LOG, "stderr": ""}}).json()
    where, rows = f"results/{kept['result_id']}", LOG.splitlines()
    assert desk.get(where, lines="2-3").content.decode() == "\n".join(rows[1:3])
    assert desk.get(where, grep=re.escape(rows[4])).content.decode().startswith(f"5:{rows[4]}")
    assert desk.get(where).json() == {"stdout": LOG, "stderr": ""}


def test_an_expansion_is_counted_by_summariser(desk: Any) -> None:
    kept = desk.post("results", {"content": LOG}).json()["result_id"]
    desk.get(f"results/{kept}", lines="1-2")
    assert desk.get("cache/metrics").json()["expansions"] == {"logs": {"results": 1, "expansions": 1}}


def test_what_comes_from_a_closed_project_can_neither_be_read_nor_reported(
    desk: Any, acme: Any, alice: Any, bob: Any, api: Any, bound: Any
) -> None:
    project = made.project(acme, "secret")
    with bound(acme):
        limits.limit(project, [alice], by=command_actor(acme, "t"))
    kept = desk.post("results", {"content": "inside", "project": project.public_id}).json()["result_id"]
    other = api(new_agent(bob))
    for asked in (kept, "res_none"):
        assert other.get(f"results/{asked}").status_code == 404
        told = other.post("cache/incidents", {"result_id": asked})
        assert (told.status_code, told.json()["id"]) == (404, asked)
    assert desk.post("cache/incidents", {"result_id": kept}).status_code == 201
