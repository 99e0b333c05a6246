"""Every place of a text that holds a secret: own rules, the scanner in chunks, and one level of base64 and hex."""

import re
import time
from binascii import a2b_base64
from collections.abc import Iterable, Iterator

from memory.redact import joined, names
from memory.redact.native import Finding, scanner
from memory.redact.plain import Plain
from memory.redact.rules import Hit, hits, places_of, runs, table

# One line of 34,000 tokens took the scanner 36 s as a whole and 2 s in chunks of this size.
CHUNK = 32_000
OVERLAP = 2_000
# What is not looked at by then is taken out whole: better a hole in a log than a key in a note.
BUDGET_SECONDS = 2.5
UNSCANNED = "unscanned"
# A value this long is a secret wherever else it stands, also without its name.
LONG = 12
# So many of them are looked for; each costs a millisecond per MB.
COPIED = 50

_ENCODED_CHARS = table("+/=")
_SHORTEST_ENCODED = 24
# Without a way back: pairs in a group took 6 s for one run of 31 MB.
_HEX = re.compile(r"[0-9a-fA-F]++\Z")
# The scanner also names identifiers and addresses that belong to a secret. People need those to understand a log.
_NOT_SECRET = re.compile(
    r"generic-username|(?:-username|-host|-(?:project|instance)-url|-client-id|-tenant-id|-account-id|-account-name|"
    r"-app-id|-application-id|-domain|-cloud-name|-address|-token-name|-planetscale-id)(?:\.\d)?$"
)


def find(text: str) -> list[Hit]:
    """The places of secrets in a text, in order, none overlapping another."""
    plain = Plain(text)
    found = find_plain(plain.text)
    return merged(Hit(*plain.origin(hit.start, hit.end), hit.rule) for hit in found) if found else []


def find_plain(text: str) -> list[Hit]:
    """The places of secrets in a text without disguise."""
    if len(text) < 8:
        return []
    found = _look(text)
    found += joined.hits(text, found, _look)
    return found + list(_copies(text, found)) if found else found


def _look(text: str) -> list[Hit]:
    found = hits(text)
    found += _encoded(text)
    found += _scanned(_blanked(text, found))
    return found


def merged(found: Iterable[Hit]) -> list[Hit]:
    """Overlapping places as one, named by the one that began first (the longest of those)."""
    result: list[Hit] = []
    for hit in sorted(found, key=lambda hit: (hit.start, -hit.end)):
        if result and hit.start < result[-1].end:
            result[-1] = result[-1]._replace(end=max(hit.end, result[-1].end))
        elif hit.start < hit.end:
            result.append(hit)
    return result


def starred(text: str, found: Iterable[Hit], *, encoding: str) -> str:
    """The text with stars for the places found, as many bytes in its encoding as they had: no other place moves."""
    parts: list[str] = []
    last = 0
    for hit in found:
        size = len(text[hit.start : hit.end].encode(encoding, "replace")) // len("*".encode(encoding))
        parts += (text[last : hit.start], "*" * size)
        last = hit.end
    return "".join((*parts, text[last:]))


def _blanked(text: str, found: list[Hit]) -> str:
    """The text without what is found already: a hit costs the scanner 0.7 ms, and neighbours keep their places."""
    parts: list[str] = []
    last = 0
    for hit in merged(found):
        parts += (text[last : hit.start], " " * (hit.end - hit.start))
        last = hit.end
    return "".join((*parts, text[last:])) if parts else text


def _encoded(text: str, depth: int = 1) -> Iterator[Hit]:
    """Runs of base64 or hex whose content, as text, holds a secret; also what was encoded twice."""
    for start, end in runs(text, _ENCODED_CHARS, _SHORTEST_ENCODED):
        readable = _decoded(text[start:end])
        if readable and (hits(readable) or _scanned(readable) or (depth and any(_encoded(readable, depth - 1)))):
            yield Hit(start, end, "encoded")


def _decoded(run: str) -> str | None:
    if len(run) % 2 == 0 and _HEX.match(run) and (content := _text(bytes.fromhex(run))):
        return content
    return next((text for piece in _pieces(run) if (text := _base64(piece))), None)


def _pieces(run: str) -> Iterator[str]:
    """What of a run may be base64: `KEY=cGFzc3dv…` begins with a name, and mail writes `…NA=3D` for its end."""
    bare = run.rstrip("=")
    yield bare.rpartition("=")[2]
    if "=" in bare:
        yield bare.partition("=")[0]
    if "/" in bare:
        # A path may hold it as a name.
        yield max(re.split("[/=]", bare), key=len)


def _base64(run: str) -> str | None:
    # Ids, digests and paths end here: twelve bytes by chance are hardly ever all ASCII.
    if len(run) < 16 or not a2b_base64(run[:16]).isascii():
        return None
    return _text(a2b_base64(run[: len(run) - (len(run) % 4 == 1)] + "=" * (-len(run) % 4)))


def _text(content: bytes) -> str | None:
    """The bytes as text, if they are text: chance makes 15 readable bytes once in ten thousand."""
    try:
        # Windows writes two bytes a character, also into what its shell is given encoded.
        is_wide = content[1:24:2].count(0) > 6
        text = content.decode("utf-16-le" if is_wide else "utf-8")
    except UnicodeDecodeError:
        return None
    text = text.lstrip("\ufeff")
    return text if len(text) >= 12 and (text.isprintable() or text.translate(_SPACES).isprintable()) else None


_SPACES = str.maketrans("\t\n\r", "   ")


def _scanned(text: str) -> list[Hit]:
    engine = scanner()
    if engine is None:
        return []
    found: list[Hit] = []
    known: set[str] = set()
    clock = _Clock()
    for start in range(0, max(1, len(text) - OVERLAP), CHUNK - OVERLAP):
        if clock.is_over():
            found.append(Hit(start, len(text), UNSCANNED))
            break
        chunk = text[start : start + CHUNK]
        for secret in known:
            chunk = chunk.replace(secret, " " * len(secret))
        for finding in set(engine.scan(chunk)):
            if is_finding_secret(finding):
                found += (hit for hit in _places(chunk, start, finding))
                if len(finding.secret) >= LONG:
                    known.add(finding.secret)
    return found


def _copies(text: str, found: list[Hit]) -> Iterator[Hit]:
    """The same secrets where they stand without what gave them away."""
    secrets = {text[hit.start : hit.end]: hit.rule for hit in found if hit.rule != UNSCANNED}
    # A word without a digit may have been a false hit; its copies would multiply it.
    long = [pair for pair in secrets.items() if len(pair[0]) >= LONG and any(char.isdigit() for char in pair[0])]
    for secret, rule in long[:COPIED]:
        yield from (Hit(at, at + len(secret), rule) for at in places_of(text, secret))


class _Clock:
    """The lesser of wall and processor time: a busy machine must not make a scan give up."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.monotonic(), time.process_time()

    def is_over(self) -> bool:
        return min(time.monotonic() - self._wall, time.process_time() - self._cpu) > BUDGET_SECONDS


def is_finding_secret(finding: Finding) -> bool:
    """Whether the scanner's finding is one that must not be stored."""
    if _NOT_SECRET.search(finding.rule):
        return False
    is_guess = finding.rule in ("generic-api-key", "generic-password", "curl-auth-header", "curl-auth-user")
    return not is_guess or names.is_plausible(finding.match, finding.secret)


def _places(chunk: str, offset: int, finding: Finding) -> Iterator[Hit]:
    inside = finding.match.find(finding.secret)
    for at in places_of(chunk, finding.match):
        start = offset + at + max(0, inside)
        yield Hit(start, start + len(finding.secret if inside >= 0 else finding.match), finding.rule)
