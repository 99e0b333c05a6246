"""Parts of a payload: a byte range, some lines, the lines that match. Pure: bytes in, bytes out."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import re2  # type: ignore[import-untyped]

from memory.problems import Problem

MOST_HITS: Final = 100
LINE_CUT: Final = 500
MAX_PATTERN: Final = 1_000
# RE2 never backtracks; this bounds what a pattern like (a{1000}){1000} may take.
_PATTERN_BYTES: Final = 8 * 1024 * 1024
_RANGE = re.compile(r"bytes=([0-9]*)-([0-9]*)$")
_LINES = re.compile(r"([0-9]{1,9})?-([0-9]{1,9})?$|([0-9]{1,9})$")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a payload and where it lies: `first` to `last` of `whole`, inclusive."""

    raw: bytes
    first: int
    last: int
    whole: int


def byte_range(raw: bytes, header: str) -> Piece | None:
    """The part that a Range header asks for; None where it asks for what we do not do, which means the whole.

    Raises Problem 416.
    """
    asked = _RANGE.match(header.strip())
    if not asked or asked[0] == "bytes=-":
        return None
    first, last = asked[1], asked[2]
    if first and last and _place(first) > _place(last):
        return None
    start = _place(first) if first else max(0, len(raw) - _place(last))
    end = min(_place(last), len(raw) - 1) if first and last else len(raw) - 1
    if start > end:
        raise Problem(
            416,
            "range_not_satisfiable",
            f"The payload has {len(raw):,} bytes.",
            headers={"Content-Range": f"bytes */{len(raw)}"},
        )
    return Piece(raw[start : end + 1], start, end, len(raw))


def _place(digits: str) -> int:
    """The number; one too long to be a place in any payload is as good as the largest."""
    return int(digits) if len(digits) <= 18 else 10**18


def lines(raw: bytes, asked: str) -> Piece:
    """Lines `120-180` (from 1, inclusive), `120-`, `-20` for the last twenty, or `120`. Raises Problem 400, 416."""
    found = _LINES.match(asked)
    if not found or asked == "-":
        raise Problem(400, "invalid_lines", "lines is a range like 120-180, 120-, -20 or 120.")
    total = count_lines(raw)
    if found[3] is not None:
        first = last = int(found[3])
    elif found[1] is None:
        first, last = max(1, total - int(found[2]) + 1), total
    else:
        first, last = int(found[1]), int(found[2]) if found[2] else total
    if first < 1 or (found[2] and found[1] and first > last):
        raise Problem(400, "invalid_lines", "lines begin at 1, and a range does not run backwards.")
    last = min(last, total)
    if first > last:
        raise Problem(416, "lines_not_satisfiable", f"The payload has {total:,} lines.", lines=total)
    start = _line_start(raw, first, at=0, line=1)
    end = _line_start(raw, last + 1, at=start, line=first)
    return Piece(raw[start:end], first, last, total)


def count_lines(raw: bytes) -> int:
    """How many lines there are; one without its newline counts."""
    return raw.count(b"\n") + (1 if raw and not raw.endswith(b"\n") else 0)


def _line_start(raw: bytes, wanted: int, *, at: int, line: int) -> int:
    while line < wanted:
        newline = raw.find(b"\n", at)
        if newline < 0:
            return len(raw)
        at, line = newline + 1, line + 1
    return at


def grep(raw: bytes, pattern: str, *, first_line: int = 1) -> dict[str, Any]:
    """The first hundred lines that match an RE2 pattern, with their numbers. Raises Problem 400."""
    compiled = _compiled(pattern)
    hits: list[dict[str, Any]] = []
    at, counted, number = 0, 0, first_line
    while at <= len(raw):
        match = compiled.search(raw, at)
        if match is None:
            break
        place = match.start()
        start = raw.rfind(b"\n", 0, place) + 1
        end = raw.find(b"\n", place)
        end = len(raw) if end < 0 else end
        if start == len(raw) and raw:
            break  # an empty match behind the last newline is no line
        if len(hits) == MOST_HITS:
            return {"hits": hits, "more": True}
        number += raw.count(b"\n", counted, start)
        counted = start
        hits.append({"line": number, "text": _shown(raw, start, end, place)})
        at = end + 1
    return {"hits": hits, "more": False}


def _shown(raw: bytes, start: int, end: int, place: int) -> str:
    """The line, of a very long one the surroundings of its first match."""
    if end - start <= LINE_CUT:
        return raw[start:end].decode("utf-8", "replace").rstrip("\r")
    begin = max(start, min(place - LINE_CUT // 4, end - LINE_CUT))
    piece = raw[begin : begin + LINE_CUT].decode("utf-8", "ignore")
    return f"{'…' if begin > start else ''}{piece}{'…' if begin + LINE_CUT < end else ''}"


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> Any:
    if not pattern or len(pattern) > MAX_PATTERN:
        raise Problem(400, "invalid_pattern", f"grep is an RE2 pattern of 1 to {MAX_PATTERN:,} characters.")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_BYTES
    options.never_nl = True
    try:
        return re2.compile(b"(?m)" + pattern.encode("utf-8", "replace"), options)
    except re2.error as error:
        why = (
            error.args[0].decode("utf-8", "replace") if error.args and isinstance(error.args[0], bytes) else str(error)
        )
        raise Problem(
            400, "invalid_pattern", f"grep is an RE2 pattern (no look-around, no back-references): {why[:200]}."
        ) from None
