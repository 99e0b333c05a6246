"""Sentences of ours that are kept in English, and told in the reader's language by the page that shows them.

Why a delivery was refused, why a proposal is risky, what a gardener found: such a sentence goes into a row, an audit
entry or an answer to a program before anybody knows who will read it. `sentence` marks it where it is made, so that the
catalogues have it, and gives it in English; `retold` finds it again in what was kept. A stored code beside its parts
would say the same, and would ask for a column wherever a text is enough today.
"""

import re
from datetime import date
from functools import lru_cache
from typing import Any, Final

from django.utils.formats import date_format, get_format, number_format
from django.utils.translation import get_language, gettext, gettext_noop, pgettext, trans_real

CONTEXT: Final = "sentence"
# What gettext puts between a context and its text.
_GLUE: Final = f"{CONTEXT}\x04"
# A report or a log is nobody's sentence, and no reason to look for one.
_LONGEST: Final = 4000
_PART: Final = re.compile(r"%\((\w+)\)s")
# "over_budget: A budget …": the code of a refusal before its sentence.
_CODED: Final = re.compile(r"([a-z]+(?:_[a-z]+)*: )(.+)", re.S)
_NUMBER: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+")
_DAY: Final = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")
_END: Final = re.compile(r"(?<=[.!?]) +(?=\S)")


WORDS = frozenset(
    (
        *(gettext_noop("owner"), gettext_noop("admin"), gettext_noop("reviewer"), gettext_noop("member")),
        *(gettext_noop("viewer"), gettext_noop("team"), gettext_noop("project"), gettext_noop("thread")),
        *(gettext_noop("open"), gettext_noop("closed"), gettext_noop("merged"), gettext_noop("done")),
        *(gettext_noop("waiting"), gettext_noop("blocked"), gettext_noop("running"), gettext_noop("queued")),
        *(gettext_noop("failed"), gettext_noop("error"), gettext_noop("succeeded"), gettext_noop("approved")),
        *(gettext_noop("rejected"), gettext_noop("cancelled"), gettext_noop("accepted"), gettext_noop("refused")),
        *(gettext_noop("repeated"), gettext_noop("ignored"), gettext_noop("added"), gettext_noop("changed")),
        *(gettext_noop("removed"), gettext_noop("same"), gettext_noop("different"), gettext_noop("hit")),
        *(gettext_noop("miss"), gettext_noop("bypass"), gettext_noop("wait"), gettext_noop("auto")),
        *(gettext_noop("locked"), gettext_noop("review"), gettext_noop("trigger"), gettext_noop("worker")),
        *(gettext_noop("report"), gettext_noop("session"), gettext_noop("note"), gettext_noop("answer")),
        *(gettext_noop("analysis"), gettext_noop("title"), gettext_noop("description"), gettext_noop("kind")),
        *(gettext_noop("tags"), gettext_noop("undone"), gettext_noop("conflict"), gettext_noop("skipped")),
        *(gettext_noop("sent"), gettext_noop("write"), gettext_noop("delete"), gettext_noop("move")),
        *(gettext_noop("create"), gettext_noop("update"), gettext_noop("merge"), gettext_noop("rules")),
        *(gettext_noop("agent"), gettext_noop("dream"), gettext_noop("gardener"), gettext_noop("command")),
        *(gettext_noop("mentions"), gettext_noop("cause"), gettext_noop("related"), gettext_noop("duplicate")),
        *(gettext_noop("ticket"), gettext_noop("deploy"), gettext_noop("operator"), gettext_noop("server")),
        *(gettext_noop("on"), gettext_noop("off"), gettext_noop("made by")),
        gettext_noop("made_by"),
    )
)


def word(said: Any) -> Any:
    """A state, a role or another word of ours in the page's language; what is not ours stays as it is."""
    return gettext(said) if said in WORDS else said


def sentence(text: str, **parts: Any) -> str:
    """The sentence in English, whoever asks, with its parts in it. Mark a counted one once for one, once for many."""
    return text % parts if parts else text


def thousands(number: int) -> str:
    """5463 → 5,463; as the page's language groups digits, and as English does for programs."""
    return number_format(number, force_grouping=True)


def retold(text: Any, *, is_ours: bool = True) -> str:
    """What was kept, in the language of the page; words that are not ours, as people's and agents', as they are.

    Parts of a sentence may be sentences of ours again. Of several sentences those of ours are told, as long as the
    first one is: who quotes us behind their own words keeps their words. Where people write too (`is_ours` is False),
    a sentence that begins with a part is taken for theirs: "GitHub answered 502" may be anybody's.
    """
    said = str(text)
    language = get_language() or "en"
    if language.partition("-")[0] == "en" or not 0 < len(said) <= _LONGEST:
        return said
    book = _book(language)
    if (whole := book.told(said, is_ours=is_ours)) is not None:
        return whole
    if is_ours and "\n" in said:
        return "\n".join(book.or_itself(line) for line in said.split("\n"))
    first, *rest = _END.split(said)
    if not rest or (begun := book.told(first, is_ours=is_ours)) is None:
        return said
    return " ".join([begun, *(book.or_itself(one) for one in rest)])


class _Book:
    """All sentences of ours in one language: those without parts by themselves, others by their first word."""

    def __init__(self, sentences: list[str]) -> None:
        self.plain = frozenset(one for one in sentences if not _PART.search(one))
        self.patterns: dict[str, list[tuple[re.Pattern[str], str]]] = {}
        # The one with the most words of its own first: "%(where)s answered %(said)s" would swallow longer ones.
        for one in sorted(set(sentences) - self.plain, key=lambda one: -len(_PART.sub("", one))):
            self.patterns.setdefault(_first_word(one), []).append((_pattern(one), one))

    def told(self, said: str, *, is_ours: bool = True) -> str | None:
        """The sentence in the language of the page; None where it is none of ours."""
        if said in self.plain:
            return pgettext(CONTEXT, said)
        any_word = self.patterns.get("", []) if is_ours else []
        for pattern, sentence in (*self.patterns.get(_first_word(said), ()), *any_word):
            if match := pattern.fullmatch(said):
                parts = {name: self._part(part) for name, part in match.groupdict().items()}
                return pgettext(CONTEXT, sentence) % parts
        coded = _CODED.fullmatch(said) if is_ours else None
        told = self.told(coded[2]) if coded else None
        return coded[1] + told if coded and told is not None else None

    def or_itself(self, said: str) -> str:
        """The sentence in the language of the page, or as it is."""
        told = self.told(said)
        return said if told is None else told

    def _part(self, said: str) -> str:
        """A sentence of ours, a number or a day as the page's language writes it; all else as it is."""
        if _NUMBER.fullmatch(said):
            whole, point, rest = said.replace(",", "").partition(".")
            return number_format(whole, force_grouping=True) + (get_format("DECIMAL_SEPARATOR") if point else "") + rest
        if _DAY.fullmatch(said):
            return date_format(date.fromisoformat(said), "SHORT_DATE_FORMAT")
        return self.or_itself(said)


def _first_word(sentence: str) -> str:
    """What a sentence begins with; "" where a part begins it or stands in its first word."""
    word = sentence.partition(" ")[0]
    return "" if "%(" in word else word


def _pattern(sentence: str) -> re.Pattern[str]:
    """What a sentence with its parts looks like; a part that stands twice is the same both times."""
    seen: set[str] = set()
    pieces = []
    for place, piece in enumerate(_PART.split(sentence)):
        if place % 2 == 0:
            pieces.append(re.escape(piece.replace("%%", "%")))
        else:
            pieces.append(f"(?P={piece})" if piece in seen else f"(?P<{piece}>.*?)")
            seen.add(piece)
    return re.compile("".join(pieces), re.S)


@lru_cache(maxsize=16)
def _book(language: str) -> _Book:
    """The sentences that the catalogue of a language has, as Django's own page of it for JavaScript reads it."""
    return _Book([one.removeprefix(_GLUE) for one in _texts(language) if one.startswith(_GLUE)])


def _texts(language: str) -> list[str]:
    catalogue: Any = trans_real.translation(language)
    return [key for key, _ in catalogue._catalog.items() if isinstance(key, str)]
