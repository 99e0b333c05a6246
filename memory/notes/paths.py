"""Note paths: which ones are allowed, and when two spellings mean the same note."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

from django.utils.translation import gettext

from memory import redact

FAMILIES = ("profile", "tools", "project", "general")
MAX_LEVELS = 6
MAX_LENGTH = 255
MAX_SEGMENT = 100
MAX_SEGMENT_BYTES = 255  # what a file name may hold on the file systems that an export is unpacked on
MAX_SLUG = 60

_WINDOWS_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789¹²³"]
)
# Controls, invisible formatting (zero width, bidi), surrogates, private use, line and paragraph separators:
# two paths that look alike must be alike.
_INVISIBLE = frozenset(["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"])
_ENCODED = re.compile(r"%[0-9a-fA-F]{2}")
_WINDOWS_FORBIDDEN = re.compile(r'[<>:"|?*]')
_STROKES = str.maketrans({"đ": "d", "ð": "d", "ł": "l", "ø": "o", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"})


class InvalidPath(ValueError):
    """The text can't be a note path: `reason` is a stable word, `advice` says what to do."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(advice)
        self.reason = reason
        self.advice = advice


@dataclass(frozen=True)
class NotePath:
    """A path as it is shown, and the key that is the same for every spelling of it."""

    shown: str = field(compare=False)
    key: str

    def __str__(self) -> str:
        return self.shown


def clean_path(raw: str) -> NotePath:
    """The path that `raw` means; InvalidPath where it could leave its space or be mistaken for another."""
    text = unicodedata.normalize("NFC", raw)
    _refuse_escapes(text)
    segments = [segment for segment in text.split("/") if segment not in ("", ".")]
    for segment in segments:
        _refuse_segment(segment)
    _refuse_lookalikes(text)
    _refuse_shape(segments)
    _refuse_secrets(text)
    shown = "/".join(segments)
    key = path_key(shown)
    if max(len(shown), len(key)) > MAX_LENGTH:
        raise InvalidPath(
            "too_long",
            gettext("Shorten the path to %(max_length)s characters; it has %(shown)s.")
            % {"max_length": MAX_LENGTH, "shown": len(shown)},
        )
    return NotePath(shown=shown, key=key)


def path_key(text: str) -> str:
    """The canonical form for comparing: letter case and composed or decomposed accents don't count.

    Also for prefixes and searches, where the text need not be a whole path.
    """
    # Folding can undo the composition (Unicode, definition D145), so it stands between NFD and NFC.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())


def family(path: NotePath) -> str:
    """`profile`, `tools`, `project` or `general`."""
    return path.key.split("/", 1)[0]


def project_slug(path: NotePath) -> str | None:
    """The project a note belongs to: `payments` of `project/payments/retry.md`, else None."""
    return _owner(path, "project")


def tool_name(path: NotePath) -> str | None:
    """The tool a note is about: `bash` of `tools/bash/flags.md`, else None."""
    return _owner(path, "tools")


def slug(text: str) -> str:
    """A path segment for any text: lower case, Latin accents dropped, other scripts kept, never empty."""
    plain = re.sub(r"([A-Za-z])[\u0300-\u036f]+", r"\1", unicodedata.normalize("NFKD", text))
    folded = unicodedata.normalize("NFC", plain.casefold().translate(_STROKES))
    kept = "".join(char if unicodedata.category(char)[0] in "LNM" else " " for char in folded)
    cut = "-".join(kept.split())[:MAX_SLUG].strip("-") or "untitled"
    return f"{cut}-x" if cut in _WINDOWS_DEVICES else cut


def _owner(path: NotePath, wanted: str) -> str | None:
    segments = path.key.split("/")
    return segments[1] if segments[0] == wanted and len(segments) > 2 else None


def _refuse_escapes(text: str) -> None:
    if not text.strip():
        raise InvalidPath("empty", gettext("Give a path such as tools/bash/flags.md."))
    if len(text) > 4 * MAX_LENGTH:
        raise InvalidPath(
            "too_long",
            gettext("Shorten the path to %(max_length)s characters; it has %(text)s.")
            % {"max_length": MAX_LENGTH, "text": len(text)},
        )
    # U+FFFD is what stands for a character that could not be read: nobody can type such a path.
    if "\ufffd" in text or any(unicodedata.category(char) in _INVISIBLE for char in text):
        raise InvalidPath("invisible_character", gettext("Remove control and invisible characters from the path."))
    if "\\" in text:
        raise InvalidPath("backslash", gettext("Write the path with forward slashes."))
    if _ENCODED.search(text):
        raise InvalidPath("encoded", gettext("Write the characters themselves, not %-codes."))
    if text.startswith("/"):
        raise InvalidPath("absolute", gettext("Leave out the leading slash: tools/bash/flags.md."))
    if _WINDOWS_FORBIDDEN.search(text):
        raise InvalidPath("forbidden_character", gettext('Leave out drive letters and the characters < > : " | ? *'))


def _refuse_segment(segment: str) -> None:
    if segment.startswith("."):
        raise InvalidPath("dots", gettext("No segment may start with a dot: %(segment)s") % {"segment": segment[:20]})
    if segment != segment.strip() or segment.endswith("."):
        raise InvalidPath(
            "edges",
            gettext("No segment may start or end with a space or end with a dot: %(segment)s")
            % {"segment": f"{segment[:20]!r}"},
        )
    if segment.casefold().split(".", 1)[0].rstrip() in _WINDOWS_DEVICES:
        raise InvalidPath(
            "reserved_name",
            gettext("%(segment)s is a device name on Windows; choose another name.") % {"segment": segment[:20]},
        )
    if len(segment) > MAX_SEGMENT or len(segment.encode()) > MAX_SEGMENT_BYTES:
        limits = gettext("%(max_segment)s characters and %(max_segment_bytes)s bytes") % {
            "max_segment": MAX_SEGMENT,
            "max_segment_bytes": MAX_SEGMENT_BYTES,
        }
        raise InvalidPath(
            "segment_too_long",
            gettext("Shorten %(segment)s… to %(limits)s.") % {"segment": segment[:20], "limits": limits},
        )


def _refuse_lookalikes(text: str) -> None:
    """Full-width dots and slashes are plain ones to some file systems and tools: `．．` is the folder above."""
    plain = unicodedata.normalize("NFKC", text)
    if plain.count("/") != text.count("/") or "\\" in plain or _ENCODED.search(plain):
        raise InvalidPath(
            "lookalike", gettext("Write slashes and percent signs as plain characters, not as look-alikes.")
        )
    for segment in plain.split("/"):
        if segment not in ("", "."):
            _refuse_segment(segment)


def _refuse_secrets(text: str) -> None:
    if redact.has_secret(text):
        raise InvalidPath("secret", gettext("This path looks like it holds a secret. Choose a name without it."))


def _refuse_shape(segments: list[str]) -> None:
    if not segments or segments[0].casefold() not in FAMILIES or len(segments) < 2:
        raise InvalidPath(
            "unknown_family",
            gettext("Start the path with one of %(name)s") % {"name": ", ".join(f"{name}/" for name in FAMILIES)},
        )
    if not segments[-1].casefold().endswith(".md"):
        raise InvalidPath("not_markdown", gettext("End the path with .md."))
    if any(segment.casefold().endswith(".md") for segment in segments[:-1]):
        raise InvalidPath(
            "folder_like_note", gettext("Only the last level ends in .md: a folder must not pass for a note.")
        )
    if len(segments) > MAX_LEVELS:
        raise InvalidPath(
            "too_deep",
            gettext("Use at most %(max_levels)s levels; this path has %(segments)s.")
            % {"max_levels": MAX_LEVELS, "segments": len(segments)},
        )
