"""How times, sizes and names read on a page."""

import re
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from django import template
from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format, get_format, number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop

from memory import sentences
from memory.ids import kind_of
from memory.tenants.words import ACTIONS, with_code

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
    0: gettext_noop("Approved by a person"),
    1: gettext_noop("From a person's prompt"),
    2: gettext_noop("From an agent's own output"),
    3: gettext_noop("From tool output or the web"),
}
EVENTS = {
    "SessionStart": gettext_noop("Session started"),
    "SessionEnd": gettext_noop("Session ended"),
    "UserPromptSubmit": gettext_noop("Prompt"),
    "beforeSubmitPrompt": gettext_noop("Prompt"),
    "Stop": gettext_noop("Answer"),
    "SubagentStart": gettext_noop("Subagent started"),
    "SubagentStop": gettext_noop("Subagent ended"),
    "PreCompact": gettext_noop("Context compacted"),
}
WHY = {
    "The team's profile": gettext_noop("because it is the team's profile: every session is told it"),
    "The member's own profile": gettext_noop("because it is the profile of the member whose key asked"),
    "The session's project": gettext_noop("because it is a note of the session's project"),
    "Project ": gettext_noop("because it is a note of the session's project, {}"),
    "About a tool": gettext_noop("because it is about a tool"),
    "General note": gettext_noop("because general notes are told to every session"),
    "Matches: ": gettext_noop("because the prompt and the note share: {}"),
    "Holds ": gettext_noop("because the note holds {}, as the prompt does"),
}
# Words that are kept in rows and shown on pages.
CODE = re.compile(r"(`+)(.+?)\1(?!`)")
COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# Kinds of ids whose page is named like them.
WITH_PAGES = frozenset(("note", "proposal", "dream", "session", "event", "thread", "trigger", "worker", "endpoint"))
MINUTE, HOUR, DAY = 60, 3600, 86400


@register.simple_tag
def page_of(tenant: Any, public_id: str) -> str:
    """The address of the page an id has, "" where it has none. Whether the thing is there still, that page says."""
    kind = kind_of(public_id)
    return reverse(kind, args=[tenant.slug, public_id]) if kind in WITH_PAGES else ""


@register.simple_tag
def opens_here_alone() -> bool:
    """Whether the address that pages hand out means each reader's own machine, so that nobody else comes here by it."""
    host = urlsplit(settings.PUBLIC_URL).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


@register.filter
def ago(at: datetime | None) -> SafeString:
    """A time as people say it, with the exact one in its title; app.js shows that in the reader's time zone."""
    if not at:
        return format_html('<span class="muted">{}</span>', gettext("not known"))
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
    return ago(event.occurred_at) if event.occurred_at else format_html(gettext("received {}"), ago(event.received_at))


def relative(seconds: float, at: datetime) -> str:
    """The distance in words, up to a month; beyond that the date says more."""
    if seconds < -MINUTE or seconds >= 30 * DAY:
        return date_format(at, "SHORT_DATE_FORMAT")
    if seconds < MINUTE:
        return gettext("just now")
    if seconds < HOUR:
        return gettext("%(many)s min ago") % {"many": int(seconds // MINUTE)}
    if seconds < DAY:
        return gettext("%(many)s h ago") % {"many": int(seconds // HOUR)}
    days = int(seconds // DAY)
    return gettext("yesterday") if days == 1 else gettext("%(many)s days ago") % {"many": days}


def localized(number: str) -> str:
    """1.5 as the page's language writes it: 1,5."""
    return number.replace(".", str(get_format("DECIMAL_SEPARATOR")))


@register.filter
def value_of(values: Any, name: str) -> Any:
    """What a mapping has under a name; "" where it has nothing, or there is no mapping."""
    return values.get(name, "") if values else ""


@register.filter
def action_words(code: str) -> SafeString:
    """note.approve → Approve and reject proposals, with the code beside it; a scope of a key as well."""
    return with_code(code)


@register.filter
def action_title(code: str) -> str:
    """The words of an action alone; "" for one that the table of roles does not have."""
    return gettext(ACTIONS[code]) if code in ACTIONS else ""


@register.filter
def is_digest(said: str) -> bool:
    """Whether it is the SHA-256 of something, and says nothing to a reader."""
    return len(said) == 64 and all(one in "0123456789abcdef" for one in said)


@register.filter
def called(handle: str | None, names: Any) -> str:
    """What pages call the member with this handle; `names` is of the team, and stands in every page's context."""
    return names.of(handle) if handle and names else handle or ""


@register.filter
def author(of: Any, names: Any) -> str:
    """The same of whoever wrote a revision, a proposal or a report; a key, a dream or a command as it called itself."""
    return called(of.author_label, names) if of.author_kind == "member" else str(of.author_label)


@register.filter
def actor(of: Any, names: Any) -> str:
    """The same of whoever did what an entry of the audit says."""
    return called(of.actor_label, names) if of.actor_kind == "member" else str(of.actor_label)


@register.filter
def changer(said: str, names: Any) -> str:
    """The same of whoever changed a setting, which is kept as `alice (mem_…)`."""
    label, _, public_id = said.rpartition(" (")
    return called(label, names) if kind_of(public_id) == "member" else label or said


@register.filter
def word(said: Any) -> Any:
    """A state, a role or another word of ours in the page's language; what is not ours stays as it is."""
    return sentences.word(said)


@register.filter
def retold(said: Any) -> str:
    """A sentence of ours that was kept in English, in the page's language; what is not ours stays as it is."""
    return sentences.retold(said)


@register.filter
def retold_reason(said: Any) -> str:
    """The same of what people and agents write too: a reason of theirs stays as it is."""
    return sentences.retold(said, is_ours=False)


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
            return localized(f"{count / size:.1f}".replace(".0", "")) + letter
    return str(count)


@register.filter
def thousands(count: int | None) -> str:
    """5463 → 5,463; as the page's language groups digits."""
    return str(number_format(count or 0, force_grouping=True))


@register.filter
def size(count: int | None) -> str:
    """Bytes as B, KB, MB."""
    if count is None:
        return "–"
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:.0f} KB" if count < 1024 * 1024 else f"{localized(f'{count / 1024 / 1024:.1f}')} MB"


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
    return one_line(asked)[:300] or gettext("Session without a prompt")


@register.filter
def one_line(text: str) -> str:
    """A text as one line, without terminal colours and control characters."""
    return " ".join(CONTROL.sub(" ", COLOUR.sub("", text or "")).split())


@register.filter
def why_words(why: str) -> str:
    """Why a note was told, as a sentence's end."""
    for start, words in WHY.items():
        if why.startswith(start):
            return gettext(words).format(why.removeprefix(start).strip())
    return why


@register.filter
def client_name(client: str) -> str:
    """claude_code → Claude Code."""
    return CLIENTS.get(client.replace("-", "_"), client)


@register.filter
def event_words(name: str) -> str:
    """UserPromptSubmit → Prompt; a name we do not know stays as the harness gave it."""
    return gettext(EVENTS[name]) if name in EVENTS else name


@register.filter
def tier_words(tier: int) -> str:
    """Where a line of memory comes from, in words."""
    return gettext(TIERS[tier]) if tier in TIERS else str(tier)
