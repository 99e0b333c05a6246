"""What people said themselves: the only text that a rule may let in without a person looking at it.

A tier says where a line came from, as far as whoever wrote the line tells the truth: a model that obeys a poisoned page
may cite a prompt for it, put it into a heading or a title where nothing is cited, or a person may have pasted it from
somewhere. So the words themselves are looked for in what people typed, and two people must have typed them.
"""

import re
from collections.abc import Iterable
from typing import Final

from memory.events import bodies
from memory.events.blocks import without_injected
from memory.events.models import Event
from memory.events.working import BY
from memory.graph.models import Worker
from memory.notes.lines import new_statements, normal
from memory.notes.models import Source
from memory.problems import Problem

PEOPLE: Final = 2
# Of fewer words than this the same stand in many prompts by chance.
FEWEST_WORDS: Final = 3
_WORD: Final = re.compile(r"\w+")
_MARKS: Final = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
# Fields that our own code writes, and what it writes around people's words.
_OURS: Final = re.compile(r"(?:---|made_by: .*)$")
_FIELD: Final = re.compile(r"(?:title|description|kind|tags):")


def is_vouched(text: str, old: str, *, path: str, sources: Iterable[Source]) -> bool:
    """True where every line that `text` adds to `old` was typed by two people, or says nothing that they did not.

    Statements must stand in the prompts they cite, word by word. A heading, a title, a description or a remark may
    only be put together from the words of those statements, of the path and of the old text.
    """
    statements = new_statements(text, old)
    if not statements:
        return False
    by_line: dict[str, list[Event]] = {}
    for source in sources:
        by_line.setdefault(normal(source.line), []).append(source.event)
    said = _Said({str(event.pk): event for events in by_line.values() for event in events})
    if any(len(said.people(line, by_line.get(normal(line), ()))) < PEOPLE for line in statements):
        return False
    known = {word for piece in (*statements, path, old) for word in words(piece)}
    stated = {normal(line) for line in (*statements, *old.split("\n"))}
    others = [line for line in text.split("\n") if normal(line) not in stated and not _OURS.match(line)]
    return all(set(words(_FIELD.sub("", line))) <= known for line in others)


def words(text: str) -> list[str]:
    """The words of a text without case and marks, in order."""
    return _WORD.findall(text.casefold())


class _Said:
    """What people typed in the events that lines cite."""

    def __init__(self, events: dict[str, Event]) -> None:
        handed = relayed(event.session.public_id for event in events.values())
        self._typed = {pk: _typed(event) for pk, event in events.items() if event.session.public_id not in handed}

    def people(self, line: str, cited: Iterable[Event]) -> set[str]:
        """Who typed the line, by their keys."""
        wanted = words(_MARKS.sub("", line))
        if len(wanted) < FEWEST_WORDS:
            return set()
        needle = f" {' '.join(wanted)} "
        found = (self._typed.get(str(event.pk)) for event in cited)
        return {one[0] for one in found if one and needle in one[1]}


def _typed(event: Event) -> tuple[str, str] | None:
    """Who typed a prompt, and its words; None for any other event, and for what one agent asked another."""
    member = event.member_id or event.session.member_id
    if event.kind != "prompt" or event.agent_id or member is None:
        return None
    try:
        payload = bodies.payload(event)
    except Problem:
        return None
    inner = payload.get("tool_info")
    prompts = (payload.get("prompt"), inner.get("user_prompt") if isinstance(inner, dict) else None, event.summary)
    said = next((one for one in prompts if isinstance(one, str) and one.strip()), "")
    return str(member), f" {' '.join(words(without_injected(said)))} "


def relayed(session_ids: Iterable[str]) -> set[str]:
    """Of these sessions, by public id, those that an agent started as its workers.

    What is asked there came from a message or a webhook, not from a person.
    """
    given = Worker.objects.filter(session_public_id__in=set(session_ids)).exclude(by=BY)
    return set(given.values_list("session_public_id", flat=True))
