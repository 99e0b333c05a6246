"""What of the memory a mind is shown: the notes that the events may touch, found by search, and what was rejected."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from django.db.models import Q

from dream import prompt
from dream.distill_shapes import SeenEvent
from dream.shapes import KnownNote, Rejected
from dream.windows import Subject
from memory import tokens
from memory.events.models import Project
from memory.notes import lines, paths
from memory.notes.frontmatter import InvalidFrontmatter, split
from memory.notes.models import Note, Proposal, Tombstone
from memory.recall import search
from memory.recall.scope import same_project, within_reach
from memory.recall.words import is_telling, terms
from memory.tenants.models import Tenant

# Tokens: notes in full, names of others, and what was rejected, by what the events themselves take. However much a team
# knows, a question about the same events stays within a fifth of its size.
LEAST_NOTES: Final = 1_000
MOST_NOTES: Final = 8_000
NOTES_SHARE: Final = 0.15
NAMES_BUDGET: Final = 200
LEAST_REJECTED: Final = 200
REJECTED_SHARE: Final = 0.04
MOST_FOUND: Final = 40
MOST_NAMED: Final = 200
MOST_REJECTED: Final = 200
# Asked for by what people said; a log of calls would find every note.
LONGEST_QUESTION: Final = 6_000


def notes(
    tenant: Tenant, subject: Subject, events: Sequence[SeenEvent], *, at: datetime | None = None
) -> tuple[KnownNote, ...]:
    """The notes that these events may touch: whole, as far as the budget goes, then others of the project by name.

    Where a dream has proposed a change and nobody has decided, the note is shown as proposed. `at`: as it was then.
    """
    if not events:
        return ()
    found = _ranked(tenant, subject, events)
    room = min(MOST_NOTES, max(LEAST_NOTES, int(NOTES_SHARE * _size(events))))
    shown: list[KnownNote] = []
    whole = names = 0
    for note in found:
        text, by_person = _text_of(note, at)
        if not text:
            continue
        size = tokens.count(text)
        # The note that fits best is shown whatever its size.
        is_whole = (whole + size <= room or not whole) and len(shown) < MOST_FOUND
        whole += size if is_whole else 0
        names += 0 if is_whole else tokens.count(note.path) + 1
        if not is_whole and names > NAMES_BUDGET:
            break
        shown.append(KnownNote(note.path, text, by_person, is_whole, note.is_pinned or _is_pinned(text)))
    # By path, so that the same notes are the same bytes for the provider's cache.
    return tuple(sorted(shown, key=lambda note: (not note.is_whole, paths.path_key(note.path))))


def _ranked(tenant: Tenant, subject: Subject, events: Sequence[SeenEvent]) -> list[Note]:
    """Notes by how well they fit what happened: approved ones by search, proposed ones by the words in common."""
    question = _question(events)
    project = Project.objects.filter(pk=subject.pk).first() if subject.pk else None
    reach = within_reach(same_project(project), None).filter(member__isnull=True)
    by_search = [hit.note for hit in search.fitting(question, reach, tenant, limit=MOST_FOUND)]
    known = {str(note.pk) for note in by_search}
    asked = {term for term in terms(question) if is_telling(term)}
    others = [note for note in _near(subject) if str(note.pk) not in known]
    weighed = sorted(others, key=lambda note: (-_common(note, asked), note.path_key, str(note.pk)))
    return [*by_search, *weighed]


def _near(subject: Subject) -> Iterable[Note]:
    """The project's notes, and those that only a dream has proposed, of the tools and in general."""
    own = Q(path_key__startswith=f"project/{paths.path_key(subject.slug)}/")
    proposed = Q(current__isnull=True) & (Q(path_key__startswith="tools/") | Q(path_key__startswith="general/"))
    rows = Note.objects.filter(own | proposed, member__isnull=True, deleted_at__isnull=True)
    return rows.select_related("current").order_by("path_key", "pk")[:MOST_NAMED]


def _common(note: Note, asked: set[str]) -> int:
    text = note.path if note.current is None else f"{note.path} {note.current.title} {note.current.description}"
    return len(asked.intersection(terms(text)))


def _question(events: Sequence[SeenEvent]) -> str:
    """What people said, and which tools and commands were used, the latest last."""
    said = [str(event.payload.get("prompt") or "") for event in events if event.name == "prompt"]
    used = [f"{event.tool} {prompt.arguments(event.payload)[:120]}" for event in events if event.name == "tool_before"]
    words = "\n".join([*said, *dict.fromkeys(used)])
    return words[-LONGEST_QUESTION:]


def _text_of(note: Note, at: datetime | None) -> tuple[str, bool]:
    """The text to show, and whether a person wrote it."""
    proposal = waiting_of(note) if at is None else _waited_at(note, at)
    if proposal is not None:
        return proposal.text, False
    current = note.current if at is None else note.revisions.filter(created_at__lte=at).order_by("-number").first()
    return (current.text, current.author_kind == "member") if current else ("", False)


def waiting_of(note: Note) -> Proposal | None:
    """What a dream has proposed for a note and nobody has decided."""
    return Proposal.objects.open().filter(note=note, author_kind="dream", operation="write").first()


def _waited_at(note: Note, at: datetime) -> Proposal | None:
    made = note.proposals.filter(author_kind="dream", operation="write", created_at__lte=at)
    last = made.order_by("-created_at", "-pk").first()
    return last if last and (last.decided_at is None or last.decided_at > at) else None


def _is_pinned(text: str) -> bool:
    try:
        return split(text).field("pinned").casefold() in ("yes", "true", "1")
    except InvalidFrontmatter:
        return False


def _size(events: Sequence[SeenEvent]) -> int:
    return sum(tokens.counts([prompt.line(event) for event in events]))


def rejected(known: Iterable[KnownNote], slug: str, events: Sequence[SeenEvent]) -> tuple[Rejected, ...]:
    """What people turned down in the notes shown and in the project, the latest first, as far as the budget goes."""
    near = Q(note__path_key__in=[paths.path_key(note.path) for note in known])
    near |= Q(note__path_key__startswith=f"project/{paths.path_key(slug)}/")
    found = Tombstone.objects.filter(near, note__member__isnull=True).select_related("note")
    rows = list(found.order_by("-created_at", "-pk")[:MOST_REJECTED])
    said: dict[str, str] = {}
    of_notes = Proposal.objects.filter(note__in={row.note_id for row in rows}, state__in=("rejected", "approved"))
    for proposal in of_notes.order_by("pk"):
        said |= {lines.substance(line): line for line in proposal.text.splitlines()}
    all_ = [Rejected(row.note.path, row.line and said.get(row.line, row.line)) for row in rows]
    sizes = tokens.counts([f"{each.path}: {each.line or 'closed'}" for each in all_])
    room = max(LEAST_REJECTED, int(REJECTED_SHARE * _size(events)))
    kept, used = [], 0
    for each, size in zip(all_, sizes, strict=True):
        used += size
        if used > room:
            break
        kept.append(each)
    return tuple(kept)
