"""Whether two questions that look alike ask the same: numbers, dates, names, negations and opposites must agree.

No likeness separates the same from the opposite: in every model that was tried, "enable" and "disable" stand closer
together than two honest wordings of one question. Pure, and 80 µs a pair. A wrong no costs one call of a tool.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from cache_admin.guard_words import (
    ANTONYMS,
    DATES,
    DIRECTIONS,
    GROUPS,
    NEGATIONS,
    NUMBER_WORDS,
    ORDINALS,
    PLACES,
    PLEASANTRIES,
    PREFIXES,
    SHORT_UNITS,
    STOP_WORDS,
    UNITS,
)  # fmt: skip

_WORD: Final = re.compile(r"--?[A-Za-z][\w-]*|[^\W\d][\w'’.\-/+#]*|\d[\d.,:/\-%]*\w*|[₫€$£¥]\d[\d.,]*")
_QUOTED: Final = re.compile(r"[\"“”«»`]([^\"“”«»`]{1,200})[\"“”«»`]|(?<!\w)['‘](?=\S)([^'‘’]{1,200})(?<=\S)['’](?!\w)")
# What compares, adds and counts money; a minus is one before a number only, and a plus not in C++.
_SIGN: Final = re.compile(r"[<>=!]=|[<>≤≥≠=×÷±%₫€$£¥]|(?<!\S)[-+*/&|^~](?=\s|\d|$)|(?<=\s)&&(?=\s)|(?<=\s)\|\|(?=\s)")
# ½, Ⅳ, ④: numbers in one letter.
_NUMERAL: Final = re.compile(
    "[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2089\u2150-\u218b\u2460-\u249b\u3220-\u3229\u3280-\u3289]"
)
_MEASURED: Final = re.compile(r"\d[\d.,]*\s*([^\W\d_]{1,4}|°[CF]|%)(?![\w])")
_BITS: Final = re.compile(r"[KMGTP]i?[bB]")
_CONTRACTED: Final = re.compile(r"n['’]t\b")
_THOUSANDS: Final = re.compile(r",(?=\d{3}\b)")
# "18-year-old" is 18; what a version or an address is made of stays whole.
_AGE: Final = re.compile(r"(?<=\d)-?(?:year|yr|day|hour|minute|week|month)s?(?:-olds?)?$|(?<=\d)(?:st|nd|rd|th)$")
_IDENTIFIER: Final = re.compile(r"[_/\\]|\w\.\w|[a-z][A-Z]|^--?[a-z]")
_SHORTEST_ROOT: Final = 4
_OPERATORS: Final = frozenset({"AND", "OR", "NOT", "IN", "IS", "AS", "ON", "BY", "FROM", "WHERE", "IF", "TO", "WITH"})
_KIND: Final = "|".join(re.escape(words) for words in sorted(PLEASANTRIES, key=len, reverse=True))
_GREETING: Final = re.compile(rf"^(?:(?:{_KIND})\b[\s,.!:;-]*)+", re.IGNORECASE)
_FAREWELL: Final = re.compile(rf"(?:[\s,.!?;-]+(?:{_KIND}))+[\s.!]*$", re.IGNORECASE)
_ENDINGS: Final = (
    "ations", "ation", "ings", "ing", "edly", "ies", "ied", "ers", "es", "ed", "er", "ly", "s", "e",
)  # fmt: skip


@dataclass(frozen=True)
class Features:
    """What of a question must not differ."""

    numbers: tuple[str, ...]
    units: frozenset[str]
    signs: tuple[str, ...]
    dates: frozenset[str]
    negations: int
    identifiers: frozenset[str]
    quoted: frozenset[str]
    names: frozenset[str]
    words: frozenset[str]
    content: frozenset[str]
    order: tuple[str, ...]


def plain(question: str) -> str:
    """The question without greeting and thanks, in one spacing: what is compared."""
    text = " ".join(question.split())
    bare = _FAREWELL.sub(lambda found: "?" if "?" in found[0] else "", _GREETING.sub("", text))
    return bare or text


def wording(question: str) -> str:
    """The question as it is embedded: case and closing marks are no part of what it asks."""
    return plain(question).lower().rstrip(" ?.!") or question


def refusal(asked: str, known: str) -> str:
    """Why the answer to `known` is none to `asked`; empty where nothing speaks against it."""
    asked, known = plain(asked), plain(known)
    one, other = features(asked), features(known)
    for name in ("numbers", "units", "signs", "dates", "identifiers", "quoted"):
        if getattr(one, name) != getattr(other, name):
            return name.removesuffix("s")
    if one.negations % 2 != other.negations % 2:
        return "negation"
    if opposed := _opposed(one, other):
        return opposed
    if (one.names - other.words) or (other.names - one.words):
        return "name"
    if one.content == other.content and one.order != other.order and _is_turned(one, other):
        return "order"
    return "one_word" if _is_one_word_off(one.content, other.content) else ""


def is_another(one: str, other: str) -> bool:
    """Whether two statements that look alike say two things: an opposite, another unit or sign, another of a kind, or
    one word exchanged.
    """
    first, second = features(one), features(other)
    if first.units != second.units or first.signs != second.signs or is_elsewhere(one, other):
        return True
    return bool(_opposed(first, second)) or _is_one_word_off(first.content, second.content)


def is_elsewhere(one: str, other: str) -> bool:
    """Whether two statements speak of two places: staging and production, Linux and Windows, the EU and the US."""
    first, second = features(one).words, features(other).words
    gone, come = (first - second) & PLACES, (second - first) & PLACES
    return any(_are_alternatives(was, now) for was in gone for now in come)


def _opposed(one: Features, other: Features) -> str:
    """How a word of one speaks against a word of the other: "antonym" or "alternative"; empty where none does."""
    gone, come = one.words - other.words, other.words - one.words
    if any((was, now) in ANTONYMS or _is_prefixed(was, now) for was in gone for now in come):
        return "antonym"
    if any(_are_alternatives(was, now) for was in gone & GROUPS.keys() for now in come & GROUPS.keys()):
        return "alternative"
    return ""


def _is_prefixed(one: str, other: str) -> bool:
    """valid and invalid, connected and disconnected, start and restart: one word with and without a prefix."""
    short, long = sorted((one, other), key=len)
    return len(short) >= _SHORTEST_ROOT and long.endswith(short) and long[: -len(short)].rstrip("-") in PREFIXES


def _is_turned(one: Features, other: Features) -> bool:
    """Whether another order may turn who does what to whom: beside a word that leads from one to the other, or where
    two words changed places around a third ("does X support Y"). A clause put in front turns nothing.
    """
    if one.words & other.words & DIRECTIONS:
        return True
    if len(one.order) != len(other.order):
        return True
    moved = [place for place, word in enumerate(one.order) if other.order[place] != word]
    ends = (moved[0], moved[-1])
    return len(moved) == 2 and one.order[ends[0]] == other.order[ends[1]]


def _are_alternatives(one: str, other: str) -> bool:
    return GROUPS[one][0] == GROUPS[other][0] and GROUPS[one][1] != GROUPS[other][1]


def _is_one_word_off(one: frozenset[str], other: frozenset[str]) -> bool:
    """The same sentence with one word exchanged asks about another thing; a new wording changes more than that."""
    if not len(one - other) == len(other - one) == 1:
        return False
    return not _is_slip(next(iter(one - other)), next(iter(other - one)))


def _is_slip(one: str, other: str) -> bool:
    """A letter left out, doubled or exchanged with its neighbour in a long word is a slip of the finger."""
    short, long = sorted((one, other), key=len)
    if len(short) < 6 or short[0] != long[0] or len(long) - len(short) > 1:
        return False
    if len(short) == len(long):
        places = [place for place in range(len(short)) if short[place] != long[place]]
        return len(places) == 2 and short[places[0]] == long[places[1]] and short[places[1]] == long[places[0]]
    return any(long[:place] + long[place + 1 :] == short for place in range(len(long)))


@lru_cache(maxsize=4096)
def features(text: str) -> Features:
    """The features of a question in English, Vietnamese, Portuguese, French, Spanish or German."""
    spelt = _CONTRACTED.sub(" not", unicodedata.normalize("NFC", text).replace("’", "'"))
    tokens = [token for raw in _WORD.findall(spelt) if (token := raw.strip(".,:/'")).strip("-")]
    tokens = [one.removesuffix("'s") for one in tokens]
    lower = [token.lower() for token in tokens]
    numbers = [number for word in lower if (number := _number(word))]
    numbers += _NUMERAL.findall(spelt)
    # "from A to B": of several single capitals none is an article.
    letters = {one.lower() for one in tokens if len(one) == 1 and one.isupper() and one != "I"}
    kept = letters if len(letters) > 1 else frozenset[str]()
    content = tuple(
        _stem(word)
        for word in lower
        if not word[0].isdigit() and (word in kept or (word not in STOP_WORDS and word not in NEGATIONS))
    )
    return Features(
        # Between words that lead from one to the other their order counts too.
        numbers=tuple(numbers if DIRECTIONS.intersection(lower) else sorted(numbers)),
        units=_units(spelt, tokens),
        signs=tuple(_SIGN.findall(spelt)),
        dates=frozenset(DATES[word] for word in lower if word in DATES),
        # At the end of a Vietnamese question "không" only makes it one.
        negations=sum(word in NEGATIONS or word.startswith(("n'", "non-")) for word in lower)
        - (lower[1:] != [] and lower[-1] == "không"),
        identifiers=frozenset(token for token in tokens if _IDENTIFIER.search(token)),
        quoted=frozenset(" ".join("".join(inner).lower().split()) for inner in _QUOTED.findall(text)),
        names=frozenset(
            token.lower()
            for place, token in enumerate(tokens)
            if place > 0 and token[:1].isupper() and token not in ("I",) and _is_name(token)
        ),
        words=frozenset(lower),
        content=frozenset(content),
        order=content,
    )


def _number(word: str) -> str:
    """The number that a word is, or holds; empty where it is none."""
    if any(sign.isdigit() for sign in word):
        return _AGE.sub("", _THOUSANDS.sub("", word))
    return NUMBER_WORDS.get(word) or ORDINALS.get(word) or ""


def _units(text: str, tokens: list[str]) -> frozenset[str]:
    """What is measured in, in one spelling each."""
    found = set()
    for token in [*(one for one in tokens if one.lower() not in SHORT_UNITS), *_MEASURED.findall(text)]:
        # 5 Mb are bits and 5 MB are bytes, but mb is written for both.
        unit = f"{token[:1].lower()}bit" if _BITS.fullmatch(token) and token[-1] == "b" else UNITS.get(token.lower())
        if unit:
            found.add(unit)
    return frozenset(found)


def _is_name(token: str) -> bool:
    # A capital in the middle of a sentence; title case of little words is none, but "An" may be a person, and US a
    # country.
    word = token.lower()
    is_spelt = len(token) > 1 and token.isupper() and token not in _OPERATORS
    return is_spelt or word not in STOP_WORDS or word in ("an", "will", "may", "mai", "do", "on")


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word
