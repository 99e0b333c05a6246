"""What sessions would have been told, had a proposal been approved before they ran.

The proposal is let in inside a savepoint, the last sessions are told again by the very code that tells, and the
savepoint is rolled back: nothing is written, and nothing can differ from what really happens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from django.db import transaction

from memory.events.models import Event, Session
from memory.notes.holding import as_proposed, locked
from memory.notes.models import Note, Proposal
from memory.notes.publish import all_sources, publish, sources_of
from memory.recall import inject, scope, search
from memory.recall.compose import Candidate
from memory.tenants.access import Actor

LAST: Final = 20
# Of a session that is not told at its start, the last prompts are tried.
PROMPTS: Final = 3


@dataclass(frozen=True)
class Telling:
    """One session, and how it would have been told: whole, line, prompt, or not at all ("")."""

    session: Session
    how: str
    prompt: str = ""


@dataclass(frozen=True)
class Foretold:
    """The last sessions in reach, and the text as they would have read it."""

    tellings: list[Telling] = field(default_factory=list)
    text: str = ""

    @property
    def told(self) -> int:
        return sum(bool(one.how) for one in self.tellings)


def foretell(proposal: Proposal, *, by: Actor) -> Foretold:
    """For an open proposal; of a deletion or a move, what sessions are told of the note as it is."""
    with transaction.atomic():
        note = locked(proposal.note)
        if proposal.operation == "write":
            sources = all_sources(list(proposal.sources.order_by("position", "pk")), sources_of(note))
            publish(note, as_proposed(proposal, by), sources=sources)
        found = _told(note)
        transaction.set_rollback(True)
    return found


def _told(note: Note) -> Foretold:
    starts: dict[tuple[str, str], tuple[str, Candidate | None]] = {}
    tellings, section = [], ""
    known = search.words_of(note) if note.current else frozenset()
    for session in _sessions(note):
        key = (str(session.project_id), str(session.member_id))
        if key not in starts:
            starts[key] = _at_start(note, session)
        how, candidate = starts[key]
        # Without its first line: that names a revision that there never was.
        section = section or (candidate.section or "" if candidate else "").partition("\n")[2]
        prompt = "" if how == "whole" else _at_prompt(note, session, known)
        tellings.append(Telling(session, "prompt" if prompt else how, prompt))
    return Foretold(tellings, section)


def _sessions(note: Note) -> Sequence[Session]:
    """The last sessions that the note is in reach of."""
    rows = Session.objects.filter(tenant_id=note.tenant_id, is_internal=False)
    if note.member_id is not None:
        rows = rows.filter(member_id=note.member_id)
    if note.project is not None:
        rows = rows.filter(project__in=scope.same_project(note.project))
    elif note.path_key.startswith("project/"):
        rows = rows.none()
    return list(rows.select_related("project", "member", "tenant").order_by("-last_received_at", "-pk")[:LAST])


def _at_start(note: Note, session: Session) -> tuple[str, Candidate | None]:
    answer, candidates = inject.composed_start(session, member=session.member)
    mine = next((one for one in candidates if one.note_id == note.public_id), None)
    if answer is None or mine is None:
        return "", mine
    if mine in answer.told:
        return "whole", mine
    return ("line" if mine.line in answer.text else ""), mine


def _at_prompt(note: Note, session: Session, known: frozenset[str]) -> str:
    """The first line of the last prompt that the note would have come with, or ""."""
    rows = Event.objects.filter(session=session, kind="prompt").exclude(summary="").order_by("-seq")
    for prompt in rows.values_list("summary", flat=True)[:PROMPTS]:
        # All notes in reach are weighed for a prompt: only for one that this note has a word of.
        if search.has_any(prompt, known) and any(
            hit.note.pk == note.pk for hit in inject.fitting_prompt(session, prompt, member=session.member)
        ):
            return str(prompt)
    return ""
