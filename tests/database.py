"""Pytest plugin: one embedded PostgreSQL, one migrated template, a database from it for each worker.

It is loaded by `-p`, before Django reads its settings. The tests run as the runtime role, as the app does: a superuser
or the owner would see every tenant's rows, and isolation tests would pass for nothing.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from memory.management.postgres import DATABASE, Embedded, prepare_database

ROOT = Path(__file__).resolve().parent.parent
SERVER = "TEAM_MEMORY_TEST_SERVER"
URLS = {
    "runtime": "DATABASE_URL",
    "migrator": "MIGRATOR_DATABASE_URL",
    "backup": "BACKUP_DATABASE_URL",
    "broker": "BROKER_DATABASE_URL",
}
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")


def url(role: dict[str, object], database: str) -> str:
    user, password = quote(str(role["user"])), quote(str(role["password"]))
    return f"postgres://{user}:{password}@/{database}?host={quote(str(role['host']), safe='')}"


def point_at(server: Embedded, database: str) -> None:
    """Let the settings, and every child process, use this database."""
    for role, name in URLS.items():
        os.environ[name] = url(server.dsn(role), database)  # type: ignore[arg-type]


def clone(server: Embedded, database: str) -> None:
    with server.superuser() as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)".encode())
        connection.execute(f"CREATE DATABASE {database} TEMPLATE {DATABASE} OWNER tm_migrator".encode())
    with server.superuser(database) as connection:
        prepare_database(connection, database)


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory.settings")


def _boot() -> Embedded:
    """In the controller: the server, and its migrated template."""
    home = Path(tempfile.mkdtemp(prefix="tm-tests-"))
    home.chmod(0o755)
    os.environ[SERVER] = str(home)
    os.environ["TEAM_MEMORY_DATA"] = str(home)
    for name in (*URLS.values(), "CELERY_BROKER_URL"):
        os.environ.pop(name, None)
    server = Embedded(home, settings={"fsync": "off", "synchronous_commit": "off", "max_connections": "200"})
    server.start()
    point_at(server, DATABASE)
    environment = {**os.environ, "TEAM_MEMORY_DB_ROLE": "migrator", "DJANGO_SETTINGS_MODULE": "memory.settings"}
    subprocess.run([sys.executable, "-m", "django", "migrate", "-v0"], check=True, env=environment, cwd=ROOT)
    return server


class Server:
    """Ends the server that this process started, when the run ends."""

    def __init__(self, server: Embedded) -> None:
        self.server = server

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        self.server.stop()
        shutil.rmtree(self.server.home.path, ignore_errors=True)


_owned: Embedded | None = None
if WORKER == "main":
    _owned = _boot()
    _server = _owned
else:
    _server = Embedded(Path(os.environ[SERVER]))
NAME = f"tm_test_{WORKER}"
clone(_server, NAME)
point_at(_server, NAME)
SERVER_OF_TESTS = _server


def pytest_configure(config: pytest.Config) -> None:
    if _owned is not None:
        config.pluginmanager.register(Server(_owned), "team-memory-server")


def migrator() -> "psycopg.Connection[tuple[object, ...]]":
    """A connection as the migrator, which sees and may clean every tenant's rows."""
    return psycopg.connect(**SERVER_OF_TESTS.dsn("migrator", NAME), autocommit=True)  # type: ignore[arg-type]
