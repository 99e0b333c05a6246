"""Differences for a review page (lines aligned, words marked), as a patch, and three-way merges of notes.

Time is bounded by `align.Budget`, one for the lines and one for all words; rows show whole lines as changed beyond it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeAlias

from memory.notes.align import Budget, Pairs, matches

Mark: TypeAlias = Literal["same", "added", "removed"]

ALIKE = 0.4  # share of common words from which two lines count as one line that changed
_NO_NEWLINE = "\n\\ No newline at end of file\n"
PAIRS_WEIGHED = 2_500  # beyond this many pairs in one changed block, lines are paired in order

# A word; one character of a script that is written without spaces (with its marks); a run of spaces; a sign.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_MARKS = "\u0300-\u036f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u3099\u309a\ufe00-\ufe0f"
_TOKEN = re.compile(
    rf"\n|[^\S\n]+|[{_UNSPACED}][{_MARKS}]*|(?:(?![{_UNSPACED}])[\w\u0300-\u036f\u0900-\u0dff])+|.[{_MARKS}]*",
    re.DOTALL,
)
# A reviewer must see what would be approved: line ends, controls, zero-width and direction characters.
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


@dataclass(frozen=True)
class Word:
    """A run of text inside a row and its mark."""

    mark: Mark
    text: str

    @property
    def visible(self) -> str:
        """The text to show: unseen characters by their number, a changed line end as ↵."""
        shown = self.text.replace("\r\n", "\n") if self.mark == "same" else self.text
        shown = _UNSEEN.sub(lambda match: f"⟨U+{ord(match.group()):04X}⟩", shown)
        return shown.replace("\n", "" if self.mark == "same" else "↵")


@dataclass(frozen=True)
class DiffLine:
    """One row: the line's numbers on both sides, and its words."""

    kind: Literal["same", "changed", "added", "removed"]
    old_number: int | None
    new_number: int | None
    words: tuple[Word, ...]

    @property
    def old(self) -> str:
        return "".join(word.text for word in self.words if word.mark != "added")

    @property
    def new(self) -> str:
        return "".join(word.text for word in self.words if word.mark != "removed")


@dataclass(frozen=True)
class Fold:
    """Unchanged rows that a page may keep closed."""

    lines: tuple[DiffLine, ...]

    @property
    def count(self) -> int:
        return len(self.lines)


@dataclass(frozen=True)
class Conflict:
    """A place that both sides changed, each in its own way."""

    base: str
    mine: str
    theirs: str


@dataclass(frozen=True)
class Merge:
    """What both sides agree on, in order, with the conflicts between."""

    parts: tuple[str | Conflict, ...]

    @property
    def text(self) -> str:
        """The merged text, with marker lines where there is a conflict."""
        return "".join(part if isinstance(part, str) else marked(part.mine, part.theirs) for part in self.parts)

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        return tuple(part for part in self.parts if isinstance(part, Conflict))


def word_diff(old: str, new: str) -> list[DiffLine]:
    """Every line of both texts in rows; the rows' words give both texts back, character for character."""
    a, b = _lines(old), _lines(new)
    budget = Budget()
    rows: list[DiffLine] = []
    i = j = 0
    for next_i, next_j in [*matches(a, b, Budget()), (len(a), len(b))]:
        rows += _changed_block(a[i:next_i], b[j:next_j], at=(i + 1, j + 1), budget=budget)
        if next_i < len(a):
            rows.append(DiffLine("same", next_i + 1, next_j + 1, (Word("same", a[next_i]),)))
        i, j = next_i + 1, next_j + 1
    return rows


def words_between(old: str, new: str) -> tuple[Word, ...]:
    """Two versions of one value, word by word where they are alike; else the old one whole, then the new one."""
    if _likeness(_Letters.of(old), _Letters.of(new)) < ALIKE:
        return tuple(_run(old, new, ""))
    return _words(old, new, Budget())


def fold(lines: list[DiffLine], context: int = 3) -> list[DiffLine | Fold]:
    """The rows with every long unchanged stretch folded, `context` rows left open around each change."""
    changed = [number for number, line in enumerate(lines) if line.kind != "same"]
    near = {at for number in changed for at in range(number - context, number + context + 1)}
    folded: list[DiffLine | Fold] = []
    for is_near, stretch in groupby(enumerate(lines), key=lambda numbered: numbered[0] in near):
        rows = [line for _, line in stretch]
        folded += rows if is_near or len(rows) == 1 else [Fold(tuple(rows))]
    return folded


def unified(old: str, new: str, *, context: int = 3, names: tuple[str, str] = ("old", "new")) -> str:
    """The difference as a patch; empty where the texts are equal."""
    lines = _patch_lines(_lines(old), _lines(new))
    changed = [number for number, (sign, _) in enumerate(lines) if sign != " "]
    near = {at for number in changed for at in range(number - context, number + context + 1)}
    hunks: list[str] = []
    old_at = new_at = 1
    for is_near, stretch in groupby(enumerate(lines), key=lambda numbered: numbered[0] in near):
        rows = [row for _, row in stretch]
        old_count, new_count = (sum(sign in side for sign, _ in rows) for side in (" -", " +"))
        if is_near:
            hunks.append(f"@@ -{_span(old_at, old_count)} +{_span(new_at, new_count)} @@\n")
            hunks += [sign + (text if text.endswith("\n") else text + _NO_NEWLINE) for sign, text in rows]
        old_at, new_at = old_at + old_count, new_at + new_count
    return f"--- {names[0]}\n+++ {names[1]}\n{''.join(hunks)}" if hunks else ""


def merge3(base: str, mine: str, theirs: str) -> Merge:
    """Both sides' changes to `base` in one text; where they touch the same lines, a conflict.

    A spent budget makes conflicts larger, never a merge wrong.
    """
    old, a, b = _lines(base), _lines(mine), _lines(theirs)
    in_mine, in_theirs = dict(matches(old, a, Budget())), dict(matches(old, b, Budget()))
    parts: list[str | Conflict] = []
    at = i = j = 0
    for stable in [*(line for line in range(len(old)) if line in in_mine and line in in_theirs), len(old)]:
        next_i, next_j = in_mine.get(stable, len(a)), in_theirs.get(stable, len(b))
        part = Conflict("".join(old[at:stable]), "".join(a[i:next_i]), "".join(b[j:next_j]))
        merged = _one_side(part)
        parts += [part if merged is None else merged, *old[stable : stable + 1]]
        at, i, j = stable + 1, next_i + 1, next_j + 1
    return Merge(tuple(part for part in parts if part))


def _one_side(part: Conflict) -> str | None:
    """What the part becomes where at most one side changed it, or both alike."""
    if part.mine == part.base or part.mine == part.theirs:
        return part.theirs
    return part.mine if part.theirs == part.base else None


def marked(mine: str, theirs: str) -> str:
    """The block that shows both sides of a conflict."""
    mine, theirs = (text if text.endswith("\n") or not text else f"{text}\n" for text in (mine, theirs))
    return f"<<<<<<< mine\n{mine}=======\n{theirs}>>>>>>> theirs\n"


def _lines(text: str) -> list[str]:
    r"""Lines with their ends, broken at \n only: str.splitlines also breaks at form feeds and U+2028."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def _patch_lines(a: list[str], b: list[str]) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    i = j = 0
    for next_i, next_j in [*matches(a, b, Budget()), (len(a), len(b))]:
        lines += [("-", line) for line in a[i:next_i]] + [("+", line) for line in b[j:next_j]]
        lines += [(" ", line) for line in a[next_i : next_i + 1]]
        i, j = next_i + 1, next_j + 1
    return lines


def _span(start: int, count: int) -> str:
    # An empty side is named by the line before it: POSIX diff -u.
    return f"{start - (count == 0)},{count}"


def _changed_block(a: list[str], b: list[str], *, at: tuple[int, int], budget: Budget) -> Iterator[DiffLine]:
    """Rows of a block where all lines differ: lines alike stand in one row, the others alone."""
    i = j = 0
    for next_i, next_j in [*_alike(a, b), (len(a), len(b))]:
        for number in range(i, next_i):
            yield DiffLine("removed", at[0] + number, None, (Word("removed", a[number]),))
        for number in range(j, next_j):
            yield DiffLine("added", None, at[1] + number, (Word("added", b[number]),))
        if next_i < len(a):
            yield DiffLine("changed", at[0] + next_i, at[1] + next_j, _words(a[next_i], b[next_j], budget))
        i, j = next_i + 1, next_j + 1


def _alike(a: list[str], b: list[str]) -> Pairs:
    """The lines that are versions of each other, in order, with the most words in common."""
    counts_a, counts_b = ([_Letters.of(line) for line in side] for side in (a, b))
    if len(a) * len(b) > PAIRS_WEIGHED:
        numbers = range(min(len(a), len(b)))
        return [(i, i) for i in numbers if _likeness(counts_a[i], counts_b[i]) >= ALIKE]
    best = [[0.0] * (len(b) + 1) for _ in range(len(a) + 1)]
    likeness = [[_likeness(left, right) for right in counts_b] for left in counts_a]
    for i in range(len(a) - 1, -1, -1):
        for j in range(len(b) - 1, -1, -1):
            paired = likeness[i][j] + best[i + 1][j + 1] if likeness[i][j] >= ALIKE else 0.0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    pairs: Pairs = []
    i = j = 0
    while i < len(a) and j < len(b):
        if best[i][j] == best[i + 1][j]:
            i += 1
        elif best[i][j] == best[i][j + 1]:
            j += 1
        else:
            pairs.append((i, j))
            i, j = i + 1, j + 1
    return pairs


@dataclass(frozen=True)
class _Letters:
    """How often each word of a line occurs, and how many letters they have; spaces don't count."""

    words: Counter[str]
    total: int

    @classmethod
    def of(cls, line: str) -> _Letters:
        words = Counter(token for token in _TOKEN.findall(line) if not token.isspace())
        return cls(words, sum(count * len(word) for word, count in words.items()))


def _likeness(left: _Letters, right: _Letters) -> float:
    """The share of letters in words that both lines have; a line of spaces is like nothing."""
    if len(left.words) > len(right.words):
        left, right = right, left
    common = sum(min(count, right.words[word]) * len(word) for word, count in left.words.items())
    return 2 * common / (left.total + right.total) if common else 0.0


def _words(old: str, new: str, budget: Budget) -> tuple[Word, ...]:
    """The words of two versions of a line; spaces alone between two changes count as changed."""
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    words: list[Word] = []
    removed, added, same = "", "", ""
    i = j = 0
    for next_i, next_j in [*matches(a, b, budget), (len(a), len(b))]:
        if (next_i, next_j) != (i, j):
            if same and (same.strip() or "\n" in same or not (removed or added)):
                words += _run(removed, added, same)
                removed = added = same = ""
            removed, added, same = removed + same + "".join(a[i:next_i]), added + same + "".join(b[j:next_j]), ""
        same += "".join(a[next_i : next_i + 1])
        i, j = next_i + 1, next_j + 1
    return (*words, *_run(removed, added, same))


def _run(removed: str, added: str, same: str) -> list[Word]:
    marks: list[tuple[Mark, str]] = [("removed", removed), ("added", added), ("same", same)]
    return [Word(mark, text) for mark, text in marks if text]
