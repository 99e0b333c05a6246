"""How threads, triggers and workers read on a page."""

from collections.abc import Iterable
from typing import Any

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop

from memory.notes.markdown import render

register = template.Library()

STEPS = {
    "opened": gettext_noop("Opened"),
    "trigger": gettext_noop("Trigger"),
    "state": gettext_noop("State"),
    "worker_started": gettext_noop("Worker started"),
    "worker_reported": gettext_noop("Report"),
    "worker_state": gettext_noop("Worker"),
    "owner_added": gettext_noop("Owner worker"),
    "owner_removed": gettext_noop("No longer owner worker"),
    "linked": gettext_noop("Link"),
    "unlinked": gettext_noop("Link removed"),
    "payload_replaced": gettext_noop("Payload replaced"),
    "deleted": gettext_noop("Deleted"),
}
ICONS = {
    "trigger": "trigger",
    "payload_replaced": "trigger",
    "worker_started": "worker",
    "worker_reported": "report",
    "worker_state": "worker",
    "owner_added": "worker",
    "owner_removed": "worker",
    "linked": "link",
    "unlinked": "link",
    "deleted": "x",
}
SOURCES = {"github": "GitHub", "gitlab": "GitLab", "slack": "Slack", "mail": gettext_noop("Mail"), "ci": "CI"}
DELIVERED = {"accepted": "good", "refused": "bad", "repeated": "", "ignored": ""}


@register.filter
def step_words(kind: str) -> str:
    """worker_reported → Report."""
    return gettext(STEPS[kind]) if kind in STEPS else kind.replace("_", " ").capitalize()


@register.filter
def icon_of(kind: str) -> str:
    """The sign of a step or of a stop on the map."""
    return ICONS.get(kind) or {"thread": "thread", "worker": "worker", "report": "report", "session": "session"}.get(
        kind, "dot"
    )


@register.filter
def source_name(source: str) -> str:
    """github → GitHub; a name we do not know stays as it came."""
    return gettext(SOURCES[source]) if source in SOURCES else source


@register.filter
def source_of(key: str | None) -> str:
    """Where a thread with this key comes from."""
    source, colon, _ = (key or "").partition(":")
    return source if colon else ""


@register.filter
def badge_of(status: str) -> str:
    """The colour of what became of a delivery."""
    return DELIVERED.get(status, "")


@register.simple_tag
def report_html(text: str, cites: Iterable[Any]) -> SafeString:
    """A report as HTML that can't run, load or post anything; the ids it cites are links."""
    return render(text, link_for={one.public_id: one.url for one in cites if one.url}.get)
