"""80 kinds of secrets in five disguises, spread over every way in: none stands in the database or in a log after it.

The usual run takes one secret of each way; the slow series takes them all.
"""

import base64
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from memory import redact
from tests.conftest import Agent
from tests.redact.kinds import KINDS, sample
from tests.redact.test_kinds import VARIANTS, _cut
from tests.redact.ways import WAYS, LogFile, World, dumped, everything

Carry = Callable[[str, str, str], str]
# Each disguise in the forms that it is met in, taken in turn.
DISGUISES: dict[str, tuple[Carry, ...]] = {
    "split": tuple(
        VARIANTS[name]
        for name in (
            "split by a continued line",
            "split over lines",
            "split into quoted halves",
            "split over list items",
            "wrapped",
            "split over fields",
            "split over the lines of a diff",
        )
    ),
    "escaped": tuple(
        VARIANTS[name]
        for name in ("JSON in JSON", "unicode escapes", "halves of a shell word", "url encoded", "octal escapes")
    ),
    "base64": tuple(VARIANTS[name] for name in ("base64", "base64 twice", "base64 of two bytes a character", "hex")),
    "NUL": (
        VARIANTS["NUL"],
        lambda before, secret, after: before + _cut(secret, "\0") + after,
        lambda before, secret, after: "\0".join(f"{before}{secret}{after}"),
    ),
    "allow": (
        VARIANTS["allow marker"],
        lambda before, secret, after: f"{before}{secret}{after}  # pragma: allow" + "list secret",
        lambda before, secret, after: f"{before}{secret}{after}  # nosec trufflehog:" + "ignore gitleaks:" + "allow",
    ),
}


@dataclass(frozen=True)
class Planted:
    """A secret that went in, in which disguise, and by which way."""

    kind: str
    disguise: str
    way: str
    secret: str
    carried: str


def planted() -> list[Planted]:
    """Every kind in every disguise, each by the next of the ways."""
    dice = random.Random("ways in")  # noqa: S311 - made-up secrets, the same in each run
    found = []
    for place, disguise in enumerate(DISGUISES):
        forms = DISGUISES[disguise]
        for number, kind in enumerate(KINDS):
            before, secret, after = sample(kind, dice)
            way = WAYS[(number + place * 7) % len(WAYS)]
            found.append(Planted(kind, disguise, way, secret, forms[number % len(forms)](before, secret, after)))
    return found


def one_of_each_way() -> list[Planted]:
    """One by each way, of all disguises."""
    chosen: dict[str, Planted] = {}
    for number, one in enumerate(planted()):
        if one.way not in chosen or number % 11 == 0:
            chosen[one.way] = one
    return list(chosen.values())


def views(text: str) -> list[str]:
    """A text as it stands, with its escapes undone, and all that stands in it encoded."""
    text = text.translate(dict.fromkeys(map(ord, "\0\ufffd\u200b")))
    return [text, _ESCAPE.sub(_unescaped, text), "\n".join(_decoded(text, depth=2))]


_ESCAPE = re.compile(r"\\+u([0-9a-fA-F]{4})|\\+x([0-9a-fA-F]{2})|%([2-7][0-9a-fA-F])|\\+([01][0-7]{2})")
_RUN = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}")


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[4], 8) if found[4] else int(found[1] or found[2] or found[3], 16))


def _decoded(text: str, depth: int) -> Iterator[str]:
    for run in _RUN.findall(text):
        bare = run.rstrip("=")
        contents = [base64.b64decode(bare[: len(bare) // 4 * 4])]
        contents += [bytes.fromhex(bare)] if len(bare) % 2 == 0 and set(bare.lower()) <= set("0123456789abcdef") else []
        for content in contents:
            inner = content.replace(b"\0", b"").decode("latin-1")
            yield inner
            if depth > 1 and inner.isascii():
                yield from _decoded(inner, depth - 1)


def stands_in(one: Planted, texts: list[str]) -> bool:
    """Whether a third of the secret stands in one piece in one of the views."""
    size = max(8, len(one.secret) // 3)
    pieces = {one.secret[at : at + size] for at in range(0, len(one.secret) - size + 1, max(1, size // 4))}
    return any(piece in text for text in texts for piece in pieces)


SIZES = [pytest.param(one_of_each_way, id="lean"), pytest.param(planted, id="whole", marks=pytest.mark.slow)]


@pytest.mark.parametrize("cases_of", SIZES)
def test_no_way_lets_a_secret_in(
    cases_of: Callable[[], list[Planted]], acme: Any, alice: Any, bob: Any, agent: Agent, tmp_path: Any, capsys: Any
) -> None:
    world = World(acme, alice, bob, agent, tmp_path)
    cases = cases_of()
    taken: Counter[str] = Counter()
    with LogFile(tmp_path / "log") as log:
        for one in cases:
            answer = getattr(world, one.way)(one.carried)
            taken[one.way] += getattr(answer, "status_code", 200) < 400
        logged = log.text
    stored, dump = "\n".join(everything()), dumped()
    seen, told = views(stored), views(logged)
    missed = [(one.kind, one.disguise, one.way) for one in cases if stands_in(one, seen)]
    raw = [(one.kind, one.way) for one in cases if one.secret in dump or one.secret.encode().hex() in dump]
    in_log = [(one.kind, one.way) for one in cases if stands_in(one, told)]
    with capsys.disabled():
        ways = f"{len({one.way for one in cases})} ways"
        print(
            f"\n{len(cases) - len(missed)} of {len(cases)} secrets by {ways} caught, missed: {missed or 'none'}", end=""
        )
    assert stored.count("[secret:") > len(cases) // 2, "what is around the secrets was stored"
    assert len(missed) <= 0.05 * len(cases)
    assert raw == [] and in_log == []


def test_the_net_of_this_test_catches_something(acme: Any, bob: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(redact, "clean_text", lambda text: redact.Clean(text, 0, 0))
    from tests.pages import made

    secret = "ghp_" + "Ab3dEf6hIj" * 3 + "Kl9mNo"
    made.draft(bob, f"- {secret}\n")
    one = Planted("github pat", "split", "note_draft", secret, secret)
    assert stands_in(one, views("\n".join(everything()))) and secret in dumped()
    encoded = base64.b64encode(base64.b64encode(f"x {secret}".encode())).decode()
    escaped = "".join(f"\\u{ord(char):04x}" for char in secret)
    assert all(stands_in(one, views(f"x {text} y")) for text in (encoded, escaped, secret.encode().hex()))
