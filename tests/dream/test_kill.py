"""A worker that is killed in the middle of a dream, again and again: nothing is lost and nothing is said twice."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from dream import run as dreams
from dream.models import Change, Run, Watermark, Window
from memory.events.models import Event, Session
from memory.hooks.history import import_paths
from memory.notes.models import Proposal
from memory.tenants.access import member_actor
from memory.tenants.models import Due
from memory.tenants.rls import tenant_scope
from tests import database

pytestmark = pytest.mark.slow
SESSIONS = Path(__file__).resolve().parent.parent / "data" / "sessions"
LEASE = 20
KILLS = 20
AWAY = 60


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "TEAM_MEMORY_LEASE_SECONDS": str(LEASE),
        "TEAM_MEMORY_HEARTBEAT_SECONDS": "5",
        "TEAM_MEMORY_SWEEP_SECONDS": "1",
    }


@contextmanager
def celery(log: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "celery", "-A", "memory.celery", *arguments, "-l", "INFO"]
    with log.open("ab") as out:
        child = subprocess.Popen(
            command, env=environment(), cwd=database.ROOT, stdout=out, stderr=out, start_new_session=True
        )
    try:
        yield child
    finally:
        kill(child)


def kill(child: "subprocess.Popen[bytes]") -> None:
    """Kill -9 of the whole group, as when the machine takes the memory back."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def wait_for(condition: Callable[[], Any], seconds: float) -> Any:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = condition()
        connection.close()
        if found:
            return found
        time.sleep(0.05)
    return condition()


def worker(log: Path) -> Any:
    return celery(log, "worker", "-O", "fair", "-c", "2", "--without-gossip", "--without-mingle", "--without-heartbeat")


@contextmanager
def broker_away() -> Iterator[None]:
    """The queue can't be reached while the block runs; the tables can."""
    with database.SERVER_OF_TESTS.superuser() as server:
        server.execute("ALTER ROLE tm_broker NOLOGIN")
        server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'tm_broker'")
        try:
            yield
        finally:
            server.execute("ALTER ROLE tm_broker LOGIN")


class Pair:
    """Two workers; whichever holds the dream is killed, and another one is started in its place."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.stack = ExitStack()
        self.children: list[subprocess.Popen[bytes]] = []

    def fill(self) -> None:
        self.children = [child for child in self.children if child.poll() is None]
        while len(self.children) < 2:
            self.children.append(self.stack.enter_context(worker(self.log)))

    def kill_holder(self, owner: str) -> bool:
        """Kill the worker of which a process holds the dream; the owner's name has its pid in it."""
        with suppress(ProcessLookupError, IndexError, ValueError):
            group = os.getpgid(int(owner.split(":")[1]))
            for child in self.children:
                if child.pid == group:
                    kill(child)
                    return True
        return False


def test_twenty_kills_and_a_lost_broker_lose_nothing_and_say_nothing_twice(
    acme: Any, alice: Any, tmp_path: Path
) -> None:
    pk = str(acme.pk)
    folders = [SESSIONS / "attio-mcp-server", SESSIONS / "templar"]
    import_paths(acme, folders, member=alice, step=lambda done, total: None)
    with tenant_scope(pk):
        run = dreams.start(acme, by=member_actor(alice))
        everything = Event.objects.count()
    dead: set[str] = {""}

    def owner() -> str:
        with tenant_scope(pk):
            return str(Due.objects.values_list("owner", flat=True).first() or "")

    def over() -> bool:
        with tenant_scope(pk):
            return not Run.objects.unfinished().exists()

    def taken() -> bool:
        return owner() not in dead or over()

    killed = 0
    log = tmp_path / "worker.log"
    pair = Pair(log)
    with pair.stack, celery(tmp_path / "beat.log", "beat", "--pidfile=", "-s", str(tmp_path / "beat")):
        for place in range(KILLS):
            pair.fill()
            assert wait_for(taken, 180), log.read_text()[-3000:]
            # Short, so that all kills come before the end of the dream.
            time.sleep(0.03 * (place % 10))
            holder = owner()
            is_over = over()
            killed += pair.kill_holder(holder) and not is_over
            dead.add(holder)
            if place == KILLS // 2:
                with broker_away():
                    time.sleep(AWAY)
        last_kill = time.monotonic()
        pair.fill()
        assert wait_for(taken, 180), log.read_text()[-3000:]
        again = time.monotonic() - last_kill
        assert wait_for(over, 300), log.read_text()[-3000:]
        drained = time.monotonic() - last_kill
    with tenant_scope(pk):
        run.refresh_from_db()
        assert killed == KILLS, "each kill came in mid-dream"
        print(f"\n{killed} kills in mid-dream, {run.events_read} events in {run.windows.count()} windows")
        print(f"taken up {again:.1f} s and drained {drained:.1f} s after the last kill; a lease is {LEASE} s")
        assert (run.state, run.events_read) == ("succeeded", everything), "no event lost, none counted twice"
        assert Run.objects.count() == 1 and not Due.objects.exists()
        marks = dict(Watermark.objects.values_list("session_id", "seq"))
        assert marks == dict(Session.objects.values_list("id", "last_seq"))
        read = Counter[Any]()
        for window in Window.objects.all():
            read[window.session_id] += window.to_seq - window.from_seq + 1
        assert dict(read) == marks, "each event is in one window"
        once = Counter(Proposal.objects.open().values_list("note__path", flat=True))
        assert once and set(once.values()) == {1}
        assert Change.objects.count() == Proposal.objects.count()
