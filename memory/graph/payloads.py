"""Reading a stored part by pieces: a window of its lines, a search, its errors. The whole is never held at once."""

import codecs
import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Final

import re2  # type: ignore[import-untyped]
from django.db import connection

from memory.graph import content, parts, slices
from memory.graph.models import Part
from memory.graph.summaries.line import without_ansi
from memory.graph.summaries.text import first_error
from memory.problems import Problem
from memory.sentences import sentence

WINDOW: Final = 200
# What stands of a part on its trigger's own page.
PEEK: Final = 60
PEEK_BYTES: Final = 64 * 1024
# Of a longer line a page shows the beginning.
LINE_CUT: Final = 2_000
PRETTY_BYTES: Final = 256 * 1024
MOST_ERRORS: Final = 12
# Compressed bytes that are read from the database at a time, and lines that are grepped at a time.
_READ: Final = 1024 * 1024
_GREP: Final = 1024 * 1024
# Lines with one of these are looked at again by the rules that know a real error.
_SUSPECT: Final = (
    r"error|fail|fatal|panic|abort|exception|assert|leak|sanitizer|crash|segmentation|core dumped|out of memory|killed"
    r"|uncaught|unhandled|timed out|timeout|refused|denied|not found|no such file|cannot|could not|unable|undefined"
    r"|not ok|exit code|went wrong|critical|severe|caused by|traceback|✕|✗|✘|●|×|<<<|^E  "
)
_MOST_SUSPECTS: Final = 4_000
# A rule looks at up to so many lines behind the one it found.
_CONTEXT: Final = 40


@dataclass(frozen=True, slots=True)
class Line:
    """One line as a page shows it; `size` is its length in bytes where only its beginning is shown."""

    number: int
    text: str
    size: int = 0
    # The text in pieces, each with whether a search found it.
    pieces: list[tuple[str, bool]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Window:
    """Some lines of a part, and how many there are."""

    lines: list[Line]
    total: int

    @property
    def first(self) -> int:
        return self.lines[0].number if self.lines else 0

    @property
    def last(self) -> int:
        return self.lines[-1].number if self.lines else 0

    @property
    def previous(self) -> int:
        """Where the window before begins; 0 where there is none."""
        return max(1, self.first - WINDOW) if self.first > 1 else 0

    @property
    def next(self) -> int:
        """Where the window after begins; 0 where there is none."""
        return self.last + 1 if self.last < self.total else 0

    @property
    def end(self) -> int:
        """Where the last window begins."""
        return max(1, self.total - WINDOW + 1)


@dataclass(frozen=True, slots=True)
class Index:
    """How many lines a part has, and at which byte each thousandth begins."""

    total: int
    starts: tuple[int, ...]

    EVERY: ClassVar = 1_000


def is_binary(part: Part) -> bool:
    """True for what is no text, by its kind and its beginning."""
    head = next(_bytes(part), b"")[:8192]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    if b"\0" in head:
        return True
    kind = part.media_type.lower()
    if kind.startswith(("text/", "message/")) or content.is_json(kind):
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return True
    return False


def window(part: Part, first: int, *, most: int = WINDOW) -> Window:
    """Lines from `first` on; past the end the last one."""
    index = index_of(part)
    first = max(1, min(first, index.total))
    mark = (first - 1) // Index.EVERY
    start = index.starts[mark] if index.starts else 0
    number = mark * Index.EVERY
    lines: list[Line] = []
    for head, size in _lines(_from(_text(part), start)):
        number += 1
        if number >= first:
            lines.append(_shown(number, head, size))
        if len(lines) == most:
            break
    return Window(lines, index.total)


def index_of(part: Part) -> Index:
    """The part's index; of a large one it is kept, for the same bytes have the same index."""
    if part.content is not None:
        return _indexed(_text(part))
    return _index(str(part.tenant_id), bytes(part.sha256))


@lru_cache(maxsize=256)
def _index(tenant_pk: str, sha256: bytes) -> Index:
    return _indexed(_text(Part(tenant_id=tenant_pk, sha256=sha256)))


def _indexed(chunks: Iterable[bytes]) -> Index:
    """One pass over the text: newlines are counted, and looked for one by one only where a thousandth begins."""
    starts, at, counted, last = [0], 0, 0, b""
    for chunk in chunks:
        newlines = chunk.count(b"\n")
        passed, place = counted, -1
        while counted + newlines >= len(starts) * Index.EVERY:
            while passed < len(starts) * Index.EVERY:
                place = chunk.index(b"\n", place + 1)
                passed += 1
            starts.append(at + place + 1)
        counted, at, last = counted + newlines, at + len(chunk), chunk[-1:] or last
    return Index(counted + (1 if at and last != b"\n" else 0), tuple(starts))


def can_be_pretty(part: Part) -> bool:
    """True for JSON that is small enough to be shown whole."""
    return content.is_json(part.media_type) and part.size <= PRETTY_BYTES


def pretty(part: Part) -> str | None:
    """A small JSON part with indents; None for any other."""
    if not can_be_pretty(part):
        return None
    with suppress(ValueError, RecursionError):
        return json.dumps(json.loads(parts.stored(part)), indent=2, ensure_ascii=False)
    return None


def search(part: Part, pattern: str, *, past: int = 0) -> dict[str, Any]:
    """The first hundred lines behind `past` that match an RE2 pattern; `more` says that there are others."""
    slices.grep(b"", pattern)  # a pattern that can't be read is refused also where there is nothing to read
    hits: list[dict[str, Any]] = []
    number = 1
    for block in _blocks(_text(part)):
        lines = slices.count_lines(block)
        if number + lines > past + 1:
            skipped = max(0, past + 1 - number)
            found = slices.grep(_without(block, skipped), pattern, first_line=number + skipped)
            hits += found["hits"]
            if len(hits) > slices.MOST_HITS or found["more"]:
                return {"hits": hits[: slices.MOST_HITS], "more": True}
        number += lines
    return {"hits": hits, "more": False}


def marked(text: str, pattern: str) -> list[tuple[str, bool]]:
    """A line in pieces, each with whether the pattern matches it."""
    options = re2.Options()
    options.log_errors = False
    pieces: list[tuple[str, bool]] = []
    at = 0
    with suppress(re2.error):
        for match in re2.compile(pattern, options).finditer(text):
            if match.end() > match.start():
                pieces += [(text[at : match.start()], False), (match[0], True)]
                at = match.end()
    return [piece for piece in [*pieces, (text[at:], False)] if piece[0]]


def errors(part: Part) -> list[Line]:
    """The lines that say a run failed, the first real error first. Kept for a large part, as its index is."""
    if part.content is not None:
        return list(_errors(_text(part)))
    return list(_kept_errors(str(part.tenant_id), bytes(part.sha256)))


@lru_cache(maxsize=256)
def _kept_errors(tenant_pk: str, sha256: bytes) -> tuple[Line, ...]:
    return _errors(_text(Part(tenant_id=tenant_pk, sha256=sha256)))


def _errors(chunks: Iterable[bytes]) -> tuple[Line, ...]:
    """Only suspect lines and what follows them are read by the rules, which would take seconds for 32 MB."""
    numbers, lines = _suspects(chunks)
    found: list[Line] = []
    at = 0
    while len(found) < MOST_ERRORS and at < len(lines):
        sign = first_error("\n".join(lines[at:]))
        if sign is None:
            break
        at += sign.number
        found.append(Line(numbers[at - 1], sign.words[:300]))
        if sign.rank > 1:
            break
    return tuple(found)


def _suspects(chunks: Iterable[bytes]) -> tuple[list[int], list[str]]:
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = False
    options.never_nl = True
    suspect = re2.compile(f"(?m){_SUSPECT}".encode(), options)
    numbers: list[int] = []
    lines: list[str] = []
    number, seen, context = 0, 0, 0
    for block in _blocks(chunks):
        if not context and not suspect.search(block):
            number += slices.count_lines(block)
            continue
        for head, _ in _lines([block]):
            number += 1
            is_suspect = suspect.search(head) is not None
            context = _CONTEXT if is_suspect else context - 1
            if context > 0:
                # A progress bar's carriage returns end lines for the rules, and are one line here as in the window.
                bars = head.decode("utf-8", "replace").rstrip("\r").split("\r")
                numbers += [number] * len(bars)
                lines += bars
            context = max(context, 0)
            seen += is_suspect
            if seen > _MOST_SUSPECTS:
                return numbers, lines
    return numbers, lines


def _bytes(part: Part) -> Iterator[bytes]:
    """The stored bytes by pieces. Raises Problem 410 where retention has dropped them."""
    if part.dropped_at is not None:
        raise parts.gone(part)
    if part.content is not None:
        yield bytes(part.content)
        return
    inflate = zlib.decompressobj()
    place, codec = 1, "zlib"
    while True:
        codec, size, piece = _piece(part, place)
        if codec == "s3":
            # In the storage a body is one compressed file, which the store reads.
            yield parts.stored(part)
            return
        if codec != "zlib":
            yield piece
        while codec == "zlib" and piece:
            yield inflate.decompress(piece, _READ)
            piece = inflate.unconsumed_tail
        place += _READ
        if place > size:
            return


def _piece(part: Part, place: int) -> tuple[str, int, bytes]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT codec, octet_length(content), substring(content FROM %s FOR %s) FROM graph_body"
            " WHERE sha256 = %s AND tenant_id = %s ORDER BY stored_on LIMIT 1",
            [place, _READ, bytes(part.sha256), str(part.tenant_id)],
        )
        row = cursor.fetchone()
    if row is None:
        raise Problem(410, "payload_gone", sentence("This payload is no longer kept; the trigger stays."))
    return row[0], row[1], bytes(row[2])


def _text(part: Part) -> Iterator[bytes]:
    """The text by pieces, as UTF-8."""
    decode = None
    for piece in _bytes(part):
        if decode is None and piece.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            decode = codecs.getincrementaldecoder("utf-16")("replace").decode
        yield decode(piece).encode() if decode else piece


def _from(chunks: Iterable[bytes], start: int) -> Iterator[bytes]:
    at = 0
    for chunk in chunks:
        if at + len(chunk) > start:
            yield chunk[max(0, start - at) :]
        at += len(chunk)


def _lines(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    """Each line's beginning and its whole length in bytes."""
    head, size = b"", 0
    most = 4 * LINE_CUT
    for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            yield (head + piece[:most])[:most], size + len(piece)
            head, size = b"", 0
        head, size = (head + rest[:most])[:most], size + len(rest)
    if size:
        yield head, size


def _blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The text in blocks of whole lines."""
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size >= _GREP and b"\n" in chunk:
            whole, _, rest = b"".join(held).rpartition(b"\n")
            yield whole + b"\n"
            held, size = [rest], len(rest)
    if size:
        yield b"".join(held)


def _without(block: bytes, skipped: int) -> bytes:
    at = 0
    for _ in range(skipped):
        at = block.find(b"\n", at) + 1
    return block[at:]


def _shown(number: int, head: bytes, size: int) -> Line:
    text = without_ansi(head.decode("utf-8", "replace")).rstrip("\r")
    is_cut = size > len(head) or len(text) > LINE_CUT
    return Line(number, text[:LINE_CUT], size if is_cut else 0)
