"""A Codex rollout as the events its hooks would have told. The format is no stable interface either."""

from pathlib import Path
from typing import Any, Final

import orjson

from memory.events.imports import History, Lines, Step

_SHELLS: Final = ("shell", "exec_command", "local_shell", "container.exec", "unified_exec", "shell_command")
_CALLS: Final = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")


def rollout(path: Path) -> tuple[list[History], Lines]:
    """The one session of a rollout file."""
    lines = Lines(path)
    reader = _Reader(path)
    for line in lines:
        payload = line.get("payload")
        if isinstance(payload, dict):
            reader.read(str(line.get("type")), payload, str(line.get("timestamp") or ""))
    steps = reader.finished()
    return [History(path, "rollout", "codex", reader.session, steps, reader.remote)] if steps else [], lines


class _Reader:
    def __init__(self, path: Path) -> None:
        # rollout-2026-11-29T10-00-00-<uuid>.jsonl
        self.session = path.name.split(".")[0][-36:]
        self.remote = ""
        self.steps: list[Step] = []
        self._common: dict[str, Any] = {}
        self._tools: dict[str, dict[str, Any]] = {}
        # What model calls took since the last message; they are reported after what they made, and between tools.
        self._usage: dict[str, int] = {}
        self._total: Any = None
        self._last_message: dict[str, Any] | None = None
        self._last_said = ("", "")
        self._count = 0

    def read(self, kind: str, payload: dict[str, Any], at: str) -> None:
        self._count += 1
        match kind, payload.get("type"):
            case "session_meta", _:
                self._meta(payload)
            case "turn_context", _:
                self._common |= {name: payload[name] for name in ("cwd", "model") if isinstance(payload.get(name), str)}
            case "event_msg", "user_message":
                self._stop()
                self._add(
                    "UserPromptSubmit", {"prompt": str(payload.get("message") or "")}, f"prompt:{self._count}", at
                )
            case "event_msg", "agent_message":
                self._message(str(payload.get("message") or ""), at)
            case "event_msg", "token_count":
                self._took(payload.get("info"))
            case "response_item", item if item in _CALLS:
                self._call(payload, at)
            case "response_item", item if item in _OUTPUTS:
                self._output(payload, at)

    def finished(self) -> list[Step]:
        self._stop()
        return self.steps

    def _meta(self, payload: dict[str, Any]) -> None:
        self.session = str(payload.get("id") or self.session)
        if isinstance(payload.get("cwd"), str):
            self._common["cwd"] = payload["cwd"]
        git = payload.get("git")
        if isinstance(git, dict):
            self.remote = str(git.get("repository_url") or "")

    def _add(self, name: str, fields: dict[str, Any], mark: str, at: str) -> None:
        payload = {"session_id": self.session, **self._common, "hook_event_name": name, **fields}
        self.steps.append(Step(payload, f"rollout:{self.session}:{mark}", at))

    def _message(self, text: str, at: str) -> None:
        self._last_said = (text, at)
        usage = {"usage": self._usage} if self._usage else {}
        self._usage = {}
        self._add("AssistantMessage", {"text": text, **usage}, f"message:{self._count}", at)
        self._last_message = self.steps[-1].payload

    def _took(self, info: Any) -> None:
        """One model call's tokens, added to the last message's; before the first one they wait for it."""
        last = info.get("last_token_usage") if isinstance(info, dict) else None
        total = info.get("total_token_usage") if isinstance(info, dict) else None
        # The same figures come again when only the limits changed.
        if not isinstance(last, dict) or (total is not None and total == self._total):
            return
        self._total = total
        counts = {name: value for name, value in last.items() if type(value) is int}
        held = self._usage if self._last_message is None else self._last_message.setdefault("usage", {})
        held |= {name: held.get(name, 0) + value for name, value in counts.items()}

    def _call(self, payload: dict[str, Any], at: str) -> None:
        use = str(payload.get("call_id") or "")
        if not use or use in self._tools:
            return
        tool = _tool(payload)
        self._tools[use] = tool
        self._add("PreToolUse", {**tool, "tool_use_id": use}, f"before:{use}", at)

    def _output(self, payload: dict[str, Any], at: str) -> None:
        use = str(payload.get("call_id") or "")
        tool = self._tools.get(use)
        if tool is not None:
            fields = {**tool, "tool_response": _parsed(payload.get("output")), "tool_use_id": use}
            self._add("PostToolUse", fields, f"after:{use}", at)

    def _stop(self) -> None:
        text, at = self._last_said
        self._last_said = ("", "")
        if text:
            self._add("Stop", {"stop_hook_active": False, "last_assistant_message": text}, f"stop:{self._count}", at)


def _tool(payload: dict[str, Any]) -> dict[str, Any]:
    """Name and input as Codex's hooks spell them: a shell is Bash with a command in one text."""
    name = str(payload.get("name") or payload.get("type") or "")
    given = _parsed(payload.get("arguments", payload.get("input", payload.get("action"))))
    if name.removesuffix("_call") in _SHELLS and isinstance(given, dict):
        command = given.get("command", given.get("cmd", ""))
        if isinstance(command, list):
            command = str(command[-1]) if command[:1] in (["bash"], ["sh"], ["zsh"]) else " ".join(map(str, command))
        return {"tool_name": "Bash", "tool_input": {**given, "command": command}}
    return {"tool_name": name, "tool_input": given if isinstance(given, dict) else {"command": given}}


def _parsed(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(("{", "[")):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
