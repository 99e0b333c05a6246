"""A session as its member lives it: resumed, forked, compacted, gone on with in another harness."""

import json
from pathlib import Path
from typing import Any

import pytest

from memory.events.models import Session
from memory.recall import envelope
from memory.recall.models import Telling
from tests.cache.asked import call, stored
from tests.conftest import Agent
from tests.pages import made

SAMPLES = Path(__file__).parents[1] / "data" / "harness"
HOME = "/home/dev/shop"


@pytest.fixture
def client(api: Any, agent: Agent) -> Any:
    return api(agent)


def hook(client: Any, name: str, session: str = "s1", harness: str = "claude-code", **more: Any) -> str:
    """What the call is told."""
    payload = {"session_id": session, "hook_event_name": name, "cwd": HOME, **more}
    answer = client.post(f"hooks/{harness}", payload)
    assert answer.status_code == 200, answer.content
    return told(answer.json())


def told(said: dict[str, Any]) -> str:
    inner = said.get("hookSpecificOutput", {})
    return str(inner.get("additionalContext") or said.get("additional_context") or said.get("additionalContext") or "")


def sample(client: Any, harness: str, name: str, **more: Any) -> str:
    payload = json.loads((SAMPLES / harness / f"{name}.json").read_text()) | more
    answer = client.post(f"hooks/{harness}?event={name}", payload)
    assert answer.status_code == 200, answer.content
    return told(answer.json())


def sessions_in(text: str) -> list[str]:
    """The harnesses of the last sessions that a text lists."""
    return [line.split(" · ")[1] for line in text.split("\n") if line.startswith("- ses_")]


def test_each_harness_is_told_of_the_session_before(client: Any, agent: Agent) -> None:
    """Claude Code, then Codex, then Cursor on one project, by what each of them sends."""
    assert sample(client, "claude_code", "SessionStart") == ""
    sample(client, "claude_code", "UserPromptSubmit", prompt="Round the totals")
    sample(client, "claude_code", "Stop")
    in_codex = sample(client, "codex", "SessionStart")
    assert sessions_in(in_codex) == ["claude code"]
    assert "last asked: Round the totals · stopped after an answer" in in_codex
    sample(client, "codex", "UserPromptSubmit", prompt="Now the tests")
    sample(client, "codex", "SessionEnd")
    in_cursor = sample(client, "cursor", "sessionStart")
    assert sessions_in(in_cursor) == ["codex", "claude code"]
    assert "last asked: Now the tests · ended" in in_cursor
    assert in_cursor.rstrip().split("\n")[-3].endswith("Nothing was left out.")
    assert envelope.size(in_cursor) <= 7_500
    opened = next(line.split(" · ")[0][2:] for line in in_cursor.split("\n") if line.startswith("- ses_"))
    assert "Now the tests" in client.get(f"recall/{opened}").content.decode()


def test_a_session_is_told_once_until_it_forgets(client: Any, acme: Any, alice: Any, bound: Any) -> None:
    made.note(acme, alice, path="general/totals.md", text="# Totals\n\n- Round totals half-even\n")
    prompt = {"prompt": "How do we round totals?"}
    first = hook(client, "SessionStart", source="startup")
    assert "half-even" in first
    assert hook(client, "SessionStart", source="resume") == ""
    old = f"{HOME}/.claude/projects/x/s1.jsonl"
    for source, session in (("resume", "s2"), ("fork", "s3")):
        assert hook(client, "SessionStart", session, source=source, transcript_path=old) == "", source
        assert hook(client, "UserPromptSubmit", session, **prompt, prompt_id=session) == ""
    later = hook(client, "SessionStart", "s4", source="resume", transcript_path=old.replace("s1", "s2"))
    assert later == "", "what it goes on from goes on from one that was told"
    assert "half-even" in hook(client, "SessionStart", "s2", source="compact")
    assert "half-even" in hook(client, "SessionStart", "s1", source="clear")
    with bound(acme):
        assert Telling.objects.filter(kind="start").count() == 3
        of = {one.key: one for one in Session.objects.select_related("resumed_from")}
        assert of["s2"].resumed_from == of["s3"].resumed_from == of["s1"] and of["s4"].resumed_from == of["s2"]


@pytest.mark.parametrize(("harness", "prompt"), [("cursor", "beforeSubmitPrompt"), ("gemini_cli", "BeforeAgent")])
def test_who_starts_not_anew_after_a_compaction_is_told_with_the_next_prompt(
    client: Any, acme: Any, alice: Any, harness: str, prompt: str
) -> None:
    made.note(acme, alice, path="general/totals.md", text="# Totals\n\n- Round totals half-even\n")
    cursor = harness == "cursor"
    assert "half-even" in sample(client, harness, "sessionStart" if cursor else "SessionStart")
    same = {"generation_id": "g2"} if cursor else {"timestamp": "2026-11-29T10:01:00Z"}
    assert sample(client, harness, prompt, prompt="Totals?", **same) == ""
    sample(client, harness, "preCompact" if cursor else "PreCompress")
    after = {"generation_id": "g3"} if cursor else {"timestamp": "2026-11-29T10:02:00Z"}
    assert "half-even" in sample(client, harness, prompt, prompt="Go on", **after)


def test_a_compacted_session_is_told_what_it_read_again_and_again(client: Any, acme: Any, bound: Any) -> None:
    hook(client, "SessionStart", source="startup")
    with bound(acme):
        slug = Session.objects.get().project.slug
    place = {"arguments": {"path": "src/pay.py"}, "context": {"project": slug, "root": HOME}}
    result = stored(client, call("Read", **place)).json()["result_id"]
    for number in range(26):
        for turn in range(3 if number == 7 else 2):
            path = f"{HOME}/src/{'pay' if number == 7 else f'f{number:02}'}.py"
            more = {"tool_name": "Read", "tool_input": {"file_path": path}, "tool_response": {"type": "text"}}
            hook(client, "PostToolUse", tool_use_id=f"u{number}-{turn}", **more)
    text = hook(client, "SessionStart", source="compact")
    lines = [line for line in text.split("\n") if " · read " in line]
    assert len(lines) == 20 and lines[0] == f"- src/pay.py · read 3 times · {result}"
    assert lines[1] == "- src/f00.py · read 2 times"
    assert envelope.size(text) <= 7_500 and text.rstrip().split("\n")[-3].endswith("Nothing was left out.")
    assert " · read " not in hook(client, "SessionStart", source="clear")


def test_it_names_only_doors_that_who_asks_has(client: Any, acme: Any, alice: Any) -> None:
    made.note(acme, alice, path="general/totals.md")
    start = {"session_id": "s1", "hook_event_name": "SessionStart", "source": "startup", "cwd": HOME}
    by_itself = told(client.post("hooks/claude-code", start).json())
    by_client = told(
        client.post(
            "hooks/claude-code", {**start, "session_id": "s2"}, headers={"X-Team-Memory-At": "2026-11-29T10:00:00Z"}
        ).json()
    )
    assert "curl" in by_itself and "hook.py" not in by_itself
    assert "hook.py search WORDS" in by_client and "curl" not in by_client and "TEAM_MEMORY_KEY" not in by_client
