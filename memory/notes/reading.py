"""What the pages of notes and proposals show: one query a list."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Case, Count, IntegerField, Max, Min, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce
from django.utils.translation import gettext, gettext_noop, ngettext

from memory.events.models import Event, Session
from memory.events.reading import asked
from memory.notes import reach
from memory.notes.frontmatter import Document, InvalidFrontmatter, split
from memory.notes.lines import HEADING, normal
from memory.notes.models import Comment, Note, Proposal, Revision, Source, Tombstone
from memory.notes.publish import title_of
from memory.tenants.access import Actor

LEVELS = {"high": gettext_noop("High risk"), "medium": gettext_noop("Medium risk"), "low": gettext_noop("Low risk")}
MOST_SOURCES = 60
MOST_DELETED = 100
RISK = Case(
    When(risks__0__level="high", then=Value(0)),
    When(risks__0__level="medium", then=Value(1)),
    default=Value(2),
    output_field=IntegerField(),
)


def queue(by: Actor) -> QuerySet[Proposal]:
    """Open proposals this person may see, the riskiest and oldest first."""
    standing = Comment.objects.filter(removed_at__isnull=True)
    rows: QuerySet[Proposal] = (
        _in_order(by)
        .annotate(source_count=_counted(Source.objects.all()), comment_count=_counted(standing))
        .select_related("note", "note__member", "base", "decided_by", "assigned_to")
    )
    return rows


def _counted(rows: QuerySet[Any]) -> Coalesce:
    """How many of the rows a proposal has: counted for those shown, where a join would count for the whole queue."""
    of_one = rows.filter(proposal=OuterRef("pk")).order_by().values("proposal").annotate(n=Count("pk")).values("n")
    return Coalesce(Subquery(of_one), 0)


def waiting(by: Actor) -> QuerySet[Proposal]:
    """The same as a plain set, to be counted."""
    return reach.proposals(by.member_pk).open()


def _in_order(by: Actor) -> Any:
    """The bare queue with its risks. Any, since the type stubs forget annotations of a QuerySet[Proposal]."""
    return waiting(by).annotate(risk=RISK).order_by("risk", "created_at", "pk")


@dataclass(frozen=True)
class Group:
    """The proposals of one risk: the first of them, and how many there are."""

    risk: str
    label: str
    proposals: list[Proposal]
    count: int


def groups(
    by: Actor, *, risk: str = "", after: list[Any] | None = None, most: int, is_mine: bool = False
) -> list[Group]:
    """The queue by risk, up to `most` of each; with `risk` only that one, from a position on; or what is given to the
    asker.
    """
    mine = Q(assigned_to_id=by.member_pk) if is_mine else Q()
    of_risk = _in_order(by).filter(mine).order_by().values("risk").annotate(n=Count("pk"))
    counts = Counter(dict(of_risk.values_list("risk", "n")))
    found = []
    for level, (name, label) in enumerate(LEVELS.items()):
        if counts[level] and risk in ("", name):
            # First which, then all about those: texts and counts are read of those shown and not of the whole queue.
            rows = _behind(_in_order(by).filter(mine, risk=level), after)
            shown = queue(by).filter(pk__in=list(rows.values_list("pk", flat=True)[:most]))
            found.append(Group(name, gettext(label), titled(shown), counts[level]))
    return found


def position(proposal: Proposal) -> list[Any]:
    """Where a proposal stands among those of its risk."""
    return [proposal.created_at.isoformat(), str(proposal.pk)]


def _behind(rows: QuerySet[Proposal], after: list[Any] | None) -> QuerySet[Proposal]:
    if after is None:
        return rows
    at, pk = datetime.fromisoformat(after[0]), after[1]
    return rows.filter(Q(created_at__gt=at) | Q(created_at=at, pk__gt=pk))


def titled(proposals: Iterable[Proposal]) -> list[Proposal]:
    """The proposals of a list, each with the title and the description its text gives it."""
    rows = list(proposals)
    for proposal in rows:
        said = document(proposal.text)
        proposal.title = title_of(said, proposal.note.path)  # type: ignore[attr-defined]
        proposal.description = said.field("description")  # type: ignore[attr-defined]
    return rows


def title(text: str, note: Note) -> str:
    """What a text calls itself."""
    return title_of(document(text), note.path)


def document(text: str) -> Document:
    """A text and its frontmatter; a broken frontmatter is shown as text."""
    try:
        return split(text)
    except InvalidFrontmatter:
        return Document(None, "", text)


@dataclass(frozen=True)
class Place:
    """Where a proposal stands in the queue, and the ids beside it."""

    position: int = 0
    total: int = 0
    previous: str = ""
    next: str = ""


def place_of(proposal: Proposal, *, by: Actor) -> Place:
    """The neighbours of a proposal in the queue; a decided one has the head of the queue before it."""
    # Ids alone: the texts of a long queue are megabytes, and only the neighbours' ids are shown.
    ids = list(_in_order(by).values_list("public_id", flat=True))
    if proposal.public_id not in ids:
        return Place(total=len(ids), next=ids[0] if ids else "")
    at = ids.index(proposal.public_id)
    return Place(at + 1, len(ids), ids[at - 1] if at else "", ids[at + 1] if at + 1 < len(ids) else "")


def evidence(sources: QuerySet[Source]) -> list[Source]:
    """The sources of a text with their events and sessions, in order of the lines."""
    rows = sources.select_related("event", "event__session").order_by("position", "pk")
    return list(rows.defer("event__body", "event__head", "event__tail")[:MOST_SOURCES])


def below_title(body: str, title: str) -> str:
    """The body without a first heading that only repeats the title, which a page shows above it."""
    first, _, rest = body.lstrip().partition("\n")
    return rest if HEADING.match(first) and normal(first.lstrip("#")) == normal(title) else body


# Our own rules' word for a proposal made without a model; a model gives a reason instead.
BY_RULES = "Made by distill (rules, no model)."


def made_from(proposal: Proposal) -> str:
    """Why a proposal was made, in plain words; for one made by rules, from how many sessions."""
    if proposal.author_kind != "dream" or proposal.reason != BY_RULES:
        return proposal.reason
    count = proposal.sources.aggregate(count=Count("event__session", distinct=True))["count"]
    words = ngettext(
        "From %(count)s session, by rules without a model.", "From %(count)s sessions, by rules without a model.", count
    )
    return words % {"count": count}


_SUCCESSOR: Final = re.compile(r"prp_[0-9a-z]{26}")
_YAML = re.compile(r"(Line \d+: )[^\n]*? Quote a value that has : or # in it\.")


def successor(replaced: Proposal) -> Proposal | None:
    """The proposal that took the place of one, where one did."""
    named = _SUCCESSOR.search(replaced.decision_reason) if replaced.state == "superseded" else None
    return replaced.note.proposals.filter(public_id=named[0]).first() if named else None


def plain_words(problem: str) -> str:
    """What is wrong with a text, without the words of the YAML reader."""
    return _YAML.sub(lambda found: found[1] + gettext("this is not `key: value`; put the value in quotes."), problem)


def visible(by: Actor) -> QuerySet[Note]:
    """The live notes this person may read."""
    return shown(reach.notes(by.member_pk).present())


def kept(by: Actor) -> QuerySet[Note]:
    """The notes this person may read, with the deleted ones: their history stays."""
    return shown(reach.notes(by.member_pk).filter(current__isnull=False))


def deleted(by: Actor) -> list[Note]:
    """The notes that were deleted, the latest first, each with a `why` and whether its words `may_return`."""
    gone = reach.notes(by.member_pk).filter(current__isnull=False, deleted_at__isnull=False)
    # Their keys first: what is shown of a note would be put together for all that were ever deleted.
    latest = list(gone.order_by("-deleted_at", "-pk").values_list("pk", flat=True)[:MOST_DELETED])
    rows = shown(Note.objects.filter(pk__in=latest)).order_by("-deleted_at", "-pk")
    reasons = Tombstone.objects.filter(note__in=[row.pk for row in rows], line__isnull=True).order_by(
        "created_at", "pk"
    )
    why = dict(reasons.values_list("note_id", "reason"))
    for row in rows:
        row.why = why.get(row.pk, "")  # type: ignore[attr-defined]
        row.may_return = row.current is not None and row.current.blanked_at is None  # type: ignore[attr-defined]
    return list(rows)


def shown(notes: QuerySet[Note]) -> QuerySet[Note]:
    """Notes with what pages show of them, by space and path."""
    return (
        notes.select_related("current", "member", "project")
        .annotate(proposal_count=Count("proposals", filter=Q(proposals__state="open")))
        .order_by("member__handle", "path_key", "pk")
    )


def citing(event: Event, *, by: Actor) -> QuerySet[Note]:
    """The notes whose current text rests on an event."""
    cited = Source.objects.filter(event=event, revision__isnull=False).values("revision_id")
    return visible(by).filter(current_id__in=cited)


@dataclass(frozen=True)
class ToldTo:
    """How often a note was told, and to how many sessions."""

    times: int
    sessions: int


def told(note: Note) -> ToldTo:
    """How often, over all its revisions. Sessions that were deleted are not counted: nothing is left of them."""
    rows = note.told.filter(telling__session__deleted_at__isnull=True)
    found = rows.aggregate(times=Count("pk"), sessions=Count("telling__session", distinct=True))
    return ToldTo(found["times"], found["sessions"])


def told_sessions(note: Note, *, by: Actor, after: list[Any] | None = None) -> QuerySet[Session]:
    """The sessions that were told the note and that this reader may see, the latest first.

    Each with `times`, `first_told`, `last_told`, and `told_revision`, the number of the latest revision it was told.
    """
    if not by.may("session.read"):
        return Session.objects.none()
    of_note = Q(tellings__notes__note=note)
    rows: QuerySet[Session] = Session.objects.filter(of_note).annotate(
        times=Count("tellings__notes", filter=of_note),
        first_told=Min("tellings__at"),
        last_told=Max("tellings__at"),
        told_revision=Max("tellings__notes__revision__number", filter=of_note),
    )
    if after:
        at, pk = datetime.fromisoformat(after[0]), after[1]
        rows = rows.filter(Q(last_told__lt=at) | Q(last_told=at, pk__lt=pk))
    return asked(rows.select_related("project", "member")).order_by("-last_told", "-pk")


def history(note: Note) -> QuerySet[Revision]:
    """All revisions, the newest first."""
    return note.revisions.select_related("approved_by").order_by("-number")
