"""`manage.py check_contracts` against the real server: every contract holds, and only tombstones are left."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from django.core.management import CommandError, call_command

from memory.management.contracts.run import CONTRACTS, TIDY
from tests.conftest import Agent, free_port, new_agent, served
from tests.graph.made import chain

ROOT = Path(__file__).parents[2]
SCOPES = ["ingest", "read"]


@pytest.fixture(scope="module")
def address(django_db_setup: None) -> Iterator[str]:
    with served() as url:
        yield url


@pytest.fixture
def checker(committed: None, alice: Any) -> Agent:
    return new_agent(alice, scopes=SCOPES)


def check(address: str, key: str | None, *more: object, **options: Any) -> str:
    """What the command prints. Raises CommandError where it ends with a code that is not 0."""
    out = StringIO()
    given = ["--key", key] if key else []
    try:
        call_command("check_contracts", address, *given, *map(str, more), stdout=out, stderr=StringIO(), **options)
    finally:
        print(out.getvalue())
    return out.getvalue()


def refusal(address: str, key: str | None, *more: object) -> str:
    """The one line of a command that could not check anything."""
    with pytest.raises(CommandError) as raised:
        check(address, key, *more)
    assert raised.value.returncode == 2
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_every_contract_holds(
    address: str, checker: Agent, acme: Any, globex_agent: Agent, bound: Any, tmp_path: Path
) -> None:
    theirs = chain(acme)
    said = check(
        address + "/api/v1/", checker.secret, "--report", "cli,json,junit", "--output", tmp_path / "reports",
        "--events", 60, "--other-key", globex_agent.secret,
    )  # fmt: skip
    names = [*CONTRACTS, TIDY]
    told = json.loads((tmp_path / "reports/contracts.json").read_text())
    assert [(row["name"], row["state"]) for row in told["contracts"]] == [(name, "ok") for name in names]
    assert told["holds"] and told["base_url"] == address
    assert all(row["requests"] and row["median_ms"] > 0 and row["sentence"] for row in told["contracts"])
    for name in names:
        assert re.search(rf"^ok +{name} +\d+ +\d+ ms +\d+ ms +[\d.]+ s$", said, re.M), said
    assert f"{len(names)} hold, 0 broken, in" in said.splitlines()[-1]
    suite = ElementTree.parse(tmp_path / "reports/contracts.xml").getroot()[0]  # noqa: S314 - ours
    assert [case.get("name") for case in suite.iter("testcase")] == names
    assert (suite.get("tests"), suite.get("failures")) == (str(len(names)), "0")
    assert checker.secret not in said + "".join(file.read_text() for file in (tmp_path / "reports").iterdir())
    with bound(acme):
        assert [one.public_id for one in acme.threads.filter(deleted_at__isnull=True)] == [theirs["thread"]]
        assert [one.public_id for one in acme.workers.filter(deleted_at__isnull=True)] == [theirs["worker"]]
        assert [one.public_id for one in acme.triggers.filter(deleted_at__isnull=True)] == [theirs["trigger"]]


def test_it_says_what_is_wrong_with_address_and_key(address: str, checker: Agent, alice: Any, vera: Any) -> None:
    for wrong in ("localhost:8000", "ftp://x", "http://", "http://x:port", ""):
        assert "is no address" in refusal(wrong, "tm_live_x")
    assert "No answer from http://127.0.0.1:" in refusal(f"http://127.0.0.1:{free_port()}", "tm_live_x")
    assert "no such host" in refusal("http://nowhere.invalid", "tm_live_x")
    assert f"There is no Team Memory at {address}/elsewhere: GET" in refusal(f"{address}/elsewhere", checker.secret)
    assert "does not take this key: unknown, expired or revoked" in refusal(address, "tm_live_x")
    assert "no agent key" in refusal(address, "tm live")
    assert "TEAM_MEMORY_KEY" in refusal(address, None)
    for missing in SCOPES:
        key = new_agent(alice, scopes=[scope for scope in SCOPES if scope != missing]).secret
        assert f"lacks the scope {missing}" in refusal(address, key)
    assert "lacks the scope ingest, or its owner the role" in refusal(address, new_agent(vera, scopes=SCOPES).secret)


def test_it_says_what_is_wrong_with_an_option(address: str, checker: Agent, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("{}")
    for option, value, words in (
        ("--report", "html", "--report takes cli, json, junit, not html"),
        ("--only", "every", "--only takes thread-same-twice"),
        ("--events", 0, "--events is from 1"),
        ("--verify", tmp_path / "none", "can't be read"),
        ("--verify", tmp_path / "file", "was not written by --remember"),
        ("--remember", tmp_path / "file", "is there already"),
    ):
        assert words in refusal(address, checker.secret, option, value)
    assert "can't be used" in refusal(address, checker.secret, "--report", "json", "--output", tmp_path / "file")


def environment(folder: Path, **more: str) -> dict[str, str]:
    """An environment in which no database is known."""
    foreign = re.compile("DATABASE_URL|TEAM_MEMORY_|CELERY_|DJANGO_")
    kept = {name: value for name, value in os.environ.items() if not foreign.search(name)}
    return kept | {"TEAM_MEMORY_DATA": str(folder)} | more


def command(folder: Path, *arguments: object, **more: str) -> "subprocess.Popen[str]":
    given = [sys.executable, str(ROOT / "manage.py"), "check_contracts", *map(str, arguments)]
    return subprocess.Popen(
        given, env=environment(folder, **more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
    )


def test_it_needs_no_database(address: str, checker: Agent, tmp_path: Path) -> None:
    one = command(tmp_path, address, "--only", "unknown-404", "--report", "junit", TEAM_MEMORY_KEY=checker.secret)
    said, complaints = one.communicate(timeout=60)
    assert (one.returncode, said) == (0, ""), complaints
    assert complaints.strip() == "Wrote contracts.xml"
    assert (tmp_path / "contracts.xml").exists() and not (tmp_path / "pg").exists()


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGTERM])
def test_it_deletes_what_it_made_when_it_is_stopped(
    address: str, checker: Agent, acme: Any, bound: Any, tmp_path: Path, ended_by: signal.Signals
) -> None:
    one = command(tmp_path, address, "--key", checker.secret, "--only", "events-once-in-order", "--events", 50_000)
    while one.poll() is None:
        with bound(acme):
            if acme.triggers.count() > 5:
                break
        time.sleep(0.1)
    one.send_signal(ended_by)
    said, complaints = one.communicate(timeout=120)
    assert one.returncode == 130, complaints
    assert "Stopped before the end." in said and "ok      only-tombstones-left" in said
    with bound(acme):
        for rows in (acme.threads, acme.triggers, acme.workers):
            assert rows.exists() or rows.model.__name__ == "Worker"
            assert not rows.filter(deleted_at__isnull=True).exists()
