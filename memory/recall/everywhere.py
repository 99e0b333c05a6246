"""Search over everything: threads, triggers, reports, notes and prompts, by name, by words and by meaning.

Whoever asks gets the first id; links do the rest. Any text is a question: nothing in it is an operator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from memory.embed import Embedder, key_of
from memory.events.models import Project
from memory.notes import reach as note_reach
from memory.notes.models import NoteQuerySet
from memory.recall import entries, exact, fusion, links, looks, shown, vectors, words
from memory.recall.looks import Key, Look, Reach
from memory.recall.scope import same_project, within_reach
from memory.recall.search import Question
from memory.recall.shown import Record
from memory.tenants.rls import unlimited

DEPTH: Final = 100  # hits of each voice that are put in order
ENOUGH_SHARE: Final = 0.2
LIKE_ENOUGH: Final = 0.3  # two letters that changed places leave five of fifteen trigrams of a short word
MOST_TYPED: Final = 6
NEAR: Final = 0.5  # what a hit by a near spelling is worth


@dataclass(frozen=True)
class Asked:
    """A question, and where it may look."""

    q: str
    reach: Reach
    project: Project | None = None
    member_pk: str | None = None
    is_followed: bool = False

    @property
    def notes(self) -> NoteQuerySet:
        """The notes in reach, by the rules that notes have."""
        if self.project is not None:
            return within_reach(same_project(self.project), self.member_pk)
        return note_reach.notes(self.member_pk).live()


@dataclass(frozen=True)
class Hit:
    """A record that was found, how well it fits from 0 to 1, and why, in words for a person."""

    record: Record
    score: float
    why: tuple[str, ...]
    terms: tuple[str, ...]
    needle: str

    def show(self) -> dict[str, Any]:
        shown_as = self.record.show(self.terms, self.needle)
        return {**shown_as, "score": round(self.score, 4), "why": list(self.why)}


def find(asked: Asked, *, limit: int, by: Embedder | None = None) -> list[Hit]:
    """The records that fit, best first: those the question names, then by words and meaning together."""
    with unlimited():
        entries.absorb(asked.reach.tenant_pk)
    question = Question.of(asked.q)
    named = {(one.kind, one.pk): one.why for one in exact.named(asked.q, asked.reach, asked.notes)}
    by_words = _by_words(asked.reach, question)
    by_meaning = _by_meaning(asked.reach, question, by) if question.terms else {}
    scores = _scores(by_words, by_meaning, by)
    why = _reasons(scores, by_words, by_meaning)
    for place, (key, reason) in enumerate(named.items()):
        if key[0] in asked.reach.kinds:
            scores[key] = 2.0 - place / 100
            why[key] = [reason, *why.get(key, [])]
    if asked.is_followed:
        _follow(asked, scores, why)
    return _hits(asked, question, scores, why, limit)


def _by_words(reach: Reach, question: Question) -> dict[Key, Look]:
    terms = question.terms
    is_subject = any(words.is_telling(term) for term in terms)
    found: list[Look] = []
    if terms:
        found = looks.by_words(reach, terms, is_all=not is_subject, needle=question.needle, most=DEPTH)
        if is_subject:
            found = [one for one in found if one.is_exact or one.share >= ENOUGH_SHARE]
        elif len(terms) == 1:
            # One small word alone says nothing; the signs around it ("C++") may.
            found = [one for one in found if one.is_exact]
    if not found and question.needle:
        found = looks.by_text(reach, question.needle, most=DEPTH)
    if not any(one.share >= 0.5 or one.is_exact for one in found):
        found += _near(reach, question, {one.key for one in found})
    return {one.key: one for one in found}


def _near(reach: Reach, question: Question, known: set[Key]) -> list[Look]:
    """What a mistyped question may have meant: each word as the team has written it."""
    typed = [term for term in question.terms if len(term) > 3 and term.isalpha()]
    if not question.needle or not typed or len(typed) > MOST_TYPED:
        return []
    meant = looks.by_spelling(typed, LIKE_ENOUGH)
    if not any(meant.get(term, term) != term for term in typed) or any(term not in meant for term in typed):
        return []
    found = looks.by_words(reach, [meant[term] for term in typed], is_all=True, most=DEPTH)
    return [
        replace(one, score=one.score * NEAR, is_exact=False, found=tuple(f"~{word}" for word in one.found))
        for one in found
        if one.key not in known
    ]


def _by_meaning(reach: Reach, question: Question, by: Embedder | None) -> dict[Key, Look]:
    if by is None or not any(words.is_telling(term) for term in question.terms):
        return {}
    vector = vectors.of_question(by, question.plain)
    if vector is None:
        return {}
    found = looks.by_meaning(reach, key_of(by), vectors.literal(vector), len(vector), most=DEPTH)
    return {one.key: one for one in found}


def _scores(by_words: Mapping[Key, Look], by_meaning: Mapping[Key, Look], by: Embedder | None) -> dict[Key, float]:
    """Both voices together. What has none of the words must be like the question, and not only more so than others."""
    fused = fusion.fuse(
        {key: one.score * (2.0 if one.is_exact else 1.0) for key, one in by_words.items()},
        {key: one.score for key, one in by_meaning.items()},
    )
    floor = by.floor if by is not None else 0.0
    return {key: score for key, score in fused.items() if key in by_words or by_meaning[key].score >= floor}


def _reasons(
    scores: Mapping[Key, float], by_words: Mapping[Key, Look], by_meaning: Mapping[Key, Look]
) -> dict[Key, list[str]]:
    why: dict[Key, list[str]] = {}
    for key in scores:
        reasons = []
        if (look := by_words.get(key)) is not None:
            reasons += _of_words(look)
        if (look := by_meaning.get(key)) is not None:
            reasons.append(f"Similar meaning ({look.score:.2f})")
        why[key] = reasons
    return why


def _of_words(look: Look) -> list[str]:
    near = [word[1:] for word in look.found if word.startswith("~")]
    own = [word for word in look.found if not word.startswith("~")]
    reasons = ["Holds the very text"] if look.is_exact else []
    if own:
        reasons.append(f"Words: {', '.join(own[:8])}")
    if near:
        reasons.append(f"Near spelling: {', '.join(near[:8])}")
    return reasons


def _follow(asked: Asked, scores: dict[Key, float], why: dict[Key, list[str]]) -> None:
    """Let what the best hits link to stand among them."""
    best = sorted(scores, key=lambda key: -scores[key])[: fusion.TUNED.seeds]
    near = links.neighbours(best)
    allowed = looks.in_reach(asked.reach, [key for others in near.values() for key in others])
    kept = {key: {one: named for one, named in others.items() if one in allowed} for key, others in near.items()}
    gained = fusion.walk(scores, kept)
    names = shown.records([key for _, key in gained.values()], asked.notes)
    for key, (score, origin) in gained.items():
        if origin in names:
            scores[key] = score
            why.setdefault(key, []).append(f"Linked with {names[origin].public_id}")


def _hits(
    asked: Asked, question: Question, scores: Mapping[Key, float], why: Mapping[Key, Sequence[str]], limit: int
) -> list[Hit]:
    """The best that are still there; of equals the newer one, for keys grow with time."""
    order = sorted(scores, key=lambda key: (round(scores[key], 6), key[1]), reverse=True)[: limit + 20]
    found = shown.records(order, asked.notes)
    needle = question.plain.casefold() if question.needle else ""
    hits = [
        Hit(found[key], min(scores[key], 1.0), tuple(why[key]), question.terms, needle) for key in order if key in found
    ]
    return hits[:limit]
