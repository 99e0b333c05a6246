"""POST /api/v1/events/batch: one bad line among good ones, and batches of any size."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError

from memory.events.models import Event
from memory.hooks import batch, receive
from memory.tenants.batch import MAX_LINES
from memory.tenants.rest import MAX_VALUES
from tests.conftest import Agent
from tests.events.test_api import line, send


@pytest.fixture
def client(api: Callable[[Agent], Any], agent: Agent) -> Any:
    return api(agent)


@pytest.mark.parametrize(
    "poison",
    [
        '{"client":"codex","key":"p","payload":{"session_id":"s1","timestamp":1' + "0" * 400 + "}}",
        '{"client":"codex","key":"p","occurred_at":1e999,"payload":{"session_id":"s1","x":-1e999}}',
        '{"client":"codex","key":"p","git_remote":"https://[::1]:9/a%00b","payload":{"session_id":"s1"}}',
        '{"client":"codex","key":"\\ud800","event":"\\u0000","workspace_root":"/\\udc00","payload":{"session_id":"s"}}',
    ],
)
def test_an_odd_line_is_kept_and_harms_no_other(client: Any, acme: Any, bound: Any, poison: str) -> None:
    answer = send(client, "\n".join([json.dumps(line(1)), poison, json.dumps(line(2))]))
    assert (answer.status_code, answer.json()) == (200, {"accepted": 3, "repeated": 0, "refused": []})


@pytest.mark.parametrize("place", ["canonical", "refusal"])
def test_a_fault_of_ours_refuses_its_line_alone(client: Any, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    module = "memory.hooks.receive.canonical" if place == "canonical" else "memory.hooks.batch.refusal"
    whole = getattr(batch if place == "refusal" else receive, place)

    def fails(one: Any, other: Any, *more: Any) -> Any:
        if (other.get("n") if place == "canonical" else json.loads(one.body)["n"]) == 3:
            raise LookupError("a fault")
        return whole(one, other, *more)

    monkeypatch.setattr(module, fails)
    answer = send(client, [line(number) for number in range(7)]).json()
    assert answer["accepted"] == 6
    assert [(one["line"], one["code"]) for one in answer["refused"]] == [(4, "not_readable")]


def test_no_line_is_refused_for_a_database_that_is_away(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(batch, "record", away)
    assert send(client, [line(1)]).status_code == 503


def test_of_many_refused_lines_the_first_are_listed(client: Any, acme: Any, bound: Any) -> None:
    answer = send(client, "x\n" * 3000 + json.dumps(line(1))).json()
    assert (answer["accepted"], len(answer["refused"])) == (1, 1001)
    assert answer["refused"][-1] == {
        "line": 1001,
        "code": "more_refused",
        "detail": "2,000 lines from this one on were refused too.",
    }


def test_a_batch_has_a_bound(client: Any, acme: Any, bound: Any) -> None:
    answer = send(client, "x\n" * (MAX_LINES + 1))
    assert (answer.status_code, answer.json()["code"], answer.json()["limit"]) == (413, "too_many_lines", 50_000)
    full = '{"client":"codex","payload":{"v":[' + "[]," * (MAX_VALUES - 10) + "[]]}}\n"
    answer = send(client, full * 5)
    assert (answer.status_code, answer.json()["code"]) == (400, "too_many_values")
    with bound(acme):
        assert Event.objects.count() == 0
