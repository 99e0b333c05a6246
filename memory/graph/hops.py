"""The hop map as a picture: where each stop stands and how the ways run. Pure: stops in, numbers out."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext, gettext_noop

from memory.graph.reached import Edge, Node, Reached
from memory.sentences import word

BOX_WIDTH: Final = 186
BOX_HEIGHT: Final = 68
GAP_ACROSS: Final = 40
GAP_DOWN: Final = 14
EDGE: Final = 8
# On a phone: one stop below the other, each hop further in.
NARROW_WIDTH: Final = 326
NARROW_HEIGHT: Final = 64
INDENT: Final = 16
# What fits beside the sign, in letters of usual width; a wide one (CJK) counts twice.
LETTERS: Final = 20
HEADS: Final = (
    gettext_noop("Thread"),
    gettext_noop("Workers and links"),
    gettext_noop("Reports"),
    gettext_noop("Cited"),
    gettext_noop("Their threads"),
)


@dataclass(frozen=True, slots=True)
class Box:
    """A stop with its place; `path` names it and all stops on the way to it."""

    x: int
    y: int
    width: int
    height: int
    node: Node
    lines: tuple[str, ...]
    note: str
    path: str
    is_lit: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether the lines hold less than the title."""
        return "".join(self.lines).replace(" ", "") != "".join(self.node.title.split())


@dataclass(frozen=True, slots=True)
class Wire:
    """A way as an SVG path."""

    d: str
    name: str
    is_lit: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """What the template draws."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    wires: tuple[Wire, ...]
    heads: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """The same as a list: a stop, what leads to it, and what it leads to."""

    node: Node
    words: str
    branches: tuple["Branch", ...]


def wide(reached: Reached, *, to: str = "") -> Picture:
    """Hops side by side, from left to right."""
    numbers, paths = _numbers(reached), _paths(reached)
    lit = _lit(paths, to)
    columns: dict[int, list[Node]] = {}
    for node in _walked(reached):
        columns.setdefault(node.hop, []).append(node)
    boxes: dict[str, Box] = {}
    top = EDGE + 24
    for hop, nodes in columns.items():
        for place, node in enumerate(nodes):
            x, y = EDGE + hop * (BOX_WIDTH + GAP_ACROSS), top + place * (BOX_HEIGHT + GAP_DOWN)
            boxes[node.key] = _box(node, (x, y, BOX_WIDTH, BOX_HEIGHT), LETTERS, numbers, paths, lit)
    wires = tuple(_across(edge, boxes, numbers, lit) for edge in reached.edges)
    tallest = max(len(nodes) for nodes in columns.values())
    heads = tuple(
        (EDGE + hop * (BOX_WIDTH + GAP_ACROSS), gettext(HEADS[hop])) for hop in sorted(columns) if hop < len(HEADS)
    )
    return Picture(
        2 * EDGE + (max(columns) + 1) * (BOX_WIDTH + GAP_ACROSS) - GAP_ACROSS,
        top + tallest * (BOX_HEIGHT + GAP_DOWN) - GAP_DOWN + EDGE,
        # In the order of the walk, so that Tab follows one way to its end before the next begins.
        tuple(boxes[node.key] for node in _walked(reached)),
        wires,
        heads,
    )


def narrow(reached: Reached, *, to: str = "") -> Picture:
    """One stop below the other, as far in as it is hops away."""
    numbers, paths = _numbers(reached), _paths(reached)
    lit = _lit(paths, to)
    boxes: dict[str, Box] = {}
    for place, node in enumerate(_walked(reached)):
        x, y = 1 + node.hop * INDENT, 1 + place * (NARROW_HEIGHT + GAP_DOWN)
        size = (x, y, NARROW_WIDTH - x - 1, NARROW_HEIGHT)
        boxes[node.key] = _box(node, size, LETTERS + 14 - 2 * node.hop, numbers, paths, lit)
    wires = []
    for key, path in paths.items():
        if len(path) > 1:
            start, end = boxes[path[-2]], boxes[key]
            x, y = start.x + INDENT // 2, end.y + end.height // 2
            d = f"M{x} {start.y + start.height}V{y}H{end.x}"
            wires.append(Wire(d, f"{numbers[path[-2]]}-{numbers[key]}", key in lit))
    height = len(boxes) * (NARROW_HEIGHT + GAP_DOWN) - GAP_DOWN + 2
    return Picture(NARROW_WIDTH, height, tuple(boxes.values()), tuple(wires))


def as_list(reached: Reached) -> Branch:
    """The stops as a tree: each below the first that leads to it, the others named by their words alone."""
    first = next(iter(reached.nodes))
    return _branch(reached, first, "", _parents(reached))


def _branch(reached: Reached, key: str, words: str, parents: dict[str, str]) -> Branch:
    inner = [edge for edge in reached.edges if edge.start == key and parents.get(edge.end) == key]
    return Branch(reached.nodes[key], words, tuple(_branch(reached, edge.end, edge.words, parents) for edge in inner))


def _parents(reached: Reached) -> dict[str, str]:
    parents: dict[str, str] = {}
    for edge in reached.edges:
        parents.setdefault(edge.end, edge.start)
    return parents


def _walked(reached: Reached) -> Iterable[Node]:
    """Depth first, so that what hangs together stands together."""
    stack = [as_list(reached)]
    while stack:
        branch = stack.pop()
        yield branch.node
        stack += reversed(branch.branches)


def _numbers(reached: Reached) -> dict[str, str]:
    return {key: f"n{place}" for place, key in enumerate(reached.nodes)}


def _paths(reached: Reached) -> dict[str, list[str]]:
    """Each stop with all on the shortest way to it, itself the last."""
    parents = _parents(reached)
    paths: dict[str, list[str]] = {}
    for key in reached.nodes:
        path = [key]
        while path[0] in parents:
            path.insert(0, parents[path[0]])
        paths[key] = path
    return paths


def _lit(paths: dict[str, list[str]], to: str) -> frozenset[str]:
    return frozenset(paths.get(to, ()))


def _box(
    node: Node,
    size: tuple[int, int, int, int],
    letters: int,
    numbers: dict[str, str],
    paths: dict[str, list[str]],
    lit: frozenset[str],
) -> Box:
    lines = wrapped(node.title, letters, most=2)
    note = " · ".join(part for part in (node.note, word(node.state) if node.hop else "") if part)
    path = " ".join(numbers[key] for key in paths[node.key])
    # The note is set in smaller letters.
    return Box(*size, node, lines, cut(note, letters + 2), path, node.key in lit)


def _across(edge: Edge, boxes: dict[str, Box], numbers: dict[str, str], lit: frozenset[str]) -> Wire:
    start, end = boxes[edge.start], boxes[edge.end]
    x1, y1 = start.x + start.width, start.y + start.height // 2
    x2, y2 = end.x, end.y + end.height // 2
    middle = x2 - GAP_ACROSS // 2
    name = f"{numbers[edge.start]}-{numbers[edge.end]}"
    d = f"M{x1} {y1}H{x2}" if y1 == y2 else f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"
    return Wire(d, name, edge.start in lit and edge.end in lit)


def width_of(text: str) -> int:
    """The text's width in letters."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def cut(text: str, letters: int) -> str:
    """The text, or its beginning with an ellipsis."""
    text = " ".join(text.split())
    if width_of(text) <= letters:
        return text
    while text and width_of(text) > letters - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def wrapped(text: str, letters: int, *, most: int) -> tuple[str, ...]:
    """The text in up to `most` lines, the last one cut."""
    rest = " ".join(text.split())[: letters * most * 2]
    lines: list[str] = []
    while rest and len(lines) < most - 1 and width_of(rest) > letters:
        head = rest
        while width_of(head) > letters:
            head = head[:-1]
        space = head.rfind(" ")
        if rest[len(head) : len(head) + 1] != " " and space > letters // 3:
            head = head[:space]
        lines.append(head.rstrip())
        rest = rest[len(head) :].lstrip()
    return (*lines, cut(rest, letters)) if rest else tuple(lines)
