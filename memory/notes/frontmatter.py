"""Frontmatter: a strict reader and a careful writer of the YAML block at the head of a note.

Every value is text, a list or a mapping: `no`, `10:00` and `1.10` stay the characters that were written. No aliases,
tags or duplicate keys, at most 4 KB and 4 levels. Reading never changes a byte; writing touches the named keys only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from django.utils.translation import gettext

from memory.notes import yamltext
from memory.notes.yamltext import InvalidFrontmatter, Value

__all__ = ["Document", "InvalidFrontmatter", "Problem", "Value", "check", "clean", "compose", "split", "with_fields"]

Fields: TypeAlias = dict[str, Value]

MAX_BYTES = yamltext.MAX_BYTES
MACHINE_NOTE_BYTES = 4096  # a note of an agent or a dream stands alone in a prompt; a person's may be longer
PERSON_NOTE_BYTES = 65536
MAX_TITLE = 200
MAX_DESCRIPTION = 200
MAX_KIND = 40
MAX_TAGS = 20
MAX_TAG = 40

_BOM = "\ufeff"
_RULE = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)
# What a mapping begins with: a quoted or plain key and a colon. Prose between two rules is not frontmatter.
_KEY = re.compile(r"""[ ]*(?:"[^"\n]*"|'[^'\n]*'|[^\s#?:,\[\]{}&*!|>'"%@`-][^\n]*?)[ \t]*:(?:\s|$)""")


@dataclass(frozen=True)
class Document:
    """A note's text in its parts; put together again they are the text, byte for byte."""

    frontmatter: Fields | None
    raw_frontmatter: str  # with its delimiter lines
    body: str
    bom: str = ""

    @property
    def text(self) -> str:
        return self.bom + self.raw_frontmatter + self.body

    @property
    def fields(self) -> Fields:
        """The frontmatter, empty where there is none."""
        return self.frontmatter or {}

    def field(self, name: str) -> str:
        """The field's text, empty where it is missing or is no text."""
        value = self.fields.get(name, "")
        return value if isinstance(value, str) else ""


@dataclass(frozen=True)
class Problem:
    """Why a note can't be accepted as it is: a stable code, the field, and what to do."""

    code: str
    field: str
    detail: str


def clean(text: str) -> str:
    """The text to store: without a byte order mark, otherwise as it came. Cleaning twice changes nothing."""
    return text.lstrip(_BOM)


def split(text: str) -> Document:
    """The note in its parts; InvalidFrontmatter where the block looks like keys and can't be read.

    Dashed lines around prose, banners of dashes and rules further down belong to the body.
    """
    plain = text.lstrip(_BOM)
    bom = text[: len(text) - len(plain)]
    block = _block(plain)
    if block is None:
        return Document(None, "", plain, bom)
    inner, end = block
    fields = _read(inner)
    if fields is None:
        return Document(None, "", plain, bom)
    return Document(fields, plain[:end], plain[end:], bom)


def compose(fields: Mapping[str, Value], body: str) -> str:
    """A note of these fields and this body; `split` gives both back, character for character."""
    if not fields and _is_body_alone(body):
        return body
    lines = "".join(f"{yamltext.scalar(key)}: {yamltext.inline(value)}\n" for key, value in fields.items())
    yamltext.read(lines)
    return f"---\n{lines}---\n{body}"


def with_fields(text: str, /, **changes: Value | None) -> str:
    """The text with the named fields set (None removes one); every other line stays as it is."""
    document = split(text)
    if document.frontmatter is None:
        return compose({key: value for key, value in changes.items() if value is not None}, document.body)
    wanted: Fields = {**document.frontmatter, **{key: value for key, value in changes.items() if value is not None}}
    for key in [key for key, value in changes.items() if value is None]:
        wanted.pop(key, None)
    edited = _edited(document, changes)
    # Rare forms (a block in braces, explicit "?" keys) can't be edited line by line: write the block afresh.
    if edited is None or not _reads_as(edited, wanted, document.body):
        return compose(wanted, document.body)
    return edited


def check(document: Document, *, by_person: bool = False) -> list[Problem]:
    """What must be mended before the note is accepted: sizes and the four known fields. Unknown keys are kept."""
    limit = PERSON_NOTE_BYTES if by_person else MACHINE_NOTE_BYTES
    size = len(document.text.encode("utf-8", "surrogatepass"))
    problems = []
    if size > limit:
        advice = gettext("The note has %(size)s bytes; split it, or shorten it to %(limit)s KB.") % {
            "size": size,
            "limit": limit // 1024,
        }
        problems.append(Problem("note_too_long", "", advice))
    if not _shows_something(document.body):
        problems.append(Problem("empty_body", "", gettext("Write something below the frontmatter.")))
    if document.frontmatter is None and _is_unclosed(document.body):
        advice = gettext("The frontmatter opened on line 1 is never closed; add a line --- after it.")
        problems.append(Problem("unclosed_frontmatter", "", advice))
    for name, longest in (("title", MAX_TITLE), ("description", MAX_DESCRIPTION), ("kind", MAX_KIND)):
        problems += _check_line(name, document.fields.get(name, ""), longest)
    return problems + _check_tags(document.fields.get("tags", []))


def _shows_something(body: str) -> bool:
    """Whether a reader sees anything. U+FFFD is what a character became that no text may hold."""
    return any(letter != "\ufffd" and unicodedata.category(letter)[0] not in "CZ" for letter in body)


def _block(plain: str) -> tuple[str, int] | None:
    """What stands between the first line `---` and the next one, and where the body begins."""
    opening = _RULE.match(plain)
    if opening is None or opening.end() == len(plain):
        return None
    start = opening.end() + 1
    closing = _RULE.search(plain, start)
    if closing is None:
        return None
    return plain[start : closing.start()], min(closing.end() + 1, len(plain))


def _read(inner: str) -> Fields | None:
    """The block's fields, None where it is prose."""
    must_be_fields = _looks_like_keys(inner)
    if not must_be_fields and len(inner.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        return None
    try:
        fields = yamltext.read(inner, first_line=2).fields
    except yamltext.NotAMapping as error:
        if error.is_text or not inner.partition("\n")[0].strip():
            return None  # an empty line below the rule: a list of the body, as pandoc sees it
        raise
    except InvalidFrontmatter:
        if must_be_fields:
            raise
        return None
    # Headings between two rules are comments to YAML, and text to the person who wrote them.
    return None if not fields and inner.lstrip().startswith("#") else fields


def _looks_like_keys(inner: str) -> bool:
    for line in inner.split("\n"):
        if line.strip() and not line.lstrip().startswith("#"):
            return _KEY.match(line) is not None
    return False


def _is_unclosed(body: str) -> bool:
    opening = _RULE.match(body)
    return opening is not None and _block(body) is None and _looks_like_keys(body[opening.end() + 1 :])


def _is_body_alone(body: str) -> bool:
    try:
        return split(body).body == body
    except InvalidFrontmatter:
        return False


def _edited(document: Document, changes: Mapping[str, Value | None]) -> str | None:
    """The whole text with the changed keys' lines replaced in place, None where the block's form forbids it."""
    raw = document.raw_frontmatter
    start = raw.index("\n") + 1
    inner, _ = _block(raw) or ("", 0)
    ending = "\r\n" if raw[:start].endswith("\r\n") else "\n"
    edited = yamltext.edit(inner, yamltext.read(inner), changes, ending=ending)
    if edited is None:
        return None
    return raw[:start] + edited + raw[start + len(inner) :] + document.body


def _reads_as(text: str, fields: Fields, body: str) -> bool:
    try:
        document = split(text)
    except InvalidFrontmatter:
        return False
    return document.fields == fields and document.body == body


def _check_line(name: str, value: Value, longest: int) -> list[Problem]:
    if not isinstance(value, str):
        return [Problem("wrong_type", name, gettext("Write %(name)s as one line of text.") % {"name": name})]
    if len(value) > longest:
        return [
            Problem(
                "too_long",
                name,
                gettext("Shorten %(name)s to %(longest)s characters; it has %(value)s.")
                % {"name": name, "longest": longest, "value": len(value)},
            )
        ]
    if len(value.splitlines()) > 1:
        return [Problem("not_one_line", name, gettext("Write %(name)s on one line.") % {"name": name})]
    return []


def _check_tags(tags: Value) -> list[Problem]:
    if tags == "":
        return []
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        return [Problem("wrong_type", "tags", gettext("Write tags as a list: [build, ci]."))]
    if len(tags) > MAX_TAGS or any(not 0 < len(tag) <= MAX_TAG for tag in tags):
        return [
            Problem(
                "too_long",
                "tags",
                gettext("Give at most %(max_tags)s tags of 1 to %(max_tag)s characters.")
                % {"max_tags": MAX_TAGS, "max_tag": MAX_TAG},
            )
        ]
    return []
