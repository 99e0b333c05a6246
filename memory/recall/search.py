"""Finding notes for a question or a prompt: by words, by the same characters, and last by likeness.

One scan of the words of the notes in reach (a team has thousands of notes, not millions), ranked here: how rare a word
is among these notes decides what it is worth, and whether anything fits at all.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.db import connection
from django.db.models import F, Q

from memory import ids, redact
from memory.events.models import Project
from memory.notes.lines import body_of
from memory.notes.models import Note, NoteQuerySet, Revision
from memory.recall import words
from memory.recall.models import NoteWords
from memory.recall.scope import same_project, within_reach
from memory.tenants.models import Member, Tenant

ENDS: Final = 4_000  # characters of a long text that are read at its start and at its end
MOST_TERMS: Final = 400
RAREST: Final = 32
NEEDLE: Final = 200
# C#, F#, -v: two characters that few texts have.
_NAMED_BY_SIGN: Final = re.compile(r"[a-z0-9][^\w\s]|[^\w\s][a-z0-9]")
MOST_TYPED: Final = 6
LIKE_ENOUGH: Final = 0.4
FITS: Final = 0.5


@dataclass(frozen=True)
class Hit:
    """A note that was found, how well it fits, and why, in words for a person."""

    note: Note
    revision: Revision
    score: float
    why: str


@dataclass(frozen=True)
class Question:
    """What is looked for: the words of the question, and its characters where it is short."""

    terms: tuple[str, ...]
    needle: str
    plain: str

    @classmethod
    def of(cls, text: str) -> "Question":
        """Any text is a question; a long one is read at both ends."""
        clean, _ = redact.sanitize(text)
        if len(clean) > 2 * ENDS:
            clean = f"{clean[:ENDS]}\n{clean[-ENDS:]}"
        found = words.terms(clean)
        telling = [term for term in found if words.is_telling(term)]
        plain = " ".join(clean.split())
        # One small word alone ("the") stands inside other words of nearly every text.
        needle = "" if len(found) == 1 and not telling and plain.isalnum() else _needle(plain)
        return cls(tuple((telling or found)[:MOST_TERMS]), needle, plain)


@dataclass(frozen=True)
class Row:
    """What the scan says of one note: which of the asked words it has, where, and whether it has the very text."""

    note_pk: str
    path_key: str
    found: frozenset[str]
    head: frozenset[str]
    head_size: int
    is_exact: bool


@dataclass(frozen=True)
class Ranked:
    row: Row
    score: float
    why: str


class Weights:
    """What each asked word is worth among the notes in reach: 1 where one note has it, near 0 where all have it."""

    def __init__(self, rows: Sequence[Row], total: int, terms: Iterable[str]) -> None:
        counts = Counter(term for row in rows for term in row.found)
        most = math.log(1 + total)
        self.of = {term: math.log(1 + total / counts[term]) / most if counts[term] else 1.0 for term in terms}
        self.known = [term for term in self.of if counts[term]]

    def sum(self, terms: Iterable[str]) -> float:
        return sum(self.of.get(term, 0.0) for term in terms)


def find(
    tenant: Tenant, *, q: str, project: Project | None = None, member: Member | None = None, limit: int = 20
) -> list[Hit]:
    """The notes that answer a question of a person or an agent, best first; empty where none does.

    Any text will do: nothing in it is an operator. Without a project, project notes of all projects are searched.
    """
    projects = same_project(project) if project else Project.objects.all()
    return among(within_reach(projects, str(member.pk) if member else None), q, tenant, limit=limit)


def among(reach: NoteQuerySet, q: str, tenant: Tenant, *, limit: int) -> list[Hit]:
    """The same among the notes of a query set."""
    question = Question.of(q)
    refresh(tenant, reach)
    rows, total = _scan(reach, question)
    ranked = _answers(question, rows, total) or _alike(reach, question)
    return _hits(ranked, question, limit)


def fitting(prompt: str, reach: NoteQuerySet, tenant: Tenant, *, limit: int) -> list[Hit]:
    """The notes in reach that fit a prompt well enough to be told unasked; most prompts have none."""
    question = replace(Question.of(prompt), needle="")
    if not _is_telling(question):
        return []
    refresh(tenant, reach)
    rows, total = _scan(reach, question)
    return _hits(_fits(question, rows, total), question, limit)


def could_fit(prompt: str) -> bool:
    """False where no note can fit a prompt, whatever the notes: it has small words only."""
    return _is_telling(Question.of(prompt))


def words_of(note: Note) -> frozenset[str]:
    """The words that a question finds a note by, as it reads now."""
    return frozenset(_words_of(note.tenant, note).words)


def has_any(prompt: str, known: frozenset[str]) -> bool:
    """Whether a prompt asks for any of these words; a note without one is never among those that fit."""
    return not known.isdisjoint(Question.of(prompt).terms)


def _is_telling(question: Question) -> bool:
    return any(words.is_telling(term) for term in question.terms)


def refresh(tenant: Tenant, reach: NoteQuerySet) -> None:
    """Read the words of every note whose words are missing or old. Search pulls; nobody has to tell it."""
    is_old = ~Q(words__version=words.VERSION) | ~Q(words__revision=F("current")) | ~Q(words__path_key=F("path_key"))
    stale = reach.filter(Q(words__isnull=True) | is_old).select_related("current").order_by("pk")
    NoteWords.objects.bulk_create(
        [_words_of(tenant, note) for note in stale],
        batch_size=200,
        update_conflicts=True,
        unique_fields=["note"],
        update_fields=["revision", "path_key", "version", "words", "head", "folded"],
    )


def _words_of(tenant: Tenant, note: Note) -> NoteWords:
    revision = note.current
    assert revision is not None, "only live notes are searched"  # noqa: S101
    head = f"{note.path.removesuffix('.md')}\n{revision.title}\n{revision.description}"
    body = body_of(revision.text)
    head_words = words.terms(head)
    return NoteWords(
        id=ids.new_key(),
        tenant=tenant,
        note=note,
        revision=revision,
        path_key=note.path_key,
        version=words.VERSION,
        words=list(dict.fromkeys([*head_words, *words.terms(body)])),
        head=head_words,
        folded=" ".join(words.fold(f"{head}\n{body}").split()),
    )


def _scan(reach: NoteQuerySet, question: Question) -> tuple[list[Row], int]:
    """Rows of the notes that have a word of the question or its very text; and how many notes are in reach."""
    asked = list(question.terms)
    sql, parameters = reach.order_by().values("pk").query.sql_with_params()
    statement = f"""
        SELECT w.note_id, w.path_key, ARRAY(SELECT t FROM unnest(w.words) t WHERE t = ANY(%s)),
               ARRAY(SELECT t FROM unnest(w.head) t WHERE t = ANY(%s)), cardinality(w.head),
               %s <> '' AND strpos(w.folded, %s) > 0
        FROM recall_notewords w
        WHERE w.note_id IN ({sql}) AND (w.words && %s::text[] OR %s <> '' AND strpos(w.folded, %s) > 0)
    """  # noqa: S608 - the inner query is Django's own
    needle = question.needle
    with connection.cursor() as cursor:
        cursor.execute(statement, [asked, asked, needle, needle, *parameters, asked, needle, needle])
        rows = [Row(str(r[0]), r[1], frozenset(r[2]), frozenset(r[3]), r[4], r[5]) for r in cursor.fetchall()]
    return rows, reach.count() if rows else 0


def _answers(question: Question, rows: Sequence[Row], total: int) -> list[Ranked]:
    """Notes with the very text, and those with at least half of what the known words of the question are worth."""
    weights = Weights(rows, total, question.terms)
    asked = _rarest(weights)
    is_subject = any(words.is_telling(term) for term in asked)
    enough = FITS * weights.sum(asked)
    if len(question.terms) <= RAREST and 2 * len(weights.known) < len(question.terms):
        enough = math.inf
    ranked = []
    for row in rows:
        found = row.found & set(asked)
        # Small words alone ("who is on") are an answer only where all of them stand there.
        is_answer = weights.sum(found) >= enough if is_subject else len(asked) > 1 and len(found) == len(question.terms)
        if row.is_exact or (is_answer and found):
            score = weights.sum(found) + weights.sum(row.head & found) + (2 * RAREST if row.is_exact else 0)
            ranked.append(Ranked(row, score, _why(row, found, weights, question)))
    return ranked


def _fits(question: Question, rows: Sequence[Row], total: int) -> list[Ranked]:
    """Notes that are about what the prompt is about: it names half of their head, or they have half of its words."""
    weights = Weights(rows, total, question.terms)
    asked = set(_rarest(weights))
    short = len(question.terms) <= RAREST
    whole = weights.sum(question.terms if short else asked)
    ranked = []
    for row in rows:
        found = row.found & asked
        head = row.head & found
        covered = weights.sum(found) / whole if whole else 0.0
        named = len(head) / row.head_size if row.head_size else 0.0
        # One word in common is chance, unless it is all that was asked and stands in the head.
        is_alone = len(found) == 1 and not (head and covered >= FITS)
        if found and not is_alone and (covered >= FITS or (named >= FITS and weights.sum(head) >= 1)):
            score = covered + named + weights.sum(head) / 4
            ranked.append(Ranked(row, score, _why(row, found, weights, question)))
    return ranked


def _rarest(weights: Weights) -> list[str]:
    """The known words of a long text that are worth most; of equals, those that came first."""
    return sorted(weights.known, key=lambda term: -weights.of[term])[:RAREST]


def _why(row: Row, found: Iterable[str], weights: Weights, question: Question) -> str:
    best = sorted(found, key=lambda term: (-weights.of[term], term))[:5]
    if row.is_exact:
        return f"Holds “{question.plain[:80]}”"
    return f"Matches: {', '.join(best)}"


def _alike(reach: NoteQuerySet, question: Question) -> list[Ranked]:
    """For mistyped words: notes whose path, title or description have a word like each one of the question."""
    typed = [term for term in question.terms if len(term) > 3 and term.isalpha()]
    if not question.needle or not typed or len(typed) > MOST_TYPED:
        return []
    sql, parameters = reach.order_by().values("pk").query.sql_with_params()
    statement = f"""
        SELECT note_id, path_key, likeness FROM (
          SELECT w.note_id, w.path_key,
                 (SELECT min(strict_word_similarity(t, array_to_string(w.head, ' ')))
                  FROM unnest(%s::text[]) t) AS likeness
          FROM recall_notewords w WHERE w.note_id IN ({sql})) found
        WHERE likeness >= %s
    """  # noqa: S608 - the inner query is Django's own
    with connection.cursor() as cursor:
        cursor.execute(statement, [typed, *parameters, LIKE_ENOUGH])
        found = cursor.fetchall()
    none: frozenset[str] = frozenset()
    return [
        Ranked(Row(str(pk), key, none, none, 0, False), float(likeness), f"Like “{question.plain[:80]}”")
        for pk, key, likeness in found
    ]


def _hits(ranked: list[Ranked], question: Question, limit: int) -> list[Hit]:
    """The best as notes. Of equals, those that write it just so (accents and case) come first, then by path."""
    best = sorted(ranked, key=lambda one: (-one.score, one.row.path_key, one.row.note_pk))[: 2 * limit]
    notes = Note.objects.select_related("current", "member", "project").in_bulk([one.row.note_pk for one in best])
    by_pk = {str(pk): note for pk, note in notes.items()}
    hits = []
    for one in best:
        note = by_pk[one.row.note_pk]
        revision = note.current
        if revision is not None:
            bonus = 0.5 if one.row.is_exact and question.plain.casefold() in revision.text.casefold() else 0.0
            hits.append(Hit(note, revision, round(one.score + bonus, 6), one.why[:300]))
    return sorted(hits, key=lambda hit: (-hit.score, hit.note.path_key, str(hit.note.pk)))[:limit]


def _needle(plain: str) -> str:
    """The question as characters to look for; empty where nearly every text would have them."""
    folded = " ".join(words.fold(plain).split())
    if not folded or len(folded) > NEEDLE:
        return ""
    if len(folded) < 3 and folded.isascii() and not _NAMED_BY_SIGN.fullmatch(folded):
        return ""
    return folded
