"""A text as a scanner should see it: escapes decoded, disguises dropped, each place traceable to the original."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

# C0 controls without tab, line ends and the separator 0x1e; then zero-width and bidirectional characters, soft hyphen,
# and U+FFFD (what `sanitize` makes of NUL).
_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1d\x1f\x7f"
_UNSEEN = _CONTROLS + "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufffd"
_CONTROL_BYTES = bytes(code for code in (*range(32), 127) if code not in b"\t\n\r\x1e")
_DISGUISE = re.compile(
    r"(?P<ansi>(?:\x1b|\\+(?:u001[bB]|x1[bB]|033|e))(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b\\]*(?:\x07|\x1b\\)))"
    rf"|(?P<unseen>[{_UNSEEN}]+)"
    r"|(?P<done>\[secret:[\w.-]{1,80}:[0-9a-f]{8}\])"
    # A literal in two halves, a line continued in the next.
    r"|(?P<join>\\*[\"'`]\s{0,40}[+.&]\s{0,40}\\*[\"'`](?=[\w/+-])|(?<=[\w/+-])\\+\r?\n(?=[\w/+-])"
    # A line of mail that goes on in the next.
    r"|(?<=[\w/+\\-])=\r?\n(?=[\w/+\\-]))"
    r"|\\+(?:u(?P<u>[0-9a-fA-F]{4})|x(?P<x>[0-9a-fA-F]{2})|(?P<letter>[nrt])|(?P<mark>[\"'`/&=])|0?(?P<o>[01][0-7]{2}))"
    # A word of a shell in which escapes are read.
    r"|(?P<dollar>\$(?=['\"]\S))"
    r"|%(?P<url>[2-7][0-9a-fA-F])"
    r"|&(?P<entity>quot|apos|amp|lt|gt|#39|#34|#x27|#x2[fF]);"
)
_ENTITIES = {"quot": '"', "apos": "'", "amp": "&", "lt": "<", "gt": ">", "#39": "'", "#34": '"', "#x27": "'"}
_HAS_UNSEEN = re.compile(f"[{_UNSEEN}\x1b]")
# First a search for one character of a class, then a look at the place: 20 times faster than the long pattern alone.
# The first is for ASCII (a small class is twice as fast), the last for the few texts with quotes to join.
_ASCII = f"\\\\%&{_CONTROLS}"
_ANY = f"\\\\%&{_UNSEEN}"
# What is rarely disguised, by the sign where the disguise begins: looked for only where one of these stands, and for
# those only where their rarest sign does, which is ten times as fast to see.
_RARE = {
    "\\[": (("[", ("[secret:",)),),
    "$": (("$", ("$'", '$"')),),
    "=": (("=", ("=\n", "=\r\n")),),
    "\"'`": (("+", ('" +', "' +", '"+', "'+")), (".", ('" .', "' .")), ("&", ('" &',))),
}
# Both words switch the scanner off for a line. Same length, so that no place moves.
_ALLOW = re.compile(r"(gitleaks|betterleaks|trufflehog|leaks):(?=allow|ignore)", re.IGNORECASE)


class Plain:
    """The plain text and the way back from its places to those of the original."""

    def __init__(self, original: str) -> None:
        self._starts: list[int] = [0]
        self._origins: list[int] = [0]
        self.text = without_allow(self._decoded(original) if is_disguised(original) else original)

    def _decoded(self, original: str) -> str:
        parts: list[str] = []
        length = last = 0
        for found in _disguises(original):
            start, end = found.span()
            readable = _readable(found)
            parts += (original[last:start], readable)
            length += start - last
            self._mark(length, start)
            length += len(readable)
            self._mark(length, end)
            last = end
        parts.append(original[last:])
        return "".join(parts)

    def _mark(self, place: int, origin: int) -> None:
        self._starts.append(place)
        self._origins.append(origin)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """The span of the original that the span start..end of the plain text came from."""
        if len(self._starts) == 1:
            return start, end
        return self._back(start)[0], self._back(end - 1)[1]

    def _back(self, place: int) -> tuple[int, int]:
        at = bisect_right(self._starts, place) - 1
        # Marks come in pairs after the first: an odd one opens a decoded piece, which is taken whole.
        if at % 2:
            return self._origins[at], self._origins[at + 1]
        origin = self._origins[at] + place - self._starts[at]
        return origin, origin + 1


def is_disguised(text: str) -> bool:
    """Whether there is anything to decode or to drop."""
    if "\\" in text or "%" in text or "&" in text or _rare(text):
        return True
    if text.isascii():
        return len(text.encode().translate(None, _CONTROL_BYTES)) < len(text)
    return _HAS_UNSEEN.search(text) is not None


def plain_text(json_text: str) -> str:
    """The plain text of serialised JSON, without the way back: the quick look of batch ingest."""
    # The escapes of every source file, by C: one look at each cost more than all the rest of the scan.
    # JSON within JSON escapes its escapes; one stroke of them is enough to see what they stand for.
    text = json_text
    while "\\\\" in text:
        text = text.replace("\\\\", "\\")
    text = text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    if is_disguised(text):
        parts: list[str] = []
        last = 0
        for found in _disguises(text):
            parts += (text[last : found.start()], _readable(found))
            last = found.end()
        text = "".join((*parts, text[last:]))
    return without_allow(text)


def _disguises(text: str) -> Iterator[re.Match[str]]:
    end = 0
    begin = _beginning(_rare(text), text.isascii()).search
    whole = _DISGUISE.match
    while place := begin(text, end):
        found = whole(text, place.start())
        end = found.end() if found else place.end()
        if found:
            yield found


def _rare(text: str) -> str:
    """The signs with which the rare disguises in a text begin."""
    return "".join(signs for signs, groups in _RARE.items() if any(_has(text, *group) for group in groups))


def _has(text: str, sign: str, parts: tuple[str, ...]) -> bool:
    return sign in text and any(part in text for part in parts)


@cache
def _beginning(rare: str, is_ascii: bool) -> re.Pattern[str]:
    return re.compile(f"[{_ASCII if is_ascii else _ANY}{rare}]")


def without_allow(text: str) -> str:
    """The text with the markers spoilt that would make the scanner look away."""
    return _ALLOW.sub(r"\1_", text) if "leaks:" in text or "hog:" in text else text


def _readable(found: re.Match[str]) -> str:
    kind = found.lastgroup
    value = found[kind] if kind else ""
    if kind in ("u", "x", "url", "o"):
        char = chr(int(value, 8 if kind == "o" else 16))
        return "" if _HAS_UNSEEN.match(char) or "\ud800" <= char <= "\udfff" else char
    if kind == "letter":
        return "\t" if value == "t" else "\n"
    if kind == "mark":
        return value
    if kind == "entity":
        return _ENTITIES.get(value, "/")
    return " " if kind == "done" else ""
