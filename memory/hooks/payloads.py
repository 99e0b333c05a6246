"""What a harness sends, read into one shape. Pure: a payload in, a `Seen` out; nothing missing is an error."""

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import orjson

from memory.events.blocks import without_injected
from memory.events.places import normal_remote, normal_root

CLIENTS: Final = (
    "claude_code",
    "codex",
    "copilot_cli",
    "cursor",
    "cursor_via_claude_settings",
    "gemini_cli",
    "opencode",
    "vscode",
    "windsurf",
)
# Harnesses spell one moment in many ways; letters only, lower case.
KINDS: Final = {
    **dict.fromkeys(("sessionstart",), "start"),
    **dict.fromkeys(
        ("userpromptsubmit", "userpromptsubmitted", "beforesubmitprompt", "beforeagent", "preuserprompt"), "prompt"
    ),
    **dict.fromkeys(
        ("pretooluse", "beforetool", "preruncommand", "prereadcode", "prewritecode", "premcptooluse"), "tool_before"
    ),
    **dict.fromkeys(
        ("posttooluse", "aftertool", "postruncommand", "postreadcode", "postwritecode", "postmcptooluse"), "tool_after"
    ),
    **dict.fromkeys(("posttoolusefailure",), "tool_failed"),
    **dict.fromkeys(("stop", "agentstop", "afteragent", "stopfailure", "interrupt", "postcascaderesponse"), "stop"),
    "subagentstart": "subagent_start",
    "subagentstop": "subagent_stop",
    "notification": "notification",
    **dict.fromkeys(("precompact", "precompress"), "compact"),
    "sessionend": "end",
}
# Harnesses that start the session anew after a compaction say so by the start; the others only by the compaction.
_STARTS_AFTER_COMPACTION: Final = frozenset({"claude_code", "codex"})
_LETTERS = re.compile(r"[^a-z]")
_ARGUMENTS: Final = (
    "command",
    "file_path",
    "filePath",
    "path",
    "pattern",
    "url",
    "query",
    "notebook_path",
    "description",
    "prompt",
    "command_line",
    "task",
    "files",
)
SUMMARY: Final = 300
_LONGEST_MOMENT: Final = 25


class Told(NamedTuple):
    """What came beside the payload: in the address and in headers."""

    event: str = ""
    remote: str = ""
    root: str = ""
    at: str = ""
    is_internal: bool = False


NOTHING: Final = Told()


class Seen(NamedTuple):
    """One hook call. `key` tells two calls apart; it is "" where the harness gives nothing that could."""

    client: str
    session_key: str
    name: str
    kind: str
    key: str
    occurred_at: datetime | None
    agent_id: str
    tool: str
    tool_use_id: str
    prompt: str
    summary: str
    cwd: str
    git_remote: str
    workspace_root: str
    source: str
    model: str
    transcript_path: str
    resumed_from: str
    renews: bool
    is_internal: bool


def known_client(asked: str) -> str | None:
    """The client a folder name stands for, `-` and `_` alike; None where we know no such harness."""
    name = asked.lower().replace("-", "_")
    return name if name in CLIENTS else None


def canonical(client: str, payload: Mapping[str, Any], told: Told = NOTHING) -> Seen:
    """The payload in our words. `client` is how the hook was configured; the payload may know better."""
    # Every field is asked for its text by all its names, most of which are not there: once, and for all of them.
    texts = {name: value for name, value in payload.items() if isinstance(value, str) and value}
    actual = detected(client, payload)
    name = (_text(texts, "hook_event_name", "hookEventName", "agent_action_name") or told.event or "unknown")[:80]
    info = payload.get("tool_info")
    inner: Mapping[str, Any] = info if isinstance(info, dict) else {}
    kind = _kind(name, payload)
    root = normal_root(told.root or _root(payload) or _text(inner, "cwd"))
    session = _session(texts) or (f"workspace:{root}" if root else "none")
    prompt = _prompt(kind, texts, inner)
    source = texts.get("source", "") if kind == "start" else ""
    transcript = _text(texts, "transcript_path", "transcriptPath")
    tool = _tool(texts, name, kind)
    agent = _text(texts, "agent_id", "agentId", "subagent_id")
    use = _text(texts, "tool_use_id", "tool_call_id")
    return Seen(
        client=actual,
        session_key=session[:300],
        name=name,
        kind=kind,
        key=f"{name.lower()}|tool|{use}|{agent}" if use else _by_turn(kind, name, agent, payload, inner),
        occurred_at=moment(told.at) or moment(payload.get("timestamp")),
        agent_id=agent[:200],
        tool=tool[:200],
        tool_use_id=use[:200],
        prompt=prompt,
        summary=_summary(kind, payload, inner, prompt),
        cwd=(texts.get("cwd") or _text(inner, "cwd") or root)[:4000],
        git_remote=normal_remote(told.remote or texts.get("git_remote", ""))[:500],
        workspace_root=root[:1000],
        source="startup" if source == "new" else source[:20],
        model=texts.get("model", "")[:120],
        transcript_path=transcript[:4000],
        resumed_from=_resumed_from(source, session, transcript),
        renews=source in ("clear", "compact") or (kind == "compact" and actual not in _STARTS_AFTER_COMPACTION),
        is_internal=told.is_internal or payload.get("team_memory_internal") in (1, True, "1"),
    )


def detected(client: str, payload: Mapping[str, Any]) -> str:
    """The harness that really calls. Cursor, VS Code and Copilot also run hooks from Claude Code's settings."""
    if "cursor_version" in payload:
        return "cursor"
    if client not in ("claude_code", "cursor_via_claude_settings"):
        return client
    if "trajectory_id" in payload:
        return "windsurf"
    if "hookEventName" in payload:
        return "vscode"
    if "sessionId" in payload and "hook_event_name" not in payload:
        return "copilot_cli"
    return _detected_by_turn(payload)


def _detected_by_turn(payload: Mapping[str, Any]) -> str:
    name = _text(payload, "hook_event_name")
    path = _text(payload, "transcript_path")
    if "timestamp" in payload and (name.startswith(("Before", "After")) or "/.gemini/" in path):
        return "gemini_cli"
    if "timestamp" in payload and ("tool_result" in payload or "initial_prompt" in payload or "/.copilot/" in path):
        return "copilot_cli"
    if "prompt_id" in payload:
        return "claude_code"
    if "turn_id" in payload or (name == "SessionStart" and "model" in payload and "permission_mode" in payload):
        return "codex"
    return "claude_code"


def moment(value: Any) -> datetime | None:
    """A time given as ISO 8601 or as a number of seconds, milliseconds or nanoseconds; None for anything else."""
    if isinstance(value, str) and value:
        if not value.isascii() or not value.isdigit():
            return _iso(value)
        value = int(value) if len(value) <= _LONGEST_MOMENT else None
    # Nanoseconds have 19 digits; a number of hundreds does not fit a double, and no such thing is a time.
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < 10**_LONGEST_MOMENT:
        return None
    for scale in (1, 1e3, 1e6, 1e9):
        if 1e9 <= value / scale < 1e10:
            return datetime.fromtimestamp(value / scale, UTC)
    return None


def _iso(value: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(value)
        # A time without a zone says nothing certain; harnesses mean UTC by it. Far ends do not fit another zone.
        return (at.replace(tzinfo=UTC) if at.tzinfo is None else at).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _text(source: Mapping[str, Any], *names: str) -> str:
    for name in names:
        value = source.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _kind(name: str, payload: Mapping[str, Any]) -> str:
    kind = KINDS.get(_LETTERS.sub("", name.lower()), "other")
    return "tool_failed" if kind == "tool_after" and _has_failed(payload) else kind


def _has_failed(payload: Mapping[str, Any]) -> bool:
    """Gemini, Copilot and MCP report a failure inside an ordinary result."""
    response = payload.get("tool_response", payload.get("tool_result", payload.get("toolResult")))
    if not isinstance(response, dict):
        return False
    outcome = response.get("result_type", response.get("resultType", ""))
    return bool(response.get("error") or response.get("isError") is True or outcome in ("failure", "error", "denied"))


def _session(texts: Mapping[str, Any]) -> str:
    return _text(texts, "conversation_id", "session_id", "sessionId", "trajectory_id")


def _root(payload: Mapping[str, Any]) -> str:
    roots = payload.get("workspace_roots")
    if isinstance(roots, list) and roots and isinstance(roots[0], str):
        return roots[0]
    return _text(payload, "cwd")


def _prompt(kind: str, payload: Mapping[str, Any], inner: Mapping[str, Any]) -> str:
    return without_injected(_text(payload, "prompt") or _text(inner, "user_prompt")) if kind == "prompt" else ""


def _tool(payload: Mapping[str, Any], name: str, kind: str) -> str:
    tool = _text(payload, "tool_name", "toolName")
    return tool or (name.split("_", 1)[-1] if kind in ("tool_before", "tool_after") and "_" in name else "")


def _resumed_from(source: str, session: str, transcript: str) -> str:
    """Claude Code resumes under a new id, and the transcript still bears the old one."""
    stem = re.split(r"[/\\]", transcript)[-1].removesuffix(".jsonl")
    return stem if source in ("resume", "fork") and stem and stem != session and "rollout-" not in stem else ""


def _by_turn(kind: str, name: str, agent: str, payload: Mapping[str, Any], inner: Mapping[str, Any]) -> str:
    """What tells a call without an id of its own from another of the same session. The content alone never does."""
    turn = _text(payload, "prompt_id", "turn_id", "generation_id", "execution_id")
    at = payload.get("timestamp")
    if turn or at or agent:
        return f"{name.lower()}|turn|{turn}|{at or ''}|{agent}|{_digest(_telling(kind, payload, inner))}"
    return ""


def _telling(kind: str, payload: Mapping[str, Any], inner: Mapping[str, Any]) -> Any:
    """The part of a payload that two reports of one call share, though two harness settings sent them."""
    if kind == "prompt":
        return _text(payload, "prompt") or _text(inner, "user_prompt")
    if kind == "stop":
        names = (
            "last_assistant_message",
            "stop_hook_active",
            "loop_count",
            "status",
            "prompt_response",
            "response",
            "error",
        )
        return [payload.get(name, inner.get(name)) for name in names]
    return dict(payload)


def _digest(value: Any) -> str:
    try:
        raw = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError):
        raw = repr(value).encode("utf-8", "replace")
    return hashlib.sha256(raw).hexdigest()


def _summary(kind: str, payload: Mapping[str, Any], inner: Mapping[str, Any], prompt: str) -> str:
    match kind:
        case "prompt":
            said = prompt
        case "tool_before" | "tool_after":
            said = _argument(payload, inner)
        case "tool_failed":
            said = f"{_argument(payload, inner)} — {_first_line(_failure(payload))}".strip(" —")
        case "stop" | "subagent_stop":
            names = (
                "last_assistant_message",
                "prompt_response",
                "summary",
                "response",
                "error_details",
                "error",
                "status",
            )
            said = _text(payload, *names) or _text(inner, "response")
        case "subagent_start":
            said = _text(payload, "task", "agent_type", "subagent_type")
        case "start" | "compact" | "end":
            said = _text(payload, "source", "trigger", "reason")
        case _:
            said = _text(payload, "message", "text", "file_path", "compact_summary", "error", "prompt", "content")
    return _first_line(without_injected(said))


def _argument(payload: Mapping[str, Any], inner: Mapping[str, Any]) -> str:
    given = payload.get("tool_input", payload.get("toolArgs"))
    if isinstance(given, str):
        return given
    found: Mapping[str, Any] = given if isinstance(given, dict) else inner
    for name in _ARGUMENTS:
        value = found.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value:
            return " ".join(map(str, value[:20]))
    return next((value for value in found.values() if isinstance(value, str)), "")


def _failure(payload: Mapping[str, Any]) -> str:
    response = payload.get("tool_response", payload.get("tool_result", payload.get("toolResult")))
    inside: Mapping[str, Any] = response if isinstance(response, dict) else {}
    said = _text(payload, "error", "error_message") or _text(inside, "error", "text_result_for_llm", "textResultForLlm")
    nested = inside.get("error")
    return said or (_text(nested, "message") if isinstance(nested, dict) else "")


def _first_line(text: str) -> str:
    line = text.lstrip()[: SUMMARY * 4].partition("\n")[0]
    line = " ".join(line.split())
    return line if len(line) <= SUMMARY else line[: SUMMARY - 1] + "…"
