"""Text fit to stand on one line of a page, a terminal or a prompt."""

import re
from typing import Any, Final

from memory import redact

LIMIT: Final = 200
# Control characters, and those that turn the reading direction or hide: a line must not rewrite the one beside it.
_SPACE: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_HIDDEN: Final = re.compile(
    "[\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
_ANSI: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|\x9b[0-?]*[ -/]*[@-~]")


def one_line(text: str, limit: int = LIMIT) -> str:
    """The text on one line, cut at a word with an ellipsis where it is longer than `limit`."""
    # Far more than fits: what is dropped or shrinks must not let a 32 MB line be worked on whole.
    text = text[: limit * 40]
    flat = _SPACE.sub(" ", _HIDDEN.sub("", _ANSI.sub("", whole(text) if len(text) > limit else lines(text)))).strip()
    if len(flat) <= limit:
        return flat
    cut = flat[: limit - 1]
    at_word = cut.rfind(" ", limit * 3 // 4)
    return (cut[:at_word] if at_word > 0 else cut).rstrip(" ,;:–-") + "…"


def lines(text: str) -> str:
    """The text without secrets where it has more than one line: on one line, their halves would pass for words."""
    return whole(text) if "\n" in text or "\r" in text else text


def whole(text: str) -> str:
    """The text without secrets: cut first, half a secret would pass for none."""
    return str(redact.clean_text(text).value)


def without_ansi(text: str) -> str:
    """The text without terminal colours and titles."""
    return _ANSI.sub("", text) if "\x1b" in text or "\x9b" in text else text


def size_of(count: int) -> str:
    """`41 KB` as people write it."""
    if count < 1000:
        return f"{count} bytes"
    if count < 1_000_000:
        return f"{(count + 512) // 1024} KB"
    return f"{count / 1024 / 1024:.1f} MB"


def text_of(value: Any) -> str:
    """A scalar as text; nothing for what is none."""
    if isinstance(value, bool) or value is None or isinstance(value, dict | list):
        return ""
    return redact.sanitize(str(value).strip())[0]


def at(value: Any, *path: str) -> Any:
    """The value below a path of keys, or None: bodies of others lack what they please."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def word(value: Any, *path: str) -> str:
    """The scalar below a path, as text."""
    return text_of(at(value, *path))


def quoted(text: str, limit: int = 110) -> str:
    """The first line with words in it of what somebody wrote, without markdown's signs, in quotes."""
    for raw in lines(text[:4000]).splitlines():
        line = one_line(re.sub(r"^[\s#>*\-+|`]+|[`*_]{2,}|<!--.*?-->|<[a-zA-Z/][^>]{0,200}>", " ", raw), limit)
        if any(character.isalnum() for character in line):
            return f": “{line}”"
    return ""


def short(sha: str) -> str:
    return sha[:7]


def branch_of(ref: str) -> str:
    """The name people use for a ref."""
    return ref.removeprefix("refs/heads/").removeprefix("refs/tags/")
