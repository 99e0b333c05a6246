"""Where the work stopped, as the mind without a model tells it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dream.distill import distill
from tests.dream.made_up import Log, everything

SAID = "Totals are rounded half-even to two decimals; 4 tests pass."


@pytest.fixture
def log() -> Log:
    log = Log()
    log.prompt("round the order total to two decimals")
    log.edited("shop/totals.py")
    return log


def status(log: Log) -> str:
    return log.notes()["project/shop/status.md"]


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("stop", {"hook_event_name": "Stop", "last_assistant_message": SAID}),
        ("stop", {"hook_event_name": "AfterAgent", "prompt_response": SAID}),
        ("stop", {"agent_action_name": "post_cascade_response", "tool_info": {"response": SAID}}),
        ("other", {"hook_event_name": "afterAgentResponse", "text": SAID}),
    ],
)
def test_it_quotes_what_the_agent_said_last(log: Log, name: str, payload: dict[str, Any]) -> None:
    event = log.add(name, **payload)
    assert f"the agent ended with “{SAID}”" in status(log)
    assert event in status(log)


def test_the_agents_words_are_never_trusted_as_a_persons(log: Log) -> None:
    log.add("stop", last_assistant_message="From now on always use tabs. We decided to drop Postgres.")
    found = distill(log.events, project="shop", slug="shop").drafts
    lines = [line for note in found for section in note.sections for line in section.statements]
    assert [line.tier for line in lines if "always use tabs" in line.text] == [2]


def test_a_long_message_is_quoted_briefly(log: Log) -> None:
    log.add("stop", last_assistant_message="## Summary\n\n**Done** with the totals.\n" + "- one more thing\n" * 50)
    assert "ended with “Done with the totals. · one more thing" in status(log)
    assert status(log).count("one more thing") < 10


@pytest.mark.parametrize("said", [None, "", "Done.", {"text": "no"}, "the key is ghp_" + "A" * 36])
def test_nothing_is_quoted_where_nothing_can_be(log: Log, said: Any) -> None:
    log.add("stop", last_assistant_message=said)
    assert "ended with" not in status(log)


def test_a_subagents_last_words_are_not_the_sessions(log: Log) -> None:
    log.add("subagent_stop", last_assistant_message=SAID, agent="agent_1")
    log.add("stop", last_assistant_message=SAID, agent="agent_1")
    assert "ended with" not in status(log)


def test_the_next_prompt_makes_the_last_words_old(log: Log) -> None:
    log.add("stop", last_assistant_message=SAID)
    log.prompt("now the taxes of the order")
    assert "ended with" not in status(log)


def test_a_commit_without_an_answer_is_not_passed_over(log: Log) -> None:
    log.ran('git commit -m "Round totals"', "[main 1a2b3c4d] Round totals")
    assert "last commit seen 1a2b3c4d" in status(log)
    log.before('git commit -m "Round taxes"')
    assert "1a2b3c4d" not in status(log)


def test_it_tells_what_the_last_todo_list_left_open(log: Log) -> None:
    todos = [{"content": "Round totals", "status": "completed"}, {"content": "Round taxes", "status": "pending"}]
    log.add("tool_before", tool="TodoWrite", tool_input={"todos": todos})
    assert "open in its last todo list: “Round taxes”" in status(log)
    todos[1]["status"] = "completed"
    log.add("tool_before", tool="TodoWrite", tool_input={"todos": todos})
    assert "its last todo list all done (2), “Round taxes” at its end" in status(log)


def test_the_last_words_come_back_from_the_state(log: Log) -> None:
    log.add("stop", last_assistant_message=SAID)
    first = distill(log.events, project="shop", slug="shop")
    again = distill([], project="shop", slug="shop", state=json.loads(json.dumps(first.state)))
    assert again.drafts == first.drafts


def test_delegating_and_merging_are_no_decisions(log: Log) -> None:
    for text in ("merge PR", "ok delete them pls", "use @agent-x to proceed with phase 2"):
        log.prompt(text)
    log.prompt("drop the old payment provider")
    history = log.notes()["project/shop/work/history.md"]
    assert "“drop the old payment provider”" in history
    assert "delete them" not in everything({"": history})
    assert "phase 2" not in history
