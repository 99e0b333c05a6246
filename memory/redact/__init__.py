"""Secrets out, text that PostgreSQL refuses out: what every way in calls before a row is written.

A secret becomes `[secret:rule:hmac8]`; the eight hex digits tell two secrets apart and one again, and nothing more.
No raw copy is kept. Pure: no database, and Django is only asked for the key of the fingerprint.
"""

import hashlib
import hmac
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from memory.redact import scan
from memory.redact.native import scanner
from memory.redact.plain import plain_text
from memory.redact.rules import Hit

__all__ = [
    "Clean",
    "brief",
    "clean",
    "clean_many",
    "clean_text",
    "engine",
    "has_secret",
    "masked",
    "sanitize",
    "use_key",
]

_BAD = re.compile("[\x00\ud800-\udfff]")
_SEPARATOR = "\n\x1e\n"
# One scan takes documents up to this many characters together.
_BATCH = 30_000


@dataclass(frozen=True)
class Clean:
    """A value fit to be stored, how many secrets were taken out, how many bad characters were replaced."""

    value: Any
    redactions: int
    sanitized: int


def sanitize(text: str) -> tuple[str, int]:
    """The text with U+FFFD for NUL and lone surrogates, and how many there were."""
    if "\x00" not in text and (text.isascii() or not _BAD.search(text)):
        return text, 0
    # A pair that came in as two halves is one good character.
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _BAD.subn("\ufffd", joined)


def clean_text(text: str) -> Clean:
    """The text without secrets."""
    fit, sanitized = sanitize(text)
    found = scan.find(fit)
    return Clean(_replaced(fit, found) if found else fit, len(found), sanitized)


def brief(text: str, most: int) -> str:
    """The first characters of the text without secrets. Cut before it is cleaned, half a secret would pass for none."""
    return str(clean_text(text).value)[:most]


def masked(text: str, *, encoding: str = "utf-8") -> str:
    """The text with stars for secrets, as many bytes in its encoding as they had: no place moves.

    The very same text where there is none.
    """
    found = scan.find(text)
    return scan.starred(text, found, encoding=encoding) if found else text


def has_secret(text: str) -> bool:
    """Whether `clean_text` would take something out."""
    return bool(scan.find(sanitize(text)[0]))


def clean(value: Any) -> Clean:
    """The JSON value without secrets, keys too; the very same object where nothing had to change."""
    return clean_many((value,))[0]


def clean_many(values: Sequence[Any]) -> list[Clean]:
    """Each value as `clean` gives it, with one scan for many small ones."""
    result = [Clean(value, 0, 0) for value in values]
    for at in _suspects(values):
        result[at] = _clean_exactly(values[at])
    return result


def engine() -> str:
    """What looks for secrets in this process, for system checks and the operations page."""
    if scanner() is None:
        return "own rules only (no betterleaks wheel for this platform): fewer kinds of secrets are found"
    return "betterleaks and own rules"


def _suspects(values: Sequence[Any]) -> Iterator[int]:
    """Places of the values that need the exact walk."""
    batch: list[str] = []
    places: list[int] = []
    size = 0
    for at, value in enumerate(values):
        text = _serialised(value)
        if text is None or "\\u0000" in text:
            yield at
            continue
        if len(text) > _BATCH:
            # Alone: most large documents hold no secret, and the exact walk costs twice the quick look.
            yield from _hit_places([text], [at])
            continue
        if size + len(text) > _BATCH:
            yield from _hit_places(batch, places)
            batch, places, size = [], [], 0
        batch.append(text)
        places.append(at)
        size += len(text)
    yield from _hit_places(batch, places)


def _serialised(value: Any) -> str | None:
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError, RecursionError):
        return None  # a lone surrogate, a number beyond 64 bits: the exact walk takes those


def _hit_places(batch: list[str], places: list[int]) -> Iterator[int]:
    text = plain_text(_SEPARATOR.join(batch))
    found = scan.find_plain(text)
    if not found:
        return
    starts = [0]
    while (at := text.find(_SEPARATOR, starts[-1])) >= 0:
        starts.append(at + len(_SEPARATOR))
    hit_places: set[int] = set()
    for hit in found:
        hit_places.update(range(bisect_right(starts, hit.start) - 1, bisect_right(starts, hit.end - 1)))
    for index in sorted(hit_places):
        yield places[index]


class _Leaves:
    """All strings of a JSON value in one text, in their context, so that a value is seen with its key."""

    def __init__(self, value: Any) -> None:
        self.sanitized = 0
        self.is_changed = False
        self._parts: list[str] = []
        self._length = 0
        self.spans: list[tuple[int, int]] = []
        self._walk(value)
        self.text = "".join(self._parts)

    def _walk(self, value: Any) -> None:
        if isinstance(value, str):
            self._leaf(value)
        elif isinstance(value, dict):
            self._add("{")
            for place, (key, inner) in enumerate(value.items()):
                self._add("," if place else "")
                self._leaf(key)
                self._add(":")
                self._walk(inner)
            self._add("}")
        elif isinstance(value, list | tuple):
            self._add("[")
            for place, inner in enumerate(value):
                self._add("," if place else "")
                self._walk(inner)
            self._add("]")
        else:
            self._add("0")

    def _add(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)

    def _leaf(self, text: str) -> None:
        fit, bad = sanitize(text)
        self.sanitized += bad
        self.is_changed = self.is_changed or fit is not text
        self._add('"')
        self.spans.append((self._length, self._length + len(fit)))
        self._add(fit)
        self._add('"')


def _clean_exactly(value: Any) -> Clean:
    leaves = _Leaves(value)
    found = scan.find(leaves.text)
    if not found and not leaves.is_changed:
        return Clean(value, 0, 0)
    texts = []
    at = 0
    for start, end in leaves.spans:
        while at < len(found) and found[at].end <= start:
            at += 1
        inside = [
            Hit(max(hit.start, start) - start, min(hit.end, end) - start, hit.rule) for hit in _until(found, at, end)
        ]
        text = leaves.text[start:end]
        texts.append(_replaced(text, inside) if inside else text)
    return Clean(_rebuilt(value, iter(texts)), len(found), leaves.sanitized)


def _until(found: list[Hit], at: int, end: int) -> Iterator[Hit]:
    while at < len(found) and found[at].start < end:
        yield found[at]
        at += 1


def _rebuilt(value: Any, texts: Iterator[str]) -> Any:
    if isinstance(value, str):
        text = next(texts)
        return value if text == value else text
    if isinstance(value, dict):
        pairs = [(key, _rebuilt(key, texts), inner, _rebuilt(inner, texts)) for key, inner in value.items()]
        if all(key is new_key and inner is new for key, new_key, inner, new in pairs):
            return value
        rebuilt: dict[Any, Any] = {}
        for _, key, _, inner in pairs:
            rebuilt[_free(key, rebuilt)] = inner
        return rebuilt
    if isinstance(value, list | tuple):
        items = [_rebuilt(inner, texts) for inner in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


def _free(key: Any, taken: dict[Any, Any]) -> Any:
    """The key, numbered where two keys became the same: neither value may be lost."""
    free, number = key, 2
    while free in taken:
        free, number = f"{key}~{number}", number + 1
    return free


def _replaced(text: str, found: list[Hit]) -> str:
    parts: list[str] = []
    last = 0
    for hit in found:
        parts += (text[last : hit.start], f"[secret:{hit.rule}:{_fingerprint(text[hit.start : hit.end])}]")
        last = hit.end
    return "".join((*parts, text[last:]))


_key: bytes | None = None


def use_key(key: bytes) -> None:
    """Sets the key of the fingerprints; without this call it comes from Django's SECRET_KEY."""
    global _key
    _key = key


def _fingerprint(secret: str) -> str:
    return hmac.new(_key or _django_key(), secret.encode(), hashlib.sha256).hexdigest()[:8]


@lru_cache(maxsize=1)
def _django_key() -> bytes:
    from django.conf import settings

    return hashlib.sha256(f"redact:{settings.SECRET_KEY}".encode()).digest()
