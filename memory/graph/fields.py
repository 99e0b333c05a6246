"""Reading what callers say: ids, keys, times and short texts, each refused aloud where it can't be taken."""

import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from memory import ids, redact
from memory.graph.refusals import Invalid

MAX_KEY: Final = 300
MAX_LINE: Final = 1_000
MAX_TITLE: Final = 500
STATE: Final = re.compile(r"[a-z][a-z0-9_-]{0,19}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def only(body: Any, known: Collection[str], *, shape: str) -> dict[str, Any]:
    """The JSON object, with known fields only: a misspelt one would change nothing, and nobody would notice."""
    if not isinstance(body, dict) or not body:
        raise Invalid("not_an_object", f"The body is a JSON object like {shape}.")
    for name in body:
        if name not in known:
            raise Invalid(
                "unknown_field", f"Unknown field {name[:60]!r}. Known are {', '.join(sorted(known))}.", field=name[:60]
            )
    return body


def words(body: Mapping[str, Any], name: str, *, most: int) -> str | None:
    """A text field without spaces around it; None where it is left out or null."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise Invalid("invalid_field", f"{name} is text.", field=name)
    if len(value) > most:
        raise Invalid("invalid_field", f"{name} has {len(value):,} characters; {most:,} at most.", field=name)
    return value.strip()


def name_of(body: Mapping[str, Any], name: str, *, most: int = MAX_KEY) -> str | None:
    """A text that names something: not empty, on one line."""
    value = words(body, name, most=most)
    if value is not None and (not value or _CONTROL.search(value)):
        raise Invalid(
            "invalid_field", f"{name} is a text on one line, not empty. Leave it out if there is none.", field=name
        )
    return value


def line_of(body: Mapping[str, Any], name: str, *, most: int = MAX_LINE) -> str | None:
    """A text made one line."""
    value = words(body, name, most=most)
    if value is None:
        return None
    # Found while the lines are lines: on one line, the halves of a secret pass for two words.
    return " ".join((redact.clean_text(value).value if "\n" in value or "\r" in value else value).split())


def flag(body: Mapping[str, Any], name: str) -> bool:
    """A yes or no; left out means no."""
    value = body.get(name, False)
    if not isinstance(value, bool):
        raise Invalid("invalid_field", f"{name} is true or false.", field=name)
    return value


def state_of(body: Mapping[str, Any]) -> str | None:
    """A state: one word, as open, closed, merged, running or done."""
    value = words(body, "state", most=20)
    if value is not None and not STATE.fullmatch(value):
        raise Invalid(
            "invalid_field", "state is one lower-case word of up to 20 letters, e.g. open, closed, done.", field="state"
        )
    return value


def time_of(body: Mapping[str, Any], name: str) -> datetime | None:
    """An ISO 8601 time; one without an offset is UTC."""
    value = words(body, name, most=60)
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise Invalid("invalid_field", f"{name} is a time like 2026-01-31T09:30:00Z.", field=name) from None


def own_id(value: Any, kind: str) -> str | None:
    """The id a caller chose for a `kind`; None where none is given."""
    if value is None:
        return None
    prefix = ids.PREFIXES[kind]
    if not isinstance(value, str) or not value.startswith(f"{prefix}_"):
        raise Invalid(
            "invalid_id", f"The id of a {kind} starts with {prefix}_, e.g. {prefix}_pr_412.", id=str(value)[:200]
        )
    try:
        return ids.check_given(value)
    except ids.InvalidId as error:
        raise Invalid("invalid_id", str(error), id=value[:200]) from None


def named_id(value: Any, kind: str) -> str | None:
    """An id that a body refers to: a minted one, or one of the caller's."""
    if isinstance(value, str) and value.startswith(f"{ids.PREFIXES[kind]}_") and ids.is_typeid(value):
        return value
    return own_id(value, kind)


def thread_named(value: Any) -> tuple[str | None, str | None, str]:
    """Id, key and title out of `thread`: {"id"?, "key"?, "title"?}, or the id alone as text."""
    if value is None:
        return None, None, ""
    if isinstance(value, str):
        return named_id(value, "thread"), None, ""
    found = only(value, ("id", "key", "title"), shape='{"key": "github:acme/payments#412"}')
    thread_id, key = named_id(found.get("id"), "thread"), name_of(found, "key")
    if thread_id is None and key is None:
        raise Invalid("invalid_field", "thread needs an id or a key.", field="thread")
    return thread_id, key, line_of(found, "title", most=MAX_TITLE) or ""


def idempotency_key(value: str | None) -> str | None:
    """The Idempotency-Key, if one was sent."""
    if value is None or value == "":
        return None
    if len(value) > MAX_KEY or _CONTROL.search(value):
        raise Invalid("invalid_idempotency_key", f"An Idempotency-Key is one line of up to {MAX_KEY} characters.")
    return value
