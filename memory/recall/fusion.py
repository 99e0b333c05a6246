"""One order out of several: what words say, what meaning says, and what links say. Numbers in, numbers out."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Weights:
    """How much each voice counts; tuned on half of the questions of two public sets, by tests/bench/retrieval.py."""

    words: float = 0.35
    meaning: float = 0.65
    # What a neighbour gets of the score of the hit that names it, and of one that it names itself.
    link: float = 0.5
    back: float = 0.15
    seeds: int = 3


TUNED: Final = Weights()


def fuse(words: Mapping[Key, float], meaning: Mapping[Key, float], weights: Weights = TUNED) -> dict[Key, float]:
    """Each key's score from 0 to 1. Scores are set against the best of their own voice, not only ranked: a clear first
    place says more than a narrow one. Equal voices by rank did worse than meaning alone.
    """
    by_words = _against_best(words)
    by_meaning = _between(meaning)
    both = weights.words * bool(words) + weights.meaning * bool(meaning)
    return {
        key: (weights.words * by_words.get(key, 0.0) + weights.meaning * by_meaning.get(key, 0.0)) / both
        for key in {**words, **meaning}
    }


def _against_best(scores: Mapping[Key, float]) -> dict[Key, float]:
    best = max(scores.values(), default=0.0)
    return {key: score / best for key, score in scores.items()} if best > 0 else {}


def _between(scores: Mapping[Key, float]) -> dict[Key, float]:
    """Likeness has no zero of its own: what the worst of those found has is what all have."""
    best, worst = max(scores.values(), default=0.0), min(scores.values(), default=0.0)
    span = best - worst
    return {key: (score - worst) / span if span > 0 else 1.0 for key, score in scores.items()}


def walk(
    scores: Mapping[Key, float], links: Mapping[Key, Mapping[Key, bool]], weights: Weights = TUNED
) -> dict[Key, tuple[float, Key]]:
    """What the best hits lead to: each neighbour's new score, and the hit that leads there.

    A neighbour gets a part of the hit's score on top of its own, the larger part where the hit names it (True): to be
    named by a good hit says more than to name one. Only what gains by it is given.
    """
    gained: dict[Key, tuple[float, Key]] = {}
    for seed in sorted(scores, key=lambda key: -scores[key])[: weights.seeds]:
        for neighbour, is_named in links.get(seed, {}).items():
            own = scores.get(neighbour, 0.0)
            score = own + (weights.link if is_named else weights.back) * scores[seed]
            if neighbour != seed and score > gained.get(neighbour, (own, seed))[0]:
                gained[neighbour] = (score, seed)
    return gained
