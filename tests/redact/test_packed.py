"""Secrets inside gzip, zlib and zip: found, packed anew with stars, within bounds; all else stays byte for byte."""

import bz2
import gzip
import io
import random
import zipfile
import zlib
from collections.abc import Callable

import pytest

from memory.graph import content
from memory.redact import packed
from memory.scrubbing import masked_bytes

SECRET = b"AKIA" + b"QYLPMN5HHHFPZAM2"
LOG = b"line of the build\n" * 50 + b"aws_access_key_id=" + SECRET + b"\nend\n"
NOISE = random.Random(3).randbytes(3000)  # noqa: S311 - bytes, not a secret


def zipped(**files: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, held in files.items():
            archive.writestr(name, held)
        archive.comment = b"of the run"
    return made.getvalue()


def unzipped(raw: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def tar_like(held: bytes) -> bytes:
    return b"a.log".ljust(512, b"\0") + held.ljust(1024, b"\0") + NOISE


FORMS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    "gzip": (gzip.compress, gzip.decompress),
    "zlib": (zlib.compress, zlib.decompress),
    "zlib, not packed": (lambda raw: zlib.compress(raw, 0), zlib.decompress),
    "zlib, packed best": (lambda raw: zlib.compress(raw, 9), zlib.decompress),
    "two gzip in a row": (lambda raw: gzip.compress(b"one\n") + gzip.compress(raw), gzip.decompress),
    "gzip of a tar": (lambda raw: gzip.compress(tar_like(raw)), gzip.decompress),
    "zip": (lambda raw: zipped(a=b"fine", b=raw), lambda raw: unzipped(raw)["b"]),
    "gzip in zip": (lambda raw: zipped(a=gzip.compress(raw)), lambda raw: gzip.decompress(unzipped(raw)["a"])),
    "zip in gzip": (lambda raw: gzip.compress(zipped(a=raw)), lambda raw: unzipped(gzip.decompress(raw))["a"]),
    "gzip of UTF-16": (lambda raw: gzip.compress(raw.decode().encode("utf-16")), lambda raw: gzip.decompress(raw)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("media_type", ["application/octet-stream", "text/plain", "application/json", "image/png"])
def test_a_secret_inside_becomes_stars(form: str, media_type: str) -> None:
    pack, unpack = FORMS[form]
    clean = content.cleaned(pack(LOG), media_type)
    assert clean.redactions == 1
    inside = unpack(clean.raw)
    assert SECRET not in inside and SECRET.decode().encode("utf-16-le") not in inside
    assert len(inside) == len(unpack(pack(LOG))) and b"*" * 8 in inside.replace(b"\0", b"") and b"e" in inside


@pytest.mark.parametrize("form", FORMS)
def test_what_holds_none_stays_byte_for_byte(form: str) -> None:
    raw = FORMS[form][0](LOG.replace(SECRET, b"AKIA of no one"))
    clean = content.cleaned(raw, "application/octet-stream")
    assert clean.raw is raw and clean.redactions == 0


def test_only_the_file_with_a_secret_changes() -> None:
    raw = zipped(good=NOISE, bad=LOG)
    after = unzipped(packed.masked(raw)[0])
    assert after["good"] == NOISE and SECRET not in after["bad"]
    with zipfile.ZipFile(io.BytesIO(packed.masked(raw)[0])) as archive:
        assert archive.comment == b"of the run" and archive.getinfo("bad").compress_type == zipfile.ZIP_DEFLATED


@pytest.mark.parametrize(
    "raw",
    [gzip.compress(LOG)[:-9], gzip.compress(LOG)[:-5] + b"\xff\xff\xff\xff\xff", zlib.compress(LOG)[:-2] + b"\0\0"],
    ids=["cut off", "wrong check sum", "wrong check sum of zlib"],
)
def test_a_broken_end_hides_nothing(raw: bytes) -> None:
    clean, found = packed.masked(raw)
    assert found == 1
    assert SECRET not in (gzip if raw[0] == 0x1F else zlib).decompress(clean)


def test_a_file_with_a_wrong_check_sum_hides_nothing() -> None:
    raw = bytearray(zipped(a=LOG))
    raw[14] ^= 1
    raw[raw.index(b"PK\x01\x02") + 16] ^= 1
    assert packed.masked(bytes(raw))[1] == 1


def test_it_unpacks_a_bounded_piece_and_no_deeper_than_two() -> None:
    bomb = zlib.compress(b"\0" * (8 * packed._LEAST) + LOG)
    look = packed._Look(packed._LEAST)
    assert look.unpacked(bomb, 1) == (bomb, 0) and look.left == 0
    deep = gzip.compress(gzip.compress(gzip.compress(LOG)))
    assert packed.masked(deep) == (deep, 0)
    many = zipped(**{f"f{n}": b"\0" * packed._LEAST for n in range(4)})
    look = packed._Look(packed._LEAST * 2)
    assert look.unpacked(many, 1) == (many, 0) and look.left == 0


@pytest.mark.parametrize(
    "raw",
    [b"\x1f\x8b\x08", b"\x1f\x8b\x08" + NOISE, b"x\x9c" + NOISE, b"PK\x03\x04" + NOISE, b"PK\x03\x04", b"x^2 + y^2",
     zipped(a=b"x")[:-10], zipped(a=b"x").replace(b"PK\x01\x02", b"PK\x09\x02"), b"x\x01", bz2.compress(LOG)],
)  # fmt: skip
def test_what_only_begins_like_it_is_kept(raw: bytes) -> None:
    assert content.cleaned(raw, "application/octet-stream").raw == raw


def test_a_text_that_begins_like_it_is_a_text() -> None:
    clean = content.cleaned(b"x^2 is a term\n" + LOG, "text/plain")
    assert b"[secret:" in clean.raw and SECRET not in clean.raw


@pytest.mark.parametrize("form", FORMS)
def test_what_was_stored_before_keeps_its_size(form: str) -> None:
    raw = FORMS[form][0](LOG)
    after = masked_bytes(raw)
    assert len(after) == len(raw) and SECRET not in after and after != raw
    assert masked_bytes(after) == after
