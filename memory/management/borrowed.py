"""The embedded server, borrowed for the time of one `manage.py` command."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg

from memory.management.home import PROJECT, data_home
from memory.management.postgres import Embedded

# Commands that need no database; `start` runs its own.
_WITHOUT = {"start", "setup_roles", "help", "version", "check", "makemigrations", "makemessages", "compilemessages"}
_WITHOUT |= {"collectstatic", "findstatic", "spectacular", "startapp", "startproject", "diffsettings"}
_AS_MIGRATOR = {"migrate", "sqlmigrate", "showmigrations", "flush", "restore", "inspectdb", "loaddata"}


@contextmanager
def for_command(argv: Sequence[str]) -> Iterator[None]:
    """The embedded server for the time of one `manage.py` command: the one that runs, else one of its own."""
    command = argv[1] if len(argv) > 1 else "help"
    # The settings read the environment before the command reads its options.
    if command == "start" and (folder := _option(argv, "--data-dir")):
        os.environ["TEAM_MEMORY_DATA"] = folder
    if command in _AS_MIGRATOR:
        os.environ.setdefault("TEAM_MEMORY_DB_ROLE", "migrator")
    helped = command.startswith("-") or {"-h", "--help"} & set(argv)
    if os.environ.get("DATABASE_URL") or command in _WITHOUT or helped:
        yield
        return
    path, aloud = data_home(os.environ, None)
    if aloud:
        print(aloud, file=sys.stderr)
    with running(Embedded(path), migrated=command != "migrate"):
        yield


def _option(argv: Sequence[str], name: str) -> str | None:
    for word, following in zip(argv, [*argv[1:], ""], strict=True):
        if word == name:
            return following
        if word.startswith(name + "="):
            return word.partition("=")[2]
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
    with psycopg.connect(**server.dsn("migrator")) as connection:
        if connection.execute("SELECT to_regclass('public.django_migrations')").fetchone() != (None,):
            return
    command = [sys.executable, str(PROJECT / "manage.py"), "migrate", "--no-input", "-v", "0"]
    subprocess.run(command, check=True, stdout=sys.stderr, env=os.environ | {"TEAM_MEMORY_DB_ROLE": "migrator"})  # noqa: S603
