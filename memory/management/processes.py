"""The processes under `manage.py start`: started, watched, started again when they die, stopped together."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory.management.child import Guard, end_group, tied
from memory.management.home import PROJECT, Home, Refused
from memory.management.postgres import Embedded, StartReport

Say = Callable[[str], None]
# A worker may finish its task; what it can't finish in this time is taken up again after the next start.
_GRACE = 8.0
_STEADY_AFTER = 60.0
_LONGEST_WAIT = 30.0
_LOGS_EVERY = 20.0
# Of a web worker. Most wait for what slow clients send (memory/patience.py); 24 work at once.
THREADS = 256


class Stopped(BaseException):
    """Somebody asked us to stop. No Exception, so that nothing on the way takes it for a failure."""


@dataclass(frozen=True)
class Program:
    """What to run, and the signal that asks it to end."""

    name: str
    command: Sequence[str]
    end_by: int = signal.SIGTERM
    # Added to the niceness: what nobody waits for gives way to pages.
    nice: int = 0


def programs(home: Home, *, host: str, port: int, workers: int) -> list[Program]:
    """Web server, task worker and clock."""
    web = f"granian --interface wsgi --host {host} --port {port} --no-ws --http 1 --workers {workers}"
    web += f" --blocking-threads {THREADS} --backlog 2048 --workers-kill-timeout 5"
    web += " --respawn-failed-workers --respawn-interval 0.5 memory.wsgi:application"
    worker = "celery -A memory.celery worker -O fair -c 2 -l INFO --without-gossip --without-mingle --without-heartbeat"
    beat = ["celery", "-A", "memory.celery", "beat", "-l", "INFO", "--pidfile=", "-s", str(home.path / "run" / "beat")]
    python = [sys.executable, "-m"]
    return [
        Program("web", python + web.split()),
        Program("worker", python + worker.split(), nice=5),
        Program("beat", python + beat, nice=5),
    ]


class _Child:
    """One program and the process that runs it now."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.process: subprocess.Popen[bytes] | None = None
        self.started = 0.0
        self.deaths = 0
        self.due = 0.0


class Supervisor:
    """Runs the database server, if it is ours, and the programs, as one."""

    def __init__(self, home: Home, *, embedded: Embedded | None, env: Mapping[str, str], say: Say) -> None:
        self._home, self._embedded, self._env, self._say = home, embedded, dict(env), say
        self._children: list[_Child] = []
        self._guard = Guard()
        self._postgres_deaths: list[float] = []
        self._logs_due = 0.0

    def start_database(self) -> StartReport | None:
        """Start the embedded server, if there is one, and say what that took."""
        if self._embedded is None:
            return None
        report = self._embedded.start()
        self._say(report.sentence)
        assert self._embedded.process is not None  # noqa: S101 - for the type checker
        self._guard.watch(self._embedded.process.pid, signal.SIGINT)
        return report

    def run(self, arguments: Sequence[str], *, role: str, log: str) -> str:
        """Run one `manage.py` command and give what it printed; if it fails, `Refused` with its last words."""
        command = [sys.executable, str(PROJECT / "manage.py"), *arguments]
        with self._home.log(log) as errors:
            done = subprocess.run(  # noqa: S603
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                check=False,
                cwd=PROJECT,
                env=self._env | {"TEAM_MEMORY_DB_ROLE": role},
                preexec_fn=tied(signal.SIGKILL),
            )
        if done.returncode:
            where = self._home.path / "logs" / f"{log}.log"
            raise Refused(f"{arguments[0]} failed: {self._home.last_line(log)} (see {where})")
        return done.stdout

    def start(self, wanted: Sequence[Program]) -> None:
        """Start programs, beside those that run."""
        for child in map(_Child, wanted):
            self._children.append(child)
            self._spawn(child)

    def watch(self, *, until: Callable[[], bool] = lambda: False) -> None:
        """Keep everything running, until the condition holds or `Stopped` comes."""
        while not until():
            self._look()
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop everything, the database last."""
        for child in self._children:
            if child.process is not None and child.process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    child.process.send_signal(child.program.end_by)
        deadline = time.monotonic() + _GRACE
        for child in self._children:
            if child.process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.process.wait(max(0.0, deadline - time.monotonic()))
                end_group(child.process.pid, signal.SIGKILL)
                child.process.wait()
                self._guard.forget(child.process.pid)
        if self._embedded is not None and self._embedded.process is not None:
            group = self._embedded.process.pid
            self._embedded.stop()
            self._guard.forget(group)
        self._guard.close()

    def deaths(self, name: str) -> int:
        """How often in a row a program died."""
        return next(child.deaths for child in self._children if child.program.name == name)

    def _spawn(self, child: _Child) -> None:
        with self._home.log(child.program.name) as log:
            child.process = subprocess.Popen(  # noqa: S603
                child.program.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=PROJECT,
                env=self._env,
                # A session of its own: Ctrl-C reaches only us, and we can end the whole group.
                start_new_session=True,
                preexec_fn=tied(signal.SIGKILL, nice=child.program.nice),
            )
        self._guard.watch(child.process.pid, signal.SIGKILL)
        child.started = time.monotonic()

    def _look(self) -> None:
        self._guard.revive()
        if time.monotonic() > self._logs_due:
            self._logs_due = time.monotonic() + _LOGS_EVERY
            self._home.rotate_logs()
        self._look_at_database()
        for child in self._children:
            if child.process is None:
                if time.monotonic() >= child.due:
                    self._spawn(child)
            elif child.process.poll() is not None:
                self._bury(child)

    def _bury(self, child: _Child) -> None:
        assert child.process is not None  # noqa: S101 - for the type checker
        group, code = child.process.pid, child.process.returncode
        end_group(group, signal.SIGKILL)  # its own workers must not serve on beside the next one
        self._guard.forget(group)
        child.process = None
        child.deaths = child.deaths + 1 if time.monotonic() - child.started < _STEADY_AFTER else 1
        wait = min(_LONGEST_WAIT, 0.5 * 2 ** (child.deaths - 1))
        child.due = time.monotonic() + wait
        self._say(f"{child.program.name} {_ended(code)}: {self._last_line(child)}. Started again in {wait:g} s.")

    def _last_line(self, child: _Child) -> str:
        return self._home.last_line(child.program.name).rstrip(".")[:200]

    def _look_at_database(self) -> None:
        if self._embedded is None or self._embedded.process is None or self._embedded.process.poll() is None:
            return
        process = self._embedded.process
        self._guard.forget(process.pid)
        now = time.monotonic()
        self._postgres_deaths = [*(then for then in self._postgres_deaths if now - then < _STEADY_AFTER), now]
        self._say(f"PostgreSQL {_ended(process.returncode)}: started again.")
        if len(self._postgres_deaths) > 5:
            raise Refused(f"PostgreSQL keeps ending: {self._home.last_line('postgres')}")
        self.start_database()


def _ended(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Turn Ctrl-C, SIGTERM and SIGHUP into `Stopped`, once, and die with `uv` if it is above us."""

    def stop(signum: int, frame: object) -> None:
        for each in signals:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {each: signal.signal(each, stop) for each in signals if signal.getsignal(each) != signal.SIG_IGN}
    if _under_uv(os.getppid()):
        threading.Thread(target=_die_with, args=[os.getppid()], daemon=True).start()
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _under_uv(parent: int) -> bool:
    # Only `uv run`: a shell above us may end and leave us in the background on purpose.
    with contextlib.suppress(OSError):
        return Path(f"/proc/{parent}/comm").read_text().strip() == "uv"
    with contextlib.suppress(OSError):
        told = subprocess.run(["ps", "-o", "comm=", "-p", str(parent)], capture_output=True, text=True, check=False)  # noqa: S603, S607
        return Path(told.stdout.strip()).name == "uv"
    return False


def _die_with(parent: int) -> None:
    # Asked again and again instead of PR_SET_PDEATHSIG, which means the thread of uv that made us. And no polite
    # stop: a killed uv is to leave nothing 2 s later, which is what the guard is for.
    while os.getppid() == parent:
        time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGKILL)
