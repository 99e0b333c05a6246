"""Answers that must not be over a number of tokens: whole entries, as many as fit, counted by a real tokenizer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import orjson

from memory import tokens
from memory.problems import Problem

Entry = TypeVar("Entry")
LEAST: Final = 100
MOST: Final = 100_000


def asked(query: Mapping[str, str], *, default: int) -> int:
    """`budget_tokens` of a query string. Raises Problem 400."""
    return number(query, "budget_tokens", default, least=LEAST, most=MOST)


def number(query: Mapping[str, str], name: str, default: int, *, least: int, most: int) -> int:
    """A whole number of a query string. Raises Problem 400."""
    raw = query.get(name, str(default))
    if not raw.isascii() or not raw.isdigit() or len(raw) > 9 or not least <= int(raw) <= most:
        raise Problem(400, "invalid_parameter", f"{name} is a whole number from {least:,} to {most:,}.")
    return int(raw)


def fitted(entries: Sequence[Entry], answer: Callable[[list[Entry]], dict[str, Any]], *, budget_tokens: int) -> bytes:
    """The answer as JSON with as many of the entries, from the first on, as the budget holds."""
    costs = tokens.counts([orjson.dumps(entry).decode() + "," for entry in entries]) if entries else []
    spent = tokens.count(orjson.dumps(answer([])).decode())
    shown: list[Entry] = []
    for entry, cost in zip(entries, costs, strict=True):
        if spent + cost > budget_tokens:
            break
        shown.append(entry)
        spent += cost
    while True:
        # The parts' tokens do not add up exactly: what counts is the whole.
        whole = orjson.dumps(answer(shown))
        if not shown or tokens.count(whole.decode()) <= budget_tokens:
            return whole
        shown.pop()
