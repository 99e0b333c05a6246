"""One embedded PostgreSQL, one migrated template, a database from it for each worker.

It is imported by tests/settings.py, before the app's settings are read. The tests run as the runtime role, as the app
does: a superuser or the owner would see every tenant's rows, and isolation tests would pass for nothing.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import psycopg

from memory.management.postgres import DATABASE, Embedded, prepare_database

ROOT = Path(__file__).resolve().parent.parent
SERVER = "TEAM_MEMORY_TEST_SERVER"
# A folder that outlives the run, so that what took minutes to fill is asked again (tests/bench/pages.py).
KEPT = os.environ.get("TEAM_MEMORY_TEST_HOME")
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


def has_database(server: Embedded, database: str) -> bool:
    with server.superuser() as connection:
        return bool(connection.execute("SELECT FROM pg_database WHERE datname = %s", [database]).fetchall())


def _fingerprint() -> str:
    """What the migrated template depends on: every migration, the roles, and this file."""
    sources = [*ROOT.glob("*/**/migrations/*.py"), *ROOT.glob("memory/management/*.py"), ROOT / "memory/tenants/rls.py"]
    sources.append(ROOT / "pyproject.toml")  # packages bring tables too
    whole = hashlib.sha256(Path(__file__).read_bytes())
    for path in sorted(sources):
        whole.update(path.name.encode() + path.read_bytes())
    return whole.hexdigest()[:24]


def _boot() -> Embedded:
    """In the controller: the server, and its migrated template, made once for each state of the migrations."""
    home = Path(KEPT or tempfile.mkdtemp(prefix="tm-tests-"))
    home.mkdir(exist_ok=True)
    home.chmod(0o755)
    os.environ[SERVER] = str(home)
    os.environ["TEAM_MEMORY_DATA"] = str(home)
    for name in (*URLS.values(), "CELERY_BROKER_URL"):
        os.environ.pop(name, None)
    kept = Path(tempfile.gettempdir()) / f"tm-template-{os.getuid()}-{_fingerprint()}"
    is_used = any(home.iterdir())
    if kept.exists() and not is_used:
        subprocess.run(["cp", "-a", f"{kept}/.", str(home)], check=True)
    server = Embedded(home, settings={"fsync": "off", "synchronous_commit": "off", "max_connections": "200"})
    server.start()
    point_at(server, DATABASE)
    if not kept.exists() and not is_used:
        _migrate()
        _keep(server, kept)
    return server


def _migrate() -> None:
    environment = {**os.environ, "TEAM_MEMORY_DB_ROLE": "migrator", "DJANGO_SETTINGS_MODULE": "memory.settings"}
    command = [sys.executable, "-m", "django", "migrate", "-v0", "--skip-checks"]
    subprocess.run(command, check=True, env=environment, cwd=ROOT)


def _keep(server: Embedded, kept: Path) -> None:
    """Copy the stopped server's folder aside; of two runs at once one keeps its copy."""
    server.stop()
    fresh = kept.with_name(f"{kept.name}.{os.getpid()}")
    subprocess.run(["cp", "-a", str(server.home.path), str(fresh)], check=True)
    try:
        fresh.rename(kept)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)
    server.start()


_owned: Embedded | None = None
if WORKER == "main":
    _owned = _boot()
    _server = _owned
else:
    _server = Embedded(Path(os.environ[SERVER]))
NAME = f"tm_test_{WORKER}"
if KEPT is None or not has_database(_server, NAME):
    clone(_server, NAME)
point_at(_server, NAME)
SERVER_OF_TESTS = _server


def end() -> None:
    """Stop the server, if this process started it."""
    if _cleaner is not None:
        _cleaner.close()
    if _owned is not None:
        _owned.stop()
        if KEPT is None:
            shutil.rmtree(_owned.home.path, ignore_errors=True)


def migrator() -> "psycopg.Connection[tuple[object, ...]]":
    """A connection as the migrator, which sees and may clean every tenant's rows."""
    return psycopg.connect(**SERVER_OF_TESTS.dsn("migrator", NAME), autocommit=True)  # type: ignore[arg-type]


_CLEANED = (
    *("tenants_tenant", "tenants_browser", "mfa_authenticator", "tenants_user", "tenants_operatorentry"),
    *("django_session", "axes_accessattempt"),
)
_cleaner: "psycopg.Connection[tuple[object, ...]] | None" = None


def clean() -> None:
    """Delete what a test committed: teams with all that is theirs, people, and their sessions.

    By a connection that stays: a new one plans the cascade through every table anew, which takes ten times as long as
    the deletes themselves.
    """
    global _cleaner
    if _cleaner is None or _cleaner.broken or _cleaner.closed:
        _cleaner = migrator()
    for attempt in range(10):
        try:
            for table in _CLEANED:
                _cleaner.execute(f"DELETE FROM {table}".encode())
            return
        except (psycopg.errors.DeadlockDetected, psycopg.errors.ForeignKeyViolation):
            # A server that stays may still be answering what the test no longer waits for.
            if attempt == 9:
                raise
            time.sleep(0.1)
