"""Secrets in pieces: broken by a line end, cut into literals side by side, or spread over list items and fields.

The pieces are put together in a text of their own, with a way back, and looked at like any other. A piece that is a
secret by itself reaches over the cut only where what follows looks like the rest of it.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from memory.redact.rules import BEGINNINGS, Hit, table

_CHARS: Final = table("_.+/=-")
# x: part of a token; g: line end or backslash; q: quote; c: comma; space; o: all else.
_MARKS: Final = bytes(
    ord({10: "g", 13: "g", 92: "g", 34: "q", 39: "q", 96: "q", 44: "c", 32: " "}.get(char, "o" if mark == 32 else "x"))
    for char, mark in enumerate(_CHARS)
)
# Behind six characters of a token: what a piece may end with, by plain search. A quote alone ends every JSON string.
_ENDS: Final = (b"xxxxxxg", b"xxxxxxqg", b"xxxxxxqc", b"xxxxxxqq", b"xxxxxxq q", b"xxxxxxcg", b"xxxxxx q")
_GLUE: Final = re.compile(
    # The next field of an object, and the same field of the next object.
    r"[\"'`]\s*,\s*[\"'`](?P<name>[\w .-]{1,40})[\"'`]\s*:\s*[\"'`]"
    r"|[\"'`]\s*\}\s*,\s*\{\s*[\"'`](?P<next>[\w .-]{1,40})[\"'`]\s*:\s*[\"'`]"
    # A line end, perhaps within quotes, behind a comma or a backslash; the next line's indent, diff or list mark.
    r"|[\"'`]?[ \t]*[,+.&]?[ \t]*\\?\r?\n(?:[ \t]*\r?\n)?[ \t]*(?:[+>|#*-][ \t]{0,4})?[\"'`]?"
    # Literals side by side, and list items.
    r"|[\"'`][ \t]*[,+.&]?[ \t]*[\"'`]"
)
_ODD: Final = re.compile(r"[A-Za-z]\d|\d[A-Za-z]")
_CAMEL: Final = re.compile(r"[a-z][A-Z]")
# `NAME=` and `name:` begin something of their own; base64 ends with =.
_ASSIGNS: Final = re.compile(r"[\w.-]*[\"'`]?\s*(?:[:(]|=[^=\s\"'])")
_CHANGES: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[a-z0-9])")
_DIGITS: Final = re.compile(r"\d+")
_ID_NAME: Final = re.compile(
    r"(?:^|_|[a-z](?=I))(?:id|ids|sha\d*|hash|uuid|digest|commit|cursor|etag|path|url|name|model|version)$", re.I
)
_DIGEST: Final = re.compile(
    r"(?:[0-9a-f]{7,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[a-z]{2,5}_[0-9a-z]{20,})\Z"
)
# What a rule needs to see around the pieces: the name before, the host behind.
_BEFORE: Final = 64
_BEHIND: Final = 24
_LONGEST: Final = 300
_SEPARATOR: Final = "\n\x1e\n"

Look = Callable[[str], list[Hit]]


class _Cut(NamedTuple):
    """One cut: where the glue begins and ends, the name of the field behind it, where the pieces begin and end."""

    start: int
    end: int
    name: str | None
    first: int
    last: int


def hits(text: str, known: list[Hit], look: Look) -> list[Hit]:
    """The pieces of secrets that only show when they are put together; `look` finds secrets in a text."""
    cuts = list(_cuts(text))
    if not cuts:
        return []
    joined = _Joined(text, cuts)
    ends = {hit.end for hit in known}
    found: list[Hit] = []
    for hit in look(joined.text):
        pieces = joined.pieces(hit, text, ends)
        if len(pieces) > 1:
            found += pieces
    return found


def _cuts(text: str) -> Iterator[_Cut]:
    plain = text.encode("ascii", "replace")
    marks, runs = plain.translate(_MARKS), plain.translate(_CHARS)
    places: set[int] = set()
    for ending in _ENDS:
        at = marks.find(ending)
        while at >= 0:
            places.add(at + 6)
            at = marks.find(ending, at + 6)
    last = 0
    for place in sorted(places):
        # Most places end a field of an object whose next one is plain words: four looks without a regex.
        if place < last or not (found := _glued(text, place)):
            continue
        end, name = found
        # What begins as a token begins here: put behind something, it would not be seen.
        if not runs.startswith(b"xx", end) or (name and _is_id(name)) or text[end : end + 3] in BEGINNINGS:
            continue
        start, stop = runs.rfind(b" ", 0, place) + 1, runs.find(b" ", end)
        stop = len(text) if stop < 0 else stop
        is_address = text.startswith("//", start)
        is_token = is_address or text[start:place].lstrip("+-").rpartition("=")[2][:3] in BEGINNINGS
        pieces = f"{text[max(start, place - 16) : place]} {text[end : min(stop, end + 16)]}"
        if not is_token and not _is_odd(pieces):
            continue
        # The rest of an address begins with two strokes, and may go on with one.
        if not is_address and (_is_path(text, start, place) or _is_path(text, end, stop)):
            continue
        if not _ASSIGNS.match(text, end):
            last = end
            yield _Cut(place, end, name, max(start, place - _LONGEST), min(stop, end + _LONGEST))


def _glued(text: str, place: int) -> tuple[int, str | None] | None:
    """Where the next piece begins, and the name of its field; None where nothing joins the two."""
    if text.startswith('","', place):
        quote = text.find('"', place + 3, place + 44)
        if quote >= 0 and text.startswith('":', quote):
            return (quote + 3, text[place + 3 : quote]) if text.startswith('":"', quote) else None
        return place + 3, None
    glue = _GLUE.match(text, place)
    return (glue.end(), glue["name"] or glue["next"]) if glue else None


def _is_odd(pieces: str) -> bool:
    """Whether the two ends look like parts of a token, not like words, names in camel case or numbers."""
    return len(_ODD.findall(pieces)) > 1 or (not pieces.islower() and len(_CAMEL.findall(pieces)) > 4)


def _is_path(text: str, start: int, end: int) -> bool:
    """Whether a run is the path of a file."""
    if text.startswith("/", start) and text.find("/", start + 1, end) > 0:
        return True
    return text.startswith(("./", "../", "~/"), start)


@lru_cache(maxsize=1024)
def _is_id(name: str) -> bool:
    return _ID_NAME.search(name) is not None


class _Joined:
    """All cut places of a text with what stands around them, without the cuts; windows that meet are one."""

    def __init__(self, text: str, cuts: list[_Cut]) -> None:
        self.cuts: dict[int, _Cut] = {}
        self._starts: list[int] = []
        self._origins: list[int] = []
        self._parts: list[str] = []
        self._length = self._last = 0
        end = -1
        for place, cut in enumerate(cuts):
            if cut.first > end:
                self._add(text, max(end, self._line(text, cut.first)), cut.start, is_new=True)
            else:
                self._add(text, self._last, cut.start)
            self.cuts[self._length] = cut
            end = min(cut.last + _BEHIND, len(text))
            self._last = cut.end
            if place + 1 == len(cuts) or cuts[place + 1].first > end:
                self._add(text, cut.end, end)
        self.text: str = "".join(self._parts)

    @staticmethod
    def _line(text: str, at: int) -> int:
        least = max(0, at - _BEFORE)
        return max(text.rfind("\n", least, at) + 1, text.rfind("\x1e", least, at) + 1, least)

    def _add(self, text: str, start: int, end: int, *, is_new: bool = False) -> None:
        if is_new and self._parts:
            self._parts.append(_SEPARATOR)
            self._length += len(_SEPARATOR)
        self._starts.append(self._length)
        self._origins.append(start)
        self._parts.append(text[start:end])
        self._length += max(0, end - start)

    def pieces(self, hit: Hit, text: str, ends: set[int]) -> list[Hit]:
        """The places in the original of a hit that reaches over cuts; what is not the rest of it is left out."""
        found: list[Hit] = []
        at = bisect_right(self._starts, hit.start) - 1
        start = hit.start
        while start < hit.end:
            stop = self._starts[at + 1] if at + 1 < len(self._starts) else len(self.text)
            origin = self._origins[at] + start - self._starts[at]
            length = min(hit.end, stop) - start
            piece = text[origin : origin + length]
            cut = self.cuts.get(start) if found else None
            if cut and cut.start in ends and not _is_rest(piece, text, origin + length, cut):
                break
            found.append(Hit(origin, origin + length, hit.rule))
            ends = ends | {origin + length} if len(found) > 1 else ends
            start, at = start + length, at + 1
        return found


def _is_rest(piece: str, text: str, end: int, cut: _Cut) -> bool:
    """Whether a piece looks like the rest of a secret that began before the cut."""
    if cut.name is not None and _DIGEST.match(piece):
        return False
    parts = re.split(r"[-_./]", piece)
    if all(part.isalpha() or part.isdigit() or not part for part in parts) and len(_CHANGES.findall(piece)) < 4:
        return False
    if len(piece) < 8:
        # A short rest stands alone on its line.
        return any(char.isdigit() for char in piece) and text[end : end + 1] in ("", "\n", "\r", '"', "'")
    groups = len(_DIGITS.findall(piece))
    return groups > 1 or (groups == 1 and not piece.islower()) or len(_CHANGES.findall(piece)) >= 4
