"""How figures, reasons and states of the caches read on a page."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django import template
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop

from cache_admin import charts, trial

register = template.Library()

REASONS = {
    "no_entry": gettext_noop("never stored"),
    "expired": gettext_noop("its time was over"),
    "content_changed": gettext_noop("the content had changed"),
    "other_document": gettext_noop("another call under the key"),
    "evicted": gettext_noop("its text was evicted"),
    "below_threshold": gettext_noop("no question near enough"),
    "semantic_off": gettext_noop("near enough, but likeness is off"),
    "no_question": gettext_noop("nothing to compare with"),
    "unknown_tool": gettext_noop("no policy"),
    "side_effects": gettext_noop("side effects"),
    "off": gettext_noop("policy is off"),
    "no_content_hash": gettext_noop("no content hash"),
    "secret": gettext_noop("a secret in the call"),
    "no_member": gettext_noop("no member named"),
    "no_thread": gettext_noop("no thread named"),
    "no_project": gettext_noop("no project named"),
    "nul": gettext_noop("a NUL in an argument"),
    "not_canonical": gettext_noop("no spelling in JSON"),
    "error": gettext_noop("an error"),
    "truncated": gettext_noop("cut off"),
    "empty": gettext_noop("empty"),
    "embedder_off": gettext_noop("no embedder"),
}
# What speaks against serving the answer to a question that is near: see guard.py.
GUARDS = {
    "number": gettext_noop("another number"),
    "date": gettext_noop("another date"),
    "identifier": gettext_noop("another identifier"),
    "quoted": gettext_noop("another quotation"),
    "negation": gettext_noop("one says not"),
    "antonym": gettext_noop("opposite words"),
    "alternative": gettext_noop("another alternative"),
    "name": gettext_noop("another name"),
    "order": gettext_noop("another order"),
    "one_word": gettext_noop("one word differs"),
}
KINDS = {
    "report": (gettext_noop("Reported by an agent"), "bad"),
    "digest_mismatch": (gettext_noop("Two answers to one call"), "bad"),
    "shadow": (gettext_noop("Found by a second run"), "bad"),
    "would_be_stale": (gettext_noop("Would have been stale"), "warn"),
}
MODES = {
    "serve": (gettext_noop("Serves"), "good"),
    "observe": (gettext_noop("Observes"), "accent"),
    "off": (gettext_noop("Off"), ""),
}
STATUSES = {"hit": "good", "miss": "accent", "wait": "warn", "bypass": ""}
OUTCOMES = {
    "": gettext_noop("not asked yet"),
    "nothing": gettext_noop("nothing"),
    "time": gettext_noop("some time lost"),
    "money": gettext_noop("money"),
    "customer": gettext_noop("a customer's data or trust"),
    "safety": gettext_noop("safety"),
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
        return f"< {number_format(Decimal('0.0001'))} {currency}"
    return f"{'−' if value < 0 else ''}{number_format(size, digits, force_grouping=True)} {currency}"


@register.filter
def change(share: float | None) -> str:
    """-0.2 → 20 % less; 0.5 → 50 % more."""
    if share is None:
        return "–"
    if abs(share) < 0.005:
        return gettext("the same")
    said = gettext("%(share)s less") if share < 0 else gettext("%(share)s more")
    return said % {"share": charts.percent(abs(share))}


@register.filter
def lifetime(seconds: int | None) -> str:
    """A policy's lifetime: 900 → 15 min; none for what only the content ends."""
    if seconds is None:
        return gettext("until the content changes")
    for by, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds % by == 0 and seconds >= by:
            return f"{seconds // by} {unit}"
    return f"{seconds} s"


@register.filter
def reason_words(reason: str) -> str:
    """Why a lookup was no hit, in a few words."""
    if reason.startswith("guard_"):
        return gettext("the guard: %(guard)s") % {"guard": guard_words(reason.removeprefix("guard_"))}
    return gettext(REASONS[reason]) if reason in REASONS else reason.replace("_", " ")


@register.filter
def guard_words(guard: str) -> str:
    """antonym → opposite words."""
    return gettext(GUARDS[guard]) if guard in GUARDS else guard.replace("_", " ")


@register.filter
def incident_words(kind: str) -> str:
    """What kind of incident it is."""
    return gettext(KINDS[kind][0]) if kind in KINDS else kind


@register.filter
def incident_badge(kind: str) -> str:
    """Its colour."""
    return KINDS.get(kind, ("", ""))[1]


@register.filter
def mode_words(mode: str) -> str:
    """serve → Serves."""
    return gettext(MODES[mode][0]) if mode in MODES else mode


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
    return gettext(OUTCOMES[outcome]) if outcome in OUTCOMES else outcome


@register.filter
def why(reason: str) -> str:
    """A reason as a sentence."""
    return gettext(trial.WHY[reason]) if reason in trial.WHY else reason


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
    words = gettext("over")
    for by, unit in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        if left >= by:
            words = gettext("in %(time)s") % {"time": f"{int(left // by)} {unit}"}
            break
    exact = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        exact.isoformat(timespec="seconds"),
        f"{exact:%Y-%m-%d %H:%M:%S}",
        words,
    )
