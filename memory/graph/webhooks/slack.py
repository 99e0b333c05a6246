"""Slack's events: a thread is a message and its replies."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from memory.graph.summaries import chat
from memory.graph.summaries.line import at, one_line, word
from memory.graph.webhooks.github import object_of
from memory.graph.webhooks.taken import Taken, Unreadable, moment, name
from memory.sentences import sentence


def take(headers: Mapping[str, str], raw: bytes) -> Taken:
    """The event, read. Raises Unreadable."""
    if headers.get("Content-Type", "").lower().startswith("application/x-www-form-urlencoded"):
        return _of_form(raw)
    body = object_of(raw)
    event = at(body, "event") or {}
    kind = word(event, "type") or word(body, "type") or "event"
    return Taken(
        event=name(kind, 100),
        payload=raw,
        external_id=name(word(body, "event_id")) or None,
        key=name(_key(body, event)),
        title=_title(event),
        occurred_at=moment(word(event, "event_ts"), word(event, "ts"), at(body, "event_time")),
    )


def challenge(raw: bytes) -> str | None:
    """What Slack wants to read back when an address is entered; None for any other call."""
    try:
        body = object_of(raw)
    except Unreadable:
        return None
    return word(body, "challenge")[:500] if word(body, "type") == "url_verification" else None


def _key(body: Any, event: Any) -> str:
    """`slack:channel:ts` of the message that began the thread; a channel's own news go by the channel."""
    message = at(event, "message") or at(event, "previous_message") or event
    item = at(event, "item") or {}
    channel = (
        word(event, "channel") or word(event, "channel", "id") or word(item, "channel") or word(body, "channel", "id")
    )
    ts = word(message, "thread_ts") or word(event, "thread_ts") or word(event, "deleted_ts") or word(message, "ts")
    ts = ts or word(item, "ts")
    if channel:
        return f"slack:{channel}:{ts}" if ts else f"slack:{channel}"
    team = word(body, "team_id") or word(body, "team", "id")
    return f"slack:{team}" if team else "slack:events"


def _title(event: Any) -> str:
    if word(event, "type") not in ("message", "app_mention") or word(event, "subtype") or word(event, "thread_ts"):
        return ""
    return one_line(chat.readable(word(event, "text")), 120)


def _of_form(raw: bytes) -> Taken:
    """A slash command, or what somebody pressed, which comes as JSON in a form."""
    fields = {key: values[0] for key, values in parse_qs(raw.decode("utf-8", "replace"), max_num_fields=200).items()}
    if "payload" in fields:
        payload = fields["payload"].encode("utf-8", "replace")
        body = object_of(payload)
        kind = word(body, "type") or "interaction"
        found = name(word(body, "trigger_id")) or None
        return Taken(name(kind, 100), payload, external_id=found, key=name(_key(body, body)))
    if not fields:
        raise Unreadable(sentence("The form is empty."))
    channel = fields.get("channel_id") or fields.get("team_id") or "events"
    return Taken(
        "command",
        raw,
        media_type="application/x-www-form-urlencoded",
        external_id=name(fields.get("trigger_id", "")) or None,
        key=name(f"slack:{channel}"),
    )
