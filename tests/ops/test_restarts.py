"""PostgreSQL ends five times under write load, in each of the ways it can: nothing that was acknowledged is lost."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow  # the whole product is started, and its database five times
ROOT = Path(__file__).parents[2]
FOREIGN = re.compile("DATABASE_URL|TEAM_MEMORY_|CELERY_|DJANGO_")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not FOREIGN.search(name)}
# A fast shutdown, an immediate one, and a crash without any.
ENDS = (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL, signal.SIGINT, signal.SIGKILL)
WRITERS = 3
EACH = 8


@pytest.fixture
def folder() -> Iterator[Path]:
    # Not tmp_path: as root the database's user must be able to reach it, and pytest's folders are closed.
    place = Path(tempfile.mkdtemp(prefix="tm-", dir="/tmp"))
    place.chmod(0o755)
    yield place / "home"
    shutil.rmtree(place, ignore_errors=True)


class Server:
    """The whole product, started as its users start it."""

    def __init__(self, home: Path) -> None:
        command = [sys.executable, str(ROOT / "manage.py"), "start", "--port", "0", "--data-dir", str(home)]
        self.home = home
        self.process = subprocess.Popen(
            command, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT
        )
        said = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said.append(line.strip())
            if "Data and logs" in line:
                break
        self.base = next(line.split()[1] for line in said if line.startswith("Pages")) + "api/v1/"
        self.key = next(line.split()[-1] for line in said if "Agent key" in line)
        # Its later lines are read away, or the pipe would fill and hold it up.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def call(self, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        raw = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.base + path, raw, headers), timeout=20) as answer:
            return json.loads(answer.read() or b"null")

    def end_database(self, how: signal.Signals) -> int:
        """End PostgreSQL, and wait until the supervisor has another one that answers; gives its process."""
        file = self.home / "pg" / "postmaster.pid"
        old = int(file.read_text().split()[0])
        os.kill(old, how)
        for _ in range(600):
            time.sleep(0.1)
            try:
                new = int(file.read_text().split()[0])
                if new != old:
                    self.call("threads?limit=1")
                    return new
            except (OSError, ValueError, IndexError, urllib.error.URLError):
                continue
        raise AssertionError("PostgreSQL was not started again")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)


class Writer(threading.Thread):
    """Posts triggers and hook events without a pause, and remembers what was acknowledged."""

    def __init__(self, server: Server, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.server, self.is_over = server, threading.Event()
        self.triggers: list[str] = []
        self.prompts: list[str] = []
        self.refused = 0

    def run(self) -> None:
        n = 0
        while not self.is_over.is_set():
            n += 1
            said = f"{self.name} says {n}"
            body = {"source": "test", "external_id": said, "thread": {"key": f"test:{n % 5}"}, "summary": f"{said} #4"}
            try:
                self.triggers.append(self.server.call("triggers", body)["trigger_id"])
                payload = {"session_id": self.name, "hook_event_name": "UserPromptSubmit", "prompt": said}
                self.server.call("hooks/claude-code", payload | {"prompt_id": str(n), "cwd": "/x"})
                self.prompts.append(said)
            except (OSError, ValueError):  # refused, cut off, or answered by nobody: not acknowledged
                self.refused += 1
                time.sleep(0.05)


def kept(server: Server) -> tuple[set[str], set[str]]:
    """Ids of all triggers in all threads, and all prompts of all sessions, each list without a gap."""
    triggers: list[str] = []
    for thread in server.call("threads?limit=200")["items"]:
        steps = pages(server, f"threads/{thread['thread_id']}/events")
        assert [step["seq"] for step in steps] == list(range(1, len(steps) + 1))
        triggers += [step["trigger_id"] for step in steps if step["kind"] == "trigger"]
    prompts: list[str] = []
    for session in server.call("sessions?limit=200")["items"]:
        events = pages(server, f"sessions/{session['id']}/events")
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        prompts += [event["summary"] for event in events]
    assert len(triggers) == len(set(triggers)) and len(prompts) == len(set(prompts))
    return set(triggers), set(prompts)


def pages(server: Server, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = server.call(f"{path}?limit=200{cursor}")
        found += page["items"]
        cursor = f"&cursor={page['next_cursor']}"
        if not page["has_more"]:
            return found


def test_nothing_that_was_acknowledged_is_lost(folder: Path) -> None:
    server = Server(folder)
    writers = [Writer(server, f"writer{n}") for n in range(WRITERS)]
    try:
        for writer in writers:
            writer.start()
        for how in ENDS:
            before = [len(writer.triggers) for writer in writers]
            server.end_database(how)
            # The next end comes when all write again.
            for _ in range(600):
                if all(len(writer.triggers) >= old + EACH for writer, old in zip(writers, before, strict=True)):
                    break
                time.sleep(0.1)
        for writer in writers:
            writer.is_over.set()
        for writer in writers:
            writer.join(60)
        triggers, prompts = kept(server)
        acknowledged = [one for writer in writers for one in writer.triggers]
        assert len(acknowledged) >= WRITERS * EACH * len(ENDS)
        assert sum(writer.refused for writer in writers) > 0
        assert set(acknowledged) - triggers == set()
        assert {one for writer in writers for one in writer.prompts} - prompts == set()
        print(f"{len(acknowledged)} triggers acknowledged, {len(triggers)} kept; {len(prompts)} prompts kept")
    finally:
        server.stop()
