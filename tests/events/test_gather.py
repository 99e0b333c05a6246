"""Calls that arrive together are written together, each with its own outcome."""

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection

from memory.events.gather import Gatherer
from memory.events.record import Arrival, Home, Recorded, UnknownKey


def arrival(key: str) -> Arrival:
    return Arrival(home=Home("claude_code", "s"), name="Stop", kind="stop", key=key, body=b"{}")


class Database:
    """Remembers its batches; the first one waits until the test lets it go."""

    def __init__(self, *, bad: str = "", refuses: bool = False) -> None:
        self.batches: list[list[str]] = []
        self.entered, self.go = threading.Event(), threading.Event()
        self.bad, self.refuses = bad, refuses

    def record(self, key_hash: bytes, arrivals: Sequence[Arrival]) -> list[Recorded]:
        self.batches.append([one.key for one in arrivals])
        self.entered.set()
        assert self.go.wait(20)
        if self.refuses:
            raise UnknownKey
        if any(one.key == self.bad for one in arrivals):
            raise ValueError("bad")
        return [Recorded("new", f"evt_{one.key}", "ses", 1, "", "", "", None) for one in arrivals]


def together(database: Database, keys: Sequence[str], key_of: Any = lambda key: b"k") -> dict[str, Any]:
    """The first call enters; all others arrive while it is written; then it goes on."""
    gatherer = Gatherer(database.record, size=lambda one: len(one.body))
    outcomes: dict[str, Any] = {}

    def call(key: str) -> None:
        try:
            outcomes[key] = gatherer.record(key_of(key), arrival(key)).event_id
        except Exception as exc:
            outcomes[key] = exc

    threads = [threading.Thread(target=call, args=(key,)) for key in keys]
    threads[0].start()
    assert database.entered.wait(20)
    for number, thread in enumerate(threads[1:], 1):
        thread.start()
        while sum(map(len, gatherer._waiting.values())) < number and key_of(keys[number]) == b"k":
            pass
    database.go.set()
    for thread in threads:
        thread.join(20)
    assert gatherer._waiting == {}
    return outcomes


def test_those_who_wait_go_in_together_in_their_order() -> None:
    database = Database()
    keys = [str(number) for number in range(9)]
    assert together(database, keys) == {key: f"evt_{key}" for key in keys}
    assert database.batches == [["0"], keys[1:]]


def test_one_bad_call_fails_alone() -> None:
    outcomes = together(Database(bad="2"), ["0", "1", "2", "3"])
    assert isinstance(outcomes.pop("2"), ValueError)
    assert outcomes == {"0": "evt_0", "1": "evt_1", "3": "evt_3"}


def test_a_refused_key_is_refused_for_all() -> None:
    assert all(isinstance(one, UnknownKey) for one in together(Database(refuses=True), ["0", "1", "2"]).values())


def test_keys_do_not_wait_for_each_other() -> None:
    database = Database()
    together(database, ["0", "1"], key_of=lambda key: key.encode())
    assert sorted(database.batches) == [["0"], ["1"]]


@pytest.mark.parametrize("count", [1, 70])
def test_no_call_is_forgotten(count: int) -> None:
    database = Database()
    keys = [str(number) for number in range(count)]
    assert len(together(database, keys)) == count
    assert sum(map(len, database.batches)) == count
    assert all(len(batch) <= 64 for batch in database.batches)


def test_who_waits_leaves_a_connection_to_the_one_who_writes(committed: None) -> None:
    connection.close()
    most = connection.pool.max_size  # type: ignore[attr-defined]
    entered, waiting = threading.Event(), threading.Semaphore(0)

    def record(key_hash: bytes, arrivals: Sequence[Arrival]) -> list[Recorded]:
        entered.set()
        for _ in range(0 if len(arrivals) > 1 else most):
            assert waiting.acquire(timeout=20)
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        connection.close()
        return [Recorded("new", f"evt_{one.key}", "ses", 1, "", "", "", None) for one in arrivals]

    gatherer, outcomes = Gatherer(record, size=lambda one: len(one.body)), []

    def call(key: str) -> None:
        if key != "first":
            # As a request has it whose session or key was looked up before.
            connection.ensure_connection()
            waiting.release()
        outcomes.append(gatherer.record(b"k", arrival(key)).event_id)

    threads = [threading.Thread(target=call, args=(key,)) for key in ("first", *map(str, range(most)))]
    threads[0].start()
    assert entered.wait(20)
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(outcomes) == sorted(["evt_first", *(f"evt_{number}" for number in range(most))])
