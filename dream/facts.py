"""When two lines say the same, and what of an old text a new one must not lose. Pure.

Likeness alone melts facts together: "staging DB port 5433" and "prod DB port 5432" are nearly the same words. So the
literals (numbers, paths, code), the negations, the opposites and the units decide, and words only where those agree.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from cache_admin import guard
from memory.notes.lines import HEADING, normal, statements
from memory.recall.words import is_telling, terms

SAME: Final = 0.8
TAKES_PLACE: Final = 0.5
_LITERAL: Final = re.compile(r"`[^`]+`|[\w.-]*/[\w./-]+|\b\w*\d[\w.:-]*\w|\d")
_NEGATION: Final = re.compile(r"\b(?:no|not|never|without|\w+n[’']t|cannot|forbidden|disallowed)\b|không|不|禁止", re.I)


@dataclass(frozen=True)
class Said:
    """A line as it is compared."""

    words: frozenset[str]
    literals: frozenset[str]
    is_negated: bool

    @classmethod
    def of(cls, line: str) -> "Said":
        found = frozenset(each.casefold().strip("`") for each in _LITERAL.findall(line))
        return cls(
            frozenset(word for word in terms(line) if is_telling(word)), found, _NEGATION.search(line) is not None
        )


def covers(new: str, old: str) -> bool:
    """True where the new line says all that the old one says."""
    a, b = Said.of(new), Said.of(old)
    if not b.literals <= a.literals or a.is_negated != b.is_negated:
        return False
    if normal(new) == normal(old):
        return True
    return bool(b.words) and len(a.words & b.words) >= SAME * len(b.words) and not guard.is_another(new, old)


def place_taken(new: str, old: str) -> float:
    """How far the new line is another version of the old one: the share of words of the shorter that both have."""
    a, b = Said.of(new).words, Said.of(old).words
    return len(a & b) / min(len(a), len(b)) if a and b else 0.0


@dataclass(frozen=True)
class Kept:
    """A new text with what it must not lose, which old line gave way to which, and what was put back."""

    text: str
    superseded: tuple[tuple[str, str], ...] = ()
    put_back: tuple[str, ...] = ()


def kept(body: str, *, old: str, cited: Collection[str], obsolete: Collection[str] = ()) -> Kept:
    """The new body, with every statement of the old one that nothing replaces.

    An old line goes where a new line says it too, where a new line with a source of its own is another version of it
    (one for one, so that two facts never become one), or where it is named as obsolete.
    """
    present = list(statements(body))
    lost = [line for line in statements(old) if normal(line) not in {normal(each) for each in present}]
    known = {normal(line) for line in statements(old)}
    fresh = [line for line in present if normal(line) in {normal(each) for each in cited} - known]
    gone = {normal(line) for line in obsolete}
    open_ = [line for line in lost if normal(line) not in gone and not any(covers(each, line) for each in present)]
    superseded = _pairs(open_, fresh)
    taken = {old_line for old_line, _ in superseded}
    put_back = [line for line in open_ if line not in taken]
    return Kept(_with(body, put_back, old), tuple(superseded), tuple(put_back))


def _pairs(lost: Sequence[str], fresh: Sequence[str]) -> list[tuple[str, str]]:
    """Which lost line gave way to which new one: the likest first, each once."""
    versions = ((at, old, new) for at, old in enumerate(lost) for new in fresh if not guard.is_elsewhere(old, new))
    weighed = sorted(((place_taken(new, old), -at, old, new) for at, old, new in versions), reverse=True)
    pairs: dict[str, str] = {}
    for share, _, old, new in weighed:
        if share >= TAKES_PLACE and old not in pairs and new not in pairs.values():
            pairs[old] = new
    return list(pairs.items())


def _with(body: str, put_back: Iterable[str], old: str) -> str:
    """The body with lines put back, each behind the nearest line that stood above it and still stands."""
    lines, before = body.rstrip("\n").split("\n"), old.split("\n")
    for line in put_back:
        above = [normal(each) for each in reversed(before[: before.index(line)]) if each.strip()]
        place = next((at for key in above for at in range(len(lines) - 1, -1, -1) if normal(lines[at]) == key), None)
        if place is None:
            lines.append(line)
            continue
        if HEADING.match(lines[place]) and place + 1 < len(lines) and not lines[place + 1].strip():
            place += 1
        lines.insert(place + 1, line)
    return "\n".join(lines) + "\n"


def uncovered(body: str, by: str) -> list[str]:
    """The statements of `body` that no line of `by` says."""
    there = list(statements(by))
    return [line for line in statements(body) if not any(covers(each, line) for each in there)]


def near_duplicate(body: str, others: Iterable[tuple[str, str]]) -> str | None:
    """The name of the text that already says at least half of this one, the fullest first; None where none does."""
    said = list(statements(body))
    if not said:
        return None
    shares = [(1 - len(uncovered(body, text)) / len(said), name) for name, text in others]
    best = max(shares, key=lambda one: one[0], default=(0.0, ""))
    return best[1] if best[0] >= 0.5 else None
