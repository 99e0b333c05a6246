"""Text of others inside a block of ours: what could be taken for the block's end, for a harness or for a speaker.

A tag is not written as an entity: whoever decodes entities once more would have it back. Its first character goes, and
no decoding brings that again. What can't be seen goes too: a reader must see what a model reads.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

# The names by which a harness, a provider's template or our block speaks to a model. Those of several words, and those
# that nobody writes otherwise, are taken with gaps inside; of common words only what is a whole tag.
_NAMES: Final = (
    "team-memory", "system-reminder", "function-calls", "function-results", "tool-result", "tool-use",
    "user-prompt-submit-hook", "antml",
)  # fmt: skip
_WORDS: Final = "system|assistant|user|human|developer|instructions|invoke|s|im-start|im-end"
_ROLES: Final = "system|assistant|user|human|developer|tool"
# Invisible, and never needed to write a language: tags, zero-width space, bidi, soft hyphen, controls, annotations.
# Joiners (U+200C, U+200D) are: Persian, Hindi and emoji are written with them.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_ANSI: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
# A carriage return lets a later text cover an earlier one; the others end a line for some readers and not for others.
_BREAKS: Final = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_JOINERS: Final = "\u200c\u200d\ufe0f"
# Between letters that never join they are a disguise.
_DISGUISE: Final = re.compile("(?<=[\x21-\u05ff])[\u200c\u200d]+|(?<=[A-Za-z\u0370-\u058f<>/])\ufe0f+")
# Characters that look like a letter or a sign of these names. What NFKC knows (full width, mathematical) is not here.
_ALIKE: Final = str.maketrans(
    "аеорсухіјѕтмгнвкԁһԛԝӏɑɡıοαερυιτνκηϲ‹˂〈⟨❮ᐸ≺⋖﹤«‐‑‒–—―−﹣_",
    "aeopcyxijstmrhbkdhqwlagioaepuitvknc<<<<<<<<<<---------",
)
# `<` as somebody else's decoding would bring it back: `&lt;`, `&amp;lt;`, `&#60;`, `\\u003c`, `%3C`.
_LESS: Final = r"(?:<|&(?:amp;)*(?:lt|#0*60|#x0*3c);?|\\+(?:u003c|x3c)|%(?:25)*3c)"
_GAP: Final = r"[\s\-./]{0,3}"
_LOOSE: Final = "|".join(r"[\s\-]{0,3}".join("-" if char == "-" else char for char in name) for name in _NAMES)
_TAG: Final = re.compile(
    rf"{_LESS}(?={_GAP}/?{_GAP}(?:{_LOOSE})(?![a-z0-9]))"
    rf"|{_LESS}(?=/?(?:{_WORDS})(?:[\s>/:|]|&(?:amp;)*gt|$))"
    rf"|{_LESS}(?=\s*/?\s*(?:{_WORDS})\s*>)"
    rf"|{_LESS}(?=\|)|{_LESS}(?={_LESS}/?sys\b)|{_LESS}(?=!(?:--|\[cdata))|{_LESS}(?=[?!]\s*xml|\s*!doctype)"
    r"|\[(?=/?inst\])"
)
_SPEAKS: Final = re.compile(rf"^(?=[\s>#*_~`|]*(?:{_ROLES})[\s*_~`]*[:>])", re.MULTILINE)
_FENCE: Final = re.compile(r"^[ \t>]*(`{3,}|~{3,})(.*)$")


def disarmed(text: str) -> str:
    """The text without what can't be seen, with tags of speakers opened, and with their lines quoted."""
    if not text.isascii() or not text.isprintable():
        text = _DISGUISE.sub("", _UNSEEN.sub("", _ANSI.sub("", _BREAKS.sub("\n", text))))
    seen = _plain(text).replace("_", "-")
    for found in reversed(list(_TAG.finditer(seen))):
        text = f"{text[: found.start()]}({text[found.end() :]}"
    return _quoted(text)


def shut(text: str) -> str:
    """The text with a fence that it leaves open closed: what is told after it must not stand in its code."""
    mark = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if not found:
            continue
        if not mark:
            mark = found[1]
        elif found[1][0] == mark[0] and len(found[1]) >= len(mark) and not found[2].strip():
            mark = ""
    return f"{text.rstrip()}\n{mark}" if mark else text


def _quoted(text: str) -> str:
    """Lines that begin as a speaker's turn are marked as part of a text."""
    places = [found.start() for found in _SPEAKS.finditer(_plain(text))]
    for at in reversed(places):
        if not text.startswith("| ", at):
            text = f"{text[:at]}| {text[at:]}"
    return text


def _plain(text: str) -> str:
    """The text as it looks, one character for each: small, plain letters and signs."""
    if text.isascii():
        return text.lower()
    return "".join(char if char.isascii() else _look(char) for char in text).lower()


@lru_cache(maxsize=4096)
def _look(char: str) -> str:
    if char in _JOINERS:
        return "-"  # a gap inside a name
    folded = unicodedata.normalize("NFKC", char).casefold().translate(_ALIKE)
    stripped = unicodedata.normalize("NFD", folded)[:1]
    return stripped if len(stripped) == 1 else char
