"""Every step once, in order, without gaps: for pagers that run while slow and rolled-back transactions write."""

import random
import threading
import time
from typing import Any

import orjson
import psycopg
import pytest
from django.db import connection

from memory import ids
from memory.graph.record import Incoming, checked, prepared
from memory.tenants.models import Tenant
from tests import database
from tests.conftest import Agent, Api

WRITERS = 12
STORE = "SELECT outcome FROM store_trigger(%s::uuid, '', %s::jsonb, %s)"


class Rollback(Exception):
    """A writer changes its mind."""


class Race:
    """Twelve writers over some threads, and pagers that never look at a place twice."""

    def __init__(self, tenant: Tenant, agent: Agent, *, threads: int, each: int, slow: float) -> None:
        self.tenant, self.agent = tenant, agent
        self.keys = [f"k{n}" for n in range(threads)]
        self.each, self.slow = each, slow
        self.written: set[str] = set()
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.faults: list[BaseException] = []

    def write(self, number: int) -> None:
        chance = random.Random(number)  # noqa: S311 - the same race each time
        parameters = database.SERVER_OF_TESTS.dsn("runtime", database.NAME)
        with psycopg.connect(**parameters, autocommit=True) as db:  # type: ignore[arg-type]
            for turn in range(self.each):
                try:
                    self.one(db, f"{number}-{turn}", chance)
                except Rollback:
                    continue

    def one(self, db: Any, name: str, chance: random.Random) -> None:
        said = Incoming(source="race", external_id=name, thread_key=chance.choice(self.keys), summary=name)
        ready = prepared(checked(said), tenant_pk=None)
        with db.transaction():
            db.execute("SELECT set_config('app.tenant_id', %s, true)", [str(self.tenant.pk)])
            if chance.random() < 0.05:
                time.sleep(chance.random() * self.slow)
            db.execute(STORE, [str(self.tenant.pk), orjson.dumps(ready.fields).decode(), None])
            if chance.random() < 0.05:
                time.sleep(chance.random() * self.slow)
            if chance.random() < 0.1:
                raise Rollback
        with self.lock:
            self.written.add(name)

    def page(self, key: str, limit: int) -> list[tuple[int, str]]:
        """All of a thread, to the tail and on until the race is over."""
        client = Api(self.agent)
        found: list[tuple[int, str]] = []
        cursor: dict[str, str] = {}
        thread_id = ""
        while True:
            was_over = self.over.is_set()
            if not thread_id:
                rows = self.asked(client, "threads", key=key)["items"]
                thread_id = rows[0]["thread_id"] if rows else ""
            if thread_id:
                page = self.asked(client, f"threads/{thread_id}/events", limit=limit, **cursor)
                found += [(step["seq"], step["summary"]) for step in page["items"]]
                cursor = {"cursor": page["next_cursor"]}
                if page["items"]:
                    continue
            if was_over:
                connection.close()
                return found
            time.sleep(0.01)

    @staticmethod
    def asked(client: Api, path: str, **query: Any) -> Any:
        """The answer's JSON; who is told to wait does, and asks the same again, as any client."""
        while True:
            answer = client.get(path, **query)
            # As a server does behind each request: eight pagers and who checks them share eight connections.
            connection.close()
            if answer.status_code not in (429, 503):
                assert answer.status_code == 200, answer.content
                return answer.json()
            time.sleep(float(answer["Retry-After"]))

    def run(self) -> dict[str, list[tuple[int, str]]]:
        seen: dict[str, list[tuple[int, str]]] = {}

        def guarded(work: Any, *args: Any) -> None:
            try:
                result = work(*args)
                if result is not None:
                    seen[args[0]] = result
            except BaseException as fault:
                self.faults.append(fault)

        writers = [threading.Thread(target=guarded, args=(self.write, n)) for n in range(WRITERS)]
        pagers = [
            threading.Thread(target=guarded, args=(self.page, key, 7 + 27 * n)) for n, key in enumerate(self.keys)
        ]
        for thread in (*writers, *pagers):
            thread.start()
        for thread in writers:
            thread.join()
        self.over.set()
        for thread in pagers:
            thread.join()
        assert not self.faults, self.faults[0]
        return seen


def check(race: Race, seen: dict[str, list[tuple[int, str]]]) -> None:
    for found in seen.values():
        assert [seq for seq, _ in found] == list(range(1, len(found) + 1)), "a gap, a repeat or another order"
    names = [name for found in seen.values() for _, name in found]
    assert len(names) == len(set(names)) and set(names) == race.written


def test_no_pager_misses_or_repeats_a_step(acme: Tenant, agent: Agent) -> None:
    race = Race(acme, agent, threads=3, each=40, slow=0.03)
    check(race, race.run())
    assert len(race.written) > WRITERS * 40 * 0.8


@pytest.mark.slow
def test_no_pager_misses_or_repeats_one_of_100_000(acme: Tenant, agent: Agent) -> None:
    race = Race(acme, agent, threads=8, each=9_500, slow=0.02)
    check(race, race.run())
    print(f"{len(race.written):,} events of {WRITERS} writers: 0 missed, 0 twice, 0 out of order")
    assert len(race.written) >= 100_000


def test_what_commits_late_is_delivered(acme: Tenant, agent: Agent) -> None:
    """A writes and waits; B's write waits for A's number; a reader meanwhile sees neither, and then both."""
    client = Api(agent)
    thread_id = client.post("threads", {"id": "thr_1"}).json()["thread_id"]
    race = Race(acme, agent, threads=1, each=0, slow=0)
    parameters = database.SERVER_OF_TESTS.dsn("runtime", database.NAME)

    def say(db: Any, name: str) -> None:
        ready = prepared(
            checked(Incoming(source="s", external_id=name, thread_id="thr_1", summary=name)), tenant_pk=None
        )
        db.execute("SELECT set_config('app.tenant_id', %s, true)", [str(acme.pk)])
        db.execute(STORE, [str(acme.pk), orjson.dumps(ready.fields).decode(), None])

    def other() -> None:
        with psycopg.connect(**parameters) as db:  # type: ignore[arg-type]
            say(db, "b")
            db.commit()
            race.over.set()

    with psycopg.connect(**parameters) as slow:  # type: ignore[arg-type]
        say(slow, "a")
        waiting = threading.Thread(target=other)
        waiting.start()
        assert not race.over.wait(0.3)
        first = client.get(f"threads/{thread_id}/events").json()
        assert [step["kind"] for step in first["items"]] == ["opened"]
        slow.commit()
        waiting.join()
    rest = client.get(f"threads/{thread_id}/events", cursor=first["next_cursor"]).json()["items"]
    assert [step["summary"] for step in rest] == ["a", "b"]


def test_one_identity_posted_at_once_is_one_trigger(acme: Tenant, agent: Agent) -> None:
    answers: list[Any] = []

    def send() -> None:
        body = {"source": "s", "external_id": "same", "summary": "x"}
        answers.append(Api(agent).post("triggers", body))
        connection.close()

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert len({answer.json()["trigger_id"] for answer in answers}) == 1
    assert ids.kind_of(answers[0].json()["trigger_id"]) == "trigger"
