"""What the harnesses send, read into one shape."""

import json
from pathlib import Path
from typing import Any

import pytest

from memory.events.blocks import without_injected
from memory.events.places import normal_remote, normal_root
from memory.hooks.answers import answer
from memory.hooks.payloads import CLIENTS, Told, canonical, known_client

HARNESS = Path(__file__).parents[1] / "data" / "harness"
SAMPLES = sorted(HARNESS.glob("*/*.json"))
CASE_17 = [
    (
        {"hook_event_name": "PostToolUse", "session_id": "s1", "tool_name": "Bash", "tool_response": "plain string"},
        "tool_after",
    ),
    (
        {
            "hook_event_name": "PostToolUse",
            "session_id": "s1",
            "tool_name": "mcp__jira__get",
            "tool_response": [{"type": "text"}],
        },
        "tool_after",
    ),
    (
        {
            "hook_event_name": "PostToolUse",
            "session_id": "s1",
            "turn_id": "t1",
            "tool_name": "apply_patch",
            "tool_input": {"command": "*** Begin Patch\n*** End Patch"},
        },
        "tool_after",
    ),
    ({"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "Bash", "tool_use_id": "u1"}, "tool_before"),
    ({"hook_event_name": "BrandNewEvent", "session_id": "s1", "x": 1}, "other"),
]


def sample(path: Path) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(path.read_text())
    return payload


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_it_reads_every_sample(path: Path) -> None:
    seen = canonical(path.parent.name, sample(path), Told(event=path.name.split(".")[0]))
    assert seen.client == path.parent.name.removesuffix("_via_claude_settings")
    assert seen.name == path.name.split(".")[0]
    assert seen.session_key and seen.session_key != "none"


@pytest.mark.parametrize(("payload", "kind"), CASE_17)
def test_it_reads_strange_and_short_payloads(payload: dict[str, Any], kind: str) -> None:
    seen = canonical("claude_code", payload)
    assert (seen.kind, seen.session_key, seen.cwd, seen.transcript_path) == (kind, "s1", "", "")


def test_it_knows_clients_by_both_spellings() -> None:
    assert known_client("claude-code") == known_client("claude_code") == "claude_code"
    assert known_client("emacs") is None
    assert {path.parent.name for path in SAMPLES} == set(CLIENTS)


@pytest.mark.parametrize("client", ["cursor", "vscode", "windsurf", "gemini_cli", "codex"])
def test_it_sees_who_calls_through_the_settings_of_claude_code(client: str) -> None:
    for path in HARNESS.glob(f"{client}/*.json"):
        if client == "codex" and "turn_id" not in sample(path) and "permission_mode" not in sample(path):
            continue  # SessionEnd of Codex looks like Claude Code's
        if (
            client == "gemini_cli"
            and not path.name.startswith(("Before", "After"))
            and "gemini" not in path.read_text()
        ):
            continue
        assert canonical("claude_code", sample(path)).client == client, path


def test_cursor_twice_is_one_event() -> None:
    direct = canonical("cursor", sample(HARNESS / "cursor/beforeSubmitPrompt.json"))
    through = canonical("claude_code", sample(HARNESS / "cursor_via_claude_settings/beforeSubmitPrompt.json"))
    assert (direct.client, direct.session_key, direct.key) == (through.client, through.session_key, through.key)


def test_a_prompt_without_an_id_has_no_key_of_its_own() -> None:
    assert (
        canonical("claude_code", {"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": "yes"}).key == ""
    )


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (
            "<team-memory>User likes tabs</team-memory>\n<system-reminder>x</system-reminder>\nfix the test",
            "fix the test",
        ),
        ("<team-memory id=1 boundary=ab>a</team-memory boundary=ab>\nfix", "fix"),
        ("before <team-memory>never closed", "before"),
        ("<team-memory-notes> is a tag of ours", "<team-memory-notes> is a tag of ours"),
        ("a < b", "a < b"),
    ],
)
def test_injected_text_is_not_what_a_person_said(said: str, meant: str) -> None:
    assert without_injected(said) == meant
    seen = canonical("claude_code", {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": said})
    assert (seen.prompt, seen.summary) == (meant, meant)


@pytest.mark.parametrize(
    "spelt",
    [
        "git@github.com:A/b.git",
        "https://github.com/a/b",
        "ssh://git@github.com/a/b.git",
        "https://u:p@www.github.com/a/b.git/",
    ],
)
def test_one_remote_in_many_spellings(spelt: str) -> None:
    assert normal_remote(spelt) == "github.com/a/b"


@pytest.mark.parametrize("spelt", ["", "/srv/git/b.git", "../b", "C:\\code\\b", "file:///x/b"])
def test_a_path_is_no_remote(spelt: str) -> None:
    assert normal_remote(spelt) == ""


def test_roots_have_one_spelling() -> None:
    assert normal_root("/home/dev/shop/") == "/home/dev/shop"
    assert normal_root("C:\\code\\shop\\") == "C:/code/shop"
    assert normal_root("/") == "/"


@pytest.mark.parametrize(
    ("client", "event", "kind"),
    [
        ("claude_code", "SessionStart", "start"),
        ("claude_code", "UserPromptSubmit", "prompt"),
        ("claude_code", "SubagentStart", "subagent_start"),
        ("codex", "SessionStart", "start"),
        ("codex", "UserPromptSubmit", "prompt"),
        ("cursor", "beforeSubmitPrompt", "prompt"),
        ("gemini_cli", "BeforeAgent", "prompt"),
        ("gemini_cli", "SessionStart", "start"),
    ],
)
def test_it_answers_in_the_harness_own_words(client: str, event: str, kind: str) -> None:
    wanted = sample(HARNESS / client / "out" / f"{event}.json")
    context = wanted.get("additional_context") or wanted["hookSpecificOutput"]["additionalContext"]
    assert answer(client, kind, context) == wanted


def test_it_says_nothing_where_nothing_is_taken() -> None:
    assert (
        answer("claude_code", "stop", "text")
        == answer("codex", "tool_after", "x")
        == answer("windsurf", "prompt", "x")
        == {}
    )
    assert answer("copilot_cli", "prompt", "x") == answer("claude_code", "start", None) == {}
    assert answer("cursor", "prompt", None) == {"continue": True}
