"""A restored copy equals its source: every table, every row, every right."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command

from tests import database

COPY = f"{database.NAME}_copy"


def contents(name: str) -> dict[str, list[str]]:
    """The rows of every table as text, as the backup role sees them."""
    with psycopg.connect(**database.SERVER_OF_TESTS.dsn("backup", name)) as reader:
        tables = reader.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1").fetchall()
        return {
            table: [row for (row,) in reader.execute(f'SELECT t::text FROM "{table}" t ORDER BY 1'.encode()).fetchall()]
            for (table,) in tables
        }


TABLES = """
  SELECT relname, ARRAY(SELECT a::text FROM unnest(relacl) a ORDER BY 1), relrowsecurity, relforcerowsecurity
  FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') ORDER BY 1"""
FUNCTIONS = """
  SELECT oid::regprocedure::text, ARRAY(SELECT a::text FROM unnest(proacl) a ORDER BY 1), prosecdef
  FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proowner = 'tm_migrator'::regrole ORDER BY 1"""
POLICIES = "SELECT tablename, policyname, qual FROM pg_policies ORDER BY 1, 2"


def rights(name: str) -> set[str]:
    """What each role may do with each table and function, and the policies on them."""
    with psycopg.connect(**database.SERVER_OF_TESTS.dsn("backup", name)) as reader:
        return {
            str(row) for query in (TABLES, FUNCTIONS, POLICIES) for row in reader.execute(query.encode()).fetchall()
        }


@pytest.fixture
def empty_copy() -> Iterator[str]:
    database.clone(database.SERVER_OF_TESTS, COPY)
    yield COPY
    with database.SERVER_OF_TESTS.superuser() as connection:
        connection.execute(f"DROP DATABASE {COPY} WITH (FORCE)".encode())


@pytest.fixture
def backup(acme: Any, globex: Any, agent: Any, globex_agent: Any, api: Any, tmp_path: Path) -> Path:
    """A backup of two teams with events, one of them large."""
    for one in (agent, globex_agent):
        for n in range(5):
            body = {
                "session_id": f"s{n}",
                "hook_event_name": "UserPromptSubmit",
                "prompt": "é" * (30_000 if n == 4 else 5),
            }
            assert api(one).post("hooks/claude-code", body).status_code == 200
    file = tmp_path / "team.dump"
    call_command("backup", str(file))
    return file


def point_at_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    for role, name in database.URLS.items():
        monkeypatch.setenv(name, database.url(database.SERVER_OF_TESTS.dsn(role), COPY))  # type: ignore[arg-type]


def test_the_restored_copy_equals_the_source(backup: Path, empty_copy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = contents(database.NAME)
    assert (len(source["events_event"]), len(source["graph_body"])) == (10, 2)
    assert backup.stat().st_mode & 0o077 == 0
    point_at_copy(monkeypatch)
    call_command("restore", str(backup))
    assert contents(COPY) == source
    assert rights(COPY) ^ rights(database.NAME) == set()


def test_it_does_not_overwrite_what_is_there(
    backup: Path, empty_copy: str, acme: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(database.NAME)
    with pytest.raises(CommandError, match=r"not empty|is running"):
        call_command("restore", str(backup))
    assert contents(database.NAME) == before


def test_a_broken_file_changes_nothing(backup: Path, empty_copy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    point_at_copy(monkeypatch)
    before = contents(COPY)
    backup.write_bytes(backup.read_bytes()[: backup.stat().st_size // 2])
    with pytest.raises(CommandError):
        call_command("restore", str(backup))
    assert contents(COPY) == before
