"""One call in two spellings is one call. Pure: text in, text out; the server never touches a path or an address.

Only what a policy or a tool's schema names is rewritten. Everything else keeps its bytes: free text is not folded.
"""

import hashlib
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from posixpath import normpath
from typing import Any, Final
from urllib.parse import SplitResult, quote, unquote, unquote_to_bytes, urlsplit

from w3lib.url import canonicalize_url

# The largest whole number that every reader of JSON keeps (RFC 8259, section 6).
MAX_EXACT: Final = 2**53 - 1
LONGEST_PLACE: Final = 1_500
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_SPACE: Final = re.compile(r"\s+")
_OPERATORS: Final = frozenset({"AND", "OR", "NOT", "NEAR"})
_DRIVE: Final = re.compile(r"[A-Za-z]:(?=/|$)")
# Parameters that only say where the reader came from. Nothing else is ever dropped.
_TRACKERS: Final = re.compile(
    r"utm_\w+|gclid|dclid|gbraid|wbraid|fbclid|msclkid|yclid|twclid|ttclid|igshid|mc_cid|mc_eid|_hsenc|_hsmi|vero_id"
)
# A parameter is a secret by one word of its name: private_token, authToken, user[password], X-Amz-Signature.
_SECRET_WORDS: Final = re.compile(
    r"token|\w*(?:access|auth|id|refresh|csrf|xsrf)token|sig|signature|hmac|(?:api|access|private|auth)key|secret|\w+secret"
    r"|passwords?|passwd|passphrase|pwd|pass|jwt|auth|oauth|authorization|bearer|credentials?|session|sessionid|sid"
    r"|\w+sessid|ticket|otp|totp|pat|sas|csrf|xsrf|cookie"
)
_SECRET_PARAMETER: Final = re.compile(
    r"x-(?:amz|goog)-.*|.*(?:api|access|private|auth|account)[-_. ]?keys?", re.IGNORECASE
)
# Tokens that say where a list goes on.
_PLACE_TOKEN: Final = re.compile(r"(?:next|page|paging|pagination|continuation|sync|cursor|start|list)[-_]?token", re.I)
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# `key` alone may be a sort key; a long one that no person typed is none.
_MADE_UP: Final = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w.~-]{16,}")
# Letters that IDNA 2003 wrote as others, and browsers no longer do: straße.de and strasse.de are two sites.
_DEVIATING: Final = re.compile("[\u00df\u1e9e\u03c2\u200c\u200d]")


class NotKeyable(ValueError):
    """These arguments have no key; the reason says why, and the call goes past the cache."""


class Digits(float):
    """A number that a double does not hold; `text` has all its digits."""

    text = ""


def fraction(text: str) -> float:
    """A number of JSON that is not whole, with every digit: what another text can't be taken for."""
    near = float(text)
    with suppress(ArithmeticError):
        if not math.isfinite(near) or Decimal(text) == Decimal(repr(near)):
            return near
    whole = Digits(near)
    whole.text = text
    return whole


@dataclass(frozen=True)
class Rules:
    """Which arguments of a tool are what. A name covers the argument, and each text in it where it is a list."""

    paths: frozenset[str] = frozenset()
    urls: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    queries: frozenset[str] = frozenset()
    commands: frozenset[str] = frozenset()
    http_hosts: frozenset[str] = frozenset()
    defaults: Mapping[str, Any] = field(default_factory=dict)


_KINDS: Final = ("paths", "urls", "numbers", "queries", "commands", "http_hosts")


def rules_of(given: Mapping[str, Any], schema: Mapping[str, Any] | None = None) -> Rules:
    """The rules written in a policy, with what the tool's own schema says about its arguments. Raises ValueError."""
    unknown = set(given) - {*_KINDS, "defaults"}
    if unknown:
        raise ValueError(f"unknown rules {sorted(unknown)}; known: {[*_KINDS, 'defaults']}")
    named = {kind: {str(name) for name in _names(given, kind)} for kind in _KINDS}
    named["http_hosts"] = {host.lower() for host in named["http_hosts"]}
    defaults = given.get("defaults", {})
    if not isinstance(defaults, Mapping):
        raise ValueError("defaults is an object: argument to its default")
    said: dict[str, Any] = {}
    for name, about in ((schema or {}).get("properties") or {}).items():
        if not isinstance(about, Mapping):
            continue
        if about.get("type") in ("number", "integer"):
            named["numbers"].add(name)
        if about.get("format") in ("uri", "url"):
            named["urls"].add(name)
        if "default" in about:
            said[name] = about["default"]
    return Rules(**{kind: frozenset(names) for kind, names in named.items()}, defaults={**said, **defaults})


def _names(given: Mapping[str, Any], kind: str) -> list[Any]:
    names = given.get(kind, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{kind} is a list of names")
    return names


def normal(arguments: Mapping[str, Any], *, rules: Rules, root: str = "") -> dict[str, Any]:
    """The arguments in their one spelling, ready for RFC 8785. Raises NotKeyable."""
    return {
        _plain(name): exact(value)
        for name, value in _without_defaults(
            {name: _as(name, value, rules, root) for name, value in arguments.items()}, rules, root
        )
    }


def _without_defaults(arguments: dict[str, Any], rules: Rules, root: str) -> Iterator[tuple[str, Any]]:
    for name, value in arguments.items():
        if name in rules.defaults and _same(value, _as(name, rules.defaults[name], rules, root)):
            continue
        yield name, value


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON, however deep: 1 is 1.0, and neither is true."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, Digits) or isinstance(other, Digits):
        return bool(exact(one) == exact(other))
    is_one_kind = type(one) is type(other) or (_is_number(one) and _is_number(other))
    return is_one_kind and bool(one == other)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _as(name: str, value: Any, rules: Rules, root: str) -> Any:
    """The argument as the kind its name is."""
    turn: Callable[[str], Any]
    if name in rules.paths:
        turn = lambda text: path(text, root=root)  # noqa: E731
    elif name in rules.urls:
        turn = lambda text: url(text, http_hosts=rules.http_hosts)  # noqa: E731
    elif name in rules.numbers:
        turn = number
    elif name in rules.queries:
        turn = query
    elif name in rules.commands:
        turn = command
    else:
        return value
    if isinstance(value, str):
        return turn(value)
    return [turn(one) if isinstance(one, str) else one for one in value] if isinstance(value, list) else value


def path(text: str, *, root: str = "") -> str:
    """A path as it is below the root: `$ROOT/src/u.py`; outside of the root it stays absolute."""
    here, base = _slashed(text), _slashed(root).rstrip("/")
    if not _is_absolute(here):
        here = f"{base}/{here}" if base else f"$ROOT/{here}"
        base = base or "$ROOT"
    here, base = _resolved(here), _resolved(base) if base else ""
    if base and (here == base or here.startswith(base + "/") or _is_below_drive(here, base)):
        return f"$ROOT{here[len(base) :]}"
    return here


def place(path: str) -> str:
    """A path as it is looked up by: an index takes no longer ones than this."""
    raw = path.encode("utf-8", "replace")
    return path if len(raw) <= LONGEST_PLACE else f"sha256:{hashlib.sha256(raw).hexdigest()}"


def _slashed(text: str) -> str:
    slashed = unicodedata.normalize("NFC", text).replace("\\", "/")
    return slashed[0].upper() + slashed[1:] if _DRIVE.match(slashed) else slashed


def _is_absolute(text: str) -> bool:
    return text.startswith(("/", "~")) or bool(_DRIVE.match(text))


def _resolved(text: str) -> str:
    # normpath keeps two leading slashes, as POSIX wants; a UNC share is the only place where they mean something.
    return normpath(text) if text else text


def _is_below_drive(here: str, base: str) -> bool:
    """Windows compares without case."""
    return bool(_DRIVE.match(base)) and f"{here}/".lower().startswith(f"{base}/".lower())


def url(text: str, *, http_hosts: frozenset[str] = frozenset()) -> str:
    """An address in its one spelling; one that can't be read stays as it is."""
    try:
        parts = urlsplit(text.strip())
        if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
            return text
        # The fragment stays with the browser, but for single-page apps whose routes it is.
        bare = parts._replace(query="", fragment=parts.fragment if parts.fragment.startswith(("!", "/")) else "")
        bare = bare._replace(netloc=_ascii(bare.netloc)) if _DEVIATING.search(bare.netloc) else bare
        plain = urlsplit(canonicalize_url(bare.geturl(), keep_fragments=True))
        scheme = "https" if plain.hostname in http_hosts else plain.scheme
        return plain._replace(scheme=scheme, netloc=_host(plain), query=_query(parts.query)).geturl()
    except ValueError:
        return text


def _ascii(netloc: str) -> str:
    """The host with those labels as IDNA 2008 writes them."""
    labels = unicodedata.normalize("NFC", netloc.lower()).split(".")
    return ".".join(
        "xn--" + label.encode("punycode").decode() if _DEVIATING.search(label) else label for label in labels
    )


def _host(parts: SplitResult) -> str:
    usual = {"http": ":80", "https": ":443"}[parts.scheme]
    return parts.netloc.removesuffix(usual)


def _query(text: str) -> str:
    """Parameters by name. Those of one name keep their order: `a=1&a=2` asks something else than `a=2&a=1`."""
    pairs = [one.partition("=") for one in text.split("&") if one]
    kept = [(_unquoted(name), mark, _unquoted(value)) for name, mark, value in pairs]
    kept = [one for one in kept if not _TRACKERS.fullmatch(one[0])]
    return "&".join(f"{name}{mark}{value}" for name, mark, value in sorted(kept, key=lambda one: one[0]))


def _unquoted(text: str) -> str:
    return quote(unquote_to_bytes(text.replace("+", " ")), safe="-._~")


def query(text: str) -> str:
    """A search query without its case and its spacing; `OR` is an operator of search engines, and `or` a word."""
    words = _SPACE.sub(" ", text).strip().split(" ")
    return " ".join(word if word in _OPERATORS else word.lower() for word in words)


def command(text: str) -> str:
    """A command without the space around it, as a shell sees space; one that a backslash keeps stays."""
    bare = text.strip(" \t\r\n")
    return text if bare.endswith("\\") else bare


def number(text: str) -> Any:
    """A number written as text, as the number; any other text stays."""
    if not _NUMBER.fullmatch(text) or len(text) > 300:
        return text
    value = fraction(text) if set(text) & set(".eE") else int(text)
    return text if isinstance(value, float) and math.isinf(value) else value


def exact(value: Any) -> Any:
    """The value as RFC 8785 takes it, with nothing lost: large whole numbers become `{"$int": "…"}`, and numbers of
    more digits than a double has `{"$number": "…"}`.

    Raises NotKeyable for what no key can hold.
    """
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return value if -MAX_EXACT <= value <= MAX_EXACT else {"$int": str(value)}
    if isinstance(value, Digits):
        return {"$number": value.text}
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotKeyable("not_a_number")
        return value
    if isinstance(value, Mapping):
        return {_plain(name): exact(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [exact(inner) for inner in value]
    raise NotKeyable("not_json")


def _plain(name: Any) -> str:
    """A caller's own `$int` must not look like ours."""
    if not isinstance(name, str):
        raise NotKeyable("not_json")
    return f"${name}" if name.startswith("$") else _text(name)


def _text(value: str) -> str:
    """The database keeps no NUL, so what a key was made of could not be shown."""
    if "\0" in value:
        raise NotKeyable("nul")
    return value


def carries_secret(value: Any) -> bool:
    """Whether an address in the arguments holds a password or a token."""
    if isinstance(value, str):
        return "://" in value and _secret_url(value)
    if isinstance(value, Mapping):
        return any(carries_secret(inner) for inner in value.values())
    return isinstance(value, list) and any(carries_secret(inner) for inner in value)


def _secret_url(text: str) -> bool:
    for word in text.split():
        if "://" not in word:
            continue
        try:
            parts = urlsplit(word)
        except ValueError:
            continue
        if "@" in parts.netloc or _secret_query(f"{parts.query}&{parts.fragment}"):
            return True
    return False


def _secret_query(text: str) -> bool:
    pairs = [one.partition("=") for one in re.split("[&;?]", text)]
    said = {unquote(name): unquote(value) for name, _, value in pairs if name}
    # The answer of an OAuth server; `code` alone may be a country's.
    is_grant = {"code", "state"} <= said.keys()
    return is_grant or any(_secret_name(name) for name in said) or bool(_MADE_UP.fullmatch(said.get("key", "")))


def _secret_name(name: str) -> bool:
    if _PLACE_TOKEN.fullmatch(name):
        return False
    words = (word.lower() for word in _WORDS.findall(name))
    return bool(_SECRET_PARAMETER.fullmatch(name)) or any(_SECRET_WORDS.fullmatch(word) for word in words)
