"""`manage.py start` from the outside: what it prints, when, and what it refuses."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # the whole product is started, twice
ROOT = Path(__file__).parents[2]
# The tests run on a server of their own; this one is to make its own.
FOREIGN = re.compile("DATABASE_URL|TEAM_MEMORY_|CELERY_|DJANGO_")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not FOREIGN.search(name)}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    # Not tmp_path: as root the database's user must be able to reach it, and pytest's folders are closed.
    place = Path(tempfile.mkdtemp(prefix="tm-", dir="/tmp"))
    place.chmod(0o755)
    yield place / "home"
    shutil.rmtree(place, ignore_errors=True)


def manage(*arguments: object, **environment: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(ROOT / "manage.py"), *map(str, arguments)]
    return subprocess.Popen(
        command,
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=ENVIRONMENT | environment,
    )


def refusal(*arguments: object, **environment: str) -> str:
    """The one line of a command that ends with an exit code that is not 0."""
    process = manage(*arguments, **environment)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 1, said
    lines = said.strip().splitlines()
    assert len(lines) == 1, said
    return lines[0]


def until_ready(process: "subprocess.Popen[str]") -> list[str]:
    said = []
    assert process.stdout is not None
    for line in process.stdout:
        said.append(line.rstrip())
        if "Data and logs" in line:
            return said
    raise AssertionError(said)


def test_it_runs_the_whole_and_shows_the_secrets_once(folder):
    first = manage("start", "--port", 0, "--data-dir", folder)
    try:
        said = until_ready(first)
        assert said[0].startswith("Database made and started in")
        pages = next(line.split()[1] for line in said if line.strip().startswith("Pages"))
        assert next(line for line in said if "Owner login" in line).split()[-1].startswith(pages)
        assert next(line for line in said if "Agent key" in line).split()[-1].startswith("tm_live_")
        assert urllib.request.urlopen(pages + "healthz", timeout=10).status == 200
        assert "already runs on" in refusal("start", "--port", 0, "--data-dir", folder)
        port = pages.rstrip("/").rpartition(":")[2]
        other = folder.with_name("other")
        assert f"Port {port} on 127.0.0.1 is in use" in refusal("start", "--port", port, "--data-dir", other)
        answer, _ = manage("showmigrations", "tenants", TEAM_MEMORY_DATA=str(folder)).communicate()
        assert "[X] 0001_initial" in answer  # on the server that runs
    finally:
        first.send_signal(signal.SIGINT)
    assert first.wait() == 0
    again = manage("start", "--port", 0, "--data-dir", folder)
    try:
        said = until_ready(again)
        assert said[0].startswith("Database started in")
        assert not any("tm_live_" in line or "Owner login" in line for line in said)
    finally:
        again.terminate()
    assert again.wait() == 0


def test_after_a_kill_the_next_start_says_what_it_did(folder):
    process = manage("start", "--port", 0, "--data-dir", folder)
    said = until_ready(process)
    assert not any("was killed" in line for line in said)
    pages = next(line.split()[1] for line in said if line.strip().startswith("Pages"))
    linked = manage("create_tenant", "team", "--owner", "owner@localhost", "--new-link", "--data-dir", folder)
    told, _ = linked.communicate()
    assert pages + "login/link/" in told
    process.kill()
    process.wait()
    again = manage("start", "--port", 0, "--data-dir", folder)
    try:
        said = until_ready(again)
        line = next(line for line in said if line.startswith("The last run was killed or lost power: "))
        assert "database recovered" in line or "shut down by its guard" in line
        assert "no dream was under way" in line
    finally:
        again.terminate()
    assert again.wait() == 0


def test_a_command_brings_its_own_database_and_leaves_none_running(folder, tmp_path):
    backup = tmp_path / "backup"
    process = manage("backup", backup, TEAM_MEMORY_DATA=str(folder))
    said, _ = process.communicate()
    assert process.returncode == 0, said
    assert backup.stat().st_mode & 0o077 == 0
    assert not (folder / "pg" / "postmaster.pid").exists()
    assert "exists" in refusal("backup", backup, TEAM_MEMORY_DATA=str(folder))
    assert "is not empty" in refusal("restore", backup, TEAM_MEMORY_DATA=str(folder))
    process = manage("restore", backup, "--force", TEAM_MEMORY_DATA=str(folder))
    said, _ = process.communicate()
    assert process.returncode == 0, said


def test_a_broken_backup_changes_nothing(folder, tmp_path):
    broken = tmp_path / "broken"
    broken.write_bytes(b"PGDMP and then nothing")
    assert "pg_restore failed" in refusal("restore", broken, "--force", TEAM_MEMORY_DATA=str(folder))
    assert "no file" in refusal("restore", tmp_path / "none", "--force", TEAM_MEMORY_DATA=str(folder))
    answer, _ = manage("showmigrations", "tenants", TEAM_MEMORY_DATA=str(folder)).communicate()
    assert "[X] 0001_initial" in answer


def test_a_real_server_that_is_away_is_told_in_one_line(folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"postgres://tm_runtime:x@127.0.0.1:{free.getsockname()[1]}/none"
    assert "does not answer" in refusal("start", "--port", 0, "--data-dir", folder, DATABASE_URL=url)


def test_newer_data_is_refused(folder):
    version = folder / "version.json"
    before = version.read_text()
    version.write_text(before.replace('"format": 1', '"format": 2'))
    try:
        assert "newer Team Memory" in refusal("start", "--port", 0, "--data-dir", folder)
    finally:
        version.write_text(before)
