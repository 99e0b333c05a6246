"""Which notes go whole into an answer, which as one line, and what the last line says. Text in, text out."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

from memory.recall.envelope import Told, one_line, safe, seal, sealed_size, size
from memory.recall.forgery import shut

# Fits Claude Code's 10,000 characters, and Codex's 2,500 tokens for most text.
BUDGET: Final = 7_500
_INDEX: Final = 1_200  # kept free for the lines of notes that do not fit
_LINE: Final = 240
_FILES: Final = 2_400
NOT_TOLD: Final = "notes that are not told here"

# Only doors that the asking client has: whoever comes through hook.py has no key in the agent's own environment.
HELP_BY_CLIENT: Final = """more
Before work on something the team may have met before, its memory can be searched from a shell:
python3 ~/.config/team-memory/hook.py search WORDS (on Windows: py -3 "$env:APPDATA\\team-memory\\hook.py" search WORDS)
The same with `recall ID` opens any id that stands here or in a hit: a note nte_…, a session ses_…, an event evt_…
A person of the team decides what becomes a note: say what was learnt in your last message, and it is proposed."""
HELP: Final = """more
Before work on something the team may have met before, its notes can be searched from a shell:
curl -sG -H "Authorization: Bearer $TEAM_MEMORY_KEY" "$TEAM_MEMORY_URL/api/v1/notes" --data-urlencode "q=WORDS"
The same for /api/v1/notes/nte_… (one note with its sources) and /api/v1/events/evt_…/payload (what happened, raw).
PUT of markdown to /api/v1/notes/by-path/team/PATH.md (If-Match: its ETag) proposes a change; a person decides."""


@dataclass(frozen=True)
class Candidate:
    """A note that may be told, in order of priority, and the reason to tell it. `text` is None where it is too long."""

    note_id: str
    revision_id: str
    number: int
    tier: int
    source_count: int
    path: str
    title: str
    description: str
    text: str | None
    why: str
    # Told whole only where all notes are.
    is_record: bool = False

    # Kept: making an answer fit asks for both several times.
    @cached_property
    def section(self) -> str | None:
        """The whole note; None where it can't fit any answer."""
        if self.text is None:
            return None
        told = Told(
            self.note_id, self.revision_id, self.number, self.tier, self.source_count, self.path, self.title, self.text
        )
        return f"{told.heading}\n{shut(safe(self.text).strip())}"

    @cached_property
    def line(self) -> str:
        """The note in an index."""
        about = one_line(self.description or self.title)
        line = f"- {one_line(self.path)} [{self.note_id}]{': ' if about else ''}{about}"
        return line if size(line) <= _LINE else line[: _LINE // 2] + "…"


@dataclass(frozen=True)
class Answer:
    """The block, the candidates that are whole in it, and how many notes are not."""

    text: str
    told: tuple[Candidate, ...]
    left_out: int


@dataclass(frozen=True)
class Beside:
    """What stands beside the notes of a start: how many more there are, and lines about sessions and files."""

    more: int = 0
    sessions: Sequence[str] = ()
    files: Sequence[str] = ()
    by_client: bool = False


def at_start(notes: Sequence[Candidate], beside: Beside, *, key: bytes) -> Answer | None:
    """The answer to a session's start; None where there is nothing to tell.

    What changes most stands last: sessions and files after notes, so that a provider's prefix cache holds as long as
    it can.
    """
    more = beside.more
    if not notes and not beside.sessions and not beside.files and not more:
        return None
    tail = [HELP_BY_CLIENT if beside.by_client else HELP]
    if beside.sessions:
        tail.append(_section("this member's last sessions in this project", beside.sessions))
    if beside.files:
        tail.append(_section("files that this session read again and again", _fitting(beside.files, _FILES)))
    last = partial(_last, by_client=beside.by_client)
    fixed = [*tail, last(999_999, 999_999)]
    told, rest = _whole(notes, fixed, budget=BUDGET)
    if rest or more:
        told, rest = _beside_an_index(notes, fixed)
    sections = [section for note in told if (section := note.section)]
    listed = _listed(rest, [*sections, *fixed])
    if listed:
        sections.append(_section(NOT_TOLD, listed))
    left_out = len(rest) + more
    return Answer(seal([*sections, *tail, last(left_out, len(listed))], key=key), tuple(told), left_out)


def at_prompt(notes: Sequence[Candidate], *, key: bytes) -> Answer | None:
    """The answer to a prompt: notes in order of fit, whole where they fit, else in one line each."""
    if not notes:
        return None
    fixed = [_last(999_999, 999_999)]
    told, rest = _whole(notes, fixed, budget=BUDGET - _LINE * len(notes))
    sections = [section for note in told if (section := note.section)]
    listed = [note.line for note in rest]
    if listed:
        sections.append(_section("also about this, too long to be told here", listed))
        sections.append(_last(len(rest), len(listed)))
    return Answer(seal(sections, key=key), tuple(told), len(rest))


def _beside_an_index(notes: Sequence[Candidate], fixed: list[str]) -> tuple[list[Candidate], list[Candidate]]:
    """Whole notes in order, records left to the index, with as much room for the index as its lines need."""
    worth = [note for note in notes if not note.is_record]
    reserve = 0
    while True:
        told, _ = _whole(worth, fixed, budget=BUDGET - reserve)
        rest = [note for note in notes if note not in told]
        needed = min(_INDEX, _needed(_section(NOT_TOLD, [note.line for note in rest])))
        if needed <= reserve:
            return told, rest
        reserve = needed


def _whole(notes: Sequence[Candidate], fixed: list[str], *, budget: int) -> tuple[list[Candidate], list[Candidate]]:
    """Whole notes in order, while they fit; a long one does not keep the shorter ones after it out."""
    told: list[Candidate] = []
    rest: list[Candidate] = []
    room = budget - sealed_size(fixed)
    for note in notes:
        section = note.section
        needed = _needed(section) if section is not None else budget
        if needed <= room:
            told.append(note)
            room -= needed
        else:
            rest.append(note)
    return told, rest


def _listed(rest: Sequence[Candidate], sections: list[str]) -> list[str]:
    lines: list[str] = []
    room = BUDGET - sealed_size([*sections, _section(NOT_TOLD, [])])
    for note in rest:
        room -= size(note.line) + 1
        if room < 0:
            break
        lines.append(note.line)
    return lines


def _needed(section: str) -> int:
    """What a section adds: itself, its boundary and the line end."""
    return size(section) + 20


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *lines])


def _fitting(lines: Sequence[str], room: int) -> list[str]:
    """The first lines, as far as they fit."""
    kept: list[str] = []
    for line in lines:
        room -= size(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept


def _last(left_out: int, listed: int, *, by_client: bool = False) -> str:
    if not left_out:
        return "Nothing was left out."
    notes = "1 note was" if left_out == 1 else f"{left_out} notes were"
    where = "listed above" if listed == left_out else f"{listed} of them listed above" if listed else "none listed"
    if by_client:
        return f"{notes} left out for space, {where}. Fetch: hook.py search WORDS, then hook.py recall ID."
    return f'{notes} left out for space, {where}. Fetch: GET "$TEAM_MEMORY_URL/api/v1/notes", then /api/v1/notes/ID.'
