"""Charts: where things stand, broken lines, words for figures."""

import pytest

from cache_admin import charts


def test_bars_stand_on_the_floor_and_keep_their_proportion() -> None:
    drawn = charts.bars("Lookups", {"1 Nov": 10, "2 Nov": 0, "3 Nov": 5}, say=charts.count)
    high, low = drawn.bars
    assert high.height == pytest.approx(2 * low.height) and high.y + high.height == drawn.floor
    assert high.words == "1 Nov: 10" and drawn.said == "5 on 3 Nov; the most is 10 on 1 Nov"
    assert [words for _, words in drawn.heights] == ["0", "5", "10"]
    assert all(bar.x >= charts.LEFT and bar.x + bar.width <= drawn.right for bar in drawn.bars)


def test_a_line_breaks_where_nothing_was_measured() -> None:
    drawn = charts.lines("Rate", ["a", "b", "c", "d"], {"rate": [0.5, None, 0.25, 1.0]}, say=charts.percent, top=1.0)
    [line] = drawn.lines
    assert line.d.count("M") == 2 and line.d.count("L") == 1 and len(line.dots) == 3
    assert charts.lines("Rate", ["a"], {"rate": [None]}, say=charts.percent).is_empty


def test_a_mark_beyond_the_curve_stays_inside() -> None:
    drawn = charts.curve("At", [0.80, 0.90, 0.99], {"served": [1.0, 0.5, 0.0]}, marks={"now": 0.3, "other": 1.0})
    assert all(charts.LEFT <= x <= drawn.right for x, _, _ in drawn.marks)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (charts.percent(None), "–"), (charts.percent(0.004), "< 1 %"), (charts.percent(0.996), "> 99 %"),
        (charts.percent(1), "100 %"), (charts.percent(0), "0 %"), (charts.milliseconds(0.42), "0.4 ms"),
        (charts.milliseconds(-54), "−54 ms"), (charts.milliseconds(90_000), "90 s"),
        (charts.milliseconds(600_000), "10 min"), (charts.milliseconds(9_000_000), "2.5 h"),
        (charts.count(999), "999"), (charts.count(1_000), "1k"), (charts.count(2_500_000), "2.5M"),
        (str(charts.rounded_up(0)), "1"), (str(charts.rounded_up(21)), "50.0"), (str(charts.rounded_up(50)), "50.0"),
    ],
)  # fmt: skip
def test_figures_read_well(said: str, words: str) -> None:
    assert said == words
