"""What a harness put into an event: the call, the command, the answer and how it ended, in whatever spelling."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass
from typing import Any

from dream import distill_words as words
from dream.distill_shapes import SeenEvent

# Harnesses whose "after" event comes only when a command ended well. The others say it in the result or not at all.
AFTER_MEANS_OK = {"claude-code", "claude_code", "claude", "cursor", "cursor_via_claude_settings", "dsh"}
_ANSWERS = ("tool_response", "tool_output", "tool_result", "toolResult")
_OUTPUTS = ("stdout", "output", "stderr", "llmContent", "textResultForLlm")


def given_to(payload: dict[str, Any]) -> dict[str, Any]:
    """What a tool was called with."""
    given = payload.get("tool_input") or payload.get("toolArgs") or {}
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            given = {"command": given}
    return given if isinstance(given, dict) else {}


def command_of(given: dict[str, Any]) -> str:
    """The command line of a shell call."""
    command = given.get("command") or given.get("cmd") or ""
    return " ".join(map(str, command)) if isinstance(command, list) else str(command)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command line ended as a whole. Neither `well` nor `broke`: the harness does not say."""

    output: str
    well: bool
    broke: bool
    error: str


def ending(event: SeenEvent) -> Ending:
    """How a command ended, as far as its event proves it. A command that was stopped did not fail."""
    payload = event.payload
    response = next((payload[key] for key in _ANSWERS if payload.get(key) is not None), None)
    if isinstance(response, str) and response.startswith("{"):
        with contextlib.suppress(ValueError):
            response = json.loads(response)
    answer = response if isinstance(response, dict) else {}
    output = "\n".join(str(answer.get(key) or "") for key in _OUTPUTS) if answer else str(response or "")
    error = str(payload.get("error") or payload.get("error_message") or answer.get("error") or "")
    stopped = payload.get("is_interrupt") or payload.get("failure_type") or answer.get("interrupted")
    if stopped or event.name == "tool_before":
        return Ending(output, False, False, error)
    code = _exit_code(answer, output)
    if event.name == "tool_failed" or answer.get("is_error") or answer.get("error") or code:
        return Ending(output, False, True, error)
    quiet = bool(answer) and event.client in AFTER_MEANS_OK
    return Ending(output, code == 0 or (code is None and quiet), False, error)


def _exit_code(answer: dict[str, Any], output: str) -> int | None:
    for key in ("exit_code", "exitCode", "returnCode", "code"):
        if isinstance(answer.get(key), int):
            return int(answer[key])
    said = re.search(r"^(?:process )?exit(?:ed with)? code:? (\d+)", output[:400], re.M | re.I)
    return int(said[1]) if said else None


def closing(event: SeenEvent) -> str:
    """What the agent said at the end of its turn, where the harness sends it: its first sentences, briefly."""
    payload = event.payload
    info = payload.get("tool_info")
    if event.name == "stop":
        said = next((payload[key] for key in ("last_assistant_message", "prompt_response") if payload.get(key)), "")
        said = said or (info.get("response") if isinstance(info, dict) else "")
    elif payload.get("hook_event_name") == "afterAgentResponse":
        said = payload.get("text")
    else:
        return ""
    return words.closing(said) if isinstance(said, str) else ""


def below(path: str, *, root: str, project: str) -> str:
    """The path as the project's people write it: below its root, whatever worktree or machine it is on."""
    path = path.replace("\\", "/")
    top = top_of(root.replace("\\", "/").rstrip("/"), project)
    if top and path.startswith(top + "/"):
        return path[len(top) + 1 :]
    marker = f"/{project}/"
    return path.split(marker, 1)[1] if project and marker in path else path


def top_of(root: str, project: str) -> str:
    """The project's own folder, where the agent may stand in one below it."""
    if not project:
        return root
    name = re.escape(project)
    found = re.fullmatch(rf".*/{name}((?:/(?!{name}(?:/|$))[^/]+)*)", root)
    return root[: len(root) - len(found[1])] if found else root
