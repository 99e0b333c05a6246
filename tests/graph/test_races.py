"""Calls that meet at one row or lock: each gets the answer it would have got alone, and nothing is lost."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.conftest import Agent


@pytest.fixture
def together(live: str, agent: Agent) -> Callable[..., list[int]]:
    """Sends requests at once to a real server and gives their statuses, sorted."""
    import json
    import urllib.error
    import urllib.request

    def one(call: tuple[str, str, Any]) -> int:
        method, path, body = call
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(f"{live}/api/v1/{path}", raw, agent.headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def send(calls: list[tuple[str, str, Any]]) -> list[int]:
        with ThreadPoolExecutor(8) as pool:
            return sorted(pool.map(one, calls))

    return send


def test_one_is_first_and_the_others_find_it(together: Any) -> None:
    together([("POST", "threads", {"id": "thr_a"}), ("POST", "threads", {"id": "thr_b"})])
    workers = together([("POST", "workers", {"id": "wkr_race", "task": f"t{i}"}) for i in range(10)])
    assert workers == [201] + [409] * 9
    own = {"worker_id": "wkr_race", "pass_through": True}
    assert together([("POST", "threads/thr_a/owners", own)] * 10) == [200] * 9 + [201]
    assert together([("POST", "threads/thr_a/links", {"key": "zz:9"})] * 10) == [200] * 9 + [201]
    there = [("POST", "threads/thr_a/links", {"thread_id": "thr_b"})] * 5
    back = [("POST", "threads/thr_b/links", {"thread_id": "thr_a"})] * 5
    assert together(there + back) == [200] * 8 + [201] * 2
    together([("POST", "triggers", {"source": "s", "id": "trg_a", "summary": "x"})])
    assert together([("PUT", "triggers/trg_a/payload?part=diff", b"abc")] * 6)[-1] == 201


def test_triggers_reports_and_titles_of_one_thread_do_not_wait_for_each_other(together: Any) -> None:
    together([("POST", "threads", {"id": "thr_a"})])
    together([("POST", "threads", {"id": "thr_b"}), ("POST", "workers", {"id": "wkr_a", "thread": "thr_a"})])
    together([("POST", "threads/thr_a/owners", {"worker_id": "wkr_a", "pass_through": True})])
    calls = []
    for i in range(12):
        for here, other in (("thr_a", "thr_b"), ("thr_b", "thr_a")):
            body = {"source": "ci", "external_id": f"{here}{i}", "thread": {"id": here}, "payload": {"see": other}}
            calls.append(("POST", "triggers", body | {"summary": f"see {other}"}))
        calls.append(("PATCH", "workers/wkr_a", {"report": f"r{i} thr_b"}))
        calls.append(("PUT", "threads/thr_a", {"title": f"t{i}"}))
    assert together(calls) == [200] * 24 + [201] * 24
