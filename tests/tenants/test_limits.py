"""The rate limit of a key: exact under threads, the same at every kind of door, and cheap to a busy key."""

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from memory.tenants import limits, rls
from memory.tenants.models import AgentKey, KeyDay
from tests.conftest import Agent, new_agent

HOOK = {"hook_event_name": "UserPromptSubmit", "prompt": "hello", "cwd": "/src/shop"}


def limited_agent(member: Any, rate: int) -> Agent:
    agent = new_agent(member)
    with rls.tenant_scope(str(member.tenant_id)):
        AgentKey.objects.filter(pk=agent.key.pk).update(rate_limit=rate)
    return agent


def drf(client: Client, number: int) -> Any:
    return client.get("/api/v1/projects")


def hot_read(client: Client, number: int) -> Any:
    return client.get("/api/v1/triggers/trg_none")


def hook(client: Client, number: int) -> Any:
    body = {**HOOK, "session_id": f"s{number}"}
    return client.post("/api/v1/hooks/claude-code", body, content_type="application/json")


def cache(client: Client, number: int) -> Any:
    body = {"tool": "Read", "arguments": {"path": f"/x/{number}"}, "context": {"project": "shop", "root": "/x"}}
    return client.post("/api/v1/cache/tools/lookup", body, content_type="application/json")


def hammered(agent: Agent, call: Callable[[Client, int], Any], *, calls: int, threads: int = 16) -> "Counter[int]":
    def one(number: int) -> int:
        try:
            return int(call(Client(headers=agent.headers), number).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(threads) as pool:
        return Counter(pool.map(one, range(calls)))


@pytest.mark.parametrize("call", [drf, hot_read, hook, cache])
def test_sixteen_threads_get_exactly_as_many_as_the_limit(alice: Any, call: Any) -> None:
    statuses = hammered(limited_agent(alice, 10), call, calls=48)
    assert (statuses.pop(429), sum(statuses.values())) == (38, 10)


def test_all_doors_share_the_limit(alice: Any) -> None:
    agent = limited_agent(alice, 6)
    statuses = [hammered(agent, call, calls=3) for call in (drf, hot_read, hook, cache)]
    assert [status[429] for status in statuses] == [0, 0, 3, 3]


def test_the_refusal_says_when_to_come_again(alice: Any, api: Any) -> None:
    agent = limited_agent(alice, 2)
    assert [api(agent).get("projects").status_code for _ in range(2)] == [200, 200]
    answer = api(agent).get("projects")
    assert (answer.status_code, answer["Content-Type"]) == (429, "application/problem+json")
    body = answer.json()
    assert (body["code"], body["limit"]) == ("rate_limited", 2)
    assert 25 <= int(answer["Retry-After"]) <= 30 and "send the same again" in body["detail"]


def test_another_key_is_not_held_up(alice: Any, mia: Any, api: Any) -> None:
    agent, other = limited_agent(alice, 1), new_agent(mia)
    assert [api(agent).get("projects").status_code for _ in range(2)] == [200, 429]
    assert api(other).get("projects").status_code == 200


def test_a_batch_takes_a_call_for_each_line_and_is_refused_whole(acme: Any, alice: Any) -> None:
    client = Client(headers=limited_agent(alice, 5).headers)
    lines = [json.dumps({"client": "claude-code", "payload": {**HOOK, "session_id": f"s{n}"}}) for n in range(3)]

    def send() -> Any:
        return client.post("/api/v1/events/batch", "\n".join(lines), content_type="application/x-ndjson")

    first, second = send(), send()
    assert (first.status_code, first.json()["accepted"]) == (200, 3)
    assert second.status_code == 429
    with rls.tenant_scope(str(acme.pk)):
        assert acme.events.count() == 3


def test_a_batch_over_the_limit_takes_a_full_minute(alice: Any) -> None:
    key = limited_agent(alice, 5)
    limits.admit(bytes(key.key.hash), "events", 50)
    with pytest.raises(Exception, match="5 calls a minute"):
        limits.admit(bytes(key.key.hash), "events")


def test_a_busy_key_asks_the_database_seldom(agent: Agent) -> None:
    asked: list[str] = []
    original = limits.apart
    limits.apart = lambda sql, values: asked.append(sql) or original(sql, values)  # type: ignore[func-returns-value]
    try:
        for _ in range(1000):
            limits.admit(bytes(agent.key.hash), "projects")
    finally:
        limits.apart = original
    assert len(asked) < 30


def test_what_a_key_did_is_counted_by_door(acme: Any, alice: Any, api: Any) -> None:
    agent = limited_agent(alice, 4)
    for _ in range(3):
        api(agent).get("projects")
    hammered(agent, hot_read, calls=3)
    with rls.tenant_scope(str(acme.pk)):
        days = KeyDay.objects.filter(key=agent.key).values_list("door", "calls", "refused")
        assert sorted(days) == [("projects", 3, 0), ("triggers", 1, 2)]
        agent.key.refresh_from_db()
        assert agent.key.last_used_at is not None
