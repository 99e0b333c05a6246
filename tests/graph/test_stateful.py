"""Ids and cursors under any order of calls, against a model that a child could keep."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from memory.tenants.access import DEFAULT_SCOPES
from tests.conftest import Api, new_agent

NAMES = st.sampled_from(["a", "b", "c.d", "e-1"])


class Chain(RuleBasedStateMachine):
    """What was posted, what was deleted, and readers that go on from their cursors."""

    api: Any
    count = 0

    def __init__(self) -> None:
        super().__init__()
        # Each run has names of its own: the team and its data stay.
        Chain.count += 1
        self.run = f"r{Chain.count}"
        self.live: dict[str, bytes] = {}
        self.gone: set[str] = set()
        self.threads: dict[str, str] = {}
        self.order: dict[str, list[str]] = {}
        self.readers: dict[str, tuple[dict[str, str], list[str]]] = {}

    def own(self, prefix: str, name: str) -> str:
        return f"{prefix}_{self.run}.{name}"

    @rule(name=NAMES, thread=NAMES, text=st.sampled_from(["one", "two"]))
    def post(self, name: str, thread: str, text: str) -> None:
        trigger_id, key = self.own("trg", name), f"{self.run}:{thread}"
        body = {"id": trigger_id, "source": "s", "thread": {"key": key}, "summary": text}
        answer = self.api.post("triggers", body)
        if trigger_id in self.gone:
            assert answer.status_code == 409
        elif trigger_id in self.live:
            assert answer.status_code in (200, 409)
            assert self.api.get(f"triggers/{trigger_id}").status_code == 200
        else:
            assert answer.status_code == 201
            view = answer.json()
            assert self.threads.setdefault(key, view["thread_id"]) == view["thread_id"]
            self.live[trigger_id] = self.record(trigger_id)
            self.order.setdefault(view["thread_id"], []).append(f"trigger {trigger_id}")

    def record(self, trigger_id: str) -> bytes:
        """What never changes of a trigger."""
        view = self.api.get(f"triggers/{trigger_id}").json()
        return repr([view[name] for name in ("trigger_id", "thread_id", "seq", "summary", "received_at")]).encode()

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def delete(self, data: Any) -> None:
        trigger_id = data.draw(st.sampled_from(sorted(self.live)))
        thread_id = self.api.get(f"triggers/{trigger_id}").json()["thread_id"]
        assert self.api.delete(f"triggers/{trigger_id}").status_code == 200
        del self.live[trigger_id]
        self.gone.add(trigger_id)
        self.order[thread_id].append(f"deleted {trigger_id}")

    @precondition(lambda self: self.order)
    @rule(data=st.data(), limit=st.integers(1, 5))
    def read_on(self, data: Any, limit: int) -> None:
        thread_id = data.draw(st.sampled_from(sorted(self.order)))
        cursor, seen = self.readers.get(thread_id, ({}, []))
        page = self.api.get(f"threads/{thread_id}/events", limit=limit, **cursor).json()
        assert [step["seq"] for step in page["items"]] == list(range(len(seen) + 1, len(seen) + len(page["items"]) + 1))
        seen = seen + [f"{step['kind']} {step['trigger_id']}" for step in page["items"]]
        assert seen == self.order[thread_id][: len(seen)]
        assert page["has_more"] == (len(seen) < len(self.order[thread_id]))
        self.readers[thread_id] = ({"cursor": page["next_cursor"]}, seen)

    @invariant()
    def every_id_is_what_it_was(self) -> None:
        for trigger_id, record in self.live.items():
            assert self.record(trigger_id) == record
        for trigger_id in self.gone:
            assert self.api.get(f"triggers/{trigger_id}").status_code == 410


@pytest.mark.parametrize("examples", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_ids_and_cursors_hold(alice: Any, examples: int) -> None:
    Chain.api = Api(new_agent(alice, scopes=[*DEFAULT_SCOPES, "admin"]))
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Chain,
        settings=settings(
            max_examples=examples,
            stateful_step_count=15,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
