"""Backup and restore by PostgreSQL's own tools."""

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from memory.management import roles
from memory.management.home import Home, Refused, data_home
from memory.management.postgres import Embedded

# Filled by migrations, before any team exists.
_OF_THE_SCHEMA = {"django_migrations", "django_content_type", "auth_permission"}
# The target has them, and only a superuser could make or comment them.
_NOT_OURS = re.compile(r"^\d+; \d+ \d+ (EXTENSION|COMMENT - EXTENSION|SCHEMA - public|COMMENT - SCHEMA public) ")


def backup(file: Path) -> None:
    """Write a backup that only its owner can read; a broken one never takes the file's name."""
    parameters = connection("backup")
    part = file.with_name(f".{file.name}.part")
    part.unlink(missing_ok=True)
    part.touch(mode=0o600)
    try:
        # Row level security is no filter here: pg_dump sets row_security off, so it fails rather than leave rows out.
        _run([_tool("pg_dump", parameters), "-Fc", "--exclude-schema=pgmq", "-f", str(part)], parameters)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    Home(data_home(os.environ, None)[0]).remember(backup={"at": time.time(), "file": str(file.absolute())})


def restore(file: Path, *, force: bool) -> None:
    """Replace the database's content by the backup's, in one transaction."""
    if not file.is_file():
        raise Refused(f"There is no file {file}.")
    parameters = connection("migrator")
    _refuse_if_used(parameters, force=force)
    tool = _tool("pg_restore", parameters)
    with tempfile.TemporaryDirectory() as folder:
        listed = _run([tool, "--list", str(file)], parameters)
        wanted, script, defaults = (Path(folder, name) for name in ("list", "script.sql", "defaults.sql"))
        wanted.write_text("\n".join(line for line in listed.splitlines() if not _NOT_OURS.match(line)))
        content = Path(folder, "content.sql")
        content.touch(mode=0o600)
        _run([tool, "--no-owner", "-L", str(wanted), "-f", str(content), str(file)], parameters)
        # Emptied and filled in one transaction. DROP OWNED leaves the schema, the extensions and the queue, which
        # are others'. The default rights go with it and are given again at the end: at the start they would give the
        # runtime role more than the backup says, since a dump only adds rights (the audit could then be rewritten).
        script.write_text("SET client_min_messages = warning;\nDROP OWNED BY CURRENT_USER CASCADE;")
        defaults.write_text(roles.DEFAULTS_SQL)
        psql = [_tool("psql", parameters), "-X", "-q", "-v", "ON_ERROR_STOP=1", "--single-transaction"]
        _run([*psql, "-o", os.devnull, "-f", str(script), "-f", str(content), "-f", str(defaults)], parameters)
    with psycopg.connect(**parameters, autocommit=True) as fresh:
        fresh.execute("ANALYZE")
    if not os.environ.get("DATABASE_URL"):
        # It has its teams now: the next start must not add the first one.
        Home(data_home(os.environ, None)[0]).remember(first_team=True)


def connection(role: str) -> dict[str, Any]:
    """Connection parameters of the backup role or the migrator."""
    if not os.environ.get("DATABASE_URL"):
        return Embedded(data_home(os.environ, None)[0]).dsn("backup" if role == "backup" else "migrator")
    name = f"{role.upper()}_DATABASE_URL"
    if not (url := os.environ.get(name)):
        raise Refused(f"{name} is not set; `manage.py setup_roles` prints the role it names.")
    return dict(psycopg.conninfo.conninfo_to_dict(url))


def _refuse_if_used(parameters: Mapping[str, Any], *, force: bool) -> None:
    with psycopg.connect(**dict(parameters)) as target:
        others = target.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE usename = 'tm_runtime' AND datname = current_database()"
        ).fetchone()
        if others and others[0]:
            raise Refused("Team Memory is running on this database. Stop it, then restore.")
        if force:
            return
        for (table,) in target.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall():
            row = sql.SQL("SELECT 1 FROM {} LIMIT 1").format(sql.Identifier("public", table))
            if table not in _OF_THE_SCHEMA and target.execute(row).fetchone():
                raise Refused(f"The database is not empty: {table} has rows. --force replaces everything in it.")


def _tool(name: str, parameters: Mapping[str, Any]) -> str:
    """The tool of the embedded server; for a server elsewhere the system's, which has TLS, if it is new enough."""
    embedded = Embedded(data_home(os.environ, None)[0])
    system = shutil.which(name) if os.environ.get("DATABASE_URL") else None
    if system is not None:
        with psycopg.connect(**dict(parameters)) as server:
            wanted = server.info.server_version // 10000
        answer = subprocess.run([system, "--version"], capture_output=True, text=True, check=True).stdout  # noqa: S603
        if (found := re.search(r"(\d+)\.\d+", answer)) and int(found[1]) >= wanted:
            return system
    return str(embedded.binaries() / name)


def _run(command: Sequence[str], parameters: Mapping[str, Any]) -> str:
    # By the environment, since everybody may read a command line.
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
    names |= {"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT"}
    env = os.environ | {names[key]: str(value) for key, value in parameters.items() if key in names and value}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)  # noqa: S603
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise Refused(f"{Path(command[0]).name} failed: {lines[0] if lines else done.returncode}")
    return done.stdout
