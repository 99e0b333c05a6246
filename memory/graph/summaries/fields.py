"""JSON of nobody we know: its most telling fields."""

import re
from collections.abc import Iterator
from typing import Any, Final

from memory.graph.summaries.line import one_line, text_of

# In this order: what happened, then to what. The first that is found speaks.
_SAYS: Final = (
    "summary", "title", "subject", "headline", "message", "text", "msg", "error", "error_message", "description",
    "reason", "detail", "details", "body", "content", "comment", "note",
)  # fmt: skip
_HOW: Final = ("status", "state", "severity", "level", "conclusion", "result", "priority", "outcome")
_WHAT: Final = ("event", "event_type", "eventtype", "type", "action", "kind", "object_kind", "alert", "alertname")
_NAMES: Final = ("name", "service", "project", "job", "key", "id", "identifier", "number", "url")
# A field of such a name is never shown, whatever it holds.
_SECRET: Final = re.compile(
    r"pass(?:word|wd|phrase)|secret|token|api.?key|credential|authori[sz]ation|cookie|private", re.I
)
_MOST: Final = 400


def line(value: Any) -> str:
    """`deploy finished: payments to production (status: ok)`, as far as the fields give it."""
    if isinstance(value, list):
        first = line(value[0]) if value and isinstance(value[0], dict | list) else _scalars(value)
        return f"{len(value)} items{': ' + first if first else ''}"
    found = dict(reversed(list(_leaves(value))))
    what = _first(found, _WHAT)
    says = _first(found, _SAYS)
    how = _first(found, _HOW)
    name = "" if says and what else _first(found, _NAMES)
    parts = [part for part in (what, name, says) if part]
    said = ": ".join(dict.fromkeys(parts)) or _pairs(found)
    return one_line(f"{said} ({how})" if how and how not in said else said)


def _leaves(value: Any) -> Iterator[tuple[str, str]]:
    """Scalars by the name of their field, the shallow ones first, as many as a line could need."""
    layer: list[Any] = [value]
    seen = 0
    while layer and seen < _MOST:
        below: list[Any] = []
        for node in layer:
            pairs = node.items() if isinstance(node, dict) else ((str(place), item) for place, item in enumerate(node))
            for key, inner in pairs:
                if _SECRET.search(str(key)[:200]):
                    continue
                if isinstance(inner, dict | list):
                    below.append(inner)
                elif text_of(inner):
                    seen += 1
                    yield str(key), text_of(inner)[:1000]
                if seen >= _MOST:
                    return
        layer = below


def _first(found: dict[str, str], names: tuple[str, ...]) -> str:
    lower = {name.lower(): value for name, value in reversed(list(found.items()))}
    return next((one_line(lower[name], 150) for name in names if lower.get(name)), "")


def _pairs(found: dict[str, str]) -> str:
    return ", ".join(f"{name}: {one_line(value, 40)}" for name, value in list(reversed(found.items()))[:6])


def _scalars(values: list[Any]) -> str:
    return ", ".join(filter(None, (one_line(text_of(value), 30) for value in values[:6])))
