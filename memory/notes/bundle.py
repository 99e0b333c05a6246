"""Notes as a zip of files, and back: the layouts, the signed manifest, and what an archive may not hold.

The same notes give the same bytes: files are sorted, times fixed, and nothing in it names the team, the server or the
day, so that an archive that is imported into an empty team and exported again is the same archive.
"""

import hashlib
import io
import stat
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson
from django.utils.translation import gettext

from memory.notes import paths, signing, skills
from memory.sentences import thousands

FORMAT: Final = "team-memory-notes/1"
MANIFEST: Final = "manifest.json"
LAYOUTS: Final = ("markdown", "skills", "memories")
MEMORIES: Final = "memories/"
# What one request takes in within a minute: 20 to 50 ms a file.
MAX_FILES: Final = 1_000
MAX_FILE: Final = 128 * 1024
MAX_TOTAL: Final = 64 * 1024 * 1024
MAX_MANIFEST: Final = 8 * 1024 * 1024
# What a text of that size can shrink to honestly: beyond it the archive was made to burst.
MAX_RATIO: Final = 200
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


class InvalidBundle(ValueError):
    """The archive can't be read: `code` is a stable word, `str()` says what to do."""

    def __init__(self, code: str, advice: str) -> None:
        super().__init__(advice)
        self.code = code


@dataclass(frozen=True)
class File:
    """One note in an archive. `sha256` is the hash of the note's text when it was exported, where that is known."""

    path: paths.NotePath
    text: str
    sha256: str | None = None


@dataclass(frozen=True)
class Bundle:
    """What an archive holds, and what its signature is worth: `valid`, `other` (another server's) or `none`."""

    files: tuple[File, ...]
    signature: str = "none"


def write(notes: Iterable[tuple[str, str]], *, layout: str = "markdown") -> bytes:
    """An archive of (path, text) pairs."""
    files: dict[str, bytes] = {}
    listed: list[dict[str, Any]] = []
    for path, text in sorted(notes):
        name, content = _laid_out(path, text, layout, taken=files)
        files[name] = content.encode()
        said = {"file": name, "sha256": hashlib.sha256(files[name]).hexdigest(), "size": len(files[name])}
        note = {"path": path, "sha256": hashlib.sha256(text.encode()).hexdigest()}
        listed.append(said | {"note": note})
    manifest = signing.signed({"format": FORMAT, "layout": layout, "files": listed})
    files[MANIFEST] = orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"
    return _zipped(files)


def _laid_out(path: str, text: str, layout: str, *, taken: dict[str, bytes]) -> tuple[str, str]:
    if layout == "skills":
        return skills.write(path, text, taken=taken)
    return (f"{MEMORIES}{path}" if layout == "memories" else path), text


def _zipped(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = 3
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[name])
    return packed.getvalue()


def read(raw: bytes) -> Bundle:
    """The notes of an archive in any layout, with or without a manifest. Raises InvalidBundle for the whole of it."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            contents = dict(_contents(archive))
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, OSError, EOFError) as error:
        raise InvalidBundle(
            "not_a_zip", gettext("Send a zip archive of .md files: %(error)s.") % {"error": str(error)[:120]}
        ) from None
    except (ValueError, OverflowError) as error:
        if isinstance(error, InvalidBundle):
            raise
        raise InvalidBundle("not_a_zip", gettext("Send a zip archive of .md files; this one is damaged.")) from None
    except Exception as error:
        # The errors of zlib, lzma and struct have no common base, and are what a damaged archive raises.
        if type(error).__module__ not in ("zlib", "_lzma", "struct"):
            raise
        raise InvalidBundle("not_a_zip", gettext("Send a zip archive of .md files; this one is damaged.")) from None
    manifest, signature = _manifest(contents.pop(MANIFEST, None))
    return Bundle(tuple(_files(contents, manifest)), signature)


def _contents(archive: zipfile.ZipFile) -> Iterator[tuple[str, bytes]]:
    entries = archive.infolist()
    if len(entries) > MAX_FILES + 1:
        raise InvalidBundle(
            "too_many_files",
            gettext(
                "An archive may hold %(max_files)s files, and this one has %(entries)s. Split it, or keep a folder in"
                " step with `manage.py sync_notes` on the server."
            )
            % {
                "max_files": thousands(MAX_FILES),
                "entries": thousands(len(entries)),
            },
        )
    seen: set[str] = set()
    left = MAX_TOTAL
    for entry in entries:
        check_name(entry.orig_filename, entry.filename)
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise InvalidBundle(
                "not_a_file",
                gettext("%(filename)s is a link or a device; archive the file itself.")
                % {"filename": entry.filename[:100]},
            )
        if entry.is_dir():
            continue
        if entry.flag_bits & 1:
            raise InvalidBundle("encrypted", gettext("The archive is encrypted; send it without a password."))
        if (key := paths.path_key(entry.filename)) in seen:
            raise InvalidBundle(
                "case_collision",
                gettext("%(filename)s is in it twice, in two spellings.") % {"filename": entry.filename[:100]},
            )
        seen.add(key)
        content = _bounded(archive, entry, min(left, MAX_MANIFEST if entry.filename == MANIFEST else MAX_FILE))
        left -= len(content)
        yield entry.filename, content


def _bounded(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int) -> bytes:
    """The entry's bytes, never more than `most` of them in memory, whatever its header says."""
    if entry.file_size > most or entry.file_size > MAX_RATIO * max(entry.compress_size, 64):
        raise _too_large(entry)
    with archive.open(entry) as packed:
        content = packed.read(most + 1)
    if len(content) > most:
        raise _too_large(entry)
    return content


def _too_large(entry: zipfile.ZipInfo) -> InvalidBundle:
    limits = gettext("%(max_file)s KB a file and %(max_total)s MB in all") % {
        "max_file": MAX_FILE // 1024,
        "max_total": MAX_TOTAL // 1024 // 1024,
    }
    return InvalidBundle(
        "too_large",
        gettext("%(entry)s unpacks to too much: %(limits)s.") % {"entry": entry.filename[:100], "limits": limits},
    )


def check_name(*names: str) -> None:
    """Raises InvalidBundle for a name that could leave the folder it is unpacked in."""
    for name in names:
        parts = name.replace("\\", "/").split("/")
        if "\\" in name or "\0" in name or name.startswith("/") or ".." in parts or ":" in parts[0]:
            raise InvalidBundle(
                "path_escape",
                gettext("%(name)s leaves the archive's own folder; nothing was taken in.") % {"name": repr(name[:100])},
            )


def _manifest(raw: bytes | None) -> tuple[dict[str, dict[str, str]], str]:
    if raw is None:
        return {}, "none"
    try:
        manifest = orjson.loads(raw)
        listed = {
            one["file"]: {"path": str(one["note"]["path"]), "sha256": str(one["note"]["sha256"])}
            for one in manifest["files"]
        }
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise InvalidBundle(
            "invalid_manifest", gettext("manifest.json can't be read. Leave it out, or send it as exported.")
        ) from None
    signature = signing.checked(manifest)
    if signature == "wrong":
        advice = gettext("manifest.json was changed after it was signed. Leave it out to import the files without it.")
        raise InvalidBundle("invalid_signature", advice)
    return listed, signature


def _files(contents: dict[str, bytes], manifest: dict[str, dict[str, str]]) -> Iterator[File]:
    seen: dict[str, str] = {}
    for name, content in sorted(contents.items()):
        if not name.casefold().endswith(".md"):
            raise InvalidBundle(
                "not_markdown",
                gettext("%(name)s is no .md file; an archive of notes holds nothing else.") % {"name": name[:100]},
            )
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise InvalidBundle("not_utf8", gettext("%(name)s is not UTF-8.") % {"name": name[:100]}) from None
        known = manifest.get(name)
        path, text = _note(name, text, known["path"] if known else "")
        if path.key in seen:
            raise InvalidBundle(
                "case_collision",
                gettext("%(name)s and %(seen)s are one note.") % {"name": name[:100], "seen": seen[path.key][:100]},
            )
        seen[path.key] = name
        yield File(path, text, known["sha256"] if known else None)


def _note(name: str, text: str, known: str) -> tuple[paths.NotePath, str]:
    if skills.is_skill(name):
        found = skills.read(name, text)
        wanted, text = found.path or known, found.text
    else:
        wanted = name.removeprefix(MEMORIES)
    try:
        return paths.clean_path(wanted), text
    except paths.InvalidPath as error:
        raise InvalidBundle("invalid_path", f"{name[:100]}: {error.advice}") from None
