"""What a mind is shown of the memory, and what it gives back."""

from dataclasses import dataclass, field
from typing import Final

from dream.distill_shapes import OWN_AGENT, PERSON, TOOL_OUTPUT, SeenEvent

MOST_GIST_LINES: Final = 5
GIST_LINE: Final = 300


class Malformed(ValueError):
    """The answer does not follow the form; the message says what is wrong, for the model to read."""


class Refused(ValueError):
    """The model declined."""


@dataclass(frozen=True)
class KnownNote:
    """A note as it stands, or as a dream has proposed it. Only a note shown whole may be rewritten or deleted."""

    path: str
    text: str
    by_person: bool = False
    is_whole: bool = True
    is_pinned: bool = False


@dataclass(frozen=True)
class Rejected:
    """A path that is closed to dreams (line None), or a line that people turned down."""

    path: str
    line: str | None


@dataclass(frozen=True)
class Cited:
    """A line of the note and the event it rests on. Tier 1 is a person's prompt, 2 an agent's doing, 3 tool output."""

    line: str
    event: str
    tier: int


@dataclass(frozen=True)
class Proposed:
    """A change to one note. `member` is the handle whose private space it is in; None is the team's.

    `operation` is what the review is asked for, `kind` what the mind meant by it.
    """

    path: str
    text: str
    cited: tuple[Cited, ...]
    reason: str = ""
    member: str | None = None
    operation: str = "write"
    kind: str = "rewrite"


@dataclass(frozen=True)
class GistLine:
    text: str
    events: tuple[str, ...]


@dataclass(frozen=True)
class Gist:
    """What one session was about, in at most five lines, each with the events it rests on."""

    session: str
    lines: tuple[GistLine, ...]


@dataclass
class Read:
    """The proposals and summaries of an answer, and what was left out of it, with the reason."""

    proposed: list[Proposed] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    gists: list[Gist] = field(default_factory=list)


def tier_of(event: SeenEvent) -> int:
    """How far an event is trusted as a source."""
    if event.name == "prompt" and not event.agent_id:
        return PERSON
    return TOOL_OUTPUT if event.name in ("tool_after", "tool_failed") else OWN_AGENT
