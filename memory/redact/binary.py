"""Secrets in bytes that are no text: what `strings` would print of them, also with a NUL behind each character.

A place is masked by as many stars: every offset in the file stays what it was.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from memory.redact.rules import Hit
from memory.redact.scan import find, merged

_SHORTEST: Final = 8
_PRINTABLE: Final = rb"[\t\n\r\x20-\x7e]"
# What can be read as it stands, and with one NUL behind each character (UTF-16 without a mark).
_VIEWS: Final = (
    re.compile(_PRINTABLE + rb"{%d,}" % _SHORTEST),
    re.compile(_PRINTABLE + rb"(?:\x00" + _PRINTABLE + rb"){%d,}" % (_SHORTEST - 1)),
)
_STREWN: Final = re.compile(rb"(?<=[\x20-\x7e]{2})\x00{1,3}(?=[\x20-\x7e]{2})")
_LONGEST: Final = 400
_PIECE: Final = re.compile(rb"[\x20-\x7e]{1,400}")
_PIECES: Final = re.compile(rb"[\x20-\x7e]{1,400}(?:\x00{1,3}[\x20-\x7e]{2,400}){0,6}")
_ODD: Final = re.compile(rb"[A-Za-z]\d|\d[A-Za-z]|[a-z][A-Z]")
_BETWEEN: Final = "\n\x1e\n"


def masked(raw: bytes) -> tuple[bytes, int]:
    """The bytes with stars for secrets, and how many there were; the very same bytes where there are none."""
    found = list(places(raw))
    if not found:
        return raw, 0
    content = bytearray(raw)
    for hit in found:
        content[hit.start : hit.end] = b"*" * (hit.end - hit.start)
    return bytes(content), len(found)


def places(raw: bytes) -> list[Hit]:
    """The places of secrets in the bytes, in order, none overlapping another."""
    views = [_runs(raw, view) for view in _VIEWS]
    if b"\0" in raw:
        views.append(list(_strewn(raw)))
    return merged(hit for runs in views for hit in _seen(raw, runs))


def _runs(raw: bytes, view: re.Pattern[bytes]) -> list[tuple[int, int]]:
    return [found.span() for found in view.finditer(raw)]


def _strewn(raw: bytes) -> Iterator[tuple[int, int]]:
    """Pieces with NULs between that may belong together; most are a table of words, each ended by its NUL.

    A secret may begin with any of them, and what stands before it would hide its beginning.
    """
    for found in _STREWN.finditer(raw):
        start, end = found.span()
        if _ODD.search(raw, max(0, start - 16), start) and _ODD.search(raw, end, end + 16):
            before, after = _PIECE.match(raw[max(0, start - _LONGEST) : start][::-1]), _PIECES.match(raw, end)
            yield start - (before.end() if before else 0), after.end() if after else end


def _seen(raw: bytes, runs: list[tuple[int, int]]) -> Iterator[Hit]:
    texts = [raw[start:end].replace(b"\0", b"").decode("ascii") for start, end in runs]
    starts, at = [], 0
    for text in texts:
        starts.append(at)
        at += len(text) + len(_BETWEEN)
    for hit in find(_BETWEEN.join(texts)) if texts else ():
        first, last = bisect_right(starts, hit.start) - 1, bisect_right(starts, hit.end - 1) - 1
        for run in range(first, last + 1):
            begin = hit.start - starts[run] if run == first else 0
            end = min(hit.end - starts[run], len(texts[run])) if run == last else len(texts[run])
            if begin < end:
                yield Hit(*_origin(raw, runs[run], begin, end), hit.rule)


def _origin(raw: bytes, run: tuple[int, int], begin: int, end: int) -> tuple[int, int]:
    """Where the characters from `begin` to `end` of a run stand, NULs between them included."""
    piece = raw[run[0] : run[1]]
    if b"\0" not in piece:
        return run[0] + begin, run[0] + end
    kept = [place for place, byte in enumerate(piece) if byte]
    return run[0] + kept[begin], run[0] + kept[end - 1] + 1
