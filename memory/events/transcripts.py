"""Claude Code's own transcript of a session, as the events its hooks would have told, and what they would not.

The format is internal to Claude Code and changes; whatever is not understood here is left out, never guessed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from memory.events.imports import History, Lines, Step

# What the harness writes into a person's turn.
_NOT_SAID: Final = (
    "<command-",
    "<local-command",
    "Caveat: ",
    "[Request interrupted",
    "<bash-",
    "<user-memory-input>",
    "<task-notification>",
)
_SUMMARY: Final = "This session is being continued from a previous conversation"


def transcript(path: Path) -> tuple[list[History], Lines]:
    """The sessions in a transcript (one, or after a resume several), each in the order of its lines."""
    lines = Lines(path)
    sessions: dict[str, _Reader] = {}
    for line in lines:
        session = line.get("sessionId")
        if isinstance(session, str) and session:
            sessions.setdefault(session, _Reader(session)).read(line)
    return [
        History(path, "transcript", "claude_code", session, reader.finished()) for session, reader in sessions.items()
    ], lines


class _Reader:
    """One session's lines; a message of the model comes in several of them."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.steps: list[Step] = []
        self._tools: dict[str, dict[str, Any]] = {}
        self._messages: dict[str, int] = {}
        self._last_said: dict[str, Any] | None = None

    def read(self, line: dict[str, Any]) -> None:
        message = line.get("message")
        if not isinstance(message, dict):
            return
        if line.get("type") == "assistant":
            self._assistant(line, message)
        elif line.get("type") == "user":
            self._user(line, message)

    def finished(self) -> list[Step]:
        self._stop()
        return self.steps

    def _base(self, line: dict[str, Any], name: str) -> dict[str, Any]:
        base: dict[str, Any] = {"session_id": self.session, "hook_event_name": name}
        if isinstance(line.get("cwd"), str):
            base["cwd"] = line["cwd"]
        if line.get("isSidechain") and isinstance(line.get("agentId"), str):
            base["agent_id"] = line["agentId"]
        return base

    def _add(self, payload: dict[str, Any], mark: str, line: dict[str, Any]) -> None:
        self.steps.append(Step(payload, f"transcript:{self.session}:{mark}", str(line.get("timestamp") or "")))

    def _user(self, line: dict[str, Any], message: dict[str, Any]) -> None:
        for block in _blocks(message):
            if block.get("type") == "tool_result":
                self._result(line, block)
        text = _said(message).strip()
        if not text or line.get("isSidechain") or line.get("isMeta") or line.get("isCompactSummary"):
            return
        if text.startswith((*_NOT_SAID, _SUMMARY)):
            return
        self._stop()
        self._add({**self._base(line, "UserPromptSubmit"), "prompt": text}, f"prompt:{line.get('uuid')}", line)

    def _result(self, line: dict[str, Any], block: dict[str, Any]) -> None:
        use = str(block.get("tool_use_id") or "")
        tool = self._tools.pop(use, None)
        if not use or tool is None:
            return
        failed = block.get("is_error") is True
        payload = {**self._base(line, "PostToolUseFailure" if failed else "PostToolUse"), **tool, "tool_use_id": use}
        if failed:
            payload["error"] = _content(block)
        else:
            whole = line.get("toolUseResult")
            payload["tool_response"] = whole if whole is not None else _content(block)
        self._add(payload, f"after:{use}", line)

    def _assistant(self, line: dict[str, Any], message: dict[str, Any]) -> None:
        self._note(line, message)
        for block in _blocks(message):
            use = block.get("id")
            if block.get("type") == "tool_use" and isinstance(use, str) and use not in self._tools:
                tool = {"tool_name": str(block.get("name") or ""), "tool_input": block.get("input") or {}}
                self._tools[use] = tool
                self._add({**self._base(line, "PreToolUse"), **tool, "tool_use_id": use}, f"before:{use}", line)

    def _note(self, line: dict[str, Any], message: dict[str, Any]) -> None:
        """The message itself, once: its text, and its usage, of which only the last line has the final count."""
        mark = str(message.get("id") or line.get("uuid"))
        place = self._messages.get(mark)
        text = _said(message)
        if place is None:
            payload = {
                **self._base(line, "AssistantMessage"),
                "message_id": mark,
                "model": str(message.get("model") or ""),
                "text": text,
            }
            self._messages[mark] = len(self.steps)
            self._add(payload, f"message:{mark}", line)
        else:
            payload = self.steps[place].payload
            payload["text"] = "\n\n".join(filter(None, (payload["text"], text)))
        if isinstance(message.get("usage"), dict):
            payload["usage"] = message["usage"]
        if text and not line.get("isSidechain"):
            self._last_said = line

    def _stop(self) -> None:
        """A turn ends where the next prompt, or the file's end, comes after something the model said."""
        line, self._last_said = self._last_said, None
        if line is None:
            return
        payload = {
            **self._base(line, "Stop"),
            "stop_hook_active": False,
            "last_assistant_message": _said(line["message"]),
        }
        self._add(payload, f"stop:{line.get('uuid')}", line)


def _blocks(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, list):
        yield from (block for block in content if isinstance(block, dict))


def _said(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n\n".join(str(block.get("text") or "") for block in _blocks(message) if block.get("type") == "text")


def _content(block: dict[str, Any]) -> Any:
    content = block.get("content")
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        return "\n".join(str(part.get("text") or "") for part in content)
    return content
