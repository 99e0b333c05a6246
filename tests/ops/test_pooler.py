"""Behind PgBouncer's transaction pooling: one session of the server serves many connections of ours, each call another.

Needs the program `pgbouncer` (Debian: apt-get install pgbouncer), and root to run it as nobody.
"""

import concurrent.futures
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from memory.management.postgres import Embedded
from tests.bench.ingest import Web, manage

pytestmark = pytest.mark.slow  # a server and a pooler of its own, and all contracts twice
FOREIGN = re.compile(".*DATABASE_URL|TEAM_MEMORY_|CELERY_|DJANGO_")
SESSIONS, CLIENTS, EACH = 3, 16, 40
CONFIGURATION = """
[databases]
team_memory = host={host} port={port} dbname=team_memory user={user} password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
auth_type = plain
auth_file = {folder}/users.txt
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 200
ignore_startup_parameters = options
unix_socket_dir =
logfile = {folder}/log
pidfile = {folder}/pid
"""


class Deployment:
    """The product behind the pooler, and two teams with a key each."""

    def __init__(self, server: Embedded, home: Path, port: int) -> None:
        self.server, self.home, self.port = server, home, port
        self.keys = [
            json.loads(manage(home, "create_tenant", slug, "--owner", f"{slug}@example.test", "--json"))["agent_key"]
            for slug in ("acme", "globex")
        ]

    def call(self, path: str, key: str, body: Any = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}/api/v1/{path}", data, headers)
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as exc:
            return exc.code, json.load(exc)

    def sessions(self) -> int:
        with self.server.superuser() as connection:
            row = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE usename = 'tm_runtime'").fetchone()
        return int(row[0]) if row else -1


@pytest.fixture(scope="module")
def deployed() -> Iterator[Deployment]:
    assert shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin"), __doc__
    home, folder = (Path(tempfile.mkdtemp(prefix=f"tm-pooler-{name}-")) for name in ("home", "conf"))
    home.chmod(0o755)
    folder.chmod(0o777)  # nobody writes its log there
    server = Embedded(home)
    with ExitStack() as stack:
        # The tests' own database is not the one meant here.
        environment = stack.enter_context(pytest.MonkeyPatch.context())
        for name in filter(FOREIGN.match, list(os.environ)):
            environment.delenv(name)
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stack.callback(server.stop)
        server.start()
        manage(home, "migrate", "-v0", role="migrator")
        known = server.dsn("runtime")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            listen = int(taken.getsockname()[1])
        (folder / "users.txt").write_text(f'"{known["user"]}" "{known["password"]}"\n')
        told = CONFIGURATION.format(**known, listen=listen, folder=folder, sessions=SESSIONS)
        (folder / "pgbouncer.ini").write_text(told)
        command = ["setpriv", "--reuid=65534", "--clear-groups", "/usr/sbin/pgbouncer", str(folder / "pgbouncer.ini")]
        pooler = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(pooler.wait, 20)
        stack.callback(pooler.terminate)
        user, password = (quote(str(known[name]), safe="") for name in ("user", "password"))
        url = f"postgresql://{user}:{password}@127.0.0.1:{listen}/team_memory"
        web = Web(home, DATABASE_URL=url)
        stack.callback(web.stop)
        web.await_ready()
        yield Deployment(server, home, web.port)


def test_every_contract_holds(deployed: Deployment) -> None:
    for key in deployed.keys:
        said = manage(deployed.home, "check_contracts", f"http://127.0.0.1:{deployed.port}", "--key", key)
        assert " 0 broken" in said, said
    assert 0 < deployed.sessions() <= SESSIONS


def test_each_caller_gets_their_own_rows(deployed: Deployment) -> None:
    """Two teams, three hot statements and a session that serves them all in turn."""

    def worked(client: int) -> list[str]:
        key, wrong = deployed.keys[client % 2], []
        for number in range(EACH):
            name = f"{client}-{number}"
            body = {"source": "ci", "external_id": name, "thread": {"key": f"ci:{name}"}, "payload": {"name": name}}
            status, stored = deployed.call("triggers", key, body)
            if status != 201:
                wrong.append(f"{name}: {status} {stored}")
                continue
            for path, field, value in (
                (f"triggers/{stored['trigger_id']}", "external_id", name),
                (f"threads/{stored['thread_id']}", "key", f"ci:{name}"),
            ):
                status, said = deployed.call(path, key)
                if status != 200 or said[field] != value:
                    wrong.append(f"{name}: {path} {status} {said}")
                status, said = deployed.call(path, deployed.keys[1 - client % 2])
                if status != 404:
                    wrong.append(f"{name}: the other team got {status} {said}")
        return wrong

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        wrong = [one for some in pool.map(worked, range(CLIENTS)) for one in some]
    assert wrong == []
    with deployed.server.superuser("team_memory") as connection:
        row = connection.execute("SELECT count(*) FROM graph_trigger WHERE external_id ~ '^[0-9]+-[0-9]+$'").fetchone()
    assert row is not None and row[0] == CLIENTS * EACH
