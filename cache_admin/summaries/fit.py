"""A summary is for a context window: at most so many tokens, chosen by whole lines, errors first."""

import re
from collections.abc import Iterable
from typing import Final

from memory import tokens

# With the note on how to get the rest, an answer stays below 2,000.
MOST_TOKENS: Final = 1_900
# Of one line no more than this is shown, unless it says what broke.
LINE_TOKENS: Final = 120
_BROKEN: Final = re.compile(
    r"UNEXPECTED|\bFATAL\b|\bCRITICAL\b|:error\]|LEAKING|\bexit (?:status|code) [1-9]|\bERROR\b|\bpanic\b|Traceback|"
    r"\w*(?:Error|Exception):|\bFAIL(?:ED|URE|URES)?\b|\bfatal:|error\[|\berror:"
)
_STRONG: Final = re.compile(r"UNEXPECTED|\bFATAL\b|\bCRITICAL\b|:error\]|LEAKING|\bexit (?:status|code) [1-9]")


def rows_of(text: str) -> list[str]:
    """The lines of a text as editors and `cat -n` count them: a form feed or a lone carriage return ends none."""
    return [row.removesuffix("\r") for row in text.removesuffix("\n").split("\n")] if text else []


def fitted(text: str, *, most: int = MOST_TOKENS) -> str:
    """The summary within `most` tokens: lines that say what broke, then headings, the last lines and the first ones.

    What is left out is counted where it stood.
    """
    # No tokenizer makes more tokens than there are bytes.
    if len(text.encode("utf-8", "replace")) <= most or tokens.count(text) <= most:
        return text
    # A line that says what broke may fill half of it: one that is longer would not be shown at all.
    rows = [_clipped(row, 2 * most if _STRONG.search(row) else 4 * LINE_TOKENS) for row in rows_of(text)]
    sizes = [size + 1 for size in tokens.counts(rows)]
    kept: set[int] = set()
    # The notes between what is kept cost something too.
    left = most - 100
    for number in _by_worth(rows):
        gap = 0 if number - 1 in kept or number + 1 in kept else 8
        if sizes[number] + gap <= left:
            kept.add(number)
            left -= sizes[number] + gap
    return "\n".join(_with_gaps(rows, kept))


def _clipped(row: str, longest: int) -> str:
    return row if len(row) <= longest else f"{row[:longest]}…"


def _by_worth(rows: list[str]) -> Iterable[int]:
    strong = [number for number, row in enumerate(rows) if _STRONG.search(row)]
    yield from strong
    seen = set(strong)
    headings = [number for number, row in enumerate(rows) if row.startswith("[") and number not in seen]
    # On the shortened lines alone: in one word of a million letters this pattern would search for hours.
    broken = [number for number, row in enumerate(rows) if number not in seen and _BROKEN.search(row)]
    # Half from the beginning, half from the end: a run's last lines say how it ended.
    rest = [at for pair in zip(range(len(rows)), reversed(range(len(rows))), strict=True) for at in pair]
    for number in (0, *headings[:40], *broken, *rest):
        if number not in seen:
            seen.add(number)
            yield number


def _with_gaps(rows: list[str], kept: set[int]) -> Iterable[str]:
    hidden = 0
    for number, row in enumerate(rows):
        if number in kept:
            if hidden:
                yield f"[{hidden} more]"
            hidden = 0
            yield row
        else:
            hidden += 1
    if hidden:
        yield f"[{hidden} more]"


def first_page(rows: list[str], *, most: int = MOST_TOKENS) -> int:
    """How many whole lines from the beginning fit."""
    left = most - 40
    for number, size in enumerate(tokens.counts(rows[:4_000])):
        left -= size + 1
        if left < 0:
            return number
    return min(len(rows), 4_000)
