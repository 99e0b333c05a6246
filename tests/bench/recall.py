"""The graph's doors over HTTP beside what else could serve the same rows: `python tests/bench/recall.py`.

It starts two databases of its own on loopback, with few and with many threads, granian with the product, granian with
a minimal Django view, and uvicorn with two FastAPI and asyncpg apps (`recall_rivals.py`; they need the dependency
group `bench`). All have two processes and eight connections, and take turns in short slices, so that a ratio is of
neighbours in time. It prints requests a second, p50, p99 and the ratios; and what the client itself takes.

BENCH_ROWS and BENCH_DEPTH (1,000,000), BENCH_SECONDS of a slice (2) and BENCH_ROUNDS (7) make it shorter.
"""

import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memory.management.postgres import Embedded
from tests.bench import load, recall_rivals
from tests.bench.database import ROOT, percentile
from tests.bench.ingest import Web, manage
from tests.bench.recall_fill import DEEP, fill

CONNECTIONS, PROCESSES, BATCH, BUSY_THREADS = 8, 2, 100, 2_000
ROWS = int(os.environ.get("BENCH_ROWS", "1000000"))
DEPTH = int(os.environ.get("BENCH_DEPTH", "1000000"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "2"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "7"))
FEW, SHALLOW = 1_000, 10


@dataclass
class Runner:
    """One of those that take turns, and what each of its slices gave."""

    name: str
    slice: Callable[[], load.Slice]
    found: list[load.Slice] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return statistics.median(one.rate for one in self.found)

    def over(self, other: "Runner") -> float:
        """How many times the other's rate: the median of neighbours in time."""
        pairs = zip(self.found, other.found, strict=True)
        return statistics.median(mine.rate / theirs.rate for mine, theirs in pairs)

    def p50_over(self, other: "Runner") -> float:
        """How many times the other's p50."""
        pairs = zip(self.found, other.found, strict=True)
        return statistics.median(percentile(a.took, 0.5) / percentile(b.took, 0.5) for a, b in pairs)

    def line(self, many: int = 1) -> str:
        took = [one for part in self.found for one in part.took]
        own = sum(part.own for part in self.found) / max(len(took), 1) * 1e6
        rows = f", {self.rate * many:,.0f} triggers/s" if many > 1 else ""
        return (
            f"  {self.name:44} {self.rate:8,.0f} requests/s{rows}   p50 {percentile(took, 0.5):6.2f} ms"
            f"   p99 {percentile(took, 0.99):6.2f} ms   (client {own:.0f} us of CPU a request)"
        )


def in_turn(title: str, runners: list[Runner], *, many: int = 1) -> None:
    """Let them take turns; the first round warms up and does not count."""
    for number in range(ROUNDS + 1):
        for place in range(len(runners)):
            runner = runners[(place + number) % len(runners)]
            found = runner.slice()
            if number:
                runner.found.append(found)
    print(f"\n{title}  [load average {os.getloadavg()[0]:.1f}]")
    for runner in runners:
        print(runner.line(many), flush=True)


def over(server: int, requests: Iterator[bytes]) -> Callable[[], load.Slice]:
    return lambda: load.run(server, requests, connections=CONNECTIONS, seconds=SECONDS)


def reads(paths: list[str], secret: str) -> Iterator[bytes]:
    made = [load.get(path, secret) for path in paths]
    return load.forever(lambda number: made[number % len(made)])


@dataclass
class Place:
    """A database with its team and the product over it."""

    server: Embedded
    dbname: str
    secret: str
    tenant: str
    ids: list[str]
    web: Web

    def address(self, role: Any = None) -> dict[str, Any]:
        """Connection parameters: of the superuser, whom no policy binds, or of a role."""
        if role:
            return {**self.server.dsn(role), "dbname": self.dbname}
        with self.server.superuser(self.dbname) as known:
            told = known.info
            parts = {"host": told.host, "port": told.port, "user": told.user, "password": told.password}
            return {**parts, "dbname": told.dbname}


@contextmanager
def places() -> Iterator[tuple[Place, Place]]:
    """Two databases of one server, with few and with many threads, and the product over each."""
    home = Path(tempfile.mkdtemp(prefix="tm-bench-"))
    home.chmod(0o755)
    server = Embedded(home, settings={"shared_buffers": "1GB", "max_wal_size": "4GB"})
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        stack.callback(server.stop)
        server.start()
        manage(home, "migrate", "-v0", role="migrator")
        team = json.loads(manage(home, "create_tenant", "bench", "--owner", "bench@example.test", "--json"))
        with server.superuser() as connection:
            connection.execute("CREATE DATABASE few TEMPLATE team_memory OWNER tm_migrator")
        made = []
        for dbname, rows, depth in (("few", FEW, SHALLOW), ("team_memory", ROWS, DEPTH)):
            since = time.monotonic()
            tenant, ids = fill(server, dbname, rows=rows, depth=depth)
            took = time.monotonic() - since
            print(f"{rows:,} threads and a thread of {depth:,} steps, filled in {took:.0f} s", flush=True)
            web = Web(home, DATABASE_URL=url(server, dbname))
            stack.callback(web.stop)
            web.await_ready()
            made.append(Place(server, dbname, team["agent_key"], tenant, ids, web))
        yield made[0], made[1]


def url(server: Embedded, dbname: str) -> str:
    """The runtime role's address of a database, as settings take it."""
    told = {name: quote(str(value), safe="") for name, value in server.dsn("runtime").items()}
    return f"postgresql://{told['user']}:{told['password']}@/{dbname}?host={told['host']}&port={told['port']}"


@contextmanager
def uvicorn(factory: str, address: dict[str, Any], tenant: str) -> Iterator[int]:
    """A FastAPI app of `recall_rivals` in two processes; gives its port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = int(taken.getsockname()[1])
    command = [sys.executable, "-m", "uvicorn", "--factory", f"tests.bench.recall_rivals:{factory}"]
    command += ["--port", str(port), "--workers", str(PROCESSES), "--loop", "uvloop", "--http", "httptools"]
    command += ["--log-level", "error", "--no-access-log"]
    environment = {**os.environ, "BENCH_ADDRESS": json.dumps(address), "BENCH_TENANT": tenant}
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    try:
        await_ready(port)
        yield port
    finally:
        process.terminate()
        process.wait(20)


def await_ready(port: int) -> None:
    for _ in range(200):
        try:
            fetch(port, "/healthz")
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise SystemExit("an app did not answer; is the dependency group `bench` installed?")


def fetch(port: int, path: str, secret: str = "") -> Any:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {secret}"})
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read() or b"null")


def bare_select(pool: ProcessPoolExecutor, of: Place) -> Callable[[], load.Slice]:
    """Two processes that do nothing but select a thread, each on one connection: they are never idle."""
    address = of.address()

    def once() -> load.Slice:
        asked = [pool.submit(recall_rivals.selects, address, of.tenant, of.ids, SECONDS) for _ in range(PROCESSES)]
        return load.Slice([took for one in asked for took in one.result()], SECONDS)

    return once


def by_id(few: Place, many: Place, stack: ExitStack) -> None:
    django = Web(many.server.home.path, "tests.bench.recall_rivals:application", **rival(many))
    stack.callback(django.stop)
    await_ready(django.port)
    bare = stack.enter_context(uvicorn("bare", many.address(), many.tenant))
    whole = stack.enter_context(uvicorn("whole", many.address("runtime"), many.tenant))
    pool = stack.enter_context(ProcessPoolExecutor(PROCESSES))
    for port in (django.port, bare, whole):
        for one in many.ids[:20]:
            path = f"/api/v1/threads/{one}"
            if fetch(port, path, many.secret) != fetch(many.web.port, path, many.secret):
                raise SystemExit(f"the answers for {one} differ: not the same work is measured")
    paths = [f"/api/v1/threads/{one}" for one in many.ids]
    small = [f"/api/v1/threads/{one}" for one in few.ids]
    ours = Runner(f"the product, {ROWS:,} threads", over(many.web.port, reads(paths, many.secret)))
    near = Runner(f"the product, {FEW:,} threads", over(few.web.port, reads(small, few.secret)))
    view = Runner("minimal Django view", over(django.port, reads(paths, many.secret)))
    app = Runner("FastAPI + asyncpg, the query alone", over(bare, reads(paths, many.secret)))
    full = Runner("FastAPI + asyncpg, key and row level security", over(whole, reads(paths, many.secret)))
    floor = Runner("psycopg SELECT in 2 processes, no HTTP", bare_select(pool, many))
    in_turn("GET /threads/{id}", [ours, near, view, app, full, floor])
    print(
        f"  {ROWS:,} threads to {FEW:,}: {ours.over(near):.2f} requests/s, {ours.p50_over(near):.2f} p50;"
        f" to the Django view {ours.over(view):.2f} (bar 0.8); to FastAPI: {ours.over(app):.2f} with the query alone,"
        f" {ours.over(full):.2f} with key and row level security (bar 0.9); to the bare SELECT {ours.over(floor):.2f}"
    )


def rival(of: Place) -> dict[str, str]:
    return {"BENCH_ADDRESS": json.dumps(of.address()), "BENCH_TENANT": of.tenant}


def by_depth(many: Place) -> None:
    """Pages of 50 a little past a depth: the cursors are made where the key to sign them lies."""
    script = (
        "from memory import paging; print(*(paging.encode([n], scope='{}:steps:{}') for n in range({}, {})))".format
    )
    runners = []
    for depth in (SHALLOW, max(DEPTH - 1_000, SHALLOW)):
        made = manage(
            many.server.home.path, "shell", "-v0", "-c", script(many.tenant, DEEP, depth, depth + 200)
        ).split()
        paths = [f"/api/v1/threads/{DEEP}/events?cursor={one}" for one in made]
        seen = fetch(many.web.port, paths[0], many.secret)["items"]
        if [one["seq"] for one in seen] != list(range(depth + 1, depth + 51)):
            raise SystemExit(f"the page at {depth} is not what was asked for")
        runners.append(Runner(f"page of 50 at depth {depth:,}", over(many.web.port, reads(paths, many.secret))))
    in_turn("GET /threads/{id}/events", runners)
    print(
        f"  deep to shallow: {runners[1].over(runners[0]):.2f} requests/s, {runners[1].p50_over(runners[0]):.2f} p50"
        " (bar: within 20 %)"
    )


def trigger(number: int, key: int) -> dict[str, Any]:
    return {
        "source": "github",
        "external_id": uuid.uuid4().hex,
        "thread": {"key": f"github:acme/busy#{key}"},
        "summary": f"check_run failed: tests ({number})",
        "payload": {
            "action": "completed",
            "check_run": {"name": "tests", "conclusion": "failure", "output": "4 passed, 1 failed in 0.21s " * 6},
        },
    }


def singles(secret: str) -> Iterator[bytes]:
    rng = random.Random(1)  # noqa: S311
    return load.forever(
        lambda n: load.post("/api/v1/triggers", secret, json.dumps(trigger(n, rng.randrange(BUSY_THREADS))).encode())
    )


def batches(secret: str) -> Iterator[bytes]:
    """Each batch speaks of 20 threads, as a day's webhooks do. Made ahead, but for the ids of its lines."""
    rng = random.Random(2)  # noqa: S311
    mark = b"\0" * 32
    made = []
    for _ in range(200):
        keys = [rng.randrange(BUSY_THREADS) for _ in range(20)]
        lines = [json.dumps({**trigger(n, rng.choice(keys)), "external_id": "@"}).encode() for n in range(BATCH)]
        made.append(b"\n".join(lines).replace(b'"@"', b'"' + mark + b'"').split(mark))

    def one(number: int) -> bytes:
        pieces, ids = made[number % len(made)], os.urandom(8 * BATCH).hex().encode()
        body = b"".join(piece + ids[16 * n : 16 * n + 16] * (n < BATCH) for n, piece in enumerate(pieces))
        return load.post("/api/v1/triggers/batch", secret, body, "application/x-ndjson")

    return load.forever(one)


def ingest(of: Place, stack: ExitStack) -> None:
    whole = stack.enter_context(uvicorn("whole", of.address("runtime"), of.tenant))
    ours = Runner("the product", over(of.web.port, singles(of.secret)))
    full = Runner("FastAPI + asyncpg: key, RLS, order, registry", over(whole, singles(of.secret)))
    in_turn("POST /triggers", [ours, full])
    print(f"  to FastAPI {ours.over(full):.2f} (bar 1.0)")
    ours = Runner("the product", over(of.web.port, batches(of.secret)))
    full = Runner("FastAPI + asyncpg: key, RLS, order, registry", over(whole, batches(of.secret)))
    in_turn(f"POST /triggers/batch of {BATCH}", [ours, full], many=BATCH)
    print(f"  to FastAPI {ours.over(full):.2f} (bar 1.4)")


def main() -> None:
    parts = sys.argv[1:] or ["id", "depth", "ingest"]
    with ExitStack() as stack:
        few, many = stack.enter_context(places())
        if "id" in parts:
            with ExitStack() as own:
                by_id(few, many, own)
        if "depth" in parts:
            by_depth(many)
        if "ingest" in parts:
            with ExitStack() as own:
                ingest(many, own)


if __name__ == "__main__":
    main()
