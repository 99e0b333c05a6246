"""Two web hosts and two worker hosts on one PostgreSQL and one Redis, each in a network namespace of its own; cables
are pulled under load. Nothing that was acknowledged is lost or stored twice, and every dream is done once.
"""

import json
import os
import re
import shutil
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from memory.management.home import Home
from memory.management.postgres import Embedded
from memory.management.processes import programs
from tests.llm_server import Provider, Reply, provider
from tests.ops import hosts

pytestmark = pytest.mark.slow  # the whole product on five hosts, and cables that stay out for half a minute
FOREIGN = re.compile("DATABASE_URL|TEAM_MEMORY_|CELERY_|DJANGO_")
WEB = [f"http://{hosts.ADDRESSES[host]}:8000" for host in ("web1", "web2")]
AGENTS, EVENTS_A_SESSION, PATIENCE = 4, 60, 3.0
# A lease is over before a cable is back.
LEASE, CUT = 15, 22.0
THINKING = 1.0
# What a log may say at ERROR or in a traceback: that a connection was lost, and what waited for it.
LOST = re.compile(
    r"connection|Connection|timed? ?out|Timeout|socket|unreachable|No route|terminating|server closed|ConnectionError"
    r"|OperationalError|InterfaceError|lease|Retry|unavailable"
)


@dataclass
class Site:
    """The deployment: its database, its programs, and a team with a key."""

    database: Embedded
    running: hosts.Programs
    environment: dict[str, str]
    model: Provider
    key: str = ""

    def ask(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.database.superuser("team_memory") as connection:
            return list(connection.execute(sql.encode(), values).fetchall())

    def call(self, base: str, path: str, body: Any, headers: dict[str, str] | None = None) -> Any:
        given = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **(headers or {})}
        asked = urllib.request.Request(f"{base}/api/v1/{path}", json.dumps(body).encode(), given)
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or b"null")

    def url(self, role: str) -> str:
        known = self.database.dsn(role)  # type: ignore[arg-type]
        parts = [quote(str(known[name]), safe="") for name in ("user", "password")]
        return f"postgres://{':'.join(parts)}@{hosts.ADDRESSES['db']}:5432/{known['dbname']}"

    def manage(self, *arguments: str, role: str = "runtime") -> str:
        out = self.running.folder / "manage.out"
        command = [sys.executable, "manage.py", *arguments]
        with out.open("wb") as file:
            ran = hosts.run(command, file, {**self.environment, "TEAM_MEMORY_DB_ROLE": role})
        assert ran == 0, out.read_text()
        return out.read_text()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    if lacks := hosts.missing():
        pytest.skip(f"hosts in network namespaces: here lacks {lacks}")
    # Not tmp_path: the database's user must be able to reach it.
    folder = Path(tempfile.mkdtemp(prefix="tm-hosts-", dir="/tmp"))
    folder.chmod(0o755)
    running = hosts.Programs(folder)
    try:
        with hosts.network(), provider(lambda prompt: Reply(THOUGHT, delay=THINKING), host=hosts.HERE) as model:
            site = Site(Embedded(folder / "db"), running, {}, model)
            try:
                _start(site, folder)
                yield site
            finally:
                running.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


THOUGHT = '{"operations": [{"op": "none", "reason": "nothing to learn"}]}'


def _start(site: Site, folder: Path) -> None:
    running = site.running
    running.start("db", "postgres", [sys.executable, str(Path(hosts.__file__)), str(folder / "db")])
    redis = [
        "redis-server",
        "--bind",
        hosts.ADDRESSES["db"],
        "--protected-mode",
        "no",
        "--save",
        "",
        "--dir",
        str(folder),
    ]
    running.start("db", "redis", redis)
    hosts.await_true("the database", (folder / "db" / "ready").exists, 120)
    kept = {name: value for name, value in os.environ.items() if not FOREIGN.search(name)}
    site.environment = kept | {
        "DATABASE_URL": site.url("runtime"),
        "MIGRATOR_DATABASE_URL": site.url("migrator"),
        "CELERY_BROKER_URL": f"redis://{hosts.ADDRESSES['db']}:6379/0",
        "TEAM_MEMORY_SECRET_KEY": "hosts of one deployment sign with one and the same key",
        "TEAM_MEMORY_ALLOWED_HOSTS": ",".join(hosts.ADDRESSES.values()),
        "TEAM_MEMORY_DATA": str(folder / "here"),
        "TEAM_MEMORY_LEASE_SECONDS": str(LEASE),
        "TEAM_MEMORY_HEARTBEAT_SECONDS": "2",
        "TEAM_MEMORY_EMBED": "off",
        "TEAM_MEMORY_MODEL": "openai-compatible:scripted",
        "TEAM_MEMORY_MODEL_URL": f"{site.model.address}/v1",
        "TEAM_MEMORY_MODEL_KEY": "key",
        "DJANGO_SETTINGS_MODULE": "memory.settings",
    }
    site.manage("migrate", "-v0", role="migrator")
    scopes = "ingest,read,dream"
    made = site.manage("create_tenant", "acme", "--owner", "ana@example.test", "--json", "--scopes", scopes)
    site.key = json.loads(made)["agent_key"]
    for host, address in hosts.ADDRESSES.items():
        home = folder / host
        for program in programs(Home(home), host=address, port=8000, workers=1):
            is_here = host.startswith("web") if program.name == "web" else host.startswith("work")
            if is_here:  # both worker hosts have a clock, too
                (home / "run").mkdir(parents=True, exist_ok=True)
                environment = {**site.environment, "TEAM_MEMORY_DATA": str(home)}
                running.start(host, program.name, program.command, environment=environment)
    for base in WEB:
        hosts.await_true(base, lambda base=base: urllib.request.urlopen(f"{base}/readyz", timeout=2).status == 200, 90)


@dataclass(eq=False)
class Agent(threading.Thread):
    """Posts events to the web hosts in turn; what fails is sent again to the other, under its key."""

    site: Site
    name_of_session: str
    over: threading.Event = field(default_factory=threading.Event)
    acknowledged: dict[str, str] = field(default_factory=dict)  # the key of an event: the host that took it
    failed: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    def run(self) -> None:
        n = 0
        while not self.over.is_set() or n % EVENTS_A_SESSION:
            session = f"{self.name_of_session}-{n // EVENTS_A_SESSION}"
            n += 1
            said = {"hook_event_name": "UserPromptSubmit", "prompt": f"Mend step {n} of {session}"}
            if n % EVENTS_A_SESSION == 0:
                said = {"hook_event_name": "Stop"}
            # A project of its own: a dream asks its model project by project.
            self._post(n, {"session_id": session, "cwd": f"/home/dev/{session}", **said})
            time.sleep(0.1)

    def _post(self, n: int, payload: dict[str, Any]) -> None:
        key = uuid.uuid4().hex
        for attempt in range(1000):
            base = WEB[(n + attempt) % len(WEB)]
            try:
                self.site.call(base, "hooks/claude-code", payload, {"Idempotency-Key": key})
                self.acknowledged[key] = base
                return
            except urllib.error.HTTPError as why:
                # 503: the database is out of reach from there. Anything else is a fault.
                if why.code != 503:
                    self.failed.setdefault("faults", []).append(f"{base}: {why.code} {why.read()[:300]!r}")
                    return
                self.failed.setdefault(key, []).append(base)
            except OSError:
                self.failed.setdefault(key, []).append(base)


def _dream(site: Site, base: str) -> str:
    """A dream of all there is so far, with two windows behind it; gives the host that carries it out."""
    held = "SELECT owner FROM tenants_due WHERE task = 'dream' AND owner <> ''"
    windows = "SELECT count(*) FROM dream_window w JOIN dream_run r ON r.id = w.run_id WHERE r.state = 'running'"
    owner: list[Any] = []

    def is_under_way() -> bool:
        owner[:] = site.ask(held) if _asked_for(site, base) and site.ask(windows)[0][0] >= 2 else []
        return bool(owner)

    hosts.await_true("a dream with two windows", is_under_way, 120)
    return str(owner[0][0]).split(":")[0]


def _asked_for(site: Site, base: str) -> bool:
    try:
        return bool(site.call(base, "dreams", {}))
    except urllib.error.HTTPError as why:
        return why.code == 409  # one runs


def test_hosts_that_are_cut_off_and_come_back_lose_nothing(site: Site) -> None:
    agents = [Agent(site, f"agent{n}") for n in range(AGENTS)]
    for agent in agents:
        agent.start()
    try:
        hosts.await_true("eight sessions", lambda: site.ask("SELECT count(*) FROM events_session")[0][0] >= 8, 120)
        _dream(site, WEB[1])
        hosts.cut("web1")
        time.sleep(CUT)
        hosts.join("web1")
        came_back = [len([1 for base in agent.acknowledged.values() if base == WEB[0]]) for agent in agents]
        hosts.await_true(
            "web1's next answer",
            lambda: any(
                len([1 for base in list(agent.acknowledged.values()) if base == WEB[0]]) > before
                for agent, before in zip(agents, came_back, strict=True)
            ),
        )
        gone = _dream(site, WEB[0])
        hosts.cut(gone)
        time.sleep(CUT)
        begun = site.ask("SELECT id FROM dream_run WHERE state IN ('queued', 'running')")
        hosts.join(gone)
    finally:
        for agent in agents:
            agent.over.set()
        site.running.tell()  # shown where the test fails
    _await_drained(site, [pk for (pk,) in begun])
    for agent in agents:
        agent.join(60)
    _dream_the_rest(site)
    _check_events(site, agents)
    _check_dreams(site)
    _check_logs(site)


def _await_drained(site: Site, begun: list[Any]) -> None:
    """Within two leases somebody who lives has what was begun, or it is done; how long the rest takes is the machine's
    affair.
    """
    left = "SELECT public_id FROM dream_run WHERE id = ANY (%s) AND state IN ('queued', 'running')"
    held = "SELECT argument FROM tenants_due WHERE task = 'dream' AND owner <> '' AND leased_until > now()"
    hosts.await_true("somebody who goes on", lambda: set(site.ask(left, begun)) <= set(site.ask(held)), 2 * LEASE)
    hosts.await_true("the end of what was begun", lambda: not site.ask(left, begun), 240)


def _dream_the_rest(site: Site) -> None:
    hosts.await_true("a dream's start", lambda: _asked_for(site, WEB[0]))
    left = "SELECT count(*) FROM dream_run WHERE state IN ('queued', 'running')"
    hosts.await_true("the last dream's end", lambda: site.ask(left)[0][0] == 0, 300)


def _check_events(site: Site, agents: list[Agent]) -> None:
    """Once each, in dense order; what failed at one host was taken by one of them in the end."""
    taken = [key for agent in agents for key in agent.acknowledged]
    failed = [key for agent in agents for key in agent.failed]
    assert failed, "no client noticed that a cable was out: nothing was tried"
    assert [fault for agent in agents for fault in agent.failed.get("faults", [])] == []
    assert set(failed) <= set(taken)
    stored = site.ask("SELECT s.id, e.seq, e.key FROM events_event e JOIN events_session s ON s.id = e.session_id")
    keys = [key for _, _, key in stored]
    assert len(keys) == len(set(keys)) == len(taken)
    assert {key.split(":")[-1] for key in keys} == set(taken)
    for session, last in site.ask("SELECT id, last_seq FROM events_session"):
        assert sorted(seq for own, seq, _ in stored if own == session) == list(range(1, last + 1))


def _check_dreams(site: Site) -> None:
    """The windows of a session, over all runs, follow each other without a gap and without an overlap."""
    assert site.ask("SELECT state, error FROM dream_run WHERE state NOT IN ('succeeded', 'no_change')") == []
    assert site.ask("SELECT * FROM dream_window WHERE outcome <> 'read'") == []
    for session, last in site.ask("SELECT id, last_seq FROM events_session"):
        windows = site.ask("SELECT from_seq, to_seq FROM dream_window WHERE session_id = %s ORDER BY 1", session)
        reached = 0
        for begin, end in windows:
            assert begin == reached + 1
            reached = end
        assert reached == last


def _check_logs(site: Site) -> None:
    """Nothing went wrong but that connections were lost."""
    wrong = []
    for log in sorted(site.running.folder.glob("w*.log")):
        lines = log.read_text(errors="replace").splitlines()
        for at, line in enumerate(lines):
            if re.search(r"\b(ERROR|CRITICAL)\b", line) and not LOST.search("\n".join(lines[at : at + 80])):
                wrong.append(f"{log.name}: {line}")
            if re.match(r"[\w.]+(Error|Exception|Lost)\b", line) and not LOST.search(line):
                wrong.append(f"{log.name}: {line}")
    assert wrong == []


def test_a_host_that_is_gone_for_good_soon_holds_no_lock(site: Site) -> None:
    """A sweep is one transaction under a lock that only one host may have. Its host's power fails in the middle."""
    script = (
        "import time, django; django.setup();"
        "from django.db import connection, transaction;\n"
        "with transaction.atomic(), connection.cursor() as cursor:\n"
        "    cursor.execute(\"SELECT pg_advisory_xact_lock(hashtext('team-memory sweeper'))\")\n"
        "    print('held', flush=True); time.sleep(600)\n"
    )
    holder = site.running.start("work1", "holder", [sys.executable, "-c", script], environment=site.environment)
    hosts.await_true("the lock", lambda: "held" in site.running.log("work1", "holder").read_text())
    hosts.cut("work1")
    try:
        held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid IN"
        held += " (SELECT pid FROM pg_stat_activity WHERE state = 'idle in transaction' AND client_addr = %s)"
        assert site.ask(held, hosts.ADDRESSES["work1"])[0][0] == 1
        hosts.await_true("the lock's release", lambda: not site.ask(held, hosts.ADDRESSES["work1"])[0][0])
    finally:
        holder.kill()
        hosts.join("work1")
