"""Which parts of two sequences are the same: the ground under diffs and merges.

Bounded by a budget of comparisons, not by a clock, so the same two texts always give the same answer: lines that occur
once on both sides are matched first (O(n log n)), the gaps between them by Myers' O(ND) search until the budget is
spent; what is left then counts as changed. difflib can take cubic time; its autojunk forgets lines that repeat.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

Pairs: TypeAlias = list[tuple[int, int]]

STEPS = 400_000


@dataclass
class Budget:
    """The comparisons that a diff may still make."""

    steps: int = STEPS


def matches(old: Sequence[Hashable], new: Sequence[Hashable], budget: Budget) -> Pairs:
    """Index pairs of equal elements, increasing on both sides, as many as the budget finds."""
    numbers: dict[Hashable, int] = {}
    a = [numbers.setdefault(element, len(numbers)) for element in old]
    b = [numbers.setdefault(element, len(numbers)) for element in new]
    fences = [(-1, -1), *_anchors(a, b), (len(a), len(b))]
    pairs: Pairs = []
    for (a_before, b_before), (a_next, b_next) in pairwise(fences):
        a_start, b_start = a_before + 1, b_before + 1
        pairs += [(a_start + i, b_start + j) for i, j in _gap(a[a_start:a_next], b[b_start:b_next], budget)]
        if a_next < len(a):
            pairs.append((a_next, b_next))
    return pairs


def _anchors(a: list[int], b: list[int]) -> Pairs:
    """The longest increasing run of elements that occur exactly once on each side (patience diff)."""
    once_in_a = {element for element, count in Counter(a).items() if count == 1}
    once_in_b = {element for element, count in Counter(b).items() if count == 1}
    place = {element: j for j, element in enumerate(b) if element in once_in_b}
    ends: list[int] = []
    piles: list[int] = []
    candidates = [(i, place[element]) for i, element in enumerate(a) if element in once_in_a and element in place]
    before: list[int] = []
    for number, (_, j) in enumerate(candidates):
        pile = bisect_left(ends, j)
        before.append(piles[pile - 1] if pile else -1)
        ends[pile : pile + 1] = [j]
        piles[pile : pile + 1] = [number]
    run: Pairs = []
    number = piles[-1] if piles else -1
    while number >= 0:
        run.append(candidates[number])
        number = before[number]
    return run[::-1]


def _gap(a: list[int], b: list[int], budget: Budget) -> Pairs:
    """Common head and tail, then the shortest edit of what lies between."""
    shorter = min(len(a), len(b))
    head = next((i for i in range(shorter) if a[i] != b[i]), shorter)
    rest = shorter - head
    tail = next((i for i in range(rest) if a[-1 - i] != b[-1 - i]), rest)
    middle = _shortest_edit(a[head : len(a) - tail], b[head : len(b) - tail], budget)
    return (
        [(i, i) for i in range(head)]
        + [(head + i, head + j) for i, j in middle]
        + [(len(a) - i, len(b) - i) for i in range(tail, 0, -1)]
    )


def _shortest_edit(a: list[int], b: list[int], budget: Budget) -> Pairs:
    """Myers' greedy search; nothing where either side is empty or the budget runs out."""
    if not a or not b:
        return []
    reached = {1: 0}
    trail: list[dict[int, int]] = []
    for edits in range(len(a) + len(b) + 1):
        trail.append(reached.copy())
        budget.steps -= edits + 1
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and reached[k - 1] < reached[k + 1])
            start = x = reached[k + 1] if down else reached[k - 1] + 1
            while x < len(a) and x - k < len(b) and a[x] == b[x - k]:
                x += 1
            reached[k] = x
            budget.steps -= x - start
            if x >= len(a) and x - k >= len(b):
                return _walk_back(trail, len(a), len(b))
        if budget.steps < 0:
            return []
    return []


def _walk_back(trail: list[dict[int, int]], x: int, y: int) -> Pairs:
    pairs: Pairs = []
    for edits in range(len(trail) - 1, -1, -1):
        reached, k = trail[edits], x - y
        down = k == -edits or (k != edits and reached[k - 1] < reached[k + 1])
        before = k + 1 if down else k - 1
        x_before = reached[before]
        while x > x_before and y > x_before - before:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = x_before, x_before - before
    return pairs[::-1]
