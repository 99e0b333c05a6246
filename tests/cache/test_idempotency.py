"""Idempotency-Key on what writes, and what the API's description says of the caches."""

from typing import Any

import pytest

from cache_admin.models import Lookup, Result
from memory import tokens
from tests.cache.asked import call, stored
from tests.conftest import new_agent

USAGE = {"message_id": "m1", "model": "claude", "usage": {"input_tokens": 1, "output_tokens": 1}}
BODIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "results": ({"content": "one"}, {"content": "two"}),
    "usage": (USAGE, {**USAGE, "message_id": "m2"}),
    "cache/invalidate": ({"tool": "read_file"}, {"tool": "Read"}),
}


@pytest.fixture
def desk(agent: Any, api: Any) -> Any:
    return api(agent)


@pytest.mark.parametrize("door", [*BODIES, "cache/incidents"])
def test_the_same_again_gets_the_first_answer_and_another_body_a_conflict(desk: Any, bob: Any, door: str) -> None:
    result_id = stored(desk, call()).json()["result_id"]
    told = {"result_id": result_id, "detail": "old"}
    one, other = BODIES.get(door) or (told, {**told, "detail": "older"})
    key = {"Idempotency-Key": "k1"}
    first = desk.post(door, one, headers=key)
    assert first.status_code in (200, 201), first.content
    again = desk.post(door, one, headers=key)
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert again["Idempotent-Replay"] == "true" and "Idempotent-Replay" not in first
    refused = desk.post(door, other, headers=key)
    assert refused.status_code == 409 and refused.json()["code"] == "idempotency_conflict"
    assert desk.post(door, one, headers={"Idempotency-Key": "x" * 400}).status_code == 400


def test_a_result_is_kept_once_and_another_member_gets_no_foreign_answer(
    desk: Any, bob: Any, charlie: Any, api: Any, acme: Any, bound: Any
) -> None:
    secret = {"content": "mine alone", "scope": "member"}
    first = desk.post("results", secret, headers={"Idempotency-Key": "k"}).json()
    assert desk.post("results", secret, headers={"Idempotency-Key": "k"}).json() == first
    with bound(acme):
        assert Result.objects.count() == 1
    for member in (bob, charlie):
        theirs = api(new_agent(member)).post("results", secret, headers={"Idempotency-Key": "k"})
        assert theirs.status_code == 201 and theirs.json()["result_id"] != first["result_id"]


def test_a_lookup_again_gets_the_same_lease_and_not_wait(desk: Any, bob: Any, api: Any, acme: Any, bound: Any) -> None:
    again = {"Idempotency-Key": "turn-1"}
    first = desk.post("cache/tools/lookup", call(), headers=again)
    second = desk.post("cache/tools/lookup", call(), headers=again)
    assert first.json()["status"] == "miss" and second.content == first.content
    assert second["Idempotent-Replay"] == "true" and second["Cache-Status"] == first["Cache-Status"]
    assert desk.post("cache/tools/lookup", call()).json()["status"] == "wait", "which is another call"
    with bound(acme):
        assert Lookup.objects.filter(status="miss").count() == 1, "a repeat asks nothing"
    refused = desk.post("cache/tools/lookup", call("grep"), headers=again)
    assert (refused.status_code, refused.json()["code"]) == (409, "idempotency_conflict")
    assert desk.post("cache/tools/lookup", call(), headers={"Idempotency-Key": "x" * 400}).status_code == 400
    other = api(new_agent(bob)).post("cache/tools/lookup", call(), headers=again)
    assert other.json()["status"] == "wait", "a lease is one key's alone"
    landed = desk.put(f"cache/tools/{first.json()['key']}", {"lease": second.json()["lease"], "result": "code"})
    assert landed.json()["stored"] is True


def test_what_took_no_lease_is_asked_anew(desk: Any, bob: Any, api: Any) -> None:
    leader = desk.post("cache/tools/lookup", call()).json()
    again = {"Idempotency-Key": "k"}
    assert desk.post("cache/tools/lookup", call(), headers=again).json()["status"] == "wait"
    desk.put(f"cache/tools/{leader['key']}", {"lease": leader["lease"], "result": "one"})
    assert desk.post("cache/tools/lookup", call(), headers=again).json()["result"] == "one"
    desk.post("cache/invalidate", {"tool": "read_file"})
    fresh = desk.post("cache/tools/lookup", call(), headers=again).json()
    assert fresh["status"] == "miss", "what was purged is not given again"
    assert desk.post("cache/tools/lookup", call(), headers=again).json() == fresh
    assert desk.post("cache/tools/lookup", call("grep"), headers=again).status_code == 409


def test_a_question_again_gets_the_same_lease(desk: Any) -> None:
    body = {"tool": "search_web", "query": "how do I retry?", "context": {"scope": "team"}}
    again = {"Idempotency-Key": "q"}
    first = desk.post("cache/semantic/lookup", body, headers=again)
    assert first.json()["lease"] and desk.post("cache/semantic/lookup", body, headers=again).content == first.content
    assert desk.post("cache/semantic/lookup", {**body, "query": "else"}, headers=again).status_code == 409


def test_a_batch_of_analyses_is_asked_anew_but_not_under_anothers_key(desk: Any) -> None:
    item = {"content_hash": "sha256:abc", "analysis_type": "summary", "version": "1"}
    again = {"Idempotency-Key": "b"}
    assert desk.post("cache/analyses/lookup", {"items": [item]}, headers=again).json()["hits"] == 0
    desk.put("cache/analyses/sha256:abc/summary", {"version": "1", "analysis": "adds"})
    assert desk.post("cache/analyses/lookup", {"items": [item]}, headers=again).json()["hits"] == 1
    assert desk.post("cache/analyses/lookup", {"items": [item] * 2}, headers=again).status_code == 409


def test_a_refused_lookup_keeps_its_line_of_the_audit(desk: Any, alice: Any, api: Any, acme: Any, bound: Any) -> None:
    reader = api(new_agent(alice, scopes=["read"]))
    assert reader.post("cache/tools/lookup", call(), headers={"Idempotency-Key": "r"}).status_code == 403
    with bound(acme):
        assert acme.audit.filter(action="cache.use", outcome="refused").count() == 1


def test_an_answer_stays_short_however_long_the_result(desk: Any) -> None:
    texts = {
        "logs": "\n".join(
            f"2026-01-01 ERROR {number} {chr(97 + number % 26) * (number % 90)}" for number in range(3000)
        ),
        "listing": "\n".join(
            f"src/{number % 700}/module_{number}.py:{number}: def f{number}()" for number in range(5000)
        ),
        "prose": "\n".join(f"Không có gì quý hơn độc lập tự do, {number}." for number in range(3000)),
        "one_line": "x y " * 50_000,
    }
    for name, text in texts.items():
        said = desk.post("results", {"content": text}).json()
        assert tokens.count(said["summary"]) < 2_000 > said["summary_tokens"], name
        assert desk.get(f"results/{said['result_id']}").content.decode() == text


def test_the_description_names_every_door(client: Any) -> None:
    paths = client.get("/api/v1/schema", headers={"Accept": "application/json"}).json()["paths"]
    question = paths["/api/v1/cache/semantic/lookup"]["post"]
    assert {"tool", "query"} == set(question["requestBody"]["content"]["application/json"]["schema"]["required"])
    assert {one["name"] for one in paths["/api/v1/results/{id}"]["get"]["parameters"]} == {
        "id", "lines", "grep", "context", "Range",
    }  # fmt: skip
    asking = ("cache/tools/lookup", "cache/semantic/lookup", "cache/analyses/lookup")
    for door in (*BODIES, "cache/incidents", *asking):
        assert "Idempotency-Key" in str(paths[f"/api/v1/{door}"]["post"]["parameters"])
