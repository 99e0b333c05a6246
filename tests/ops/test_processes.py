"""The supervisor: what it ties together, what it starts again, and that nothing outlives it."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest

SMALL = Path(__file__).with_name("small.py")


def processes_of(home: Path) -> dict[int, str]:
    """Living processes with our mark in their environment, and the database server's by its command line."""
    found = {}
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError):
            mark = f"SMALL_HOME={home}".encode()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
            if state not in "ZX" and folder.name.isdigit():
                of_server = f"{home}/pg " in command + " "
                if of_server or mark in (folder / "environ").read_bytes():
                    found[int(folder.name)] = command
    return found


STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Running:
    """A small system that runs."""

    def __init__(self, home: Path, *, under: list[str] | None = None) -> None:
        self.home = home
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen(
            [*(under or []), sys.executable, str(SMALL), str(home), str(self.port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"SMALL_HOME": str(home)},
            # Under nohup, or in the background of a script, some of them would be ignored from birth.
            preexec_fn=lambda: [signal.signal(each, signal.SIG_DFL) for each in STOPS],
        )
        self.said = self.until("up")

    def until(self, line: str) -> list[str]:
        """What it says up to a line that begins so."""
        said: list[str] = []
        for each in self.process.stdout:
            said.append(each.rstrip())
            if each.startswith(line):
                return said
        raise AssertionError(f"it ended: {said}")

    def answer(self) -> str:
        """What the web server says, waited for."""
        for _ in range(200):
            with contextlib.suppress(OSError):
                return urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=5).read().decode()
            time.sleep(0.05)
        raise AssertionError("the web server does not answer")

    def pid(self, *words: str) -> int:
        """The process whose command line holds all these words."""
        return next(pid for pid, command in processes_of(self.home).items() if all(word in command for word in words))

    def left(self, *, but: str = "") -> list[str]:
        """What is left of it, but for one command, when what had to end has had far more time than it needs."""
        end = time.monotonic() + 15
        while (left := [each for each in processes_of(self.home).values() if each != but]) and time.monotonic() < end:
            time.sleep(0.05)
        return left


@pytest.fixture(scope="module")
def folder():
    # Not below tmp_path: as root the database's user must be able to reach it, and pytest's folders are closed.
    place = Path(tempfile.mkdtemp(prefix="tm-", dir="/tmp"))
    place.chmod(0o755)
    yield place / "home"
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def home(folder):
    yield folder
    for pid in processes_of(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_stops_everything_when_asked(home, how):
    system = Running(home)
    system.answer()
    system.process.send_signal(how)
    assert system.until("stopped")[-1] == "stopped"
    assert system.process.wait() == 0
    assert system.left() == []
    assert not (home / "pg" / "postmaster.pid").exists()


def test_it_leaves_nothing_when_killed_and_recovers_at_the_next_start(home):
    system = Running(home)
    system.answer()
    # Ours, the guard, PostgreSQL, granian and its two workers, the stubborn one and its child.
    assert len(processes_of(home)) >= 8
    system.process.kill()
    system.process.wait()
    assert system.left() == []
    again = Running(home)
    assert again.said[0].startswith(("Database recovered after a crash", "Database started"))
    again.process.terminate()
    assert again.process.wait() == 0


def test_it_leaves_nothing_when_killed_with_its_guard(home):
    system = Running(home)
    system.answer()
    guard = system.pid("child.py")
    os.kill(guard, signal.SIGSTOP)
    system.process.kill()
    os.kill(guard, signal.SIGKILL)
    # The kernel ends our children and granian's workers; a stranger's grandchild is the guard's part.
    assert system.left(but="sleep 1000") == []


def test_it_leaves_nothing_when_what_started_it_is_killed(home, tmp_path):
    uv = tmp_path / "uv"  # a parent of that name, which is what `uv run` is
    uv.symlink_to("/bin/sh")
    system = Running(home, under=[str(uv), "-c", '"$@"; exit $?', "uv"])
    system.answer()
    system.process.kill()
    system.process.wait()
    assert system.left() == []


@pytest.mark.parametrize("words", [("granian",), ("time.sleep",)])
def test_it_starts_a_killed_child_again_and_says_so(home, words):
    system = Running(home)
    system.answer()
    killed = system.pid(*words)
    before = set(processes_of(home))
    os.kill(killed, signal.SIGKILL)
    name = "web" if words == ("granian",) else "worker"
    assert "was ended by SIGKILL" in system.until(name)[-1]
    system.answer()
    while len(processes_of(home)) < len(before):
        time.sleep(0.05)
    system.process.terminate()
    assert system.process.wait() == 0
    assert system.left() == []


def test_it_starts_a_killed_database_again(home):
    system = Running(home)
    os.kill(system.pid("/pg", "bin/postgres"), signal.SIGKILL)
    assert "was ended by SIGKILL" in system.until("PostgreSQL")[-1]
    assert system.until("Database")[-1].startswith("Database recovered after a crash")
    system.process.terminate()
    assert system.process.wait() == 0


def test_it_starts_a_killed_guard_again(home):
    system = Running(home)
    system.answer()
    killed = system.pid("child.py")
    os.kill(killed, signal.SIGKILL)
    # By its pid: the killed one may be seen for a moment more.
    while not any("child.py" in command and pid != killed for pid, command in processes_of(home).items()):
        time.sleep(0.01)
    system.process.kill()
    assert system.left() == []


def test_it_refuses_a_second_start_on_the_same_folder(home):
    system = Running(home)
    second = subprocess.run([sys.executable, str(SMALL), str(home), "1"], capture_output=True, text=True)
    assert (second.returncode, second.stderr.strip()) == (1, "runs already")
    system.process.terminate()
    assert system.process.wait() == 0
