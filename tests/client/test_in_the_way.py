"""The hook is never in the way: exit code 0, one JSON object or nothing, nothing on stderr, whatever happens."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.client.machine import SAMPLES, SCRIPT, Machine, tool_call
from tests.client.scripted import Scripted

START = json.loads((SAMPLES / "claude_code" / "SessionStart.json").read_bytes())
PROMPT = json.loads((SAMPLES / "claude_code" / "UserPromptSubmit.json").read_bytes())


@pytest.mark.parametrize("mode", ["broken", "elsewhere", "portal", "revoked", "silent", "dripping", "cut_off"])
def test_a_bad_server_costs_no_event(machine: Machine, server: Scripted, mode: str) -> None:
    machine.connect(server.address)
    server.mode = mode
    # That these calls come back at all while the server never answers is what is tried.
    assert machine.hook("claude_code", "SessionStart", START) is None
    assert machine.hook("claude_code", "PostToolUse", tool_call("s1", 1)) is None
    waiting = [line["event"] for line in machine.waiting()]
    assert waiting == ["SessionStart", "PostToolUse"] or mode == "cut_off"


def test_a_server_that_is_not_there_costs_no_event(machine: Machine) -> None:
    machine.connect("http://127.0.0.1:9")
    assert machine.hook("claude_code", "UserPromptSubmit", PROMPT) is None
    assert [line["payload"]["prompt"] for line in machine.waiting()] == [PROMPT["prompt"]]


def test_only_start_and_prompt_ask_the_server(machine: Machine, server: Scripted) -> None:
    machine.connect(server.address)
    assert machine.hook("claude_code", "SessionStart", START) == {
        "hookSpecificOutput": {"additionalContext": "Grüße, 東京 ✓"}
    }
    assert [path for path, _, _ in server.calls] == ["/api/v1/hooks/claude-code?event=SessionStart"]
    # Copilot drops what a prompt hook says, so there is nothing to wait for.
    assert (
        machine.hook("copilot_cli", "userPromptSubmitted", {"sessionId": "c1", "timestamp": 1, "prompt": "x"}) is None
    )


@pytest.mark.parametrize(
    "arguments",
    [(), ("--client",), ("--event", "Stop"), ("--client", "emacs", "--event", "Stop"), ("--nonsense",), ("Stop",)],
)
def test_wrong_arguments_are_no_error(machine: Machine, arguments: tuple[str, ...]) -> None:
    machine.connect("http://127.0.0.1:9")
    done = machine.run(*(arguments or ("--client=codex",)), stdin=b'{"session_id": "s"}')
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    "raw",
    [b"", b"\n", b"[]", b"42", b"{", b"\xff\xfe\xfd", b"[" * 100_000, b'{"a":' * 3000 + b"1" + b"}" * 3000, b"\0"],
    ids=["empty", "blank", "array", "number", "cut", "bytes", "deep-array", "deep-object", "nul"],
)
def test_stdin_that_is_no_payload_is_no_error(machine: Machine, raw: bytes) -> None:
    machine.connect("http://127.0.0.1:9")
    done = machine.run("--client", "claude_code", "--event", "PostToolUse", stdin=raw)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    log = machine.state / "hook.log"
    if raw.strip():
        assert f"--event PostToolUse: {len(raw):,} bytes on stdin are no JSON object" in log.read_text()
    assert log.exists() == bool(raw.strip())


@pytest.mark.parametrize("ending", ["open", "cut", "large", "many"])
def test_stdin_that_never_ends_or_is_huge_costs_no_event(machine: Machine, server: Scripted, ending: str) -> None:
    """That the call comes back at all while its stdin stays open is what is tried."""
    machine.connect(server.address)
    answers: dict[str, Any] = {"large": "x" * 9_000_000, "many": [[123456789012345]] * 260_000}
    body = {**tool_call("s9", 7), "tool_response": answers.get(ending, "x" * 99)}
    del body["tool_use_id"]
    body["tool_use_id"] = "toolu_last"
    raw = json.dumps(body).encode()
    command = [sys.executable, "-I", "-S", str(SCRIPT), "--client", "claude_code", "--event", "PostToolUse"]
    with subprocess.Popen(command, env=machine.environment, **dict.fromkeys(PIPES, subprocess.PIPE)) as called:
        assert called.stdin and called.stdout and called.stderr
        called.stdin.write(raw[:-40] if ending == "cut" else raw)
        called.stdin.flush()
        assert (called.wait(30), called.stdout.read(), called.stderr.read()) == (0, b"", b"")
    assert server.batch_received.wait(60)
    [payload] = [event["payload"] for event in server.events]
    assert (payload["session_id"], payload["tool_name"]) == ("s9", "Bash")
    assert ("team_memory_dropped" in payload) == (ending != "open")
    assert payload.get("tool_use_id") == (None if ending == "cut" else "toolu_last")


PIPES = ("stdin", "stdout", "stderr")


def test_doctor_says_what_went_wrong_in_the_hook(machine: Machine, server: Scripted) -> None:
    machine.connect(server.address)
    machine.run("--client", "codex", "--event", "Stop", stdin=b"panic: tm_live_" + b"a1" * 23)
    said = machine.run("doctor").stdout.decode()
    assert "what went wrong in the hook itself" in said and "--client codex --event Stop: 61 bytes on stdin" in said
    assert "panic" not in (machine.state / "hook.log").read_text()


@pytest.mark.parametrize("language", ["C", "POSIX", "de_DE.ISO-8859-1", "C.UTF-8"])
def test_it_speaks_utf8_in_any_locale(machine: Machine, server: Scripted, language: str) -> None:
    machine.connect(server.address)
    payload = {**PROMPT, "prompt": "Grüße aus 東京 \U0001f600 \ud83d", "cwd": "/home/jürgen"}
    raw = json.dumps(payload, ensure_ascii=False).encode("utf-8", "surrogatepass")
    said = machine.hook("claude_code", "UserPromptSubmit", raw, env={"LC_ALL": language, "PYTHONIOENCODING": "cp1252"})
    assert said["hookSpecificOutput"]["additionalContext"] == "Grüße, 東京 ✓"
    [(_, _, body)] = server.calls
    assert json.loads(body)["prompt"].startswith("Grüße aus 東京 \U0001f600")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_it_reads_what_powershell_pipes(machine: Machine, encoding: str) -> None:
    machine.connect("http://127.0.0.1:9")
    machine.hook("codex", "PostToolUse", json.dumps(tool_call("w1", 1)).encode(encoding))
    assert [line["payload"]["tool_use_id"] for line in machine.waiting()] == ["toolu_w1_1"]


def test_a_home_that_can_not_be_written_costs_no_event(machine: Machine, server: Scripted) -> None:
    (machine.home / ".local").write_text("in the way of the folder")
    environment = {"TEAM_MEMORY_URL": server.address, "TEAM_MEMORY_KEY": "k" * 30}
    machine.hook("claude_code", "PostToolUse", tool_call("r1", 1), env=environment)
    spare = machine.home / "tmp" / f"team-memory-{os.getuid()}"
    assert spare.stat().st_mode & 0o777 == 0o700
    assert server.batch_received.wait(60)
    assert [event["payload"]["tool_use_id"] for event in server.events] == ["toolu_r1_1"]


def test_a_machine_without_any_folder_delivers_from_memory(machine: Machine, server: Scripted) -> None:
    (machine.home / ".local").write_text("in the way of the folder")
    (machine.home / "tmp" / f"team-memory-{os.getuid()}").write_text("in the way too")
    environment = {"TEAM_MEMORY_URL": server.address, "TEAM_MEMORY_KEY": "k" * 30}
    machine.hook("claude_code", "PostToolUse", tool_call("r2", 1), env=environment)
    assert server.batch_received.wait(60)


@pytest.mark.parametrize("lure", ["link", "open"])
def test_a_spool_laid_out_by_another_is_not_used(machine: Machine, tmp_path: Path, lure: str) -> None:
    (machine.home / ".local").write_text("in the way of the folder")
    spare = machine.home / "tmp" / f"team-memory-{os.getuid()}"
    (tmp_path / "trap").mkdir()
    spare.symlink_to(tmp_path / "trap") if lure == "link" else spare.mkdir(mode=0o500)
    environment = {"TEAM_MEMORY_URL": "http://127.0.0.1:9", "TEAM_MEMORY_KEY": "k" * 30}
    machine.hook("claude_code", "PostToolUse", tool_call("r3", 1), env=environment)
    assert list((tmp_path / "trap").iterdir()) == []


def test_stdout_that_is_closed_is_no_error(machine: Machine, server: Scripted) -> None:
    machine.connect(server.address)
    reader, writer = os.pipe()
    os.close(reader)
    import subprocess
    import sys

    from tests.client.machine import SCRIPT

    command = [sys.executable, "-I", "-S", str(SCRIPT), "--client", "claude_code", "--event", "SessionStart"]
    done = subprocess.run(
        command, input=json.dumps(START).encode(), stdout=writer, stderr=subprocess.PIPE, env=machine.environment
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def not_recorded(machine: Machine, payload: Any, **more: Any) -> bool:
    machine.hook("claude_code", "PostToolUse", payload, **more)
    return machine.waiting() == []


def test_it_never_records_the_memory_itself(machine: Machine) -> None:
    machine.connect("http://127.0.0.1:9")
    assert not_recorded(machine, tool_call("d1", 1), env={"TEAM_MEMORY_INTERNAL": "1"})
    assert not_recorded(machine, tool_call("d1", 2, team_memory_internal=True))


def test_injected_blocks_are_not_sent_as_a_prompt(machine: Machine, server: Scripted) -> None:
    machine.connect(server.address)
    said = "<team-memory v=1>Use tabs</team-memory>\n<system-reminder>…</system-reminder>fix the test"
    machine.hook("claude_code", "UserPromptSubmit", {**PROMPT, "prompt": said})
    assert json.loads(server.calls[0][2])["prompt"].strip() == "fix the test"


def test_pause_and_resume(machine: Machine) -> None:
    machine.connect("http://127.0.0.1:9")
    assert machine.run("pause", "--for", "2h").returncode == 0
    assert not_recorded(machine, tool_call("p1", 1))
    assert machine.run("resume").returncode == 0
    assert not not_recorded(machine, tool_call("p1", 2))
    assert machine.run("pause", "--for", "soon").stderr.startswith(b"Say how long")


def test_a_pause_that_is_over_is_none(machine: Machine) -> None:
    machine.connect("http://127.0.0.1:9")
    (machine.config / "paused").write_text("1000.0")
    assert not not_recorded(machine, tool_call("p2", 1))


def test_the_environment_of_a_project_decides_nothing(machine: Machine, server: Scripted, tmp_path: Path) -> None:
    machine.connect("http://127.0.0.1:9")
    project = tmp_path / "cloned"
    (project / ".git").mkdir(parents=True)
    (project / ".claude").mkdir()
    lure = {"TEAM_MEMORY_URL": server.address, "TEAM_MEMORY_KEY": "stolen-" + "k" * 30}
    (project / ".claude" / "settings.json").write_text(json.dumps({"env": lure}))
    machine.hook("claude_code", "SessionStart", {**START, "cwd": str(project)}, env=lure)
    assert server.calls == []
    assert len(machine.waiting()) == 1


def test_without_address_and_key_it_does_nothing(machine: Machine) -> None:
    assert not_recorded(machine, tool_call("n1", 1))


def test_loose_rights_of_the_key_are_tightened(machine: Machine) -> None:
    machine.connect("http://127.0.0.1:9")
    (machine.config / "credentials.json").chmod(0o644)
    machine.hook("claude_code", "PostToolUse", tool_call("n2", 1))
    assert (machine.config / "credentials.json").stat().st_mode & 0o777 == 0o600
