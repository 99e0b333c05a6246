"""Which questions ask the same: by rules here, and measured on labelled pairs."""

import json
from pathlib import Path
from typing import Any

import pytest

from cache_admin import guard, semantic
from cache_admin.policy import DEFAULT_THRESHOLD

PAIRS = Path(__file__).parents[1] / "data" / "semantic"


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ("retry after 3 days", "retry after 30 days", "number"),
        ("retry after three days", "retry after four days", "number"),
        ("Does it run on Monday?", "Does it run on Tuesday?", "date"),
        ("vendas de março", "vendas de abril", "date"),
        ("Có nên xóa bộ nhớ đệm không?", "Không nên xóa bộ nhớ đệm?", "negation"),
        ("Wie aktiviere ich Logs?", "Wie deaktiviere ich Logs?", "antonym"),
        ("augmenter la limite", "réduire la limite", "antonym"),
        ("¿Cómo activo los registros?", "¿Cómo desactivo los registros?", "antonym"),
        ("the report of the last week", "the report of the next week", "antonym"),
        ("read src/a.py", "read src/b.py", "identifier"),
        ("what does --force do", "what does --dry-run do", "identifier"),
        ('what is "retry"', 'what is "backoff"', "quoted"),
        ("Did the test pass?", "Did the test not pass?", "negation"),
        ("Why doesn't it build?", "Why does it build?", "negation"),
        ("enable the cache", "disable the cache", "antonym"),
        ("config in staging", "config in production", "alternative"),
        ("who reviews An's PR", "who reviews Binh's PR", "name"),
        ("convert JSON to YAML", "convert YAML to JSON", "order"),
        ("cách bật log", "cách tắt log", "antonym"),
        ("Como ativar o cache?", "Como desativar o cache?", "antonym"),
        ("Comment activer le cache ?", "Comment désactiver le cache ?", "antonym"),
        ("Cómo activar la caché", "Cómo desactivar la caché", "antonym"),
        ("Wie aktiviere ich das?", "Wie aktiviere ich das nicht?", "negation"),
    ],
)
def test_what_differs(one: str, other: str, why: str) -> None:
    assert guard.refusal(one, other) == guard.refusal(other, one) == why


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How to enable debug logs?", "how to  enable debug logs"),
        ("How do I reset it?", "Hi, how do I reset it? Thanks!"),
        ("What is the difference between a virus and bacteria?", "What is the diffrence between a virus and bacteria?"),
        ("It needs 1,000 rows", "it needs 1000 rows"),
        ("Can't I log in?", "can not I log in"),
        ("after 14 days", "after 14 days, please"),
    ],
)
def test_what_is_the_same(one: str, other: str) -> None:
    assert guard.refusal(one, other) == ""


def served(rows: list[dict[str, Any]], same: bool) -> float:
    by = semantic.maker()
    assert by is not None
    chosen = [row for row in rows if row["same"] is same]
    hits = 0
    for row in chosen:
        one, other = by.embed([guard.wording(row["text1"]), guard.wording(row["text2"])], kind="query")
        likeness = sum(a * b for a, b in zip(one, other, strict=True))
        hits += likeness >= DEFAULT_THRESHOLD and not guard.refusal(row["text1"], row["text2"])
    return hits / len(chosen)


@pytest.mark.parametrize("name", ["pairs", "developer"])
def test_few_traps_and_a_third_of_the_repeats_are_served(name: str) -> None:
    rows = [json.loads(line) for line in (PAIRS / f"{name}.jsonl").read_text().splitlines()]
    same, traps = served(rows, True), served(rows, False)
    print(f"{name}: {same:.1%} of the same questions served, {traps:.1%} of the traps")
    assert same >= 0.30 and traps <= 0.03
    assert len(rows) >= 60
