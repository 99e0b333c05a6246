"""Ties the life of a child to its parent's, so that kill -9 of the parent leaves nothing running.

Two ways at once. On Linux the kernel signals each direct child when its parent dies. And on every system a guard,
a tiny process that holds one end of a pipe, ends whole process groups (granian's workers, celery's pool) when the
other end closes. The guard runs as a plain file under `python -I -S`: standard library only.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
# kill -9 of the parent may leave nothing 2 s later: ask first, insist after 0.7 s, end after 1.3 s.
_INSIST_AFTER, _END_AFTER = 0.7, 1.3
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def tied(signum: int, *, nice: int = 0) -> Callable[[], None]:
    """A `preexec_fn` that has the kernel send `signum` to the child when its parent dies. Fork from the main thread:
    the kernel means the thread that forked. It is also made to give way by `nice`."""
    parent = os.getpid()

    def tie() -> None:
        if nice:
            os.nice(nice)
        if _libc is None:
            return
        _libc.prctl(_PR_SET_PDEATHSIG, signum, 0, 0, 0)
        if os.getppid() != parent:  # it died between fork and prctl
            os._exit(1)

    return tie


def tied_to_parent() -> None:
    """Called in a worker process that multiprocessing made (granian's): have the kernel end it with its parent."""
    import multiprocessing  # here, to keep the guard small

    parent = multiprocessing.parent_process()
    if _libc is None or parent is None:
        return
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent.pid:
        os._exit(1)


class Guard:
    """Our end of the guard's pipe: tell it which process groups must not outlive us."""

    def __init__(self) -> None:
        self._groups: dict[int, int] = {}
        self._process = self._spawn()

    def watch(self, group: int, signum: int) -> None:
        """End this group, first by `signum`, should we die."""
        self._groups[group] = signum
        self._tell(f"+ {group} {signum:d}")

    def forget(self, group: int) -> None:
        """The group has ended."""
        self._groups.pop(group, None)
        self._tell(f"- {group} 0")

    def revive(self) -> bool:
        """Start the guard again if it died, and say whether it had."""
        if self._process.poll() is None:
            return False
        self._process = self._spawn()
        return True

    def close(self) -> None:
        """Let the guard go; what it still watches, it ends."""
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None  # noqa: S101 - for the type checker
            self._process.stdin.close()
        self._process.wait()

    def _spawn(self) -> "subprocess.Popen[str]":
        # A session of its own: Ctrl-C in the terminal and kill of our group must not reach it.
        # What it must watch is in its command line, so that it knows from birth: we may die before we can tell it.
        known = [f"{group}:{signum:d}" for group, signum in self._groups.items()]
        command = [sys.executable, "-I", "-S", __file__, *known]
        return subprocess.Popen(command, stdin=subprocess.PIPE, text=True, start_new_session=True, cwd="/")  # noqa: S603

    def _tell(self, line: str) -> None:
        with contextlib.suppress(OSError):  # a dead guard is told again by revive()
            assert self._process.stdin is not None  # noqa: S101 - for the type checker
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()


def end_group(group: int, signum: int) -> bool:
    """Signal a process group; False if nothing is left of it."""
    try:
        os.killpg(group, signum)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _guard() -> None:
    groups = {int(group): int(signum) for group, _, signum in (each.partition(":") for each in sys.argv[1:])}
    for line in sys.stdin:
        what, group, signum = line.split()
        if what == "+":
            groups[int(group)] = int(signum)
        else:
            groups.pop(int(group), None)
    closed = time.monotonic()
    insisted = False
    for group, signum in groups.items():
        end_group(group, signum)
    while groups and time.monotonic() - closed < _END_AFTER:
        groups = {group: signum for group, signum in groups.items() if end_group(group, 0)}
        if not insisted and time.monotonic() - closed > _INSIST_AFTER:
            insisted = True
            for group in groups:  # PostgreSQL then leaves at once; the next start replays its log
                end_group(group, signal.SIGQUIT)
        time.sleep(0.05)
    for group in groups:
        end_group(group, signal.SIGKILL)


if __name__ == "__main__":
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    _guard()
