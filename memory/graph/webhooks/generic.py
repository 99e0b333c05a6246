"""Any sender of JSON: a map says where in its bodies the fields stand (JSON Pointer, RFC 6901)."""

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext

from memory.graph.summaries.line import one_line, text_of
from memory.graph.webhooks.taken import Taken, Unreadable, moment, name
from memory.problems import Problem
from memory.sentences import sentence
from memory.tenants.rest import fast_json

FIELDS: Final = ("external_id", "thread", "title", "summary", "occurred_at")
_MOST_PATH: Final = 300
_MOST_STEPS: Final = 30


class WrongMap(ValueError):
    """The field map can't be used; the words say which field and why."""


def checked_map(given: Any) -> dict[str, str]:
    """A field map as it may be kept: known fields, each with a JSON Pointer. Raises WrongMap."""
    if not isinstance(given, dict):
        raise WrongMap(
            gettext("A field map gives %(fields)s a JSON Pointer each, e.g. {'thread': '/issue/key'}.")
            % {"fields": ", ".join(FIELDS)}
        )
    kept = {}
    for field, path in given.items():
        if field not in FIELDS:
            raise WrongMap(
                gettext("Unknown field %(field)s. Known are %(fields)s.")
                % {"field": repr(str(field)[:40]), "fields": ", ".join(FIELDS)}
            )
        if path in (None, ""):
            continue
        if (
            not isinstance(path, str)
            or not path.startswith("/")
            or len(path) > _MOST_PATH
            or path.count("/") > _MOST_STEPS
        ):
            raise WrongMap(
                gettext("%(field)s: a JSON Pointer begins with / and names a way of keys, e.g. /issue/key.")
                % {"field": field}
            )
        if "~" in path.replace("~0", "").replace("~1", ""):
            raise WrongMap(
                gettext("%(field)s: in a JSON Pointer ~ is written ~0, and / inside a key ~1.") % {"field": field}
            )
        kept[field] = path
    return kept


def pointed(value: Any, path: str) -> Any:
    """What a JSON Pointer leads to, or None."""
    for step in path.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isascii() and step.isdigit() and (step == "0" or step[0] != "0"):
            value = value[int(step)] if len(step) < 7 and int(step) < len(value) else None
        else:
            return None
    return value


def take(headers: Mapping[str, str], raw: bytes, *, source: str, field_map: Mapping[str, str]) -> Taken:
    """The call, read by the map; a body that is no JSON is taken as it is where the map asks for nothing in it."""
    media_type = headers.get("Content-Type", "").strip() or "application/json"
    value = _value(raw, media_type, bool(field_map))
    found = {field: pointed(value, path) for field, path in field_map.items()}
    thread = name(text_of(found.get("thread")))
    external_id = name(text_of(found.get("external_id"))) or None
    if "thread" in field_map and not thread and external_id is None:
        raise Unreadable(
            sentence(
                "There is nothing at %(field_map)s, which the map calls the thread.", field_map=field_map["thread"]
            )
        )
    return Taken(
        event="",
        payload=raw,
        media_type="application/json" if value is not None else media_type,
        external_id=external_id or name(headers.get("webhook-id", "").strip()) or None,
        key=name(thread if thread.startswith(f"{source}:") else f"{source}:{thread}") if thread else None,
        title=one_line(text_of(found.get("title")), 300),
        summary=one_line(text_of(found.get("summary"))),
        occurred_at=moment(found.get("occurred_at")),
    )


def _value(raw: bytes, media_type: str, is_needed: bool) -> Any:
    if not raw.strip():
        raise Unreadable(sentence("The body is empty."))
    try:
        value, _ = fast_json(raw)
    except Problem as problem:
        if is_needed or "json" in media_type.lower():
            raise Unreadable(problem.detail) from None
        return None
    if value is None or value in ({}, [], ""):
        raise Unreadable(sentence("The body says nothing."))
    return value
