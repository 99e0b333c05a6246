"""What a harness takes as an answer: its own keys and no other (Codex fails a hook for an unknown one)."""

from typing import Any

# Where the harness takes context, by the kind of event; elsewhere it drops the text or fails.
_CLAUDE_LIKE = {"start": "SessionStart", "prompt": "UserPromptSubmit", "subagent_start": "SubagentStart"}
_GEMINI = {"start": "SessionStart", "prompt": "BeforeAgent"}


def takes_context(client: str, kind: str) -> bool:
    """True where text in the answer reaches the model."""
    match client:
        # OpenCode is our own plugin there, which speaks as Claude Code does.
        case "claude_code" | "codex" | "opencode":
            return kind in _CLAUDE_LIKE
        case "gemini_cli" | "cursor":
            return kind in _GEMINI
        # Copilot drops what a prompt hook says; VS Code and Windsurf take none at all.
        case "copilot_cli":
            return kind == "start"
    return False


def answer(client: str, kind: str, context: str | None) -> dict[str, Any]:
    """The harness's own stdout JSON; `{}` says nothing and stops nothing."""
    allows: dict[str, Any] = {"continue": True} if client == "cursor" and kind == "prompt" else {}
    if not context or not takes_context(client, kind):
        return allows
    match client:
        case "cursor":
            return {**allows, "additional_context": context}
        case "copilot_cli":
            return {"additionalContext": context}
        case "gemini_cli":
            return _specific(_GEMINI[kind], context)
    return _specific(_CLAUDE_LIKE[kind], context)


def _specific(event: str, context: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": context}}
