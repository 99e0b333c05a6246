"""How times, sizes and names read on a page."""

import re
from datetime import UTC, datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

register = template.Library()

CLIENTS = {
    "claude_code": "Claude Code",
    "codex": "Codex",
    "cursor": "Cursor",
    "cursor_via_claude_settings": "Cursor",
    "gemini_cli": "Gemini CLI",
    "opencode": "OpenCode",
    "copilot_cli": "Copilot CLI",
    "vscode": "VS Code",
    "windsurf": "Windsurf",
}
TIERS = {
    0: "Approved by a person",
    1: "From a person's prompt",
    2: "From an agent's own output",
    3: "From tool output or the web",
}
EVENTS = {
    "SessionStart": "Session started",
    "SessionEnd": "Session ended",
    "UserPromptSubmit": "Prompt",
    "beforeSubmitPrompt": "Prompt",
    "Stop": "Answer",
    "SubagentStart": "Subagent started",
    "SubagentStop": "Subagent ended",
    "PreCompact": "Context compacted",
}
WHY = {
    "The team's profile": "because it is the team's profile: every session is told it",
    "The member's own profile": "because it is the profile of the member whose key asked",
    "The session's project": "because it is a note of the session's project",
    "Project ": "because it is a note of the session's project, {}",
    "About a tool": "because it is about a tool",
    "General note": "because general notes are told to every session",
    "Matches: ": "because the prompt and the note share: {}",
    "Holds ": "because the note holds {}, as the prompt does",
}
CODE = re.compile(r"(`+)(.+?)\1(?!`)")
COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
MINUTE, HOUR, DAY = 60, 3600, 86400


@register.filter
def ago(at: datetime | None) -> SafeString:
    """A time as people say it, with the exact one in its title; app.js shows that in the reader's time zone."""
    if not at:
        return format_html('<span class="muted">{}</span>', "not known")
    exact = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        exact.isoformat(timespec="seconds"),
        f"{exact:%Y-%m-%d %H:%M:%S}",
        relative((timezone.now() - at).total_seconds(), exact),
    )


@register.filter
def happened(event: Any) -> SafeString:
    """When an event happened; where its log gave no time, when it was received."""
    return ago(event.occurred_at) if event.occurred_at else format_html("received {}", ago(event.received_at))


def relative(seconds: float, at: datetime) -> str:
    """The distance in words, up to a month; beyond that the date says more."""
    if seconds < -MINUTE or seconds >= 30 * DAY:
        return f"{at.day} {at:%b %Y}"
    if seconds < MINUTE:
        return "just now"
    if seconds < HOUR:
        return f"{int(seconds // MINUTE)} min ago"
    if seconds < DAY:
        return f"{int(seconds // HOUR)} h ago"
    days = int(seconds // DAY)
    return "yesterday" if days == 1 else f"{days} days ago"


@register.filter
def duration(seconds: float | None) -> str:
    """12.3 → 12 s, 200 → 3 min 20 s."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    minutes, rest = divmod(round(seconds), MINUTE)
    if minutes < 1:
        return f"{rest} s"
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


@register.filter
def tokens(count: int | None) -> str:
    """1234 → 1.2k, so that a column of token counts can be read at a glance."""
    if count is None:
        return "–"
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f}{letter}".replace(".0", "")
    return str(count)


@register.filter
def thousands(count: int | None) -> str:
    """5463 → 5,463."""
    return f"{count or 0:,}"


@register.filter
def size(count: int | None) -> str:
    """Bytes as B, KB, MB."""
    if count is None:
        return "–"
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:.0f} KB" if count < 1024 * 1024 else f"{count / 1024 / 1024:.1f} MB"


@register.filter
def whole_line(text: str) -> str:
    """A line that came or went whole: that its end came or went too goes without saying."""
    return text.removesuffix("↵")


@register.filter
def statement(line: str) -> SafeString:
    """What a line of a note says, without the mark of its list or heading, its code as code."""
    parts = CODE.split(line.strip().lstrip("-*+#> "))
    # The pattern has two groups: text, the backticks, what stands between them, text, and so on.
    said = zip(parts[::3], [*parts[2::3], ""], strict=True)
    return format_html_join("", "{}{}", ((text, code and format_html("<code>{}</code>", code)) for text, code in said))


@register.filter
def session_title(session: Any) -> str:
    """What a session is called everywhere: its first prompt, else its last, as one line."""
    asked = getattr(session, "first_prompt", "") or session.last_prompt
    return one_line(asked)[:300] or "Session without a prompt"


@register.filter
def one_line(text: str) -> str:
    """A text as one line, without terminal colours and control characters."""
    return " ".join(CONTROL.sub(" ", COLOUR.sub("", text or "")).split())


@register.filter
def why_words(why: str) -> str:
    """Why a note was told, as a sentence's end."""
    for start, words in WHY.items():
        if why.startswith(start):
            return words.format(why.removeprefix(start).strip())
    return why


@register.filter
def client_name(client: str) -> str:
    """claude_code → Claude Code."""
    return CLIENTS.get(client.replace("-", "_"), client)


@register.filter
def event_words(name: str) -> str:
    """UserPromptSubmit → Prompt; a name we do not know stays as the harness gave it."""
    return EVENTS.get(name, name)


@register.filter
def tier_words(tier: int) -> str:
    """Where a line of memory comes from, in words."""
    return TIERS.get(tier, str(tier))
