"""Install merges into the harness's own file and uninstall puts it back, byte for byte."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memory.hooks import client
from tests.client.machine import KEY, SCRIPT, Machine

URL = "https://memory.test"
FOREIGN = {"hooks": [{"type": "command", "command": "say done", "timeout": 3}]}
# What people have in these files: comments, trailing commas, tabs, CRLF, a BOM, no newline at the end, nothing.
MINE = json.dumps(FOREIGN)
COMMENTS = ("// mine", "// all", "// loud", "/* last */")
CLAUDE = {
    "plain": f'{{\n  "model": "opus",\n  "hooks": {{\n    "Stop": [\n      {MINE}\n    ]\n  }}\n}}\n',
    "one_line": f'{{"hooks":{{"Stop":[{MINE}]}},"model":"opus"}}',
    "comments": f'// mine\n{{\n\t"hooks": {{ // all\n\t\t"Stop": [\n\t\t\t{MINE}, // loud\n\t\t\t/* last */\n\t\t],\n'
    "\t},\n}",
    "crlf": f'{{\r\n    "hooks": {{\r\n        "Stop": [\r\n            {MINE}\r\n        ]\r\n    }}\r\n}}\r\n',
    "bom": f'\ufeff{{"hooks": {{"Stop": [{MINE}]}}}}\n',
    "strings": f'{{"hooks": {{"Stop": [{MINE}]}}, "x": "// no comment, /* none */ \\" }} ]", "é": "ü"}}',
    "empty_lists": f'{{"hooks": {{"Stop": [{MINE}], "PreToolUse": [ ], "SessionStart": []}}}}',
}
EMPTY = {
    "object": "{}",
    "spaced": "{\n\n}\n",
    "empty": "",
    "blank": "\n",
    "bom": "\ufeff",
    "other": '{\n  "model": "opus"\n}\n',
}
FILES = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "cursor": ".cursor/hooks.json",
    "gemini-cli": ".gemini/settings.json",
    "copilot-cli": ".copilot/hooks/team-memory.json",
    "vscode": ".claude/settings.json",
    "opencode": ".config/opencode/plugins/team-memory.js",
}


def install(machine: Machine, name: str, *more: str) -> "subprocess.CompletedProcess[bytes]":
    done = machine.run("install", "--client", name, "--url", URL, "--key", KEY, "--yes", *more)
    assert done.returncode == 0, done.stderr.decode()
    return done


def uninstall(machine: Machine, *more: str) -> None:
    done = machine.run("uninstall", "--yes", *more)
    assert done.returncode == 0, done.stderr.decode()


def written(machine: Machine, path: str, content: str) -> Path:
    file = machine.home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode())
    return file


def hooks_in(file: Path) -> dict[str, list[Any]]:
    plain = client.Jsonc(file.read_bytes().decode()).root.plain()
    hooks: dict[str, list[Any]] = plain["hooks"]
    return hooks


@pytest.mark.parametrize("content", CLAUDE.values(), ids=CLAUDE)
@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini-cli"])
def test_foreign_entries_stay_and_uninstall_gives_the_same_bytes(machine: Machine, name: str, content: str) -> None:
    file = written(machine, FILES[name], content)
    install(machine, name)
    assert FOREIGN in hooks_in(file).get("Stop", [])
    once = file.read_bytes()
    assert b"already installed" in install(machine, name).stdout
    assert file.read_bytes() == once
    uninstall(machine, "--client", name)
    assert file.read_bytes() == content.encode()


@pytest.mark.parametrize("content", EMPTY.values(), ids=EMPTY)
@pytest.mark.parametrize("name", ["claude-code", "codex", "cursor", "gemini-cli", "copilot-cli", "vscode"])
def test_a_file_without_hooks_gets_them_and_comes_back(machine: Machine, name: str, content: str) -> None:
    file = written(machine, FILES[name], content)
    install(machine, name)
    found = hooks_in(file)
    assert all(client.is_our_entry(entry) for entries in found.values() for entry in entries)
    assert len(found) >= 7
    uninstall(machine, "--client", name)
    assert file.read_bytes() == content.encode()


def test_all_connects_the_harnesses_that_the_machine_has_and_no_other(machine: Machine) -> None:
    done = machine.run("install", "--client", "all", "--url", URL, "--key", KEY, "--yes")
    assert done.returncode == 1 and b"No harness was found" in done.stderr and b"copilot-cli" in done.stderr
    for folder in (".claude", ".gemini", ".vscode", ".config/opencode"):
        (machine.home / folder).mkdir(parents=True)
    assert b"Found here: claude-code, gemini-cli, opencode." in install(machine, "all").stdout
    written = {name for name, path in FILES.items() if (machine.home / path).exists()}
    assert written == {"claude-code", "vscode", "gemini-cli", "opencode"}
    assert install(machine, "all").stdout.count(b"already installed") >= 3
    uninstall(machine)
    assert not any((machine.home / path).exists() for path in FILES.values())


def test_vs_code_and_claude_code_share_one_installation(machine: Machine) -> None:
    file = written(machine, FILES["claude-code"], CLAUDE["comments"])
    install(machine, "vscode")
    assert b"already installed" in install(machine, "claude-code").stdout
    uninstall(machine, "--client", "claude-code")
    assert file.read_bytes() == CLAUDE["comments"].encode()


@pytest.mark.parametrize("name", FILES)
def test_where_there_was_no_file_there_is_none_after(machine: Machine, name: str) -> None:
    before = sorted(path for path in machine.home.rglob("*"))
    install(machine, name)
    assert (machine.home / FILES[name]).is_file()
    assert (machine.config / "credentials.json").stat().st_mode & 0o777 == 0o600
    assert KEY not in (machine.home / FILES[name]).read_text()
    uninstall(machine)
    left = [path for path in sorted(machine.home.rglob("*")) if path not in before]
    assert left in ([], [machine.home / ".config"])


def test_cursor_gets_its_version_and_keeps_what_it_has(machine: Machine) -> None:
    foreign = {"command": "./audit.sh", "failClosed": True}
    content = json.dumps({"hooks": {"stop": [foreign], "workspaceOpen": [foreign]}}, indent=4)
    file = written(machine, FILES["cursor"], content)
    install(machine, "cursor")
    assert client.Jsonc(file.read_text()).root.plain()["version"] == 1
    assert hooks_in(file)["stop"][0] == hooks_in(file)["workspaceOpen"][0] == foreign
    uninstall(machine, "--client", "cursor")
    assert file.read_text() == content


@pytest.mark.parametrize("content", CLAUDE.values(), ids=CLAUDE)
def test_what_others_write_meanwhile_stays(machine: Machine, content: str) -> None:
    file = written(machine, FILES["claude-code"], content)
    install(machine, "claude-code")
    mark = "\ufeff" if content.startswith("\ufeff") else ""
    read = client.Jsonc(file.read_bytes().decode())
    changed = read.add(read.root, {"theirs": [1]}, "added")
    file.write_bytes(changed.encode())
    uninstall(machine, "--client", "claude-code")
    text = file.read_bytes().decode()
    plain = client.Jsonc(text).root.plain()
    expected = client.Jsonc(content).root.plain()
    expected["hooks"] = {event: entries for event, entries in expected["hooks"].items() if entries}
    plain["hooks"] = {event: entries for event, entries in plain["hooks"].items() if entries}
    assert plain == {**expected, "added": {"theirs": [1]}}
    assert text.startswith(mark)
    assert "team-memory" not in text
    assert [mark for mark in COMMENTS if mark in content] == [mark for mark in COMMENTS if mark in text]


def test_a_second_install_after_foreign_changes_does_not_undo_them(machine: Machine) -> None:
    file = written(machine, FILES["claude-code"], CLAUDE["plain"])
    install(machine, "claude-code")
    settings = json.loads(file.read_text())
    del settings["hooks"]["SessionStart"]
    settings["theirs"] = True
    file.write_text(json.dumps(settings))
    install(machine, "claude-code")
    assert "SessionStart" in hooks_in(file)
    uninstall(machine, "--client", "claude-code")
    assert json.loads(file.read_text()) == {"model": "opus", "hooks": {"Stop": [FOREIGN]}, "theirs": True}


def test_it_takes_the_place_of_what_the_connect_page_gives_to_add_by_hand(machine: Machine) -> None:
    from memory.tenants import connect

    content = connect.without_client(URL, KEY)
    file = written(machine, FILES["claude-code"], content)
    install(machine, "claude-code")
    assert "curl" not in json.dumps(hooks_in(file)) and "http" not in json.dumps(hooks_in(file))
    uninstall(machine, "--client", "claude-code")
    assert file.read_text() == content


@pytest.mark.parametrize(
    "content",
    ["{", '{"hooks": []}', '{"hooks": {"Stop": {}}}', "[]", '{"a": 1} x', '{"a" 1}', "{'a': 1}", '"hooks"', "[" * 200],
)
def test_a_file_that_can_not_be_read_is_left_alone(machine: Machine, content: str) -> None:
    file = written(machine, FILES["claude-code"], content)
    done = machine.run("install", "--client", "claude-code", "--url", URL, "--key", KEY, "--yes")
    assert done.returncode == 1
    assert done.stderr.startswith(b"Nothing was changed")
    assert file.read_text() == content
    assert not (machine.config / "credentials.json").exists()


def test_bytes_that_are_no_utf8_are_left_alone(machine: Machine) -> None:
    file = written(machine, FILES["cursor"], "")
    file.write_bytes(b'{"a": "\xe9"}')
    done = machine.run("install", "--client", "cursor", "--url", URL, "--key", KEY, "--yes")
    assert (done.returncode, file.read_bytes()) == (1, b'{"a": "\xe9"}')


def test_a_linked_settings_file_stays_a_link(machine: Machine) -> None:
    real = written(machine, "dotfiles/claude.json", CLAUDE["comments"])
    real.chmod(0o640)
    link = machine.home / FILES["claude-code"]
    link.parent.mkdir()
    link.symlink_to(real)
    install(machine, "claude-code")
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert b"team-memory" in real.read_bytes()
    uninstall(machine, "--client", "claude-code")
    assert link.is_symlink()
    assert real.read_bytes() == CLAUDE["comments"].encode()


TOML = {
    "comments": '# mine\nmodel = "gpt"   # best\n\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\n',
    "no_newline": '[hooks]\n[[hooks.Stop]]\nhooks = [{ type = "command", command = "say" }]',
    "crlf": '[[hooks.Stop]]\r\nhooks = []\r\n',
}  # fmt: skip


@pytest.mark.parametrize("content", TOML.values(), ids=TOML)
def test_codex_hooks_in_toml_get_a_block_of_ours(machine: Machine, content: str) -> None:
    import tomllib

    file = written(machine, ".codex/config.toml", content)
    install(machine, "codex")
    assert not (machine.home / ".codex" / "hooks.json").exists()
    read = tomllib.loads(file.read_bytes().decode())
    assert set(read["hooks"]) == set(client.EVENTS["codex"])
    assert read["hooks"]["Stop"][0] == tomllib.loads(content)["hooks"]["Stop"][0]
    assert read["hooks"]["SessionStart"][0]["hooks"][0]["command"].endswith("--client codex --event SessionStart")
    assert b"already installed" in install(machine, "codex").stdout
    file.write_bytes(file.read_bytes() + b"\n[theirs]\nx = 1\n")
    uninstall(machine, "--client", "codex")
    assert tomllib.loads(file.read_bytes().decode()) == {**tomllib.loads(content), "theirs": {"x": 1}}
    file.write_bytes(content.encode())
    install(machine, "codex")
    uninstall(machine, "--client", "codex")
    assert file.read_bytes() == content.encode()


def test_what_codex_notes_of_trust_is_no_hook(machine: Machine) -> None:
    content = '[hooks.state."/x/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:1"\n'
    file = written(machine, ".codex/config.toml", content)
    install(machine, "codex")
    assert file.read_text() == content
    assert (machine.home / ".codex" / "hooks.json").is_file()


def test_hooks_listed_inline_in_toml_are_refused_with_the_way_out(machine: Machine) -> None:
    file = written(machine, ".codex/config.toml", "[hooks]\nStop = [{ hooks = [] }]\nSessionStart = []\n")
    before = file.read_bytes()
    done = machine.run("install", "--client", "codex", "--url", URL, "--key", KEY, "--yes")
    assert (done.returncode, file.read_bytes()) == (1, before)
    assert b"hooks.json" in done.stderr


def test_project_files_never_hold_the_key(machine: Machine, tmp_path: Path) -> None:
    project = tmp_path / "shop"
    (project / ".git").mkdir(parents=True)
    for name in FILES:
        install(machine, name, "--project", str(project))
    found = sorted(str(path.relative_to(project)) for path in project.rglob("*") if path.is_file())
    assert found == [
        ".claude/settings.local.json",
        ".codex/hooks.json",
        ".cursor/hooks.json",
        ".gemini/settings.json",
        ".github/hooks/team-memory-vscode.json",
        ".github/hooks/team-memory.json",
        ".opencode/plugins/team-memory.js",
    ]
    assert all(KEY not in (project / name).read_text() and URL not in (project / name).read_text() for name in found)
    assert str(project) in json.loads((machine.config / "credentials.json").read_text())["projects"]
    uninstall(machine, "--project", str(project))
    assert list(project.iterdir()) == [project / ".git"]


def test_it_shows_the_change_and_asks(machine: Machine) -> None:
    done = machine.run("install", "--client", "cursor", "--url", URL, "--key", KEY)
    assert b'+    "stop": [' in done.stdout
    assert b"pass --yes" in done.stderr
    assert not (machine.home / FILES["cursor"]).exists()


def test_it_backs_up_what_it_changes(machine: Machine) -> None:
    written(machine, FILES["claude-code"], CLAUDE["comments"])
    install(machine, "claude-code")
    [kept] = (machine.config / "backups").iterdir()
    assert kept.read_bytes() == CLAUDE["comments"].encode()
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--client", "emacs", "--url", URL, "--key", KEY), b"Known are claude-code, codex, cursor"),
        (("--client", "codex", "--url", "memory.test", "--key", KEY), b"Connect page"),
        (("--client", "codex", "--url", URL), b"Connect page"),
        (("--client", "codex", "--url", URL, "--key", KEY, "--project", "/nowhere/at/all"), b"no folder"),
    ],
)
def test_wrong_words_say_what_to_do(machine: Machine, arguments: tuple[str, ...], said: bytes) -> None:
    done = machine.run("install", "--yes", *arguments)
    assert done.returncode == 1
    assert said in done.stderr


def test_what_is_installed_runs(machine: Machine) -> None:
    """The command as the harness would run it, from another folder and with a hostile module beside it."""
    install(machine, "claude-code")
    command = hooks_in(machine.home / FILES["claude-code"])["PostToolUse"][0]["hooks"][0]["command"]
    trap = machine.home / "trap"
    trap.mkdir()
    (trap / "json.py").write_text("raise SystemExit(2)")
    payload = json.dumps({"session_id": "s", "tool_use_id": "t", "hook_event_name": "PostToolUse"})
    environment = {**machine.environment, "PYTHONPATH": str(trap)}
    machine.connect("http://127.0.0.1:9")
    done = subprocess.run(command, shell=True, cwd=trap, env=environment, input=payload.encode(), capture_output=True)  # noqa: S602
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert [line["event"] for line in machine.waiting()] == ["PostToolUse"]
    (machine.config / "team_memory_hook.py").write_text("syntax error")
    shutil.rmtree(machine.config / "__pycache__")
    done = subprocess.run(command, shell=True, env=environment, input=payload.encode(), capture_output=True)  # noqa: S602
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_events_that_wait_keep_the_key_until_they_are_dropped(machine: Machine) -> None:
    install(machine, "claude-code")
    machine.connect("http://127.0.0.1:9")
    machine.hook("claude_code", "PostToolUse", {"session_id": "s", "tool_use_id": "t"})
    uninstall(machine)
    assert (machine.config / "credentials.json").exists()
    uninstall(machine, "--discard")
    assert not machine.config.exists()
    assert not machine.state.exists()


def test_the_plugin_of_opencode_is_javascript(machine: Machine, tmp_path: Path) -> None:
    install(machine, "opencode")
    plugin = (machine.home / FILES["opencode"]).read_text()
    assert plugin.count("export ") == 1, "OpenCode takes every export for a plugin"
    node = shutil.which("node")
    (tmp_path / "plugin.mjs").write_text(plugin)
    script = """
import { TeamMemory } from "./plugin.mjs"
const hooks = await TeamMemory({ directory: "/nowhere/shop", worktree: "/" })
const parts = [{ type: "text", text: "yes" }]
await hooks["chat.message"]({ sessionID: "s1", messageID: "m1" }, { message: {}, parts })
await hooks["tool.execute.after"]({ tool: "bash", sessionID: "s1", callID: "c1", args: {} }, { output: "x" })
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "s1" } } })
"""
    (tmp_path / "drive.mjs").write_text(script)
    machine.connect("http://127.0.0.1:9")
    if node:
        done = subprocess.run([node, "drive.mjs"], cwd=tmp_path, env=machine.environment, capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
        events = [line["event"] for line in machine.waiting()]
        assert events == ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"]


def test_doctor_names_each_fault_and_its_fix(machine: Machine) -> None:
    done = machine.run("doctor")
    assert done.returncode == 1
    assert b"no address and key" in done.stdout
    install(machine, "codex")
    machine.connect("http://127.0.0.1:9")
    machine.hook("codex", "PostToolUse", {"session_id": "s", "tool_use_id": "t"})
    machine.run("pause")
    said = machine.run("doctor").stdout.decode()
    for part in ("does not answer", "hooks are in", "not trusted yet: SessionStart", "1 events wait", "paused", "Fix:"):
        assert part in said, said
    path = machine.home / FILES["codex"]
    trust = "".join(f'[hooks.state."{path}:{client._snake(event)}:0:0"]\n' for event in client.EVENTS["codex"])
    (machine.home / ".codex" / "config.toml").write_text("[features]\nhooks = false\n" + trust)
    said = machine.run("doctor").stdout.decode()
    assert "the hooks are trusted" in said
    assert "hooks are turned off" in said
    hooks = json.loads(path.read_text())
    del hooks["hooks"]["Stop"]
    path.write_text(json.dumps(hooks))
    assert "not all hooks are in" in machine.run("doctor").stdout.decode()


def test_it_installs_from_wherever_it_was_saved(machine: Machine, tmp_path: Path) -> None:
    saved = tmp_path / "down loads" / "hook.py"
    saved.parent.mkdir()
    shutil.copy(SCRIPT, saved)
    import sys

    command = [sys.executable, str(saved), "install", "--client", "cursor", "--url", URL, "--key", KEY, "--yes"]
    subprocess.run(command, env=machine.environment, check=True, capture_output=True)
    saved.unlink()
    assert (machine.config / "team_memory_hook.py").read_bytes() == SCRIPT.read_bytes()
    assert os.stat(machine.config).st_mode & 0o777 == 0o700


def everything_in(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("name", "folder"), [("claude-code", ".claude/skills"), ("codex", ".agents/skills")])
def test_it_adds_a_skill_and_takes_it_away(machine: Machine, name: str, folder: str) -> None:
    written(machine, f"{folder}/theirs/SKILL.md", "---\nname: theirs\n---\n")
    before = everything_in(machine.home)
    install(machine, name)
    skill = machine.home / folder / "team-memory" / "SKILL.md"
    text = skill.read_text()
    head = dict(line.split(": ", 1) for line in text.split("---")[1].strip().splitlines())
    assert set(head) == {"name", "description"} and len(head["description"]) <= 1_024
    command = text.partition("`")[2].partition(" search WORDS`")[0]
    done = subprocess.run(["sh", "-c", f"{command} --help"], env=machine.environment, capture_output=True, check=False)
    assert b"recall" in done.stdout
    assert b"already installed" in install(machine, name).stdout
    uninstall(machine)
    assert everything_in(machine.home) == before and not skill.parent.exists()


def test_a_skill_that_is_not_ours_stays(machine: Machine) -> None:
    theirs = written(machine, ".claude/skills/team-memory/SKILL.md", "their own\n")
    install(machine, "claude-code")
    uninstall(machine)
    assert theirs.read_text() == "their own\n"
    theirs.unlink()
    install(machine, "claude-code")
    theirs.write_text(theirs.read_text() + "and ours\n")
    uninstall(machine)
    assert theirs.read_text().endswith("and ours\n")
