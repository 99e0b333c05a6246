"""What goes into distil and what comes out, and how a draft is written as a note."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

MADE_BY = "distill (rules, no model)"
NOTICE = "*Made by rules from recorded events, without a model.*"
# Of the text without its citations, which are kept beside it.
MAX_BYTES = 2560
# A session start tells 7,500 characters in all: commands, rules, failures and status of a project fit together.
COMMANDS_BYTES, FAILURES_BYTES = 1850, 1550
MAX_CITATIONS = 3

_TWO_STOPS = re.compile(r"([.!?…])”\.$")
PERSON, OWN_AGENT, TOOL_OUTPUT = 1, 2, 3


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """One recorded event as the dream shows it to a mind."""

    id: str
    session: str
    seq: int
    client: str
    name: str
    at: datetime | None
    member: str | None
    agent_id: str | None
    tool: str | None
    payload: dict[str, Any]
    # When it came in: hooks of most harnesses tell no time of their own.
    heard: datetime | None = None

    @property
    def time(self) -> datetime | None:
        """When it happened, as far as it is known."""
        return self.at or self.heard


@dataclass(frozen=True, slots=True)
class Statement:
    """One line of a note, the events it comes from, and how far its least trusted source is trusted."""

    text: str
    events: tuple[str, ...]
    tier: int


@dataclass(frozen=True, slots=True)
class Section:
    heading: str
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """A note before it is proposed. Sections and statements stand in order of importance."""

    path: str
    title: str
    description: str
    kind: str
    sections: tuple[Section, ...]
    most: int = MAX_BYTES


@dataclass(frozen=True, slots=True)
class Distilled:
    drafts: list[Draft]
    state: dict[str, Any]


def draft(
    path: str,
    title: str,
    description: str,
    *sections: tuple[str, Iterable[Statement]],
    kind: str = "project",
    most: int = MAX_BYTES,
) -> Draft:
    filled = tuple(Section(heading, tuple(_stopped_once(line) for line in lines)) for heading, lines in sections)
    return Draft(path, title, description, kind, tuple(section for section in filled if section.statements), most)


def _stopped_once(line: Statement) -> Statement:
    """No full stop behind a quotation that has its own."""
    return replace(line, text=_TWO_STOPS.sub(r"\1”", line.text))


def render(draft: Draft) -> str:
    """The note as markdown with frontmatter, whole and short: what does not fit is left out, never cut."""
    sections = [(section.heading, list(section.statements)) for section in draft.sections]
    while len(_write(draft, _lines(sections, cited=False)).encode()) > draft.most and _drop_one(sections):
        pass
    return _write(draft, _lines(sections, cited=True))


def _lines(sections: list[tuple[str, list[Statement]]], *, cited: bool) -> list[tuple[str, list[str]]]:
    return [(heading, [_line(s) if cited else f"- {s.text}" for s in rows]) for heading, rows in sections]


def _drop_one(sections: list[tuple[str, list[Statement]]]) -> bool:
    """Take the last line of the longest section, so that no subject vanishes while another still has many."""
    longest = max(range(len(sections)), key=lambda i: (sum(len(s.text) for s in sections[i][1]), i), default=-1)
    if longest < 0 or not sections[longest][1]:
        return False
    sections[longest][1].pop()
    return True


def _line(statement: Statement) -> str:
    cited = ", ".join(statement.events[:MAX_CITATIONS])
    return f"- {statement.text} [{cited}]"


def _write(draft: Draft, sections: list[tuple[str, list[str]]]) -> str:
    head = [
        "---",
        f"title: {quoted(draft.title)}",
        f"description: {quoted(draft.description[:200])}",
        f"kind: {draft.kind}",
        f"tags: [{', '.join(quoted(tag) for tag in _tags(draft))}]",
        f"made_by: {quoted(MADE_BY)}",
        "---",
        f"# {draft.title}",
        "",
        NOTICE,
    ]
    for heading, lines in sections:
        if lines:
            head += ["", f"## {heading}", *lines]
    return "\n".join(head) + "\n"


def _tags(draft: Draft) -> list[str]:
    parts = draft.path.removesuffix(".md").split("/")
    return ["distill", *parts[1:]]


def quoted(text: str) -> str:
    """A JSON string, which is a YAML double-quoted scalar too."""
    return json.dumps(text, ensure_ascii=False)
