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
        ("retry after 5 s", "retry after 5 ms", "unit"),
        ("what is the limit of 10 MB for", "what is the limit of 10 Mb for", "unit"),
        ("the temperature of the room in celsius", "the temperature of the room in fahrenheit", "unit"),
        ("delete the log every hour", "delete the log every day", "unit"),
        ("price of it in $", "price of it in €", "sign"),
        ("is the load of it > 5", "is the load of it < 5", "sign"),
        ("is the answer a == b", "is the answer a != b", "sign"),
        ("temperature below -5 there", "temperature below 5 there", "sign"),
        ("a ½ cup of it", "a ¼ cup of it", "number"),
        ("count from 5 to 10", "count from 10 to 5", "number"),
        ("list all the connected clients", "list all the disconnected clients", "antonym"),
        ("is this token valid here", "is this token invalid here", "antonym"),
        ("start the web server", "restart the web server", "antonym"),
        ("logs of last week", "logs of this week", "antonym"),
        ("changes since 2024", "changes until 2024", "antonym"),
        ("deploy it to the EU", "deploy it to the US", "alternative"),
        ("включить лог", "выключить лог", "antonym"),
        ("does X support Y", "does Y support X", "order"),
        ("convert it from A to B", "convert it from B to A", "order"),
        ("who called Alice", "who did Alice call", "order"),
        ("what is 'retry' for", "what is 'backoff' for", "quoted"),
        ("table users", "table orders", "one_word"),
        ("the answer for alice", "the answer for bob", "one_word"),
        ("open in vim", "open in emacs", "one_word"),
        ("启用日志", "禁用日志", "one_word"),
        ("تفعيل السجل", "تعطيل السجل", "one_word"),
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
        ("wait 5 seconds for the cache", "wait 5 s for the cache"),
        ("In staging, how do I restart the worker?", "How do I restart the worker in staging?"),
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
