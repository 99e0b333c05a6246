"""The cast: Alice owns acme, Bob reviews, Vera only reads, Charlie owns globex, and each team has an agent with a key.

Tests commit for real, as the runtime role: inside one outer transaction a binding would outlive its request, and
isolation tests would pass for nothing. The migrator cleans afterwards.
"""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.db import connections, transaction
from django.test import Client

from memory.tenants import keys, rls
from memory.tenants.access import command_actor
from memory.tenants.models import AgentKey, Member, Tenant, User
from tests import database
from tests.browser.chromium import pytest_collection_modifyitems, pytest_terminal_summary  # noqa: F401 - hooks


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Share a run of the whole suite among the cores: it takes a third of an hour on one. `-n 0` keeps it in one."""
    if hasattr(config, "workerinput"):
        # One of those cores: it is asked the same, with no number, and would share its share again without end.
        return
    is_whole = config.args_source == config.ArgsSource.TESTPATHS and config.option.markexpr == "not slow"
    if is_whole and config.option.numprocesses is None and not config.option.usepdb:
        config.option.numprocesses = min(os.cpu_count() or 1, MOST_WORKERS)
        config.option.dist = "loadfile"


def pytest_unconfigure() -> None:
    database.end()


PASSWORD = "correct horse battery"
# Each has a database, and up to a browser and servers of its own.
MOST_WORKERS = 4


@pytest.fixture(scope="session")
def django_db_setup() -> None:
    """The database exists before Django is set up: see tests/database.py."""


@pytest.fixture
def committed(django_db_blocker: Any, django_db_setup: None) -> Iterator[None]:
    """Access to the database; whatever the test commits is cleaned after it."""
    with django_db_blocker.unblock():
        yield
        for connection in connections.all(initialized_only=True):
            connection.close()
        database.clean()


@dataclass
class Agent:
    """An agent key with the secret an agent would send."""

    key: AgentKey
    secret: str
    member: Member

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret}"}


def new_team(slug: str, **people: str) -> tuple[Tenant, dict[str, Member]]:
    """A team and its members, `name=role`, all with the same password."""
    tenant = Tenant(slug=slug, name=slug.title())
    members = {}
    with transaction.atomic():
        rls.bind(str(tenant.pk))
        tenant.save(force_insert=True)
        for name, role in people.items():
            user = User.objects.create(email=f"{name}@{slug}.test", name=name.title(), password=_password())
            members[name] = Member.objects.create(tenant=tenant, user=user, handle=name, role=role)
    return tenant, members


_hashed: list[str] = []


def _password() -> str:
    if not _hashed:
        _hashed.append(make_password(PASSWORD))
    return _hashed[0]


def new_agent(member: Member, **options: Any) -> Agent:
    with rls.tenant_scope(str(member.tenant_id)):
        key, secret = keys.make_key(member, name="agent", by=command_actor(member.tenant, "tests"), **options)
    return Agent(key, secret, member)


@pytest.fixture
def teams(committed: None) -> dict[str, Any]:
    acme, people = new_team("acme", alice="owner", bob="reviewer", vera="viewer", mia="member")
    globex, others = new_team("globex", charlie="owner")
    return {"acme": acme, "globex": globex, **people, **others}


@pytest.fixture
def acme(teams: dict[str, Any]) -> Tenant:
    tenant: Tenant = teams["acme"]
    return tenant


@pytest.fixture
def globex(teams: dict[str, Any]) -> Tenant:
    tenant: Tenant = teams["globex"]
    return tenant


@pytest.fixture
def alice(teams: dict[str, Any]) -> Any:
    return teams["alice"]


@pytest.fixture
def bob(teams: dict[str, Any]) -> Any:
    return teams["bob"]


@pytest.fixture
def vera(teams: dict[str, Any]) -> Any:
    return teams["vera"]


@pytest.fixture
def mia(teams: dict[str, Any]) -> Any:
    return teams["mia"]


@pytest.fixture
def charlie(teams: dict[str, Any]) -> Any:
    return teams["charlie"]


@pytest.fixture
def agent(alice: Member) -> Agent:
    return new_agent(alice)


@pytest.fixture
def globex_agent(charlie: Member) -> Agent:
    return new_agent(charlie)


@pytest.fixture
def bound() -> Callable[[Tenant], AbstractContextManager[None]]:
    return lambda tenant: rls.tenant_scope(str(tenant.pk))


class Api:
    """The REST API as an agent calls it."""

    def __init__(self, agent: Agent) -> None:
        self.client = Client(headers=agent.headers)

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(f"/api/v1/{path}", query_params=query or None)

    def post(self, path: str, body: Any = None, **options: Any) -> Any:
        headers = options.pop("headers", {})
        kind = options.pop("content_type", "application/json")
        return self.client.post(f"/api/v1/{path}", body, content_type=kind, headers=headers, **options)

    def put(self, path: str, body: Any = None, **options: Any) -> Any:
        headers = options.pop("headers", {})
        kind = options.pop("content_type", "application/json")
        return self.client.put(f"/api/v1/{path}", body, content_type=kind, headers=headers, **options)

    def delete(self, path: str, **options: Any) -> Any:
        return self.client.delete(f"/api/v1/{path}", **options)


@pytest.fixture
def api() -> Callable[[Agent], Api]:
    return Api


@pytest.fixture
def logged_in() -> Callable[[Member], Client]:
    """A browser in which a member is logged in."""

    def enter(member: Member) -> Client:
        client = Client()
        client.force_login(member.user)
        return client

    return enter


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def served(port: int = 0, *, stderr: Any = None, **settings: str) -> Iterator[str]:
    """The address of a real server (granian, as in production) over this process's database."""
    port = port or free_port()
    address = f"http://127.0.0.1:{port}"
    environment = {**os.environ, "TEAM_MEMORY_PUBLIC_URL": address, **settings}
    command = [sys.executable, "-m", "granian", "--interface", "wsgi", "--port", str(port), "memory.wsgi:application"]
    server = subprocess.Popen(
        command, env=environment, cwd=database.ROOT, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True
    )
    try:
        _await(address + "/healthz", server)
        yield address
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            # Its workers are in its session, and would stay without it.
            os.killpg(server.pid, signal.SIGKILL)
            server.wait(20)


@pytest.fixture(scope="session")
def _kept_server() -> Iterator[str]:
    """Starting one takes longer than most tests that ask it; what it keeps goes by keys, which are new each time."""
    with served() as address:
        yield address


@pytest.fixture
def live(committed: None, _kept_server: str) -> str:
    """The address of a real server over this worker's database, which is cleaned after the test."""
    return _kept_server


def _await(address: str, server: "subprocess.Popen[bytes]") -> None:
    for _ in range(400):
        try:
            urllib.request.urlopen(address, timeout=2).close()
            return
        except (urllib.error.URLError, OSError):
            if server.poll() is not None:
                raise RuntimeError("the server ended at once") from None
            time.sleep(0.05)
    raise RuntimeError("the server did not answer")
