"""JSON: its shape, how many, the first and the last."""

import json
from collections.abc import Mapping
from typing import Any, Final

MOST_KEYS: Final = 60
CLIP: Final = 1_500
DEPTH: Final = 4
LOOKED_AT: Final = 200


def is_json(text: str) -> bool:
    """Whether the text is one JSON value."""
    return _parsed(text) is not None


def summary(text: str) -> str:
    """The shape, and of each list how many, the first and the last item; empty where this is no JSON."""
    value = _parsed(text)
    if not isinstance(value, dict | list):
        return ""
    lines = [f"[JSON, {len(text)} characters]", "shape: " + _shape(value, DEPTH)]
    for name, items in _lists(value):
        lines.append(f"{name}: {len(items)} items")
        lines.append(f"  first: {_clipped(items[0])}")
        if len(items) > 1:
            lines.append(f"  last: {_clipped(items[-1])}")
    return "\n".join(lines)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _lists(value: Any) -> list[tuple[str, list[Any]]]:
    """The lists worth a sample: the value itself, or those right inside."""
    if isinstance(value, list):
        return [("$", value)] if value else []
    return [(f"$.{name}", inner) for name, inner in value.items() if isinstance(inner, list) and inner][:10]


def _clipped(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= CLIP else f"{text[:CLIP]}… [{len(text)} characters]"


def _shape(value: Any, depth: int) -> str:
    if isinstance(value, Mapping):
        if depth == 0:
            return f"{{{len(value)} keys}}"
        inner = [f"{name}: {_shape(one, depth - 1)}" for name, one in list(value.items())[:MOST_KEYS]]
        more = [f"… {len(value) - MOST_KEYS} more"] if len(value) > MOST_KEYS else []
        return "{" + ", ".join(inner + more) + "}"
    if isinstance(value, list):
        kinds = list(dict.fromkeys(_shape(one, depth - 1) if depth else "…" for one in value[:LOOKED_AT]))
        return f"[{' | '.join(kinds[:3])}{' | …' if len(kinds) > 3 else ''}] x{len(value)}"
    return {bool: "bool", int: "int", float: "float", str: "str", type(None): "null"}[type(value)]
