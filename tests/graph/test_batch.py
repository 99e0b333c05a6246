"""POST /api/v1/triggers/batch: many at once, one bad line among good ones, and two batches that cross."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from memory.graph.models import Trigger
from memory.tenants.batch import MAX_LINES
from tests.conftest import Agent, Api, new_agent
from tests.graph.test_threads import steps


@pytest.fixture
def client(api: Callable[[Agent], Any], agent: Agent) -> Any:
    return api(agent)


def line(n: int, **more: Any) -> dict[str, Any]:
    return {"source": "test", "external_id": f"e{n}", "thread": {"key": f"k{n % 3}"}, "summary": f"message {n}"} | more


def send(client: Any, lines: Any) -> Any:
    raw = lines if isinstance(lines, str) else "\n".join(json.dumps(one) for one in lines)
    return client.post("triggers/batch", raw, content_type="application/x-ndjson")


def test_it_stores_each_line_once_and_in_order(client: Any) -> None:
    lines = [line(n) for n in range(30)]
    assert send(client, lines).json() == {"accepted": 30, "repeated": 0, "refused": []}
    assert send(client, [*lines, line(30), line(30)]).json() == {"accepted": 1, "repeated": 31, "refused": []}
    thread_id = client.get("threads", key="k0").json()["items"][0]["thread_id"]
    found = steps(client, thread_id)
    assert [step["summary"] for step in found] == [f"message {n}" for n in range(0, 31, 3)]
    assert [step["seq"] for step in found] == list(range(1, 12))


def test_a_bad_line_is_refused_alone(client: Any, acme: Any, bound: Any) -> None:
    bad = ["{", "[]", json.dumps({"source": ""}), json.dumps(line(1, summary="something else")),
           json.dumps(line(9, thread={"id": "thr_01kb6v2m0sfx3ampvj3k8jyzra"}))]  # fmt: skip
    answer = send(client, "\n".join([json.dumps(line(1)), *bad, "", json.dumps(line(2))])).json()
    assert (answer["accepted"], answer["repeated"]) == (2, 0)
    assert [(one["line"], one["code"]) for one in answer["refused"]] == [
        (2, "invalid_json"),
        (3, "not_an_object"),
        (4, "invalid_field"),
        (5, "conflict"),
        (6, "unknown_thread"),
    ]
    with bound(acme):
        assert Trigger.objects.count() == 2


@pytest.mark.parametrize("order", [1, -1])
def test_a_key_that_reads_like_a_given_id_names_another_thread(client: Any, order: int) -> None:
    lines = [line(1, thread={"id": "thr_pr_412"}), line(2, thread={"key": "thr_pr_412"})][::order]
    assert send(client, lines).json() == {"accepted": 2, "repeated": 0, "refused": []}
    [by_key] = client.get("threads", key="thr_pr_412").json()["items"]
    assert by_key["thread_id"] != "thr_pr_412"
    assert [len(steps(client, one)) for one in ("thr_pr_412", by_key["thread_id"])] == [1, 1]


def test_payloads_of_any_size_go_in(client: Any) -> None:
    texts = ["x" * size for size in (0, 10, 20_000, 300_000)]
    lines = [line(n, payload=text or None, id=f"trg_p{n}") for n, text in enumerate(texts)]
    assert send(client, lines).json()["accepted"] == 4
    for n, text in list(enumerate(texts))[1:]:
        assert client.get(f"triggers/trg_p{n}/payload").content.decode() == text
    assert client.get("triggers/trg_p0/payload").status_code == 404


def test_of_many_refused_lines_the_first_are_listed(client: Any) -> None:
    answer = send(client, "x\n" * 3000 + json.dumps(line(1))).json()
    assert (answer["accepted"], len(answer["refused"])) == (1, 1001)
    assert answer["refused"][-1]["code"] == "more_refused" and "2,000" in answer["refused"][-1]["detail"]


def test_a_batch_has_a_bound(client: Any) -> None:
    answer = send(client, "x\n" * (MAX_LINES + 1))
    assert (answer.status_code, answer.json()["limit"]) == (413, 50_000)
    assert send(client, " \n").json()["code"] == "empty_body"


def test_it_needs_a_key_with_the_scope(api: Any, alice: Any, client: Any) -> None:
    answer = send(api(new_agent(alice, scopes=["read"])), [line(1)])
    assert (answer.status_code, answer.json()["action"]) == (403, "graph.record")
    client.client.defaults["HTTP_AUTHORIZATION"] = "Bearer nothing"
    client.client.headers = {}
    assert client.get("triggers/batch").status_code in (401, 405)


def test_batches_that_cross_both_go_in(agent: Agent) -> None:
    """Each names the threads of the other in the opposite order."""
    keys = [f"k{n}" for n in range(20)]
    answers: list[Any] = []

    def run(name: str, order: list[str]) -> None:
        client = Api(agent)
        for turn in range(4):
            lines = [line(n, external_id=f"{name}-{turn}-{n}", thread={"key": key}) for n, key in enumerate(order)]
            answers.append(send(client, lines).json())
        connection.close()

    threads = [threading.Thread(target=run, args=args) for args in (("a", keys), ("b", keys[::-1]), ("c", keys))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer["accepted"] for answer in answers] == [20] * 12
    client = Api(agent)
    for row in client.get("threads").json()["items"]:
        assert [step["seq"] for step in steps(client, row["thread_id"])] == list(range(1, 13))
