"""The small part of YAML that frontmatter may use, read from PyYAML's events with every place kept, and written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import yaml
from django.utils.translation import gettext

Value: TypeAlias = "str | list[Value] | dict[str, Value]"

MAX_BYTES = 4096
MAX_DEPTH = 4

# Written without quotes only where no YAML reader can take it for something else than this text.
_PLAIN = re.compile(r"[A-Za-z_](?:[A-Za-z0-9_./+-]| (?=[A-Za-z0-9_(]))*")
_WORDS_WITH_MEANING = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null"])
_MUST_ESCAPE = re.compile(r'[\\"\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]')
_NOT_TEXT = re.compile("[\x00\ud800-\udfff]")  # no database and no UTF-8 takes these
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


class InvalidFrontmatter(ValueError):
    """The frontmatter can't be read: on which line of the note, and why."""

    def __init__(self, line: int, detail: str) -> None:
        super().__init__(f"Line {line}: {detail}")
        self.line = line
        self.detail = detail


class NotAMapping(InvalidFrontmatter):
    """The block is YAML, but a list or a text instead of keys and values."""

    def __init__(self, line: int, *, is_text: bool) -> None:
        super().__init__(line, gettext("Frontmatter must be keys and values, such as: title: Retry rules"))
        self.is_text = is_text


@dataclass(frozen=True)
class Place:
    """Where a field of the top level stands: its key's first and last character, its value's last."""

    start: int
    key_end: int
    end: int


@dataclass
class Block:
    """What was read: the fields, and where each of them stands in the text."""

    fields: dict[str, Value] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    is_flow: bool = False
    indent: int = 0


def read(text: str, *, first_line: int = 1) -> Block:
    """The fields of a YAML block; InvalidFrontmatter counts lines from `first_line`."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise InvalidFrontmatter(
            first_line, gettext("Frontmatter may have 4 KB; this has %(size)s bytes.") % {"size": size}
        )
    try:
        return _Reader(text, first_line).block()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = first_line + (mark.line if mark else 0)
        detail = f"{error.problem or error.context or 'this is not YAML'}. Quote a value that has : or # in it."
        raise InvalidFrontmatter(line, detail) from error
    except yaml.reader.ReaderError as error:
        line = first_line + text.count("\n", 0, error.position)
        raise InvalidFrontmatter(line, gettext("A control character stands in the frontmatter; remove it.")) from error
    except InvalidFrontmatter:
        raise
    except (ValueError, OverflowError) as error:  # PyYAML lets chr() fail on escapes such as "\UFFFFFFFF"
        raise InvalidFrontmatter(
            first_line, gettext("An escape names no character; write the character itself.")
        ) from error


def edit(text: str, block: Block, changes: Mapping[str, Value | None], *, ending: str) -> str | None:
    """The text with the changed keys' own lines replaced, removed or added at the end.

    None where the form (braces, "? key") leaves no line to replace.
    """
    if block.is_flow:
        return None
    known = [key for key in changes if key in block.places]
    for key in sorted(known, key=lambda key: -block.places[key].start):
        place, value = block.places[key], changes[key]
        colon = text.find(":", place.key_end)
        if colon < 0 or text[place.key_end : colon].strip():
            return None
        if value is None:
            text = text[: place.start - block.indent] + text[place.end :].partition("\n")[2]
        elif value != block.fields[key]:
            text = f"{text[:colon]}: {inline(value)}{text[max(place.end, colon + 1) :]}"
    added = [(key, value) for key, value in changes.items() if key not in block.places and value is not None]
    return text + "".join(f"{' ' * block.indent}{scalar(key)}: {inline(value)}{ending}" for key, value in added)


def inline(value: Value, depth: int = 1) -> str:
    """A value on one line: text, [a, b] or {key: value}."""
    if isinstance(value, str):
        return scalar(value)
    if depth >= MAX_DEPTH:
        raise InvalidFrontmatter(1, gettext("Frontmatter may nest %(max_depth)s levels.") % {"max_depth": MAX_DEPTH})
    if isinstance(value, list):
        return f"[{', '.join(inline(part, depth + 1) for part in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{scalar(key)}: {inline(part, depth + 1)}' for key, part in value.items())}}}"
    raise TypeError(gettext("A field is text, a list or a mapping, not %(type)s.") % {"type": type(value).__name__})


def scalar(text: str) -> str:
    """Text as YAML, in double quotes unless it is plain beyond doubt."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS_WITH_MEANING:
        return text
    return f'"{_MUST_ESCAPE.sub(_escaped, text)}"'


def _escaped(match: re.Match[str]) -> str:
    char = match.group()
    return _ESCAPES.get(char) or f"\\u{ord(char):04x}"


class _Reader:
    """Builds values from events; nesting beyond MAX_DEPTH is refused before it is followed."""

    def __init__(self, text: str, first_line: int) -> None:
        self.text = text
        self.events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.BaseLoader)
        self.first_line = first_line
        self.last_end = 0

    def block(self) -> Block:
        next(self.events)
        event = next(self.events)
        if isinstance(event, yaml.StreamEndEvent):
            return Block()
        root = next(self.events)
        if not isinstance(root, yaml.MappingStartEvent):
            self._finish()
            raise NotAMapping(self._line(root), is_text=isinstance(root, yaml.ScalarEvent))
        block = Block(is_flow=bool(root.flow_style), indent=_start(root).column)
        self._refuse_marks(root)
        self._top_level(block)
        self._finish()
        return block

    def _top_level(self, block: Block) -> None:
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self._key(event, block.fields)
            key_end = _end(event)
            block.fields[key] = self._value(next(self.events), depth=2)
            block.places[key] = Place(_start(event).index, key_end, self.last_end)

    def _value(self, event: yaml.Event, depth: int) -> Value:
        self._refuse_marks(event)
        if isinstance(event, yaml.ScalarEvent):
            self.last_end = self._end_of_text(event)
            return self._text(event)
        if depth > MAX_DEPTH:
            raise InvalidFrontmatter(
                self._line(event), gettext("Frontmatter may nest %(max_depth)s levels.") % {"max_depth": MAX_DEPTH}
            )
        return self._list(depth) if isinstance(event, yaml.SequenceStartEvent) else self._mapping(depth)

    def _list(self, depth: int) -> list[Value]:
        parts: list[Value] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            parts.append(self._value(event, depth + 1))
        self._end_collection(event)
        return parts

    def _mapping(self, depth: int) -> dict[str, Value]:
        fields: dict[str, Value] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self._key(event, fields)
            fields[key] = self._value(next(self.events), depth + 1)
        self._end_collection(event)
        return fields

    def _end_collection(self, event: yaml.Event) -> None:
        # A block collection "ends" where the next token starts, behind comments; a flow one has its bracket.
        if _end(event) > _start(event).index:
            self.last_end = _end(event)

    def _key(self, event: yaml.Event, seen: Mapping[str, Value]) -> str:
        self._refuse_marks(event)
        if not isinstance(event, yaml.ScalarEvent):
            raise InvalidFrontmatter(self._line(event), gettext("A key must be text."))
        key = self._text(event)
        if key in seen:
            raise InvalidFrontmatter(
                self._line(event), gettext("The key %(key)s stands there twice.") % {"key": key[:40]}
            )
        return key

    def _refuse_marks(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise InvalidFrontmatter(
                self._line(event), gettext("Anchors (&) and aliases (*) are not allowed; quote it.")
            )
        if getattr(event, "tag", None):
            raise InvalidFrontmatter(self._line(event), gettext("Tags (!) are not allowed; quote it."))

    def _text(self, event: yaml.ScalarEvent) -> str:
        text = str(event.value)
        if _NOT_TEXT.search(text):
            raise InvalidFrontmatter(
                self._line(event), gettext("An escape names no character; write the character itself.")
            )
        return text

    def _end_of_text(self, event: yaml.ScalarEvent) -> int:
        end = _end(event)
        # The end of a block text (| or >) lies behind its empty lines: those stay where they are.
        return len(self.text[:end].rstrip(" \t\r\n")) if event.style in ("|", ">") else end

    def _finish(self) -> None:
        """Read on to the end: what follows may be broken, or a second document."""
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                raise InvalidFrontmatter(self._line(event), gettext(gettext("Frontmatter must be one document.")))

    def _line(self, event: yaml.Event) -> int:
        return self.first_line + _start(event).line


def _start(event: yaml.Event) -> yaml.Mark:
    return cast(yaml.Mark, event.start_mark)  # the parser always sets both marks


def _end(event: yaml.Event) -> int:
    return cast(yaml.Mark, event.end_mark).index
