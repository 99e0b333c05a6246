"""How figures, reasons and states of the caches read on a page."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from cache_admin import charts, trial

register = template.Library()

REASONS = {
    "no_entry": "never stored",
    "expired": "its time was over",
    "content_changed": "the content had changed",
    "other_document": "another call under the key",
    "evicted": "its text was evicted",
    "below_threshold": "no question near enough",
    "semantic_off": "near enough, but likeness is off",
    "no_question": "nothing to compare with",
    "unknown_tool": "no policy",
    "side_effects": "side effects",
    "off": "policy is off",
    "no_content_hash": "no content hash",
    "secret": "a secret in the call",
    "no_member": "no member named",
    "no_thread": "no thread named",
    "no_project": "no project named",
    "nul": "a NUL in an argument",
    "not_canonical": "no spelling in JSON",
    "error": "an error",
    "truncated": "cut off",
    "empty": "empty",
    "embedder_off": "no embedder",
}
KINDS = {
    "report": ("Reported by an agent", "bad"),
    "digest_mismatch": ("Two answers to one call", "bad"),
    "shadow": ("Found by a second run", "bad"),
    "would_be_stale": ("Would have been stale", "warn"),
}
MODES = {"serve": ("Serves", "good"), "observe": ("Observes", "accent"), "off": ("Off", "")}
STATUSES = {"hit": "good", "miss": "accent", "wait": "warn", "bypass": ""}
OUTCOMES = {
    "": "not asked yet",
    "nothing": "nothing",
    "time": "some time lost",
    "money": "money",
    "customer": "a customer's data or trust",
    "safety": "safety",
}

register.filter("percent", charts.percent)


@register.filter
def short(number: float | None) -> str:
    """1234 → 1.2k."""
    return "–" if number is None else charts.count(number)


@register.filter
def ms(count: float | None) -> str:
    """Milliseconds in the unit that fits."""
    return "–" if count is None else charts.milliseconds(count)


@register.filter
def us(count: float | None) -> str:
    """Microseconds in the unit that fits."""
    return "–" if count is None else charts.milliseconds(count / 1000)


@register.filter
def amount(value: Decimal | None, currency: str) -> str:
    """Money: 12.3456 USD → 12.35 USD; what is less than a hundredth by its first digits."""
    if value is None:
        return "–"
    size = abs(value)
    digits = 0 if size >= 1000 else 2 if size >= Decimal("0.1") or not size else 4
    if size and size < Decimal("0.0001"):
        return f"< 0.0001 {currency}"
    return f"{'−' if value < 0 else ''}{size:,.{digits}f} {currency}"


@register.filter
def change(share: float | None) -> str:
    """-0.2 → 20 % less; 0.5 → 50 % more."""
    if share is None:
        return "–"
    if abs(share) < 0.005:
        return "the same"
    return f"{charts.percent(abs(share))} {'less' if share < 0 else 'more'}"


@register.filter
def lifetime(seconds: int | None) -> str:
    """A policy's lifetime: 900 → 15 min; none for what only the content ends."""
    if seconds is None:
        return "until the content changes"
    for by, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds % by == 0 and seconds >= by:
            return f"{seconds // by} {unit}"
    return f"{seconds} s"


@register.filter
def reason_words(reason: str) -> str:
    """Why a lookup was no hit, in a few words."""
    if reason.startswith("guard_"):
        return f"the guard: {reason.removeprefix('guard_')}"
    return REASONS.get(reason, reason.replace("_", " "))


@register.filter
def incident_words(kind: str) -> str:
    """What kind of incident it is."""
    return KINDS.get(kind, (kind, ""))[0]


@register.filter
def incident_badge(kind: str) -> str:
    """Its colour."""
    return KINDS.get(kind, ("", ""))[1]


@register.filter
def mode_words(mode: str) -> str:
    """serve → Serves."""
    return MODES.get(mode, (mode, ""))[0]


@register.filter
def mode_badge(mode: str) -> str:
    """Its colour."""
    return MODES.get(mode, ("", ""))[1]


@register.filter
def status_badge(status: str) -> str:
    """The colour of what a lookup says."""
    return STATUSES.get(status, "")


@register.filter
def outcome_words(outcome: str) -> str:
    """What an old answer may cost."""
    return OUTCOMES.get(outcome, outcome)


@register.filter
def why(reason: str) -> str:
    """A reason as a sentence."""
    return trial.WHY.get(reason, reason)


@register.filter
def at(rows: dict[str, Any], key: Any) -> Any:
    """What a mapping holds under a key that is only known here."""
    return rows.get(str(key))


@register.filter(name="hex")
def as_hex(digest: Any) -> str:
    """A key as text."""
    return bytes(digest).hex()


@register.filter
def call_words(document: str) -> str:
    """The arguments in a key's document on one line: a lone one by its value, more by name."""
    try:
        arguments = json.loads(document).get("arguments", {})
    except (ValueError, AttributeError):
        return ""
    if len(arguments) == 1:
        return _said(next(iter(arguments.values())))
    return ", ".join(f"{name}={_said(value)}" for name, value in arguments.items())


def _said(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split())


@register.filter
def until(at: datetime) -> SafeString:
    """When something ends: in 4 min, in 3 h, or that it is over."""
    left = (at - timezone.now()).total_seconds()
    words = "over"
    for by, unit in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        if left >= by:
            words = f"in {int(left // by)} {unit}"
            break
    exact = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        exact.isoformat(timespec="seconds"),
        f"{exact:%Y-%m-%d %H:%M:%S}",
        words,
    )
