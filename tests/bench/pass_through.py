"""What passing events straight through saves a router: `python tests/bench/pass_through.py`.

One day of GitHub events (20 issues and pull requests of a real repository, then one body of every kind that GitHub
sends) goes twice through a webhook endpoint of the real REST API on loopback. Router and workers are programs that
read what such agents would read and count it by a real tokenizer:

* The first event of a thread is read by the router, which starts a worker and makes it the thread's owner.
* Without pass-through each later event is read by the router too, which hands its id on, and then by the worker.
* With it later events land in the worker's inbox, and the router does not see them.
* The worker reads the payload of each event in both runs.
"""

import hashlib
import hmac
import http.client
import json
import lzma
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memory.management.postgres import Embedded
from tests.bench.database import ROOT
from tests.bench.ingest import Web, manage

DATA = ROOT / "tests" / "data"
ENDPOINT = """
from memory.graph import endpoints
from memory.tenants import rls
from memory.tenants.access import command_actor
from memory.tenants.models import Tenant
with rls.tenant_scope({tenant!r}):
    team = Tenant.objects.get(pk={tenant!r})
    made, secret = endpoints.create(team, "github", "bench", wanted=endpoints.Wanted(), by=command_actor(team, "bench"))
print(made.path, secret)
"""


@dataclass
class Reader:
    """Somebody who reads answers: how many, and of how many tokens."""

    name: str
    count: Callable[[str], int]
    reads: int = 0
    tokens: int = 0

    def read(self, text: str) -> Any:
        self.reads += 1
        self.tokens += self.count(text)
        try:
            return json.loads(text)
        except ValueError:
            return text


@dataclass
class Team:
    """A team's key and its webhook endpoint."""

    port: int
    key: str
    path: str
    secret: str
    workers: dict[str, str] = field(default_factory=dict)
    cursors: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> str:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        sent = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **headers}
        connection.request(method, path if path.startswith("/") else f"/api/v1/{path}", raw, sent)
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        connection.close()
        if answer.status not in (200, 201):
            raise SystemExit(f"{method} {path}: {answer.status} {text[:300]}")
        return text

    def deliver(self, kind: str, raw: bytes, number: int) -> Any:
        signed = "sha256=" + hmac.new(self.secret.encode(), raw, hashlib.sha256).hexdigest()
        named = {"X-GitHub-Event": kind, "X-GitHub-Delivery": f"d-{number}", "X-Hub-Signature-256": signed}
        return json.loads(self.ask("POST", self.path, raw, **named))


def lines(name: str) -> list[Any]:
    """The JSON lines of a file of the tests."""
    return [json.loads(line) for line in lzma.decompress((DATA / f"{name}.jsonl.xz").read_bytes()).splitlines()]


def day() -> list[tuple[str, bytes]]:
    """Kind and body of each event, in order of time."""
    threads = sorted((event for _, event in lines("threads/attio-github")), key=lambda event: event["ts"])
    kinds: dict[str, bytes] = {}
    for name, body in lines("webhooks/github"):
        kinds.setdefault(name.split("/")[0], body.encode())
    kinds.pop("ping", None)
    return [(event["event"], json.dumps(event["payload"]).encode()) for event in threads] + list(kinds.items())


def live(
    team: Team, events: list[tuple[str, bytes]], count: Callable[[str], int], *, pass_through: bool
) -> list[Reader]:
    """The day as router and workers read it."""
    router, workers, payloads = Reader("router", count), Reader("workers", count), Reader("workers, payloads", count)
    for number, (kind, raw) in enumerate(events):
        came = team.deliver(kind, raw, number)
        thread, trigger = came["thread_id"], came["trigger_id"]
        is_new = thread not in team.workers
        if is_new or not pass_through:
            router.read(team.ask("GET", f"triggers/{trigger}"))
        if is_new:
            started = json.loads(team.ask("POST", "workers", {"thread_id": thread, "task": "Look after this thread"}))
            worker = team.workers[thread] = started["worker_id"]
            team.ask("POST", f"threads/{thread}/owners", {"worker_id": worker, "pass_through": pass_through})
        if is_new or not pass_through:
            workers.read(team.ask("GET", f"triggers/{trigger}"))
        else:
            inbox(team, team.workers[thread], trigger, workers)
        payloads.read(team.ask("GET", f"triggers/{trigger}/payload"))
    return [router, workers, payloads]


def inbox(team: Team, worker: str, trigger: str, reader: Reader) -> None:
    """The worker reads on in its inbox, and finds the trigger there."""
    cursor = team.cursors.get(worker)
    page = reader.read(team.ask("GET", f"workers/{worker}/inbox" + (f"?cursor={cursor}" if cursor else "")))
    if [entry["trigger_id"] for entry in page["items"]] != [trigger]:
        raise SystemExit(f"the inbox of {worker} does not hold {trigger}")
    team.cursors[worker] = page["next_cursor"]


def new_team(home: Path, web: Web, slug: str) -> Team:
    made = json.loads(manage(home, "create_tenant", slug, "--owner", f"{slug}@example.test", "--json"))
    find = f"from memory.tenants.models import Tenant; print(Tenant.objects.get(slug={slug!r}).pk)"
    tenant = manage(home, "shell", "-v0", "-c", find, role="migrator").split()[-1]
    path, secret = manage(home, "shell", "-v0", "-c", ENDPOINT.format(tenant=tenant)).split()[-2:]
    return Team(web.port, made["agent_key"], path, secret)


def show(readers: dict[str, list[Reader]]) -> None:
    print(f"{'':20}{'without':>22}{'with pass-through':>22}")
    for without, straight in zip(*readers.values(), strict=True):
        cells = (f"{one.tokens:,} in {one.reads} reads" for one in (without, straight))
        print(f"{without.name:20}" + "".join(f"{cell:>22}" for cell in cells))
    for title, parts in (("router", 1), ("router and workers", 2), ("with the payloads", 3)):
        without, straight = (sum(one.tokens for one in some[:parts]) for some in readers.values())
        print(f"{title}: {without:,} tokens without, {straight:,} with: {without / straight - 1:+.0%} without it")


def main() -> None:
    home = Path(tempfile.mkdtemp(prefix="tm-bench-"))
    home.chmod(0o755)
    server = Embedded(home)
    os.environ |= {"TEAM_MEMORY_DATA": str(home), "DJANGO_SETTINGS_MODULE": "memory.settings"}
    try:
        server.start()
        manage(home, "migrate", "-v0", role="migrator")
        web = Web(home)
        try:
            web.await_ready()
            from memory import tokens

            events = day()
            readers = {}
            for slug in ("without", "straight"):
                team = new_team(home, web, slug)
                readers[slug] = live(team, events, tokens.count, pass_through=slug == "straight")
            print(f"{len(events)} events in {len(team.workers)} threads, counted by {tokens.tokenizer()}")
            show(readers)
        finally:
            web.stop()
    finally:
        server.stop()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
