"""What `manage.py doctor` looks at: each check says what it found and how to mend it. None of them changes anything."""

import os
import shutil
import smtplib
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg
from django.conf import settings
from django.core.mail import get_connection
from django.db.migrations.loader import MigrationLoader

from memory.management import roles
from memory.management.home import Home, Refused
from memory.management.postgres import Embedded, applied_migrations
from memory.settings import EMBEDDED, connection

OLDEST: Final = 16
BACKUP_DAYS: Final = 7
LOGS_BYTES: Final = 500_000_000
MEGABYTE: Final = 1024 * 1024


@dataclass(frozen=True)
class Found:
    """What one check found. `state`: ok, warn or bad."""

    name: str
    state: str
    told: str
    fix: str = ""


Check = Callable[[], Found]


def checks() -> list[Found]:
    """Everything, in the order in which one thing rests on another."""
    found = [database()]
    if found[0].state == "ok":
        found += [runtime_role(), extensions(), migrations(), clock(), workers(), months()]
    return [*found, broker(), disk(), secrets(), backup(), logs(), public_url(), mail()]


@contextmanager
def _open(role: str = "runtime") -> Iterator["psycopg.Connection[tuple[Any, ...]]"]:
    with psycopg.connect(**{"connect_timeout": 5} | connection(role), autocommit=True) as opened:
        yield opened


def _one(sql: str, role: str = "runtime") -> tuple[Any, ...]:
    with _open(role) as opened:
        row = opened.execute(sql.encode()).fetchone()
    return row or (None,)


def database() -> Found:
    fix = "Start it: manage.py start." if EMBEDDED else "Start the server that DATABASE_URL names, or correct it."
    try:
        version = int(_one("SELECT current_setting('server_version_num')")[0]) // 10_000
    except psycopg.Error as why:
        return Found("database", "bad", f"does not answer: {str(why).strip().splitlines()[0]}", fix)
    if version < OLDEST:
        return Found("database", "bad", f"PostgreSQL {version}", f"Team Memory needs PostgreSQL {OLDEST} or newer.")
    return Found("database", "ok", f"PostgreSQL {version} answers")


def runtime_role() -> Found:
    name, is_unbound = _one("SELECT current_user, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user")
    if is_unbound:
        fix = "Give DATABASE_URL the role tm_runtime; manage.py setup_roles prints the roles."
        return Found("roles", "bad", f"{name} sees every team's rows", fix)
    for role in ("migrator", "backup"):
        try:
            row = _one("SELECT rolbypassrls FROM pg_roles WHERE rolname = current_user", role)
        except (psycopg.Error, SystemExit) as why:
            told = f"{role} can't log in: {str(why).strip().splitlines()[0]}"
            return Found("roles", "warn", told, f"Set {role.upper()}_DATABASE_URL; manage.py setup_roles prints it.")
        if not row[0]:
            fix = f"ALTER ROLE tm_{role} BYPASSRLS, as a superuser."
            return Found("roles", "bad", f"{role} is held to one team: it would see no rows", fix)
    return Found("roles", "ok", f"{name} is held to one team's rows; migrator and backup log in")


def extensions() -> Found:
    with _open() as opened:
        there = {str(name) for (name,) in opened.execute("SELECT extname FROM pg_extension")}
    missing = [name for name in roles.EXTENSIONS if name not in there]
    if missing:
        fix = "As a superuser in this database: " + "; ".join(f"CREATE EXTENSION {name}" for name in missing)
        return Found("extensions", "bad", f"missing: {', '.join(missing)}", fix)
    return Found("extensions", "ok", ", ".join(roles.EXTENSIONS))


def migrations() -> Found:
    known = set(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)
    try:
        done = applied_migrations(connection("migrator"))
    except (psycopg.Error, SystemExit) as why:
        told = f"not known: {str(why).strip().splitlines()[0]}"
        return Found("schema", "warn", told, "Set MIGRATOR_DATABASE_URL.")
    if behind := sorted(known - done):
        fix = "manage.py start does it, after a backup; on a server of yours: manage.py migrate."
        return Found("schema", "bad", f"{len(behind)} migrations to do, the first is {'.'.join(behind[0])}", fix)
    apps = {app for app, _ in known}
    if newer := sorted(f"{app}.{name}" for app, name in done - known if app in apps):
        return Found("schema", "bad", f"written by a newer Team Memory ({newer[0]})", "Update this program.")
    return Found("schema", "ok", f"{len(known)} migrations, all done")


def clock() -> Found:
    before = time.time()
    there = float(_one("SELECT extract(epoch FROM clock_timestamp())")[0])
    off = abs(there - (before + time.time()) / 2)
    if off > 5:
        fix = "Let both machines follow a time server (timedatectl set-ntp true): logins and leases compare times."
        return Found("clock", "bad" if off > 60 else "warn", f"{off:.0f} s apart from the database's", fix)
    return Found("clock", "ok", f"{off * 1000:.0f} ms apart from the database's")


def workers() -> Found:
    """By what they leave undone: work that is due for long says that nobody takes it."""
    with _open() as opened:
        rows = opened.execute("SELECT name, label, value FROM service_figures()").fetchall()
    wait = max((value for name, _, value in rows if name == "due_wait_seconds"), default=0)
    held = sum(value for name, _, value in rows if name == "due_held")
    if wait > 60 and not held:
        fix = "See logs/worker.log and logs/beat.log; manage.py start runs both, else `celery -A memory.celery worker`."
        return Found("workers", "bad", f"the oldest work has waited {wait:.0f} s, and no worker holds any", fix)
    return Found("workers", "ok", f"{held:.0f} tasks are held, the oldest that is due waits {max(wait, 0):.0f} s")


def months() -> Found:
    row = _one("SELECT to_regclass('graph_body_' || to_char(now() + interval '1 month', 'YYYY_MM')) IS NOT NULL")
    if not row[0]:
        told = "next month's payloads have no partition yet: they would go to the rest"
        return Found("months", "warn", told, "The clock makes it within the hour; see logs/beat.log if it does not.")
    return Found("months", "ok", "next month's payloads have their partition")


def broker() -> Found:
    from memory.celery import app, queue_database

    url = settings.CELERY_BROKER_URL
    if not url or url.startswith("pgmq:"):
        source = queue_database(url)
        return _queue_in_postgres(source.dsn("broker") if isinstance(source, Embedded) else source)
    url = url.rpartition("@")[2]
    try:
        with app.connection_for_write() as opened:
            opened.ensure_connection(max_retries=1, interval_start=0, timeout=5)
    except Exception as why:
        told = f"{url} does not answer: {str(why).strip().splitlines()[0][:120] if str(why) else type(why).__name__}"
        return Found("queue", "bad", told, "Correct CELERY_BROKER_URL or start it. Nothing is lost: due work is rows.")
    return Found("queue", "ok", f"{url} answers")


def _queue_in_postgres(parameters: Mapping[str, Any]) -> Found:
    try:
        with psycopg.connect(**{"connect_timeout": 5} | dict(parameters)) as opened:
            is_there = opened.execute("SELECT to_regclass('pgmq.meta') IS NOT NULL").fetchone() == (True,)
    except psycopg.Error as why:
        told = f"PostgreSQL does not let the queue in: {str(why).strip().splitlines()[0]}"
        return Found("queue", "bad", told, "Set BROKER_DATABASE_URL; manage.py setup_roles prints the role.")
    if not is_there:
        return Found("queue", "bad", "PostgreSQL has no queue", "Run the SQL that manage.py setup_roles prints.")
    return Found("queue", "ok", "PostgreSQL carries it")


def disk() -> Found:
    free = shutil.disk_usage(_existing(settings.DATA_HOME)).free
    told = f"{free // MEGABYTE:,} MB free beside {settings.DATA_HOME}"
    if free < settings.RESERVE_BYTES:
        fix = "Free room or shorten retention on the Settings page: agents' writes are refused (507) until then."
        return Found("disk", "bad", told, fix)
    if free < 4 * settings.RESERVE_BYTES:
        fix = f"Below {settings.RESERVE_BYTES // MEGABYTE} MB agents' writes are refused (TEAM_MEMORY_DISK_RESERVE_MB)."
        return Found("disk", "warn", told, fix)
    return Found("disk", "ok", told)


def secrets() -> Found:
    for name in ("secret_key", "secrets.json"):
        path = Path(settings.DATA_HOME, name)
        if path.exists() and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            fix = f"chmod 600 {path}; then manage.py rotate_secrets."
            return Found("secrets", "bad", f"others may read {path}", fix)
    return Found("secrets", "ok", "nobody else may read the keys")


def backup() -> Found:
    fix = "manage.py backup FILE, once a day, and a copy of it and of secret_key on another machine."
    kept = _state().get("backup")
    if not kept:
        return Found("backup", "warn", "none was made yet", fix)
    days = (time.time() - float(kept["at"])) / 86_400
    told = f"{days:.1f} days old: {kept['file']}"
    if not Path(kept["file"]).exists():
        return Found("backup", "warn", f"{told}, which is not there any more (moved?)", fix)
    return Found("backup", "warn" if days > BACKUP_DAYS else "ok", told, fix if days > BACKUP_DAYS else "")


def _state() -> dict[str, Any]:
    try:
        return Home(settings.DATA_HOME).state()
    except Refused:
        return {}


def logs() -> Found:
    folder = Path(settings.DATA_HOME, "logs")
    size = sum(path.stat().st_size for path in folder.glob("*")) if folder.is_dir() else 0
    told = f"{size // MEGABYTE:,} MB in {folder}"
    if size > LOGS_BYTES:
        return Found("logs", "warn", told, "Old ones end in .log.N and may be removed.")
    return Found("logs", "ok", told)


def public_url() -> Found:
    url = settings.PUBLIC_URL
    try:
        with urllib.request.urlopen(url + "/healthz", timeout=5) as answer:  # noqa: S310 - our own address
            is_ours = answer.status == 200 and b'"ok"' in answer.read(200)
    except (OSError, ValueError) as why:
        fix = "Set TEAM_MEMORY_PUBLIC_URL to the address that people use, and see that the proxy passes it on."
        return Found("address", "bad", f"{url} does not answer: {why}", fix)
    if not is_ours:
        return Found("address", "bad", f"something else answers at {url}", "Set TEAM_MEMORY_PUBLIC_URL.")
    if not settings.IS_HTTPS and not any(host in url for host in ("127.0.0.1", "localhost", "[::1]")):
        fix = "Put a proxy with TLS before it, and set TEAM_MEMORY_PUBLIC_URL to its https address."
        return Found("address", "warn", f"{url} answers, in clear text: keys can be read on the way", fix)
    return Found("address", "ok", f"{url} answers")


def mail() -> Found:
    """Whether the mail server takes us in; nothing is sent."""
    if not settings.EMAIL_HOST:
        return Found("mail", "ok", "none is set: links are shown to be sent by hand (TEAM_MEMORY_SMTP_URL sets one)")
    where = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
    opened: Any = get_connection()
    try:
        opened.open()
        opened.close()
    except (OSError, smtplib.SMTPException) as why:
        told = f"{where} does not take us in: {str(why)[:160]}"
        return Found("mail", "bad", told, "Correct TEAM_MEMORY_SMTP_URL. What waits is tried again for a day.")
    return Found("mail", "ok", f"{where} takes us in, from {settings.DEFAULT_FROM_EMAIL}")


def _existing(path: Path) -> Path:
    return next(folder for folder in (Path(path), *Path(path).parents) if os.path.exists(folder))
