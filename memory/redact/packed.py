"""Secrets inside gzip, zlib and zip: what is packed is looked at too, and packed anew where it holds one.

Only where the first bytes say so. Inside, a secret becomes as many stars, so no place of the content moves; the packed
bytes do. Of one body at most `MOST` bytes are unpacked, `RATIO` for each packed one (a log packs by 10 to 50), and what
is packed twice is looked at, not thrice. Without a secret in what was looked at, a body is kept as it came; with one,
what could not be looked at is left out of the new one.
"""

import io
import zipfile
import zlib
from typing import Final

from memory.redact import binary
from memory.redact.scan import find, starred

MOST: Final = 16 * 1024 * 1024
RATIO: Final = 100
DEPTH: Final = 2
_LEAST: Final = 1024 * 1024
_READ: Final = 16 * 1024
_GZIP: Final = b"\x1f\x8b\x08"
_ZIP: Final = b"PK\x03\x04"
_LOCAL_HEADER: Final = 30
_MOST_FILES: Final = 20_000


def is_packed(raw: bytes) -> bool:
    """Whether the bytes begin like gzip, zlib or zip."""
    return raw.startswith((_GZIP, _ZIP)) or _is_zlib(raw)


def masked(raw: bytes) -> tuple[bytes, int]:
    """Packed bytes with stars for the secrets inside, and how many there were; the very same where there are none."""
    return _Look(min(MOST, max(_LEAST, RATIO * len(raw)))).unpacked(raw, DEPTH - 1)


def masked_bytes(raw: bytes) -> tuple[bytes, int]:
    """Any bytes with stars for secrets: a text, packed, or neither. All but packed ones keep their size."""
    return _Look(min(MOST, max(_LEAST, RATIO * len(raw)))).look(raw, DEPTH)


def masked_text(raw: bytes, encoding: str) -> tuple[bytes, int] | None:
    """Bytes that are a text, with stars for secrets, as many bytes as they had; None where they are no such text."""
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        return None
    found = find(text)
    return (starred(text, found, encoding=encoding).encode(encoding), len(found)) if found else (raw, 0)


def _is_zlib(raw: bytes) -> bool:
    # 32 KB window, and a check of the two first bytes; most texts that begin with an x fail it.
    return len(raw) > 6 and raw[0] == 0x78 and (raw[0] << 8 | raw[1]) % 31 == 0 and not raw[1] & 0x20


class _Look:
    """One body: how much of it may still be unpacked."""

    def __init__(self, left: int) -> None:
        self.left = left

    def look(self, raw: bytes, depth: int) -> tuple[bytes, int]:
        """What is packed, then what can be read as it stands: a name or a comment beside it too."""
        inside, count = self.unpacked(raw, depth - 1) if depth and is_packed(raw) else (raw, 0)
        encoding = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(inside[:2], "utf-8")
        clean, more = masked_text(inside, encoding) or binary.masked(inside)
        return clean, count + more

    def unpacked(self, raw: bytes, depth: int) -> tuple[bytes, int]:
        return self._zip(raw, depth) if raw.startswith(_ZIP) else self._stream(raw, depth)

    def _stream(self, raw: bytes, depth: int) -> tuple[bytes, int]:
        """gzip, also several in a row, and zlib."""
        is_gzip, done, count, rest = raw.startswith(_GZIP), [], 0, raw
        while rest and (rest.startswith(_GZIP) if is_gzip else rest is raw):
            content, behind = self._inflated(rest, 31 if is_gzip else 15)
            clean, found = self.look(content, depth) if content else (content, 0)
            member = rest[: len(rest) - len(behind)]
            done.append(_deflated(clean, 31 if is_gzip else 15) if found else member)
            count, rest = count + found, behind
        return (b"".join((*done, rest)), count) if count else (raw, 0)

    def _inflated(self, raw: bytes, form: int) -> tuple[bytes, bytes]:
        """What is packed at the beginning of the bytes, as far as it can be read and may, and the bytes behind it."""
        inflate, parts = zlib.decompressobj(form), []
        view = memoryview(raw)
        for at in range(0, len(raw), _READ):
            before, chunk = inflate.copy(), view[at : at + _READ]
            try:
                piece = inflate.decompress(chunk, self.left + 1)
            except zlib.error:
                # A broken end takes the whole last piece along with it: so it is read again, byte by byte.
                parts.append(self._to_the_break(before, chunk))
                return b"".join(parts), b""
            parts.append(piece[: self.left])
            self.left -= len(parts[-1])
            if self.left <= 0 and not inflate.eof:
                return b"".join(parts), b""
            if inflate.eof:
                return b"".join(parts), inflate.unused_data + bytes(view[at + _READ :])
        return b"".join(parts), b""

    def _to_the_break(self, inflate: "zlib._Decompress", chunk: memoryview) -> bytes:
        parts = []
        for at in range(len(chunk)):
            try:
                piece = inflate.decompress(chunk[at : at + 1], self.left + 1)
            except zlib.error:
                break
            parts.append(piece[: self.left])
            self.left -= len(parts[-1])
            if self.left <= 0:
                break
        return b"".join(parts)

    def _zip(self, raw: bytes, depth: int) -> tuple[bytes, int]:
        """A zip with its files looked at. Where one has a secret, those that can't be read are left out of the new."""
        try:
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                files, comment = archive.infolist()[:_MOST_FILES], archive.comment
        except (zipfile.BadZipFile, NotImplementedError, ValueError, UnicodeDecodeError, EOFError):
            return raw, 0
        kept, count = [], 0
        for file in files:
            content = self._file(raw, file)
            if content is not None:
                clean, found = self.look(content, depth)
                count += found
                kept.append((file, clean))
        return (_zipped(kept, comment), count) if count else (raw, 0)

    def _file(self, raw: bytes, file: zipfile.ZipInfo) -> bytes | None:
        """A file's content, read by ourselves: zipfile gives nothing of a file whose check sum is wrong."""
        at = file.header_offset
        header = raw[at : at + _LOCAL_HEADER]
        if file.flag_bits & 1 or len(header) < _LOCAL_HEADER or not header.startswith(_ZIP):
            return None
        start = at + _LOCAL_HEADER + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        if file.compress_type == zipfile.ZIP_STORED:
            content = raw[start : start + min(file.compress_size, self.left)]
            self.left -= len(content)
            return content
        if file.compress_type != zipfile.ZIP_DEFLATED or self.left <= 0:
            return None
        return self._inflated(raw[start : start + file.compress_size], -15)[0]


def _deflated(content: bytes, form: int) -> bytes:
    deflate = zlib.compressobj(6, wbits=form)
    return deflate.compress(content) + deflate.flush()


def _zipped(files: list[tuple[zipfile.ZipInfo, bytes]], comment: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for file, content in files:
            anew = zipfile.ZipInfo(file.filename, max(file.date_time, (1980, 1, 1, 0, 0, 0)))
            anew.compress_type, anew.external_attr, anew.create_system = (
                file.compress_type,
                file.external_attr,
                file.create_system,
            )
            anew.comment = file.comment
            archive.writestr(anew, content)
        archive.comment = comment
    return made.getvalue()
