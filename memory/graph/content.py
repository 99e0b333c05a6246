"""Bytes fit to be stored: text without secrets, binary with stars for them. Pure, but for the fingerprints' key."""

import json
import re
from typing import Any, Final, NamedTuple

import orjson

from memory import redact
from memory.problems import Problem
from memory.redact import binary, packed
from memory.tenants.rest import exact_json

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
BINARY: Final = "application/octet-stream"
_MEDIA = re.compile(r"[\w.+-]+/[\w.+*-]+(\s*;\s*[\w-]+=(\"[^\"\\\r\n]*\"|[\w.:/+-]+))*", re.ASCII)
_TEXTUAL = re.compile(
    r"text/|message/|.*[/+](json|xml|yaml|x-yaml|javascript|x-www-form-urlencoded|sql|toml|x-ndjson)\b"
)


class Content(NamedTuple):
    """What is stored of a payload, and what was taken out of it."""

    raw: bytes
    media_type: str
    redactions: int = 0
    sanitized: int = 0


def is_media_type(value: str) -> bool:
    """True for what may stand in a Content-Type."""
    return len(value) <= 200 and bool(_MEDIA.fullmatch(value.strip()))


def fit_media_type(value: str) -> str:
    """The media type; without its parameters where one of them is a secret."""
    return value.partition(";")[0].strip() if ";" in value and redact.has_secret(value) else value


def is_json(media_type: str) -> bool:
    """True for JSON and what is built on it."""
    bare = media_type.partition(";")[0].strip().lower()
    return bare == JSON or bare.endswith("+json")


def value_of(raw: bytes) -> Any:
    """The JSON value with every digit of its numbers. Raises Problem 400."""
    return exact_json(raw)[0]


def dumped(value: Any, *, is_sorted: bool = False) -> bytes:
    """A JSON value as bytes."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS if is_sorted else None)
    except (TypeError, ValueError):  # a number beyond 64 bits
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=is_sorted)
        return text.encode("utf-8", "replace")


def cleaned(raw: bytes, media_type: str) -> Content:
    """The bytes without secrets; the very same bytes where nothing had to go."""
    if is_json(media_type):
        found = _clean_json(raw, media_type)
        if found is not None:
            return found
    if packed.is_packed(raw):
        inside, redactions = packed.masked(raw)
        if redactions:
            masked, more = binary.masked(inside)  # a file's name, a comment
            return Content(masked, media_type, redactions + more)
    encoding = _encoding(raw, media_type.lower())
    if encoding is None:
        masked, redactions = binary.masked(raw)
        return Content(masked, media_type, redactions)
    clean = redact.clean_text(raw.decode(encoding))
    if not clean.redactions:
        return Content(raw, media_type)
    return Content(clean.value.encode(encoding), media_type, clean.redactions, clean.sanitized)


def _clean_json(raw: bytes, media_type: str) -> Content | None:
    """JSON by its values, so that no escape hides a secret; None where the bytes are no JSON that is read in one go."""
    try:
        value = value_of(raw)
    except Problem:
        return None
    clean = redact.clean(value)
    if clean.redactions or clean.sanitized:
        return Content(dumped(clean.value), media_type, clean.redactions, clean.sanitized)
    return Content(raw if _is_told_once(raw, value) else dumped(value), media_type)


def _is_told_once(raw: bytes, value: Any) -> bool:
    """False where a key stands twice: the parser keeps the last one, and a secret in the first would go in unseen."""
    if raw == dumped(value):
        return True
    try:
        json.loads(raw.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return False
    return True


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("doubled key")


def _encoding(raw: bytes, kind: str) -> str | None:
    """How to read the bytes as text; None for binary."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16" if len(raw) % 2 == 0 and _reads(raw, "utf-16") else None
    if _reads(raw, "utf-8") and (b"\0" not in raw[:8192] or _TEXTUAL.match(kind)):
        return "utf-8"
    return "latin-1" if _TEXTUAL.match(kind) else None


def _reads(raw: bytes, encoding: str) -> bool:
    try:
        raw.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
