"""A note's text line by line: what a proposal adds, what was rejected before, and what people's edits leave of it."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from memory.notes.diff import Conflict, merge3
from memory.notes.frontmatter import InvalidFrontmatter, split

HEADING: Final = re.compile(r"(#{1,6})\s")
_FURNITURE: Final = re.compile(r"\s*(?:#{1,6}\s.*|```.*|~~~.*|[-*_=|:\s]*)")


@dataclass(frozen=True)
class Merged:
    """Both sides in one text, and the lines of the newcomer that gave way to people's edits."""

    text: str
    gave_way: tuple[str, ...] = ()


def normal(line: str) -> str:
    """The form in which lines are compared: without case and space."""
    return "".join(line.casefold().split())


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


def without(text: str, rejected: Collection[str], *, keep: str = "") -> str:
    """The text without the rejected lines (normal forms), and without headings that are left with nothing below.

    What stands in `keep`, the approved text, was let in after all.
    """
    unwanted = set(rejected) - {normal(line) for line in keep.split("\n")}
    body = body_of(text)
    head = text[: len(text) - len(body)]
    lines = body.split("\n")
    kept = [line for line in lines if _FURNITURE.fullmatch(line) or normal(line) not in unwanted]
    if len(kept) == len(lines):
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
        block = _marked(conflict)
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


def _marked(conflict: Conflict) -> str:
    """The block that `merge3` writes for a conflict."""
    sides = (conflict.mine, conflict.theirs)
    mine, theirs = (f"{side}\n" if side and not side.endswith("\n") else side for side in sides)
    return f"<<<<<<< mine\n{mine}=======\n{theirs}>>>>>>> theirs\n"


def _headings_with_something(lines: list[str]) -> list[str]:
    kept: list[str] = []
    follows = 0  # the level of the section's first heading below; 7 once there is text
    for line in reversed(lines):
        heading = HEADING.match(line)
        if heading and follows <= len(heading[1]):
            continue
        if heading:
            follows = len(heading[1])
        elif line.strip():
            follows = 7
        kept.append(line)
    return kept[::-1]
