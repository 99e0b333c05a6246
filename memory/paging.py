"""Opaque signed cursors. A cursor is a position in one list of one tenant; anything else is refused, never page 1."""

import base64
import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from django.conf import settings

from memory.problems import Problem

Row = TypeVar("Row")
MAX_LIMIT = 200
DEFAULT_LIMIT = 50
SIGNATURE = 12


def invalid_cursor() -> Problem:
    return Problem(
        400,
        "invalid_cursor",
        "The cursor was not made for this list. Use a next_cursor as it was given, or leave it out to start.",
    )


def invalid_limit() -> Problem:
    return Problem(400, "invalid_limit", f"limit is a whole number from 1 to {MAX_LIMIT}.")


def _sign(body: bytes, scope: str, master: str | None = None) -> bytes:
    key = f"cursor:{master or settings.SECRET_KEY}".encode()
    return hmac.new(key, scope.encode() + b"\0" + body, hashlib.sha256).digest()[:SIGNATURE]


def _is_signed(signature: bytes, body: bytes, scope: str) -> bool:
    """By the current key, or by one before: a cursor does not end with a rotation of keys."""
    masters = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return any(hmac.compare_digest(signature, _sign(body, scope, str(master))) for master in masters)


def encode(position: Sequence[Any], *, scope: str) -> str:
    """The cursor for `position` (JSON values) in the list named by `scope` (tenant and list)."""
    body = orjson.dumps(list(position))
    return base64.urlsafe_b64encode(_sign(body, scope) + body).decode().rstrip("=")


def _bytes(cursor: str) -> bytes:
    """The bytes of a cursor in the one spelling that `encode` gives. Raises Problem 400 invalid_cursor."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise invalid_cursor() from None
    if base64.urlsafe_b64encode(raw).decode().rstrip("=") != cursor:
        raise invalid_cursor()
    return raw


def decode(cursor: str, *, scope: str) -> list[Any]:
    """The position inside a cursor. Raises Problem 400 invalid_cursor for any other text."""
    raw = _bytes(cursor)
    body = raw[SIGNATURE:]
    if not body or not _is_signed(raw[:SIGNATURE], body, scope):
        raise invalid_cursor()
    position: list[Any] = orjson.loads(body)
    return position


def peek(query: Any) -> tuple[int, str | None, list[Any] | None]:
    """Limit, cursor and the position in it, for a door that learns only with the rows whose list it is.

    The position proves nothing yet: `Page.of_cursor` must follow, and refuses any other list's.
    """
    limit = _limit(query, ())
    cursor = query.get("cursor")
    if cursor is None:
        return limit, None, None
    try:
        position = orjson.loads(_bytes(cursor)[SIGNATURE:])
    except ValueError:
        raise invalid_cursor() from None
    if not isinstance(position, list):
        raise invalid_cursor()
    return limit, cursor, position


def _limit(query: Any, known: Sequence[str]) -> int:
    for name in query:
        if name not in ("limit", "cursor", *known):
            raise Problem(400, "unknown_parameter", f"Unknown parameter {name[:40]!r}.")
        # In a cursor a NUL is one more wrong character.
        if name != "cursor" and "\0" in query.get(name, ""):
            raise Problem(400, "invalid_parameter", f"{name} holds a NUL, which no value here has.")
    raw = query.get("limit", str(DEFAULT_LIMIT))
    if not raw.isascii() or not raw.isdigit() or len(raw) > 4 or not 1 <= int(raw) <= MAX_LIMIT:
        raise invalid_limit()
    return int(raw)


@dataclass(frozen=True)
class Page:
    """What a list request asks for: `after` is None for the first page."""

    limit: int
    after: list[Any] | None
    scope: str

    @classmethod
    def asked(cls, query: Any, *, scope: str, known: Sequence[str] = ()) -> "Page":
        """Read `limit` and `cursor` from a query string. An unknown parameter is refused: it would change nothing."""
        limit = _limit(query, known)
        cursor = query.get("cursor")
        return cls(limit, None if cursor is None else decode(cursor, scope=scope), scope)

    @classmethod
    def of_cursor(cls, cursor: str | None, *, limit: int, scope: str) -> "Page":
        """The page that a peeked cursor asks for. Raises Problem 400 invalid_cursor where it is another list's."""
        return cls(limit, None if cursor is None else decode(cursor, scope=scope), scope)

    def next_cursor(self, last: list[Any] | None) -> str:
        """The cursor behind `last`; on an empty page the one that led here."""
        after = last if last is not None else self.after
        return encode(after if after is not None else [], scope=self.scope)

    def of(
        self,
        rows: Sequence[Row],
        *,
        position: Callable[[Row], Sequence[Any]],
        show: Callable[[Row], dict[str, Any]],
    ) -> dict[str, Any]:
        """The answer of a list; `rows` holds up to limit + 1. The tail has a cursor too, where new rows resume."""
        page = rows[: self.limit]
        after = position(page[-1]) if page else self.after
        return {
            "items": [show(row) for row in page],
            "next_cursor": encode(after if after is not None else [], scope=self.scope),
            "has_more": len(rows) > self.limit,
        }
