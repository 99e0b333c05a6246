"""`manage.py doctor`, `status` and `stop`, and logs that are set aside."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory.management import doctor
from memory.management.home import Home
from memory.tenants.door import away
from tests.mail_server import mail_server


def test_a_sound_database_is_told_so_and_every_fault_names_its_fix(committed: None, capsys: Any) -> None:
    found = {one.name: one for one in doctor.checks()}
    for name in ("database", "roles", "extensions", "schema", "clock", "workers", "queue", "disk", "logs", "mail"):
        assert found[name].state == "ok", found[name]
    assert all(one.fix for one in found.values() if one.state != "ok")
    with pytest.raises(CommandError, match="address"):  # nothing is served here
        call_command("doctor", json=True)
    assert {one["name"] for one in json.loads(capsys.readouterr().out)} == set(found)


def test_it_sees_a_full_disk_an_open_key_an_old_backup_and_a_dead_queue(
    committed: None, settings: Any, tmp_path: Path
) -> None:
    settings.DATA_HOME = tmp_path
    settings.RESERVE_BYTES = 1 << 60
    (tmp_path / "secret_key").write_text("x")
    (tmp_path / "secret_key").chmod(0o644)
    Home(tmp_path).remember(backup={"at": 0, "file": str(tmp_path / "secret_key")})
    settings.CELERY_BROKER_URL = "redis://user:pass-word@127.0.0.1:1/0"
    found = {one.name: one for one in doctor.checks()}
    assert found["disk"].state == found["secrets"].state == "bad"
    assert "507" in found["disk"].fix and "rotate_secrets" in found["secrets"].fix
    assert found["backup"].state == "warn" and "days old" in found["backup"].told
    assert "pass-word" not in str(found)


def test_it_knocks_at_the_mail_server() -> None:
    with mail_server() as box:
        assert "takes us in" in doctor.mail().told and box.mails == []
    with mail_server(EMAIL_USE_TLS=True):
        found = doctor.mail()
        assert found.state == "bad" and "TEAM_MEMORY_SMTP_URL" in found.fix


def test_a_log_is_set_aside_while_it_is_written(tmp_path: Path) -> None:
    home = Home(tmp_path)
    (tmp_path / "logs").mkdir()
    with home.log("web") as log:
        for number in range(7):
            log.write(b"x" * 200 + str(number).encode())
            log.flush()
            home.rotate_logs(most=100, kept=3)
        log.write(b"after")
    names = {path.name: path.read_bytes()[-1:] for path in (tmp_path / "logs").iterdir()}
    assert names == {"web.log": b"r", "web.log.1": b"6", "web.log.2": b"5", "web.log.3": b"4"}
    assert (tmp_path / "logs" / "web.log").read_bytes() == b"after"


def test_without_a_run_stop_does_nothing_and_status_says_no(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("TEAM_MEMORY_DATA", str(tmp_path / "home"))
    (tmp_path / "home" / "run").mkdir(parents=True)
    (tmp_path / "home" / "run" / "running").write_text(str(os.getpid()))  # left by a kill; the id is ours by now
    call_command("stop")
    assert "Nothing runs" in capsys.readouterr().out
    with pytest.raises(CommandError) as refused:
        call_command("status", json=True)
    assert refused.value.returncode == 3 and json.loads(capsys.readouterr().out)["process"] is None


def test_a_unit_names_this_installation(capsys: Any) -> None:
    call_command("systemd_unit", url="https://memory.example.com", user="tm")
    unit = capsys.readouterr().out
    assert "User=tm" in unit and "manage.py start --host 127.0.0.1" in unit and "https://memory.example.com" in unit


def test_a_database_without_room_is_507_and_one_that_is_away_is_503() -> None:
    from django.db import OperationalError
    from psycopg.errors import DiskFull

    wrapped = OperationalError("could not extend file")
    wrapped.__cause__ = DiskFull("No space left on device")
    for full in (DiskFull("No space left on device"), wrapped):
        answer = away(full)
        assert answer.status_code == 507 and json.loads(answer.content)["code"] == "disk_full"
    assert away(OperationalError("gone")).status_code == 503


def test_counters_of_web_processes_lie_in_memory_and_for_us_alone(tmp_path: Path) -> None:
    folder = Home(tmp_path).counters()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and not list(folder.iterdir())
    (folder / "counter_1.db").write_bytes(b"")
    assert not list(Home(tmp_path).counters().iterdir())
    folder.rmdir()
