"""A summary fit for its kind of text. What no summariser knows is shown whole, or by pages: never its beginning alone.

Pure: text in, text out. The full text is stored; each summary says how much is hidden, and lines keep their numbers.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cache_admin.summaries import code, difference, listing, logs, markdown, shape, testrun
from cache_admin.summaries.fit import first_page, fitted, rows_of

# Up to here nothing is gained by a summary.
WHOLE_LINES: Final = 40
WHOLE_CHARS: Final = 4_000
_GREP: Final = re.compile(r"(?!\[?\d+:\d)(?:[A-Za-z]:)?[^\s:][^:\n]*[./\\][^:\n]*:\d+[:-]")
_LOG: Final = re.compile(
    r"\s*(?:\[?\d{4}-\d\d-\d\d[T ]|\[?\d\d:\d\d:\d\d\b|\[\w+(?::\w+)?\s|[A-Z]+\s+\[|"
    r"(?:DEBUG|INFO|WARN(?:ING)?|ERROR)\b)"
)
_CONTROL: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True)
class Summary:
    """What is shown for a text, and what made it; `text` is the whole where it is no shorter."""

    text: str
    summariser: str
    is_shorter: bool


_BY_NAME: Final[dict[str, Callable[[str, str], str]]] = {
    "code": code.outline,
    "logs": lambda text, _: logs.summary(text),
    "tests": lambda text, _: testrun.summary(text),
    "json": lambda text, _: shape.summary(text),
    "list": lambda text, _: listing.summary(text),
    "diff": lambda text, _: difference.summary(text),
    "markdown": lambda text, _: markdown.summary(text),
}


def summarise(text: str, summariser: str = "auto", *, kind: str = "", tool: str = "") -> Summary:
    """The summary of a tool's result. `kind` names a summariser, a language or a path, if it is known."""
    bare, name = unwrapped(text)
    bare = _CONTROL.sub("", bare)
    if summariser == "whole" or (bare.count("\n") < WHOLE_LINES and len(bare) <= WHOLE_CHARS):
        return Summary(text, "whole", False)
    chosen = summariser if summariser in _BY_NAME else kind if kind in _BY_NAME else detect(bare, kind or name)
    made = _BY_NAME[chosen](bare, kind or name) if chosen in _BY_NAME else ""
    # A summariser that finds nothing of its kind says nothing; then pages are better than a guess.
    if not made:
        chosen, made = "plain", paged(bare)
    made = fitted(made)
    return Summary(made, chosen, True) if len(made) < len(text) else Summary(text, "whole", False)


def detect(text: str, name: str = "") -> str:
    """The kind of a text: `plain` where no kind is sure."""
    head = text[:20_000]
    # The beginning of a line tells its kind, and the time of these patterns grows with the square of its length.
    rows = [row[:1_000] for row in rows_of(head)[:200] if row.strip()]
    if testrun.is_test_run(text):
        return "tests"
    if head.lstrip()[:1] in ("{", "[") and shape.is_json(text):
        return "json"
    if any(row.startswith(("diff --git ", "@@ -", "--- a/")) for row in rows):
        return "diff"
    if code.language_of(name):
        return "markdown" if code.language_of(name) == "markdown" else "code"
    if _most(rows, _LOG):
        return "logs"
    if _most(rows, _GREP) or listing.is_listing(rows):
        return "list"
    return "markdown" if sum(row.startswith("#") for row in rows) >= 3 and "```" in text else "plain"


def _most(rows: list[str], pattern: "re.Pattern[str]") -> bool:
    return len(rows) >= 5 and sum(bool(pattern.match(row)) for row in rows) >= 0.6 * len(rows)


def paged(text: str) -> str:
    """The whole, or its first page of whole lines with the number of the others."""
    rows = rows_of(text)
    shown = first_page(rows)
    if shown == len(rows):
        return text
    if not shown:
        return f"[one line of {len(rows[0])} characters; fetch it by Range or grep]"
    note = f"[lines 1-{shown} of {len(rows)}; the next page is lines={shown + 1}-{min(len(rows), 2 * shown)}]"
    return "\n".join([note, *rows[:shown]])


def unwrapped(text: str) -> tuple[str, str]:
    """The text inside of what harnesses wrap it in (stdout, a file, MCP blocks), and its path if that is told."""
    if text[:1] not in ("{", "["):
        return text, ""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text, ""
    return _inside(value) or (text, "")


def _inside(value: Any) -> tuple[str, str] | None:
    if isinstance(value, list):
        texts = [one.get("text") for one in value if isinstance(one, Mapping) and one.get("type") == "text"]
        whole = [text for text in texts if isinstance(text, str)]
        return ("\n".join(whole), "") if whole and len(whole) == len(value) else None
    if not isinstance(value, Mapping):
        return None
    file = value.get("file")
    if isinstance(file, Mapping) and isinstance(file.get("content"), str):
        return file["content"], str(file.get("filePath", ""))
    if isinstance(value.get("stdout"), str):
        return "\n".join(filter(None, (value["stdout"], str(value.get("stderr") or "")))), ""
    if isinstance(value.get("filenames"), list) and not value.get("content"):
        return "\n".join(map(str, value["filenames"])), ""
    content = value.get("content")
    if isinstance(content, str) and isinstance(value.get("mode"), str):
        return content, ""
    return _inside(content) if isinstance(content, list) else None
