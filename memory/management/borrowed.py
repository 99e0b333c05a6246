"""The embedded server, borrowed for the time of one `manage.py` command."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from memory.management.home import PROJECT, Refused, data_home
from memory.management.postgres import Embedded

# Commands that need no database; `start` runs its own.
_WITHOUT = {"start", "setup_roles", "help", "version", "check", "makemigrations", "makemessages", "compilemessages"}
_WITHOUT |= {"collectstatic", "findstatic", "spectacular", "startapp", "startproject", "diffsettings"}
_WITHOUT |= {"check_contracts", "stop", "status", "doctor", "systemd_unit"}
_AS_MIGRATOR = {"migrate", "sqlmigrate", "showmigrations", "flush", "restore", "inspectdb", "loaddata"}
_AS_MIGRATOR |= {"rotate_secrets"}
# Commands that may make the data folder. Any other on an empty one was meant for another folder.
_MAKES_DATA = {"create_tenant", "restore", "migrate"}


@contextmanager
def for_command(argv: list[str]) -> Iterator[None]:
    """The embedded server for the time of one `manage.py` command: the one that runs, else one of its own.

    `--data-dir FOLDER` is understood for every command, and taken out of `argv`. Raises Refused.
    """
    # By the environment: the settings are read before the command reads its options, and children inherit it.
    if folder := _take_option(argv, "--data-dir"):
        os.environ["TEAM_MEMORY_DATA"] = str(Path(folder).expanduser().absolute())
    command = argv[1] if len(argv) > 1 else "help"
    migrates = command == "migrate" or "--migrate" in argv
    if migrates or command in _AS_MIGRATOR:
        os.environ.setdefault("TEAM_MEMORY_DB_ROLE", "migrator")
    helped = command.startswith("-") or {"-h", "--help"} & set(argv)
    if os.environ.get("DATABASE_URL") or command in _WITHOUT or helped:
        yield
        return
    path, aloud = data_home(os.environ, None)
    if aloud:
        print(aloud, file=sys.stderr)
    if command not in _MAKES_DATA and not (path / "pg" / "PG_VERSION").exists():
        raise Refused(
            f"There is no data in {path}. Name the folder by --data-dir or TEAM_MEMORY_DATA;"
            " `manage.py start` makes one."
        )
    with running(Embedded(path), migrated=not migrates):
        yield


def _take_option(argv: list[str], name: str) -> str | None:
    """The value of an option, which is removed with it; None where it is not there."""
    for at, word in enumerate(argv):
        if word == "--":
            return None
        if word == name or word.startswith(name + "="):
            taken = argv[at : at + (2 if word == name else 1)]
            del argv[at : at + len(taken)]
            value = taken[1] if len(taken) > 1 else word.partition("=")[2]
            if not value or value.startswith("-"):
                raise Refused(f"{name} needs the path of a folder.")
            return value
    return None


@contextmanager
def running(server: Embedded, *, migrated: bool = True) -> Iterator[None]:
    """A running server; if it is started for this, then it stops once nobody uses it any more."""
    home = server.home
    home.prepare()
    # Commands share one server: each holds this lock, and the one that started it waits for the others.
    use = home.hold("use", shared=True, wait=None)
    assert use is not None  # noqa: S101 - for the type checker
    try:
        if not server.is_running():
            _start_unless_another_did(server)
        if migrated:
            _migrate_if_new(server)
        yield
    finally:
        os.close(use)
        if server.process is not None:
            alone = home.hold("use", wait=None)
            server.stop()
            if alone is not None:
                os.close(alone)


def _start_unless_another_did(server: Embedded) -> None:
    # Of two commands at once one starts it; for the other it is running before the lock is free.
    free = server.home.hold("server", wait=10, until=server.is_running)
    if free is not None:
        os.close(free)
    if not server.is_running():
        server.start()


def _migrate_if_new(server: Embedded) -> None:
    # A first start, or another command, may be making the schema: two at once would stumble over each other.
    schema = server.home.hold("schema", wait=None)
    assert schema is not None  # noqa: S101 - for the type checker
    try:
        with psycopg.connect(**server.dsn("migrator")) as connection:
            found = connection.execute("SELECT to_regclass('public.django_migrations')").fetchone()
        if found == (None,):
            _migrate()
    finally:
        os.close(schema)


def _migrate() -> None:
    command = [sys.executable, str(PROJECT / "manage.py"), "migrate", "--no-input", "-v", "0"]
    subprocess.run(command, check=True, stdout=sys.stderr, env=os.environ | {"TEAM_MEMORY_DB_ROLE": "migrator"})  # noqa: S603
