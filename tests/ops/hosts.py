"""Hosts of a deployment on one machine: network namespaces on a bridge, each with programs of its own.

Needs root and `ip` (iproute2); `missing()` says what else is not here. Names and addresses have a prefix of ours, and
what a killed run left is taken away before the next one begins.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
PREFIX, NETWORK, BRIDGE = "tmh", "10.213.77", "tmh-br"
ADDRESSES = {"db": f"{NETWORK}.5", "web1": f"{NETWORK}.11", "web2": f"{NETWORK}.12"}
ADDRESSES |= {"work1": f"{NETWORK}.21", "work2": f"{NETWORK}.22"}
HERE = f"{NETWORK}.1"
# What workers and clocks say every second.
ROUTINE = re.compile(r"(memory\.sweep|find_due)\[.*(received|succeeded)|Sending due task")


def missing() -> str:
    """What this machine lacks, or ""."""
    lacks = [name for name in ("ip", "unshare", "redis-server") if shutil.which(name) is None]
    if os.geteuid() != 0:
        lacks.insert(0, "root")
    if not lacks and _ip("netns", "add", f"{PREFIX}-try", check=False):
        lacks.append("the right to make network namespaces")
    _ip("netns", "delete", f"{PREFIX}-try", check=False)
    return ", ".join(lacks)


def _ip(*arguments: str, check: bool = True) -> int:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr}")
    return done.returncode


@contextmanager
def network() -> Iterator[None]:
    """The hosts, joined by a bridge on which this process is at `HERE`."""
    _take_down()
    try:
        _ip("link", "add", BRIDGE, "type", "bridge")
        _ip("addr", "add", f"{HERE}/24", "dev", BRIDGE)
        _ip("link", "set", BRIDGE, "up")
        for host, address in ADDRESSES.items():
            inside = f"{PREFIX}-{host}"
            _ip("netns", "add", inside)
            _ip("link", "add", _cable(host), "type", "veth", "peer", "name", "eth0", "netns", inside)
            _ip("link", "set", _cable(host), "master", BRIDGE, "up")
            _ip("-n", inside, "link", "set", "lo", "up")
            _ip("-n", inside, "addr", "add", f"{address}/24", "dev", "eth0")
            _ip("-n", inside, "link", "set", "eth0", "up")
        yield
    finally:
        _take_down()


def _cable(host: str) -> str:
    return f"{PREFIX}-v-{host}"


def _take_down() -> None:
    for host in ADDRESSES:
        _ip("netns", "delete", f"{PREFIX}-{host}", check=False)
        _ip("link", "delete", _cable(host), check=False)
    _ip("link", "delete", BRIDGE, check=False)


def cut(host: str) -> None:
    """Pull the cable at the switch: the host sees its own end lose the carrier, nobody else is told anything."""
    _ip("link", "set", _cable(host), "down")


def join(host: str) -> None:
    _ip("link", "set", _cable(host), "up")


class Programs:
    """What runs on the hosts; each program has a log. `stop` ends them, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen[bytes]] = []

    def start(
        self, host: str, name: str, command: Sequence[str], *, environment: dict[str, str] | None = None
    ) -> "subprocess.Popen[bytes]":
        """Start a program on a host, which has a name of its own there, as hosts have."""
        inside = ["ip", "netns", "exec", f"{PREFIX}-{host}", "unshare", "--uts"]
        inside += ["sh", "-c", f'hostname {host} && exec "$@"', "sh"]
        with self.log(host, name).open("ab") as log:
            process = subprocess.Popen(
                [*inside, *command],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.running.append(process)
        return process

    def log(self, host: str, name: str) -> Path:
        return self.folder / f"{host}.{name}.log"

    def tell(self) -> None:
        """Print the end of every log: the folder goes away."""
        for log in sorted(self.folder.glob("*.log")):
            told = [line for line in log.read_text(errors="replace").splitlines() if not ROUTINE.search(line)]
            print(f"--- {log.name}", *told[-60:], sep="\n")

    def stop(self) -> None:
        """The last started first, so that the database outlives who uses it."""
        for process in reversed(self.running):
            if process.poll() is None:
                process.terminate()
        for process in reversed(self.running):
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run(command: Sequence[str], out: IO[bytes], environment: dict[str, str]) -> int:
    """Run a command of the project here, outside the hosts, to its end; gives its exit code."""
    return subprocess.run(command, cwd=ROOT, env=environment, stdout=out, stderr=out, check=False).returncode


def await_true(what: str, holds: Any, seconds: float = 60.0) -> None:
    """Wait until it holds; AssertionError says what did not come."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with suppress(OSError):
            if holds():
                return
        time.sleep(0.2)
    raise AssertionError(f"{what} did not come in {seconds:.0f} s")


def serve_database(home: Path) -> None:
    """Run the embedded PostgreSQL for the network until SIGTERM, as a program on the host `db`."""
    sys.path.insert(0, str(ROOT))
    from memory.management.postgres import Embedded

    # As a server of its own would be set: `fsync` stays on.
    server = Embedded(home, settings={"listen_addresses": ADDRESSES["db"], "max_connections": "200"})
    server.start()
    rule = f"host all all {NETWORK}.0/24 scram-sha-256\n"
    access = home / "pg" / "pg_hba.conf"
    if rule not in access.read_text():
        access.write_text(access.read_text() + rule)
        with server.superuser() as connection:
            connection.execute("SELECT pg_reload_conf()")
    (home / "ready").touch()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        signal.pause()
    finally:
        server.stop()


if __name__ == "__main__":
    serve_database(Path(sys.argv[1]))
