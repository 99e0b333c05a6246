"""What a text must be to become a note: without secrets, readable, short enough; and the events its lines rest on."""

from dataclasses import dataclass
from typing import Final, NoReturn

from django.utils.translation import gettext, ngettext

from memory import redact
from memory.events.models import Event
from memory.notes import frontmatter
from memory.notes.models import Proposal, Source
from memory.notes.publish import positions
from memory.tenants.access import Actor

# What a text counts as where it cites nothing: a person's own words, or an agent's.
UNCITED: Final = {"member": 1, "command": 1}


class InvalidNote(ValueError):
    """The text can't be a note; `problems` say what to mend."""

    def __init__(self, problems: list[frontmatter.Problem]) -> None:
        super().__init__(" ".join(problem.detail for problem in problems))
        self.problems = problems


class UnknownEvent(ValueError):
    """A line cites an event that this team does not have."""


@dataclass(frozen=True)
class Evidence:
    """The event that one line of a draft rests on, and how far it can be trusted (0 best, 3 least)."""

    line: str
    event_pk: str
    tier: int


@dataclass(frozen=True)
class Clean:
    """A text fit to be stored, and how many secrets were taken out of it."""

    text: str
    redactions: int


def clean(text: str, by: Actor) -> Clean:
    """The text as it is stored. Raises InvalidNote."""
    is_person = by.kind in UNCITED
    most = frontmatter.PERSON_NOTE_BYTES if is_person else frontmatter.MACHINE_NOTE_BYTES
    size = len(text.encode("utf-8", "surrogatepass"))
    # A huge text is refused before anything reads it; check() says the same of what is left after redaction.
    if size > 2 * most:
        _too_long(size, most)
    cleaned = redact.clean_text(frontmatter.clean(text))
    try:
        document = frontmatter.split(cleaned.value)
    except frontmatter.InvalidFrontmatter as error:
        raise InvalidNote([frontmatter.Problem("invalid_frontmatter", "", str(error))]) from None
    if problems := frontmatter.check(document, by_person=is_person):
        raise InvalidNote(problems)
    return Clean(cleaned.value, cleaned.redactions)


def _too_long(size: int, most: int) -> NoReturn:
    advice = gettext("The note has %(size)s bytes; split it, or shorten it to %(most)s KB.") % {
        "size": size,
        "most": most // 1024,
    }
    raise InvalidNote([frontmatter.Problem("note_too_long", "", advice)])


def cite(proposal: Proposal, evidence: tuple[Evidence, ...]) -> None:
    """One row a line and event. A line that merging took away keeps its event under the line's own text."""
    asked = {str(one.event_pk) for one in evidence}
    known = {str(pk) for pk in Event.objects.filter(pk__in=asked).values_list("pk", flat=True)}
    if missing := asked - known:
        words = ngettext(
            "%(missing)s cited event is not this team's.", "%(missing)s cited events are not this team's.", len(missing)
        )
        raise UnknownEvent(words % {"missing": len(missing)})
    place = positions(proposal.text)
    cited = set(proposal.sources.values_list("line", "event_id"))
    fresh: dict[tuple[str, str], Source] = {}
    for one in evidence:
        line = redact.clean_text(one.line).value
        if not any(line == old and str(one.event_pk) == str(event) for old, event in cited):
            fresh[line, str(one.event_pk)] = Source(
                tenant_id=proposal.tenant_id,
                proposal=proposal,
                event_id=one.event_pk,
                line=line,
                position=place.get(line, 0),
                tier=one.tier,
            )
    Source.objects.bulk_create(fresh.values())
