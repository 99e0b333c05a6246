"""What taking in events costs: `python tests/bench/ingest.py [FOLDER of hook logs]`.

It starts its own database and web server on loopback, prints events a second for single calls as they are, for calls
of 1 KB and for batches, each beside a bare insert in the same run, and the memory of the web processes after 1,000
events and after five more replays of the same. Single calls stand also beside the same server with the barest
application (`bare.py`): one insert a request, and nothing else. Without a folder, made-up events of the logs' sizes
take their place.
"""

import gzip
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from memory.management.postgres import Embedded  # noqa: E402
from tests.bench import load  # noqa: E402

# As many agents as post at once, and as many threads as a worker of `manage.py start` has.
CLIENTS, WORKERS, THREADS = int(os.environ.get("BENCH_CLIENTS", "32")), 2, 24
SECONDS = float(os.environ.get("BENCH_SECONDS", "6"))


def manage(home: Path, *arguments: str, role: str = "runtime") -> str:
    environment = {
        **os.environ,
        "TEAM_MEMORY_DATA": str(home),
        "TEAM_MEMORY_DB_ROLE": role,
        "DJANGO_SETTINGS_MODULE": "memory.settings",
    }
    command = [sys.executable, "-m", "django", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout


class Web:
    """granian as in production, on a free port of loopback."""

    def __init__(self, home: Path, application: str = "memory.wsgi:application", **settings: str) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port = int(taken.getsockname()[1])
        environment = {
            **os.environ,
            "TEAM_MEMORY_DATA": str(home),
            "DJANGO_SETTINGS_MODULE": "memory.settings",
            "TEAM_MEMORY_LOG_LEVEL": "ERROR",
            **settings,
        }
        command = [
            sys.executable,
            "-m",
            "granian",
            "--interface",
            "wsgi",
            "--workers",
            str(WORKERS),
            "--port",
            str(self.port),
            "--blocking-threads",
            str(THREADS),
            "--log-level",
            "error",
            application,
        ]
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)

    def await_ready(self) -> None:
        for _ in range(200):
            try:
                self.call(http.client.HTTPConnection("127.0.0.1", self.port), "GET", "/healthz", b"", {})
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit("the web server did not answer")

    def call(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> bytes:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        said = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {said[:300]!r}")
        return said

    def memory(self) -> int:
        """Resident KB of all its processes."""
        total = 0
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
                if os.getpgid(int(status.parent.name)) == self.process.pid:
                    total += int(fields.get("VmRSS", "0 kB").split()[0])
            except (OSError, ValueError):
                continue
        return total

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(20)


def logs(folder: Path | None) -> list[dict[str, Any]]:
    """Payloads as they are."""
    if folder is None:
        return [event(size) for size in (300, 400, 550, 550, 800, 2_000, 10_000, 20_000) * 200]
    files = [gzip.decompress(path.read_bytes()) for path in sorted(folder.rglob("*.jsonl.gz"))]
    lines = (json.loads(line) for content in files for line in content.splitlines())
    return [line["payload"] for line in sorted(lines, key=lambda line: line["log_i"])]


def event(size: int) -> dict[str, Any]:
    use = uuid.uuid4().hex
    payload = {
        "session_id": f"bench-{int(use[:2], 16) % 40}",
        "cwd": "/home/dev/shop",
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_use_id": f"toolu_{use[:24]}",
        "tool_input": {"command": f"pytest -q tests/test_{use[:4]}.py"},
        "tool_response": "",
    }
    words = "4 passed in 0.21s tests/test_totals.py rounding half even order total "
    payload["tool_response"] = (words * (size // len(words) + 1))[: max(0, size - len(json.dumps(payload)))]
    return payload


def rate(send: Callable[[int, Any], int], requests: Iterator[Any]) -> float:
    """Events a second over all clients until the time, or the requests, run out."""
    lock, counted, started = threading.Lock(), [0] * CLIENTS, time.perf_counter()

    def client(number: int) -> None:
        while time.perf_counter() - started < SECONDS:
            with lock:
                request = next(requests, None)
            if request is None:
                return
            counted[number] += send(number, request)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counted) / (time.perf_counter() - started)


def singles(web: Web, secret: str, bodies: Iterator[tuple[str, bytes]]) -> load.Slice:
    """Hook calls until the time, or the bodies, run out, by a client that takes little of the cores they share."""
    path = "/api/v1/hooks/claude-code"
    calls = (load.post(path, secret, body, key=key) for key, body in bodies)
    return load.run(web.port, calls, connections=CLIENTS, seconds=SECONDS)


def poster(web: Web, secret: str) -> Callable[[int, Any], int]:
    connections = [http.client.HTTPConnection("127.0.0.1", web.port) for _ in range(CLIENTS)]
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}

    def batch(number: int, request: tuple[int, bytes]) -> int:
        count, body = request
        said = json.loads(web.call(connections[number], "POST", "/api/v1/events/batch", body, headers))
        if said["refused"]:
            raise SystemExit(str(said["refused"][:2]))
        return count

    return batch


def floor(server: Embedded, bodies: list[bytes], rows: int) -> float:
    """Rows a second of the barest table that keeps a body once under a key, one statement a transaction."""
    with server.superuser() as setup:
        setup.execute("DROP TABLE IF EXISTS bench_floor")
        setup.execute("CREATE TABLE bench_floor (key text PRIMARY KEY, body text NOT NULL)")
    connections = [server.superuser() for _ in range(CLIENTS)]
    statement = b"INSERT INTO bench_floor SELECT * FROM unnest(%s::text[], %s::text[]) ON CONFLICT DO NOTHING"

    def insert(number: int, chunk: list[str]) -> int:
        connections[number].execute(statement, ([uuid.uuid4().hex for _ in chunk], chunk))
        return len(chunk)

    def chunks() -> Iterator[list[str]]:
        while True:
            for start in range(0, len(bodies), rows):
                yield [body.decode() for body in bodies[start : start + rows]]

    found = rate(insert, chunks())
    for connection in connections:
        connection.close()
    return found


def bare(server: Embedded, mix: list[bytes]) -> float:
    """Requests a second of the barest application on the same web server: an insert each."""
    with server.superuser() as known:
        told = known.info
        address = f"host={told.host} port={told.port} user={told.user} dbname={told.dbname} password={told.password}"
    web = Web(server.home.path, "tests.bench.bare:application", BENCH_DSN=address)
    try:
        web.await_ready()
        return singles(web, "none", forever(mix)).rate
    finally:
        web.stop()


def forever(bodies: list[bytes]) -> Iterator[tuple[str, bytes]]:
    while True:
        for body in bodies:
            yield uuid.uuid4().hex, body


def batches(rows: int) -> Iterator[tuple[int, bytes]]:
    """Made before the clock runs: the client must not be what is measured."""
    made = [
        b"\n".join(json.dumps({"client": "claude-code", "payload": event(300)}).encode() for _ in range(rows))
        for _ in range(400)
    ]
    return iter([(rows, body) for body in made])


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    home = Path(tempfile.mkdtemp(prefix="tm-bench-"))
    home.chmod(0o755)
    server = Embedded(home)
    server.start()
    try:
        manage(home, "migrate", "-v0", role="migrator")
        team = json.loads(manage(home, "create_tenant", "bench", "--owner", "bench@example.test", "--json"))
        web = Web(home)
        try:
            web.await_ready()
            measure(web, server, team["agent_key"], logs(folder))
        finally:
            web.stop()
    finally:
        server.stop()
        shutil.rmtree(home, ignore_errors=True)


def measure(web: Web, server: Embedded, secret: str, payloads: list[dict[str, Any]]) -> None:
    batch = poster(web, secret)
    bodies = [json.dumps(payload).encode() for payload in payloads]
    thousand = [(f"first:{number}", body) for number, body in enumerate(bodies[:1000])]
    singles(web, secret, iter(thousand))
    first = web.memory()
    for _ in range(5):
        singles(web, secret, iter(thousand))
    print(f"{CLIENTS} posters, {WORKERS} web processes of {THREADS} threads, {os.cpu_count()} cores for all")
    print(f"web memory: {first / 1024:.0f} MB after 1,000 events, {web.memory() / 1024:.0f} MB after five more replays")
    small = [json.dumps(event(1024)).encode() for _ in range(2000)]
    for name, mix in (("as they are", bodies), ("1 KB", small)):
        found = singles(web, secret, forever(mix))
        row, request = floor(server, mix, 1), bare(server, mix)
        print(
            f"single, {name}: {found.rate:,.0f} events/s; bare insert {row:,.0f} rows/s, over HTTP {request:,.0f}"
            f" requests/s (client {found.own / len(found.took) * 1e6:.0f} us an event)"
        )
    floor_of_batches = floor(server, [json.dumps(event(300)).encode() for _ in range(20_000)], 500)
    print(
        f"batches of 500, 300 B: {rate(batch, batches(500)):,.0f} events/s; bare insert {floor_of_batches:,.0f} rows/s"
    )
    print(f"web memory at the end: {web.memory() / 1024:.0f} MB")


if __name__ == "__main__":
    main()
