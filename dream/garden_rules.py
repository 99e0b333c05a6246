"""What the gardener sees by rule: notes that say the same, notes that are too long, notes that nobody is told."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.db import connection
from django.db.models import Max

from cache_admin import guard
from dream.facts import Said
from memory.notes.findings import Found
from memory.notes.frontmatter import MACHINE_NOTE_BYTES
from memory.notes.lines import normal, statements
from memory.notes.models import Note
from memory.recall.models import Telling, ToldNote
from memory.sentences import sentence

# Of a note's statements the other one says so many: then they are one note twice.
SAME: Final = 0.8
# The same in other words: by the local embedder retold notes came to 0.79 to 0.90, other facts about one subject to
# 0.40 to 0.53, one fact with another number to 0.78, which the literals tell apart.
LIKE: Final = 0.85
LIKE_WORDS: Final = 0.5
# A line of fewer telling words is the same only where it is the same: "on" and "off" are no telling words.
LEAST_WORDS: Final = 3
# Compared more closely are the notes with most rare words in common.
CANDIDATES: Final = 8
# A word that so many notes have says nothing about which are alike.
COMMON: Final = 60
NEIGHBOURS: Final = 5
MOST_BY_VECTOR: Final = 2_000


@dataclass(frozen=True)
class Text:
    """A note as it is compared."""

    note: Note
    lines: tuple[str, ...]
    said: tuple[Said, ...]
    words: frozenset[str]
    literals: frozenset[str]
    normal: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, note: Note) -> "Text":
        assert note.current is not None, "only live notes are looked at"  # noqa: S101
        lines = tuple(statements(note.current.text))
        said = tuple(Said.of(line) for line in lines)
        words = frozenset(word for one in said for word in one.words)
        literals = frozenset(literal for one in said for literal in one.literals)
        return cls(note, lines, said, words, literals, frozenset(map(normal, lines)))

    @property
    def place(self) -> tuple[str, str]:
        """Whose space and which project: notes of two projects that read the same are two notes."""
        return str(self.note.member_id or ""), str(self.note.project_id or "")


def near_duplicates(
    texts: Sequence[Text], fresh: Collection[str], alike: Iterable[tuple[str, str, float]]
) -> list[Found]:
    """Pairs of which one says what the other says. Only pairs with a note of `fresh` (internal keys) are compared.

    `alike` are pairs that the vectors put close together, with their likeness.
    """
    by_pk = {str(text.note.pk): text for text in texts}
    found: dict[frozenset[str], Found] = {}
    for one, other in _candidates(texts, fresh):
        if pair := _same(one, other):
            found[_both(one, other)] = pair
    for first, second, likeness in alike:
        if first not in by_pk or second not in by_pk:
            continue
        near = (by_pk[first], by_pk[second])
        if _both(*near) not in found and (seen := _like(*near, likeness)):
            found[_both(*near)] = seen
    return list(found.values())


def _both(one: Text, other: Text) -> frozenset[str]:
    return frozenset((str(one.note.pk), str(other.note.pk)))


def _candidates(texts: Sequence[Text], fresh: Collection[str]) -> Iterator[tuple[Text, Text]]:
    """Pairs with many rare words in common, each once."""
    index: dict[tuple[tuple[str, str], str], list[int]] = defaultdict(list)
    for at, text in enumerate(texts):
        for word in text.words:
            index[text.place, word].append(at)
    done = set()
    for at, text in enumerate(texts):
        if str(text.note.pk) not in fresh or not text.lines:
            continue
        shared: Counter[int] = Counter()
        for word in text.words:
            rows = index[text.place, word]
            if len(rows) <= COMMON:
                shared.update(other for other in rows if other != at)
        for other, _ in shared.most_common(CANDIDATES):
            if (key := frozenset((at, other))) not in done and texts[other].lines:
                done.add(key)
                yield text, texts[other]


def _same(one: Text, other: Text) -> Found | None:
    """The shorter of two notes whose statements stand nearly all in the other."""
    less, more = sorted((one, other), key=lambda text: (len(text.lines), -text.note.created_at.timestamp()))
    covered = sum(_stands(line, said, more) for line, said in zip(less.lines, less.said, strict=True))
    if covered < SAME * len(less.lines):
        return None
    return Found(
        "near_duplicate", less.note, _stands_there(less, more, covered), key_of(less.note, more.note), more.note
    )


def _stands_there(less: Text, more: Text, covered: int) -> str:
    path = more.note.path
    if not less.normal <= more.normal:
        return sentence(
            "%(covered)s of %(lines)s lines stand, or nearly so, in %(path)s too.",
            covered=covered,
            lines=len(less.lines),
            path=path,
        )
    if len(less.lines) > 1:
        return sentence("All its lines stand in %(path)s too.", path=path)
    return sentence("Its only line stands in %(path)s too.", path=path)


def _stands(line: str, said: Said, where: Text) -> bool:
    """True where a line of the text says it too: nearly the same words, and no other number, name, yes or no."""
    if normal(line) in where.normal:
        return True
    if len(said.words) < LEAST_WORDS:
        return False
    near = (
        known
        for known, other in zip(where.lines, where.said, strict=True)
        if said.literals == other.literals and len(said.words & other.words) >= SAME * len(said.words)
    )
    return any(not guard.refusal(line, known) for known in near)


def _like(one: Text, other: Text, likeness: float) -> Found | None:
    """The shorter of two notes that say the same in other words. Other numbers, names or paths: two facts stay two."""
    less, more = sorted((one, other), key=lambda text: (len(text.words), -text.note.created_at.timestamp()))
    common = len(less.words & more.words) / len(less.words) if less.words else 0.0
    if less.place != more.place or common < LIKE_WORDS or less.literals != more.literals:
        return None
    if guard.refusal("\n".join(less.lines), "\n".join(more.lines)):
        return None
    words = sentence(
        "Says in other words what %(path)s says (%(likeness)s alike).", path=more.note.path, likeness=f"{likeness:.0%}"
    )
    return Found("near_duplicate", less.note, words, key_of(less.note, more.note), more.note)


def says_all(found: Found) -> bool:
    """True where every line of the note stands in the other one as it is, so that the note can go."""
    assert found.other is not None, "a duplicate is of something"  # noqa: S101
    return Text.of(found.note).normal <= Text.of(found.other).normal


def key_of(note: Note, other: Note) -> str:
    """What makes a pair the same pair: what both say."""
    return "|".join(bytes(one.current.sha256).hex() for one in (note, other) if one.current)


def alike(fresh: Sequence[str]) -> list[tuple[str, str, float]]:
    """Pairs of notes whose first passages are nearest by their vectors, where search has made those. Of very many new
    notes the first `MOST_BY_VECTOR` are compared. The tenant must be bound.
    """
    if not fresh:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT a.target, near.target, 1 - near.distance
            FROM recall_entry a JOIN recall_vector v ON v.entry_id = a.id AND v.chunk = 0 AND v.embedding IS NOT NULL
            CROSS JOIN LATERAL (
              SELECT b.target, w.embedding <=> v.embedding AS distance
              FROM recall_vector w JOIN recall_entry b ON b.id = w.entry_id
              WHERE w.kind = 'note' AND w.chunk = 0 AND w.embedding IS NOT NULL AND w.made_with = v.made_with
                AND w.place = v.place AND w.reader = v.reader AND w.entry_id <> v.entry_id
              ORDER BY w.embedding <=> v.embedding, b.target LIMIT %s
            ) AS near
            WHERE a.kind = 'note' AND a.target = ANY (%s::uuid[]) AND near.distance <= %s
            """,
            [NEIGHBOURS, list(fresh[:MOST_BY_VECTOR]), 1 - LIKE],
        )
        return [(str(one), str(other), float(likeness)) for one, other, likeness in cursor.fetchall()]


def too_long(notes: Iterable[Note]) -> list[Found]:
    """Notes over the size at which they stand alone in a prompt."""
    found = []
    for note in notes:
        size = len(note.current.text.encode()) if note.current else 0
        if size > MACHINE_NOTE_BYTES:
            words = sentence(
                "%(size)s KB. Split it, or shorten it to %(most)s KB.",
                size=f"{size / 1024:.1f}",
                most=MACHINE_NOTE_BYTES // 1024,
            )
            found.append(Found("too_long", note, words, bytes(note.current.sha256).hex() if note.current else ""))
    return found


def untold(notes: Sequence[Note], *, days: int, now: datetime) -> list[Found]:
    """Notes that no session was told for so many days; none while no session was told anything. The tenant is bound."""
    since = now - timedelta(days=days)
    if not days or not Telling.objects.filter(at__gt=since).exists():
        return []
    last = _last_told([str(note.pk) for note in notes])
    found = []
    for note in notes:
        at = last.get(str(note.pk))
        if note.is_pinned or max(filter(None, (at, note.created_at))) > since:
            continue
        words = (
            sentence("Last told on %(day)s.", day=f"{at:%Y-%m-%d}")
            if at
            else sentence("Told to no session since it was made on %(day)s.", day=f"{note.created_at:%Y-%m-%d}")
        )
        found.append(Found("untold", note, words, at.isoformat() if at else f"never {note.current_id}"))
    return found


def _last_told(pks: Collection[str]) -> Mapping[str, datetime]:
    rows = ToldNote.objects.filter(note__in=pks).values_list("note_id").annotate(at=Max("telling__at"))
    return {str(pk): at for pk, at in rows}
