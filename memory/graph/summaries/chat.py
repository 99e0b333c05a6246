"""A chat message: who, where, and what they said. Slack's shapes, and those most other chats send."""

import re
from typing import Any

from memory.graph.summaries.line import at, one_line, whole, word


def line(body: dict[str, Any]) -> str:
    """`alice in #payments: the retry test is red`."""
    event = at(body, "event")
    event = event if isinstance(event, dict) else body
    inner = at(event, "message")
    kind = word(event, "subtype") or word(event, "type") or word(body, "type")
    message = inner if isinstance(inner, dict) else event
    said = readable(word(message, "text") or word(message, "content") or word(message, "body"))
    said = said or _blocks(message) or readable(word(event, "message"))
    who = _who(message) or _who(event)
    where = _where(event) or _where(body)
    if word(body, "command"):
        return one_line(f"{who} in {where or 'a channel'}: {word(body, 'command')} {word(body, 'text')}")
    if kind == "reaction_added" or kind == "reaction_removed":
        verb = "reacted" if kind.endswith("added") else "took back"
        return one_line(f"{who} {verb} :{word(event, 'reaction')}: {_in(_where(at(event, 'item') or {}))}")
    head = " ".join(filter(None, (who, _in(where))))
    note = {"message_changed": " (edited)", "message_deleted": " (deleted)"}.get(kind, "")
    if not said:
        return one_line(f"{head + ': ' if head else ''}{kind.replace('_', ' ')}") if head or kind else ""
    return one_line(f"{head}{note}: {said}" if head else said)


def readable(text: str) -> str:
    """Slack's markup as people read it: `<https://x|the run>` is `the run`, `<@U1>` is `@U1`.

    Looked through for secrets where that changed it: markup cuts them in two.
    """
    text = was = text[:8000]
    text = re.sub(r"<(?:[@#!])?[^<>|]{1,2000}\|([^<>|]{1,300})>", r"\1", text)
    text = re.sub(r"<([@#])([^<>|]{1,300})>", r"\1\2", text)
    text = re.sub(r"<!([a-z]{1,20})>", r"@\1", text)
    text = re.sub(r"<((?:https?|mailto):[^<>|]{1,2000})>", r"\1", text)
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return text if text == was else whole(text)


def _who(message: dict[str, Any]) -> str:
    for path in (
        ("user_profile", "display_name"), ("user_profile", "real_name"), ("username",), ("user_name",),
        ("author", "username"), ("author", "name"), ("from", "username"), ("from", "first_name"), ("sender", "name"),
        ("user", "name"), ("user", "username"), ("from", "name"), ("user",), ("author",), ("sender",), ("from",),
        ("bot_profile", "name"), ("bot_id",),
    ):  # fmt: skip
        if found := word(message, *path):
            return found
    return ""


def _where(body: Any) -> str:
    named = word(body, "channel_name") or word(body, "channel", "name") or word(body, "room")
    return f"#{named.lstrip('#')}" if named else word(body, "channel") or word(body, "chat", "title")


def _in(where: str) -> str:
    return f"in {where}" if where else ""


def _blocks(message: dict[str, Any]) -> str:
    """The words of a message that has blocks or attachments and no text of its own."""
    found: list[str] = []

    def walk(node: Any, depth: int) -> None:
        if depth > 12 or len(found) > 20:
            return
        if isinstance(node, dict):
            said = node.get("text") or node.get("fallback")
            if isinstance(said, str):
                found.append(readable(said))
            for key, inner in node.items():
                if key in ("text", "elements", "fields", "blocks", "attachments") and isinstance(inner, dict | list):
                    walk(inner, depth + 1)
        elif isinstance(node, list):
            for inner in node[:50]:
                walk(inner, depth + 1)

    walk({"blocks": message.get("blocks"), "attachments": message.get("attachments")}, 0)
    return " ".join(found)
