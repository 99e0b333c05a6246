"""Idempotency-Key on what writes, and what the API's description says of the caches."""

from typing import Any

import pytest

from cache_admin.models import Result
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
    for door in (*BODIES, "cache/incidents"):
        assert "Idempotency-Key" in str(paths[f"/api/v1/{door}"]["post"]["parameters"])
