"""`manage.py start`: database, migrations, first team, web, worker and beat under one process."""

import contextlib
import errno
import json
import os
import socket
import time
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError
from django.db.migrations.loader import MigrationLoader

from memory.management import roles
from memory.management.home import Home, Refused, data_home
from memory.management.postgres import Embedded, applied_migrations, missing_extension
from memory.management.processes import Say, Stopped, Supervisor, programs, stoppable

_BEGAN = time.monotonic()


class Command(BaseCommand):
    help = "Run Team Memory: database, web server, worker and clock, as one process that stops them all."
    # The database may not be there yet.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on (8000); 0 takes a free one")
        parser.add_argument("--data-dir", help="folder of the embedded database (TEAM_MEMORY_DATA or .team-memory)")
        parser.add_argument("--workers", type=int, default=2, help="web server processes (2)")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with stoppable():
                self._start(**{name: options[name] for name in ("host", "port", "data_dir", "workers")})
        except Stopped:
            pass  # asked for before anything ran
        except Refused as why:
            raise CommandError(str(why)) from None

    def _start(self, *, host: str, port: int, data_dir: str | None, workers: int) -> None:
        path, aloud = data_home(os.environ, data_dir)
        if aloud:
            self._say(aloud)
        home = Home(path)
        home.prepare()
        if home.hold("start") is None:
            raise Refused(f"Team Memory already runs on {path}. Stop it first, or choose another --data-dir.")
        if not 0 <= port <= 65535:
            raise Refused(f"{port} is no port: choose one from 1 to 65535, or 0 for a free one.")
        if workers < 1:
            raise Refused("--workers is a number from 1.")
        port = _free_port(host, port)
        embedded = None if os.environ.get("DATABASE_URL") else Embedded(path)
        address = f"http://{_in_url(host)}:{port}"
        env = dict(os.environ) | {"TEAM_MEMORY_DATA": str(path), "PYTHONUNBUFFERED": "1"}
        home.remember(public_url=env.setdefault("TEAM_MEMORY_PUBLIC_URL", address))
        env.setdefault("PROMETHEUS_MULTIPROC_DIR", str(home.counters()))
        was_killed = home.mark_running()
        supervisor = Supervisor(home, embedded=embedded, env=env | {"TEAM_MEMORY_DB_ROLE": "runtime"}, say=self._say)
        try:
            report = supervisor.start_database()
            if was_killed:
                dreams = _dreams_left(embedded.dsn("migrator")) if embedded else None
                self._say(after_a_kill(report.kind if report else None, dreams))
            known, done = _migrations(embedded)
            # The web server first: worker and clock would take the processor from it, and nobody waits for them.
            web, *others = programs(home, host=host, port=port, workers=workers)
            # On a database of ours that is empty it loads while the schema is made: nobody has a key to it yet. On
            # any other it waits, or agents would meet a schema that is half changed.
            is_early = embedded is not None and not done
            if is_early:
                supervisor.start([web])
            is_behind, is_ours = bool(known - done), embedded is not None
            first = _prepare(supervisor, home, is_behind=is_behind, is_ours=is_ours, say=self._say)
            if not is_early:
                supervisor.start([web])
            supervisor.watch(until=lambda: _answers(host, port) or _hopeless(supervisor))
            self._welcome(env["TEAM_MEMORY_PUBLIC_URL"], home, first)
            home.remember(first_team=True)
            supervisor.start(others)
            supervisor.watch()
        except Stopped:
            self._say("Stopping.")
        finally:
            supervisor.stop()
            home.unmark_running()
        self._say("Stopped.")
        # Nothing of ours runs any more; to take the interpreter apart takes seconds on a busy machine.
        self.stderr.flush()
        os._exit(0)

    def _say(self, line: str) -> None:
        with contextlib.suppress(OSError):  # the terminal may be gone; the work goes on
            self.stdout.write(line)
            self.stdout.flush()

    def _welcome(self, url: str, home: Home, first: dict[str, Any]) -> None:
        self._say(f"Ready after {time.monotonic() - _BEGAN:.1f} s. Ctrl-C stops everything.")
        if first.get("login_url"):
            self._say(f"\n  Shown this once, never again:\n    Owner login   {first['login_url']}")
        if first.get("agent_key"):
            self._say(f"    Agent key     {first['agent_key']}")
        rows = [("Pages", url + "/"), ("API", url + "/api/v1/"), ("API docs", url + "/api/v1/docs")]
        rows += [("Health", url + "/healthz"), ("Data and logs", str(home.path))]
        self._say("\n" + "\n".join(f"  {name:<15}{value}" for name, value in rows) + "\n")


def after_a_kill(kind: str | None, dreams: int | None) -> str:
    """What the start after a kill did, in one line: how it found its database, and how many dreams it takes up."""
    done = {
        "recovered": "database recovered",
        "warm": "the database was shut down by its guard",
        "first boot": "no database had been made",
    }.get(kind or "", "the database is elsewhere")
    if dreams is None:
        return f"The last run was killed or lost power: {done}."
    goes_on = f"{dreams} dreams go on" if dreams > 1 else "1 dream goes on" if dreams else "no dream was under way"
    return f"The last run was killed or lost power: {done}, {goes_on}."


def _dreams_left(parameters: Mapping[str, Any]) -> int | None:
    """The dreams of all teams that a worker had begun; None before there are any."""
    with psycopg.connect(**dict(parameters)) as connection:
        if connection.execute("SELECT to_regclass('public.tenants_due')").fetchone() == (None,):
            return None
        row = connection.execute(
            "SELECT count(*) FROM tenants_due WHERE task = 'dream' AND (owner <> '' OR leased_until < now())"
        ).fetchone()
    return int(row[0]) if row else None


def _free_port(host: str, port: int) -> int:
    # A killed run holds its port up to 2 s after.
    for _ in range(25):
        try:
            family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            with socket.socket(family, kind) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
                return int(probe.getsockname()[1])
        except (OSError, OverflowError) as why:
            if getattr(why, "errno", None) != errno.EADDRINUSE:
                raise Refused(f"Can't listen on {host}:{port}: {why}. Choose another --host or --port.") from None
        time.sleep(0.1)
    raise Refused(f"Port {port} on {host} is in use. Stop what listens there or choose another --port.")


def _in_url(host: str) -> str:
    if host in ("0.0.0.0", "::", ""):  # noqa: S104 - compared, not bound
        return "localhost"
    return f"[{host}]" if ":" in host else host


def _answers(host: str, port: int) -> bool:
    target = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    try:
        with socket.create_connection((target, port), timeout=2) as connection:
            # The port is open before a worker can answer, so a whole answer is waited for.
            connection.sendall(f"GET /healthz HTTP/1.0\r\nHost: {_in_url(host)}\r\n\r\n".encode())
            connection.settimeout(10)
            return connection.recv(12).startswith(b"HTTP/")
    except OSError:
        return False


def _hopeless(supervisor: Supervisor) -> bool:
    if supervisor.deaths("web") >= 3:
        raise Refused("The web server does not start; its last words are above and in logs/web.log.")
    return False


def _migrations(embedded: Embedded | None) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """This program's migrations and the database's; refuses newer data and a server without our extensions."""
    if embedded is not None:
        parameters = embedded.dsn("migrator")
    else:
        url = os.environ.get("MIGRATOR_DATABASE_URL") or os.environ["DATABASE_URL"]
        parameters = dict(psycopg.conninfo.conninfo_to_dict(url))
        _check_extensions(parameters)
    # Compared here: the migrate command takes seconds even when there is nothing to do.
    known = set(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)
    done = applied_migrations(parameters)
    apps = {app for app, _ in known}
    if newer := sorted(f"{app}.{name}" for app, name in done - known if app in apps):
        raise Refused(f"The data was written by a newer Team Memory ({newer[0]} is unknown here). Update this one.")
    return known, done


def _check_extensions(parameters: Any) -> None:
    try:
        with psycopg.connect(**{"connect_timeout": 10} | parameters) as connection:
            found = {name for (name,) in connection.execute("SELECT extname FROM pg_extension")}
    except psycopg.OperationalError as why:
        raise Refused(f"The database of DATABASE_URL does not answer: {str(why).strip().splitlines()[0]}") from None
    for name in roles.EXTENSIONS:
        if name not in found:
            raise Refused(missing_extension(name))


def _prepare(supervisor: Supervisor, home: Home, *, is_behind: bool, is_ours: bool, say: Say) -> dict[str, Any]:
    """Bring the schema up to date and make the first team; gives its secrets, the first time only."""
    # Commands on the same folder wait until the schema is there. (An upgrade's own backup must not.)
    is_first = is_ours and is_behind and not home.state().get("first_team")
    schema = home.hold("schema", wait=None) if is_first else None
    try:
        return _prepared(supervisor, home, is_behind=is_behind, is_ours=is_ours, say=say)
    finally:
        if schema is not None:
            os.close(schema)


def _prepared(supervisor: Supervisor, home: Home, *, is_behind: bool, is_ours: bool, say: Say) -> dict[str, Any]:
    began = time.monotonic()
    first: dict[str, Any] = {}
    if home.state().get("first_team"):
        if is_behind:
            if is_ours:
                say(f"This data is of an older version: backed up to {_back_up(supervisor, home)} first.")
            supervisor.run(["migrate", "--no-input"], role="migrator", log="migrate")
            say(f"Schema brought up to date in {time.monotonic() - began:.1f} s.")
        return first
    command = ["create_tenant", "team", "--owner", "owner@localhost", "--json", "--skip-checks"]
    if is_ours:
        # A start that ended before it could show them made secrets that nobody has seen. On a shared server it may
        # have been another host that showed them.
        command += ["--new-link", "--new-key"]
    if is_behind:
        say("Making the schema and the first team: a quarter of a minute, this once.")
        command.append("--migrate")  # in one process: on a busy machine loading the program takes seconds
    printed = supervisor.run(command, role="migrator" if is_behind else "runtime", log="create_tenant")
    say(f"{'Schema and first' if is_behind else 'First'} team made in {time.monotonic() - began:.1f} s.")
    first = json.loads(printed.strip().splitlines()[-1])
    return first


def _back_up(supervisor: Supervisor, home: Home) -> Path:
    """A backup of the data as the older version left it; of those of former upgrades the last two stay."""
    folder = home.path / "backups"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / f"before-upgrade-{time.strftime('%Y%m%d-%H%M%S')}.dump"
    supervisor.run(["backup", str(file)], role="backup", log="backup")
    for old in sorted(folder.glob("before-upgrade-*.dump"))[:-3]:
        old.unlink()
    return file
