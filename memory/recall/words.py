"""Which words a text holds, so that a question and a note meet: one form for case, accents, code and unspaced scripts.

The words are made here and not by the database: its parser keeps paths and numbers whole, and what it takes for a
letter depends on the server's locale.
"""

import re
import unicodedata
from typing import Final

VERSION: Final = 1  # of the words below; a higher one makes every note's words be read again

# Points and accents that people leave out when they type: Latin, Greek and Cyrillic, Hebrew, Arabic.
_MARKS: Final = re.compile(
    "[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u200b-\u200f\ufeff]"
)
_STROKES: Final = str.maketrans({"đ": "d", "ð": "d", "ł": "l", "ø": "o", "ı": "i", "æ": "ae", "œ": "oe", "’": "'"})
_UNSPACED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_RUN: Final = re.compile(rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])[^\W_])+")
_HUMP: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_IS_UNSPACED: Final = re.compile(f"[{_UNSPACED}]")
MAX_WORD: Final = 60

# Words that say nothing about a subject, in the languages met in the recorded prompts.
STOP: Final = frozenset(
    """a about after all also am an and any are as at be because been before being both but by can could did do does
    doing done don down each else ever every few for from further get go got had has have having he her here hers him
    his how i if in into is it its itself just let ll make many me more most my need no nor not now of off on once one
    only or other our out over own please put re same say see she should so some such t than thank thanks that the
    their them then there these they this those through to too under until up us use using ve very want was we well
    were what when where which while who whom why will with would yes you your
    va la co khong cho cua toi ban nay do cac mot nhung thi voi de duoc trong hay lam
    de la le les un une et est pour dans que qui ce cette das der die und ist
    o os as um uma e em para com por nao""".split()  # noqa: SIM905 - a list literal would take 190 lines
)


def fold(text: str) -> str:
    """The text as it is compared: no case, no accents, one width."""
    plain = _MARKS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFKC", plain).casefold().translate(_STROKES)


def terms(text: str) -> list[str]:
    """The words of a text in order, each once: whole words, the parts of camelCase and of ORA01555, pairs of
    characters where a script has no spaces."""
    found: dict[str, None] = {}
    for run in _RUN.findall(unicodedata.normalize("NFKC", _MARKS.sub("", unicodedata.normalize("NFKD", text)))):
        for word in _pairs(run) if _IS_UNSPACED.match(run) else _parts(run):
            found.setdefault(word[:MAX_WORD])
    return list(found)


def is_telling(term: str) -> bool:
    """True where the word can say what a text is about."""
    return term not in STOP and (len(term) > 1 or _IS_UNSPACED.match(term) is not None)


def _parts(run: str) -> list[str]:
    humps = _HUMP.findall(run) if run.isascii() else []
    return [_stem(fold(part)) for part in (run, *(humps if len(humps) > 1 else ()))]


def _pairs(run: str) -> list[str]:
    folded = fold(run)
    return [folded[at : at + 2] for at in range(len(folded) - 1)] or [folded]


def _stem(word: str) -> str:
    """Only the English plural: more would join words that differ."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") and word.isascii() else word
