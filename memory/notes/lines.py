"""A note's text line by line: what a proposal adds, what was rejected before, and what people's edits leave of it."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from memory.notes.diff import Conflict, marked, merge3
from memory.notes.frontmatter import InvalidFrontmatter, split

HEADING: Final = re.compile(r"(#{1,6})\s")
# A line that is wholly in italics speaks of the note itself: who made it, and how.
_FURNITURE: Final = re.compile(r"\s*(?:#{1,6}\s.*|```.*|~~~.*|\*[^*]+\*\s*|[-*_=|:\s]*)")
# What is quoted or is code is the statement itself: no number in it is a count.
_QUOTED: Final = re.compile(r"(`[^`]*`|“[^”]*”|\"[^\"]*\")")
# Counts in the forms in which notes state them. Any other number says something: a port, a limit, a version.
_COUNT: Final = re.compile(
    r"\[evt_[^\]]*\]"
    r"|\((?:latest of |asked in )?\d+(?: ?%)?(?: (?:failed|unclear|without|reported|runs?|prompts?|sessions?|calls?)\b"
    r"[^()]*)?\)"
    r"|\bin (?:its )?\d+(?: or more)?(?: of \d+)? (?:runs?|sessions?|prompts?)\b"
    r"|(?<=[:,] )\d+ (?:edits?|reads?|runs?)(?=[,;.])"
    r"|\b\d+ runs? (?=without|of\b)"
    r"|(?<=succeeded )\d+ times\b"
    r"|\band \d+ (?:other files?|other forms?(?: of)?|more)\b",
    re.IGNORECASE,
)
# The day with which a line of a record begins, and the marks between its parts.
_EDGES: Final = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\d{4}-\d\d-\d\d:)?")
_MARKS: Final = re.compile(r"[,;:.!]+(?=\s|$)|\s+")


@dataclass(frozen=True)
class Merged:
    """Both sides in one text, and the lines of the newcomer that gave way to people's edits."""

    text: str
    gave_way: tuple[str, ...] = ()


def normal(line: str) -> str:
    """The form in which lines are compared: without case and space."""
    return "".join(line.casefold().split())


def substance(line: str) -> str:
    """What the line states: without counts, remarks that hold only a count, citations, case, space and list marks.

    Quoted text, commands, paths and every number that is no count stay: another port is another statement.
    """
    parts = _QUOTED.split(_EDGES.sub("", line, count=1))
    told = [part if number % 2 else _MARKS.sub("", _COUNT.sub("", part)) for number, part in enumerate(parts)]
    return " ".join("".join(told).casefold().split()) or normal(line)


def body_of(text: str) -> str:
    """The text without its frontmatter."""
    try:
        return split(text).body
    except InvalidFrontmatter:
        return text


def statements(text: str) -> Iterator[str]:
    """The lines of the body that say something: no headings, fences, rules and blank lines."""
    return (line for line in body_of(text).split("\n") if not _FURNITURE.fullmatch(line))


def new_statements(text: str, old: str) -> list[str]:
    """The lines that `text` says and `old` does not."""
    known = {normal(line) for line in old.split("\n")}
    return [line for line in statements(text) if normal(line) not in known]


def lost_statements(text: str, old: str) -> list[str]:
    """The lines that `old` says and `text` no longer does."""
    return new_statements(old, text)


def taken_out(text: str, old: str) -> list[str]:
    """The lines that `old` says and `text` does not say in any form."""
    stays = {substance(line) for line in statements(text)}
    return [line for line in statements(old) if substance(line) not in stays]


def says_something(text: str) -> bool:
    """True where the text holds more than headings and a remark on itself."""
    return next(statements(text), None) is not None


def without(text: str, rejected: Collection[str], *, keep: str = "") -> str:
    """The text without the rejected lines (their substance), and without headings that are left with nothing below.

    What stands in `keep`, the approved text, was let in after all: it stays, in the words that were let in.
    """
    stands = {substance(line): line for line in statements(keep)}
    known = {normal(line) for line in keep.split("\n")}
    body = body_of(text)
    head = text[: len(text) - len(body)]
    lines = body.split("\n")
    kept: list[str] = []
    for line in lines:
        if _FURNITURE.fullmatch(line) or normal(line) in known or substance(line) not in rejected:
            kept.append(line)
        elif (approved := stands.get(substance(line))) and approved not in lines:
            kept.append(approved)
    if kept == lines:
        return text
    left = "\n".join(_headings_with_something(kept)).rstrip("\n")
    return f"{head}{left}\n"


def merge(base: str, mine: str, theirs: str) -> Merged:
    """`theirs` as a change to `base`, put on top of `mine`; where both touch a line, `mine` stays."""
    if base in (mine, theirs):
        return Merged(theirs if base == mine else mine)
    result = merge3(base, mine, theirs)
    text, parts, at, gave_way = result.text, [], 0, []
    for conflict in result.conflicts:
        block = marked(conflict.mine, conflict.theirs)
        start = text.index(block, at)
        lines, dropped = _resolved(conflict)
        parts += [text[at:start], lines]
        gave_way += dropped
        at = start + len(block)
    return Merged("".join([*parts, text[at:]]), tuple(gave_way))


def _resolved(conflict: Conflict) -> tuple[str, list[str]]:
    """Mine; lines that theirs only added stay too, since they overwrite nobody's words."""
    added = new_statements(conflict.theirs, conflict.base)
    if lost_statements(conflict.theirs, conflict.base):
        return conflict.mine, [line for line in added if line not in conflict.mine.split("\n")]
    more = [line for line in added if normal(line) not in {normal(known) for known in conflict.mine.split("\n")}]
    mine = conflict.mine if conflict.mine.endswith("\n") or not conflict.mine else f"{conflict.mine}\n"
    return mine + "".join(f"{line}\n" for line in more), []


def _headings_with_something(lines: list[str]) -> list[str]:
    kept: list[str] = []
    follows = 0  # the level of the section's first heading below; 7 once there is text
    is_gap = False  # a heading went just below: of the empty lines around it one stays
    for line in reversed(lines):
        heading = HEADING.match(line)
        if heading and follows <= len(heading[1]):
            is_gap = True
            continue
        if heading:
            follows = len(heading[1])
        elif line.strip():
            follows = 7
        elif is_gap and (not kept or not kept[-1].strip()):
            continue
        is_gap = False
        kept.append(line)
    return kept[::-1]
