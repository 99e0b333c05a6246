"""Small charts as numbers for a template: what is drawn where. Pure: values in, places out."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.formats import get_format
from django.utils.translation import gettext

WIDTH: Final = 340
HEIGHT: Final = 132
LEFT: Final = 40
RIGHT: Final = 8
TOP: Final = 10
BOTTOM: Final = 22
_FLOOR: Final = HEIGHT - BOTTOM


@dataclass(frozen=True, slots=True)
class Bar:
    """One value as a bar."""

    x: float
    y: float
    width: float
    height: float
    words: str


@dataclass(frozen=True, slots=True)
class Line:
    """A row of values as an SVG path, broken where there is no value; `dots` are all values that there are."""

    name: str
    d: str
    dots: tuple[tuple[float, float, str], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """What the template draws. `marks` are values of the x axis that a line across points at."""

    title: str
    said: str
    bars: tuple[Bar, ...] = ()
    lines: tuple[Line, ...] = ()
    heights: tuple[tuple[float, str], ...] = ()
    feet: tuple[tuple[float, str, str], ...] = ()
    marks: tuple[tuple[float, str, str], ...] = ()
    is_empty: bool = False
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    floor: int = _FLOOR


def bars(title: str, values: Mapping[str, float], *, say: Callable[[float], str]) -> Chart:
    """Values by name, side by side."""
    top = rounded_up(max(values.values(), default=0))
    step = (WIDTH - LEFT - RIGHT) / max(len(values), 1)
    width = max(1.0, min(step * 0.72, 24))
    made = tuple(
        Bar(
            round(LEFT + place * step + (step - width) / 2, 1),
            round(_up(value, top), 1),
            round(width, 1),
            round(_FLOOR - _up(value, top), 1),
            f"{name}: {say(value)}",
        )
        for place, (name, value) in enumerate(values.items())
        if value
    )
    return Chart(
        title, _told(values, say), bars=made, heights=_heights(top, say), feet=_feet(list(values)), is_empty=not made
    )


def lines(
    title: str,
    names: Sequence[str],
    rows: Mapping[str, Sequence[float | None]],
    *,
    say: Callable[[float], str],
    top: float | None = None,
) -> Chart:
    """One line for each row of values; where a value is missing the line is broken."""
    every = [value for row in rows.values() for value in row if value is not None]
    high = top or rounded_up(max(every, default=0))
    step = (WIDTH - LEFT - RIGHT) / max(len(names), 1)
    made = tuple(_line(name, row, names, high, step, say) for name, row in rows.items())
    said = "; ".join(
        f"{name}: {_told({n: v for n, v in zip(names, row, strict=True) if v is not None}, say)}"
        for name, row in rows.items()
    )
    return Chart(title, said, lines=made, heights=_heights(high, say), feet=_feet(list(names)), is_empty=not every)


def curve(
    title: str, at: Sequence[float], rows: Mapping[str, Sequence[float | None]], *, marks: Mapping[str, float]
) -> Chart:
    """Shares by threshold, with thresholds that stand out."""
    names = [f"{one:.2f}" for one in at]
    drawn = lines(title, names, rows, say=percent, top=1.0)
    first, last = at[0], at[-1]
    step = (WIDTH - LEFT - RIGHT) / len(at)
    across = {
        name: LEFT + step / 2 + (min(max(value, first), last) - first) / (last - first) * step * (len(at) - 1)
        for name, value in marks.items()
    }
    placed = tuple((round(x, 1), name, "end" if x > WIDTH / 2 else "start") for name, x in across.items())
    return Chart(
        title, drawn.said, lines=drawn.lines, heights=drawn.heights, feet=drawn.feet, marks=placed,
        is_empty=drawn.is_empty,
    )  # fmt: skip


def rounded_up(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50 … at or above a value; 1 for nothing."""
    if value <= 0:
        return 1
    size = 10.0 ** math.floor(math.log10(value))
    return next(step * size for step in (1, 2, 5, 10) if value <= step * size * 1.000001)


def percent(share: float | None) -> str:
    """0.1234 → 12 %; what lies between none and all never reads as either."""
    if share is None:
        return "–"
    if 0 < share < 0.01:
        return "< 1 %"
    return "> 99 %" if 0.99 < share < 1 else f"{share * 100:.0f} %"


def milliseconds(count: float) -> str:
    """Milliseconds in the unit that fits: 0.4 ms, 12 s, 4.5 min, 2 h."""
    sign, size = ("−" if count < 0 else ""), abs(count)
    for most, by, unit in ((1_000, 1, "ms"), (120_000, 1_000, "s"), (7_200_000, 60_000, "min")):
        if size < most:
            return f"{sign}{_short(size / by)} {unit}"
    return f"{sign}{_short(size / 3_600_000)} h"


def count(number: float) -> str:
    """1234 → 1.2k, 1000000 → 1M."""
    sign, size = ("−" if number < 0 else ""), abs(number)
    for least, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= least * 0.9995:
            return f"{sign}{_short(size / least)}{letter}"
    return f"{sign}{_short(size)}"


def _short(number: float) -> str:
    said = f"{number:.0f}" if number >= 10 or number == int(number) else f"{number:.1f}".removesuffix(".0")
    return said.replace(".", str(get_format("DECIMAL_SEPARATOR")))


def _up(value: float, top: float) -> float:
    return _FLOOR - value / top * (_FLOOR - TOP)


def _line(
    name: str,
    row: Sequence[float | None],
    names: Sequence[str],
    top: float,
    step: float,
    say: Callable[[float], str],
) -> Line:
    parts: list[str] = []
    dots = []
    is_on = False
    for place, value in enumerate(row):
        if value is None:
            is_on = False
            continue
        x, y = round(LEFT + (place + 0.5) * step, 1), round(_up(value, top), 1)
        parts.append(f"{'L' if is_on else 'M'}{x} {y}")
        dots.append((x, y, f"{names[place]}, {name}: {say(value)}"))
        is_on = True
    return Line(name, " ".join(parts), tuple(dots))


def _heights(top: float, say: Callable[[float], str]) -> tuple[tuple[float, str], ...]:
    return tuple((round(_up(value, top), 1), say(value)) for value in (0, top / 2, top))


def _feet(names: Sequence[str]) -> tuple[tuple[float, str, str], ...]:
    """The first and the last name, and the one between them."""
    if not names:
        return ()
    step = (WIDTH - LEFT - RIGHT) / len(names)
    places = sorted({0, len(names) // 2, len(names) - 1})
    anchors = {0: "start", len(names) - 1: "end"} if len(names) > 2 else {}
    return tuple(
        (
            round(
                LEFT + (place + 0.5) * step + {"start": -step / 2, "end": step / 2}.get(anchors.get(place, ""), 0), 1
            ),
            names[place],
            anchors.get(place, "middle"),
        )
        for place in places
    )


def _told(values: Mapping[str, float], say: Callable[[float], str]) -> str:
    """The picture in words, for who does not see it."""
    if not any(values.values()):
        return gettext("nothing yet")
    best = max(values, key=lambda name: values[name])
    last = list(values)[-1]
    words = gettext("%(now)s on %(last)s; the most is %(most)s on %(best)s")
    return words % {"now": say(values[last]), "last": last, "most": say(values[best]), "best": best}
