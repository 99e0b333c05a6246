"""80 kinds of secrets, each plain and in the disguises that fool scanners."""

import base64
import json
import random
from collections.abc import Callable
from functools import cache
from urllib.parse import quote

import pytest

from memory import redact
from tests.redact.kinds import KINDS, sample

redact.use_key(b"test")


def _cut(secret: str, glue: str) -> str:
    place = max(8, len(secret) // 2)
    return secret[:place] + glue + secret[place:]


def _everywhere(secret: str, disguise: str) -> str:
    return disguise.join(secret[at : at + 5] for at in range(0, len(secret), 5))


def _parts(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _literal(text: str) -> str:
    return text if text.endswith('"') else f'"{text}"'


VARIANTS: dict[str, Callable[[str, str, str], str]] = {
    "plain": lambda before, secret, after: f"{before}{secret}{after}",
    "split by a continued line": lambda before, secret, after: f"{before}{_cut(secret, chr(92) + chr(10))}{after}",
    "split into quoted halves": lambda before, secret, after: _literal(before + _cut(secret, '" + "') + after),
    "JSON in JSON": lambda before, secret, after: json.dumps(json.dumps({"out": f"$ env\n{before}{secret}{after}\n"})),
    "unicode escapes": lambda before, secret, after: before + "".join(f"\\u{ord(c):04x}" for c in secret) + after,
    "url encoded": lambda before, secret, after: quote(f"{before}{secret}{after}", safe=""),
    "base64": lambda before, secret, after: "data " + base64.b64encode(f"{before}{secret}{after}".encode()).decode(),
    "hex": lambda before, secret, after: "data " + f"{before}{secret}{after}".encode().hex(),
    "NUL": lambda before, secret, after: f"\x00{before}{_everywhere(secret, chr(0))}{after}",
    "zero width": lambda before, secret, after: f"{before}{_everywhere(secret, chr(0x200B))}{after}",
    "colours": lambda before, secret, after: f"{before}\x1b[31m{_everywhere(secret, chr(27) + '[1m')}\x1b[0m{after}",
    "allow marker": lambda before, secret, after: f"{before}{secret}{after} # gitleaks:" + "allow betterleaks:allow",
    "split over lines": lambda before, secret, after: f"{before}{_cut(secret, chr(10))}{after}",
    "split over the lines of a diff": lambda before, secret, after: f"+{before}{_cut(secret, chr(10) + '+')}{after}",
    "wrapped": lambda before, secret, after: before + "\r\n  ".join(_parts(secret, 24)) + after,
    "split over list items": lambda before, secret, after: json.dumps(
        (before + _cut(secret, "\0") + after).split("\0")
    ),
    "split over fields": lambda before, secret, after: json.dumps(
        dict(zip(("first", "second"), (before + _cut(secret, "\0") + after).split("\0"), strict=True))
    ),
    "halves of a shell word": lambda before, secret, after: 'echo "' + before + _cut(secret, "\"'") + after + "'",
    "octal escapes": lambda before, secret, after: before + "".join(f"\\{ord(c):03o}" for c in secret) + after,
    "base64 twice": lambda before, secret, after: _base64(_base64(f"{before}{secret}{after}".encode()).encode()),
    "base64 of two bytes a character": lambda before, secret, after: _base64(
        f"{before}{secret}{after}".encode("utf-16-le")
    ),
    "base64 in lines": lambda before, secret, after: "\n".join(
        _parts(_base64(f"{before}{secret}{after}".encode()), 64)
    ),
    "far into a long text": lambda before, secret, after: "word " * 6_398 + f"{before}{secret}{after}" + "\nmore" * 900,
}


def _leaks(value: str, secret: str) -> bool:
    """A third of the secret in one piece is a leak."""
    bare = value.translate(dict.fromkeys(map(ord, "\x00\u200b\ufffd")))
    size = max(8, len(secret) // 3)
    return any(secret[at : at + size] in bare for at in range(0, len(secret) - size + 1))


@cache
def _misses(variant: str) -> list[str]:
    dice = random.Random(f"redact {variant}")  # noqa: S311 - made-up secrets, the same in each run
    missed = []
    for kind in KINDS:
        before, secret, after = sample(kind, dice)
        cleaned = redact.clean_text(VARIANTS[variant](before, secret, after))
        if not cleaned.redactions or _leaks(cleaned.value, secret):
            missed.append(kind)
    return missed


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_catches_95_of_100(variant: str, capsys: pytest.CaptureFixture[str]) -> None:
    missed = _misses(variant)
    with capsys.disabled():
        print(f"\n{variant}: {len(KINDS) - len(missed)} of {len(KINDS)} caught, missed: {missed or 'none'}", end="")
    assert len(missed) <= 0.05 * len(KINDS)


def test_it_catches_95_of_100_over_all_variants() -> None:
    assert len(KINDS) >= 60
    missed = sum(len(_misses(variant)) for variant in VARIANTS)
    assert missed <= 0.05 * len(KINDS) * len(VARIANTS)
