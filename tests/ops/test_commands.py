"""What every `manage.py` command shares: the folder it works on, and what that folder remembers."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from memory.management.borrowed import for_command
from memory.management.commands.start import after_a_kill
from memory.management.home import Home, Refused

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for data, as the only thing the environment would say of it."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("TEAM_MEMORY_DATA", str(tmp_path / "environment"))
    monkeypatch.setattr("memory.management.home.Account.reaches", lambda *_: True)
    return tmp_path / "data"


@pytest.mark.parametrize("spelling", [["--data-dir", "{}"], ["--data-dir={}"]])
@pytest.mark.parametrize("command", ["start", "check", "backup"])
def test_every_command_takes_the_folder(folder: Path, command: str, spelling: list[str]) -> None:
    argv = ["manage.py", command, *(word.format(folder) for word in spelling), "more"]
    os.environ["DATABASE_URL"] = "postgres://x@127.0.0.1/none"  # so that nothing is started
    with for_command(argv):
        assert os.environ["TEAM_MEMORY_DATA"] == str(folder)
    assert argv == ["manage.py", command, "more"]


@pytest.mark.parametrize("rest", [["--data-dir"], ["--data-dir="], ["--data-dir", "--json"]])
def test_the_option_without_a_folder_is_refused(folder: Path, rest: list[str]) -> None:
    with pytest.raises(Refused, match="needs the path"), for_command(["manage.py", "check", *rest]):
        raise AssertionError("it ran")


def test_what_follows_two_dashes_is_the_commands(folder: Path) -> None:
    argv = ["manage.py", "check", "--", "--data-dir", "x"]
    with for_command(argv):
        assert argv[2:] == ["--", "--data-dir", "x"]


@pytest.mark.parametrize("command", ["dream", "backup", "import_sessions", "add_member", "shell"])
def test_a_folder_without_data_is_refused_and_not_made(folder: Path, command: str) -> None:
    with (
        pytest.raises(Refused, match=r"There is no data in .*data\. Name the folder by --data-dir"),
        for_command(["manage.py", command, "--data-dir", str(folder)]),
    ):
        raise AssertionError("it ran")
    assert not folder.exists()


def public_url(folder: Path, **environment: str) -> str:
    code = "from memory import settings; print(settings.PUBLIC_URL)"
    env = {name: value for name, value in os.environ.items() if name != "TEAM_MEMORY_PUBLIC_URL"}
    env |= {"TEAM_MEMORY_DATA": str(folder)} | environment
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_links_lead_to_where_the_last_start_served() -> None:
    # Not tmp_path: as root, data in a folder that is closed to others would be put elsewhere.
    with tempfile.TemporaryDirectory(prefix="tm-", dir="/tmp") as made:
        folder = Path(made)
        folder.chmod(0o755)
        assert public_url(folder) == "http://127.0.0.1:8000"
        Home(folder).remember(public_url="http://127.0.0.1:8123")
        assert public_url(folder) == "http://127.0.0.1:8123"
        assert public_url(folder, TEAM_MEMORY_PUBLIC_URL="https://memory.test/") == "https://memory.test"


def test_a_mark_tells_a_run_that_was_killed_from_one_that_ended(tmp_path: Path) -> None:
    home = Home(tmp_path)
    (tmp_path / "run").mkdir()
    assert not home.mark_running()
    assert home.mark_running()
    home.unmark_running()
    assert not home.mark_running()


@pytest.mark.parametrize(
    ("kind", "dreams", "said"),
    [
        ("recovered", 2, "database recovered, 2 dreams go on."),
        ("warm", 1, "the database was shut down by its guard, 1 dream goes on."),
        ("recovered", 0, "database recovered, no dream was under way."),
        ("first boot", None, "no database had been made."),
        (None, None, "the database is elsewhere."),
    ],
)
def test_a_start_after_a_kill_says_what_it_did(kind: str | None, dreams: int | None, said: str) -> None:
    assert after_a_kill(kind, dreams) == f"The last run was killed or lost power: {said}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--port", "99999"), "99999 is no port"),
        (("--workers", "0"), "--workers is a number from 1"),
        (("--data-dir", "/etc/hostname"), "can't be used"),
        (("--data-dir", "/proc/none"), "can't be used"),
    ],
)
def test_what_start_can_not_use_is_said_in_one_line(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.endswith("DATABASE_URL")}
    folder = () if "--data-dir" in arguments else ("--data-dir", str(tmp_path / "data"))
    command = [sys.executable, "manage.py", "start", *folder, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
