"""Pairs of questions that look alike: what people say of them decides what a tool's likeness is worth."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import QuerySet
from django.utils.translation import gettext

from cache_admin import guard, weekly
from cache_admin.models import Pair
from memory.problems import not_found
from memory.tenants import audit
from memory.tenants.access import Actor, require
from memory.tenants.models import Tenant

REVIEW_FROM: Final = 0.80
REVIEW_TO: Final = 0.94
ENOUGH: Final = 20
MOST_WRONG: Final = 0.03
STEPS: Final = tuple(round(0.80 + step / 100, 2) for step in range(20))


@dataclass(frozen=True)
class Judged:
    """A pair with its likeness and what a person said."""

    score: float
    same: bool
    passes_guard: bool


@dataclass(frozen=True)
class At:
    """What a threshold would do: the share of same questions served, of all served how many were right."""

    threshold: float
    served: float
    precision: float | None
    low: float | None
    wrong: int


def waiting(tenant: Tenant) -> "QuerySet[Pair]":
    """Pairs that wait for a person, the newest first."""
    return tenant.question_pairs.filter(verdict="").order_by("-at", "-id")


def decide(tenant: Tenant, pk: str, verdict: str, *, by: Actor) -> Pair:
    """Say of a pair whether it asks the same. Raises Refused, Problem 404, ValueError."""
    require(by, "cache.manage")
    if verdict not in ("same", "different"):
        raise ValueError("verdict is same or different")
    pair = tenant.question_pairs.filter(pk=pk).first()
    if pair is None:
        raise not_found(pk)
    pair.verdict = verdict
    pair.decided_by_id = by.member_pk
    pair.save(update_fields=["verdict", "decided_by"])
    weekly.clear(tenant)
    audit.record(by, "cache.pair", str(pair.pk), after=verdict)
    return pair


def add(tenant: Tenant, tool: str, pairs: Iterable[tuple[str, str, bool, float]], *, by: Actor) -> int:
    """A tool's own labelled pairs with their likeness, to find its threshold by. Raises Refused."""
    require(by, "cache.manage")
    rows = [
        Pair(
            tenant=tenant,
            tool=tool,
            asked=one,
            matched=other,
            score=score,
            guard=guard.refusal(one, other),
            verdict="same" if same else "different",
            decided_by_id=by.member_pk,
        )
        for one, other, same, score in pairs
    ]
    Pair.objects.bulk_create(rows)
    audit.record(by, "cache.pairs", tool, after=str(len(rows)))
    return len(rows)


def judged(tenant: Tenant, tool: str) -> list[Judged]:
    """What people have said of a tool's pairs."""
    rows = tenant.question_pairs.filter(tool=tool).exclude(verdict="")
    return [Judged(row.score, row.verdict == "same", not row.guard) for row in rows]


def curve(pairs: Sequence[Judged]) -> list[At]:
    """Precision and served share by threshold, with the guard. Pure."""
    return [at(pairs, threshold) for threshold in STEPS]


def at(pairs: Sequence[Judged], threshold: float) -> At:
    """What one threshold does. The low end of the precision is that of Wilson's interval at 95 %."""
    served = [pair for pair in pairs if pair.score >= threshold and pair.passes_guard]
    right = sum(pair.same for pair in served)
    same = sum(pair.same for pair in pairs)
    precision = right / len(served) if served else None
    low = _wilson(right, len(served)) if served else None
    return At(threshold, right / same if same else 0.0, precision, low, len(served) - right)


def proposed(pairs: Sequence[Judged]) -> float | None:
    """The lowest threshold at which at most 3 % of the different questions are served; None without labels."""
    different = sum(not pair.same for pair in pairs)
    if len(pairs) < ENOUGH or not different:
        return None
    fits = [one.threshold for one in curve(pairs) if one.wrong <= MOST_WRONG * different]
    return min(fits) if fits else None


def refusal(pairs: Sequence[Judged], threshold: float) -> str:
    """Why a tool's likeness may not be served at a threshold yet; empty where it may."""
    different = sum(not pair.same for pair in pairs)
    if len(pairs) < ENOUGH or different < ENOUGH // 4:
        words = gettext(
            "Label at least %(enough)s pairs of this tool first, %(least)s of them different; there are %(known)s,"
            " %(different)s different."
        )
        return words % {"enough": ENOUGH, "least": ENOUGH // 4, "known": len(pairs), "different": different}
    wrong = at(pairs, threshold).wrong
    if wrong > MOST_WRONG * different:
        best = proposed(pairs)
        said = gettext("At %(threshold)s it would serve %(wrong)s wrong answers of %(different)s.")
        said %= {"threshold": threshold, "wrong": wrong, "different": different}
        advice = gettext("Try %(best)s.") % {"best": best} if best else gettext("No threshold is safe for this tool.")
        return f"{said} {advice}"
    return ""


def warning(threshold: float) -> str:
    """What to think twice about."""
    if threshold < 0.85:
        return gettext("Below 0.85 questions that ask something else are served too.")
    return gettext("Above 0.97 hardly anything but the same words is served.") if threshold > 0.97 else ""


def _wilson(right: int, total: int, z: float = 1.96) -> float:
    share = right / total
    spread = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    return (share + z * z / (2 * total) - spread) / (1 + z * z / total)
