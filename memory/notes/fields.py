"""A note's text as the inputs of a form, and back: what nobody touched stays the bytes it was.

A browser sends other bytes than it was given: every line end becomes CRLF, a line break in an input goes, a list
becomes a line of text. So each input is compared with what the form showed, and only a difference is a change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from memory.notes.align import Budget, matches
from memory.notes.frontmatter import Document, Problem, Value, check, split, with_fields

# The fields that a form knows; all others are kept as they stand, and changed in the text itself.
KNOWN: Final = ("title", "description", "kind", "tags")
_END: Final = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Fields:
    """A text in the parts that a form shows.

    `values`: what stands in each input. `fixed`: known fields that no input can show, since they hold a mapping or a
    list where a line belongs. `others`: unknown fields, as words to look at. `head` goes along unseen.
    """

    head: str
    body: str
    values: Mapping[str, str]
    fixed: tuple[str, ...] = ()
    others: tuple[tuple[str, str], ...] = ()


def read(text: str) -> Fields:
    """The text in parts. Raises InvalidFrontmatter."""
    document = split(text)
    shown = {name: _shown(name, document.fields.get(name, "")) for name in KNOWN}
    fixed = tuple(name for name, value in shown.items() if value is None)
    others = tuple((name, words(value)) for name, value in document.fields.items() if name not in KNOWN)
    values = {name: value for name, value in shown.items() if value is not None}
    return Fields(document.bom + document.raw_frontmatter, document.body, values, fixed, others)


def write(head: str, body: str, said: Mapping[str, str]) -> str:
    """The text that a form says: `head` and `body` as `read` gave them, with the inputs that were changed.

    An input that was emptied takes its field away. Raises InvalidFrontmatter where `head` can't be read.
    """
    before = read(head)
    if head and body and not head.endswith(("\n", "\r")):
        head += "\n"
    changed = {name: said[name] for name, value in before.values.items() if said.get(name, value) != value}
    if not changed:
        return head + body
    changes = {name: _value(name, value) for name, value in changed.items()}
    return with_fields(head + body, **changes)


def unwritten(head: str, body: str, said: Mapping[str, str]) -> tuple[Fields, list[Problem]]:
    """What a form says that no text can hold: its parts as they were typed, and what stands against each.

    For where `write` raised InvalidFrontmatter. Raises it too where `head` itself can't be read.
    """
    before = read(head)
    values = {name: said.get(name, value) for name, value in before.values.items()}
    typed = {name: value for name, said in values.items() if (value := _value(name, said)) is not None}
    found = [problem for problem in check(Document(dict(typed), "", body), by_person=True) if problem.field]
    return replace(before, body=body, values=values), found


def sent(text: str) -> str:
    """A form's text with the line ends that it had on the screen."""
    return _END.sub("\n", text)


def with_ends_of(old: str, text: str) -> str:
    """The text, whose lines all end in LF, with the line ends of those lines of `old` that are still there."""
    if "\r" not in old:
        return text
    if sent(old) == text:
        return old
    before, after = _lines(old), _lines(text)
    common = Counter(end for _, end in before if end).most_common(1)
    ends = [(common[0][0] if common else "\n") if end else "" for _, end in after]
    pairs = matches([line for line, _ in before], [line for line, _ in after], Budget())
    for at, now in pairs:
        if before[at][1] and ends[now]:
            ends[now] = before[at][1]
    return "".join(line + end for (line, _), end in zip(after, ends, strict=True))


def words(value: Value) -> str:
    """A field's value on one line, to look at."""
    if isinstance(value, list):
        return ", ".join(map(words, value))
    if isinstance(value, dict):
        return "; ".join(f"{key}: {words(inner)}" for key, inner in value.items())
    return value


def _shown(name: str, value: Value) -> str | None:
    """What an input shows of a value: one line. None where it can't."""
    if name == "tags" and isinstance(value, list):
        if not all(isinstance(tag, str) and "," not in tag for tag in value):
            return None
        value = ", ".join(map(str, value))
    # A browser drops line breaks from a value without a word, and the form would come back changed.
    return value if isinstance(value, str) and not _END.search(value) else None


def _value(name: str, said: str) -> Value | None:
    said = " ".join(said.split()) if name != "tags" else said
    if name != "tags":
        return said or None
    return [tag for part in said.split(",") if (tag := " ".join(part.split()))] or None


def _lines(text: str) -> list[tuple[str, str]]:
    """Lines and their ends; the last may have none."""
    found, at = [], 0
    for end in _END.finditer(text):
        found.append((text[at : end.start()], end[0]))
        at = end.end()
    return [*found, (text[at:], "")] if at < len(text) else found
