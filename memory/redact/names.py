"""Values whose name says that they are secret: `export API_KEY=…`, `"password": "…"`, `client_secret: …`."""

import re
from collections.abc import Iterator

# Where a name may hold a stem; found by plain search, since a regex of alternatives costs 40 ms per MB.
STEMS = ("key", "token", "secret", "passw", "passphrase", "pwd", "credential", "_pat", "_pass")
_WORD = re.compile(r"[\w-]{0,24}")
_NAME_END = re.compile(r"[\w.-]{1,60}\Z")
_ASSIGNED = re.compile(
    r"[A-Za-z0-9_-]{0,24}[\"'`\\\]]{0,3}[ \t]{0,4}(?P<op>=>|:=|=(?!=)|:(?![:/])|\Z)(?:[ \t]{0,8}|\s{0,2}[ \t]{0,8})"
    r"(?P<quote>[\"'`])?(?P<value>[^\s\"'`,;<>{}()\[\]|\\]{5,4096})(?P<after>[^\S\n]?[(\[{|]|.|\Z)?",
    re.DOTALL,
)
_LISTED = re.compile(  # {"name": "API_KEY", "value": "…"}, also over two lines of YAML
    r"\w{0,24}[\"']?\s{0,2},?\s{1,40}[\"']?value[\"']?\s{0,2}:\s{0,2}"
    r"[\"']?(?P<value>[^\s\"'`,;<>{}()\[\]|\\]{5,4096})"
    r"|\w{0,24}[\"'],[\"']value[\"']:[\"'](?P<value2>[^\s\"'`,;<>{}()\[\]|\\]{5,4096})"
)
_STRONG = re.compile(
    r"(?:^|[^a-z])(?:api|access|secret|private|auth|client|signing|encryption|service|deploy|account|admin|master|app|bot|"
    r"refresh|session|user|personal|security|webhook|storage|shared|license|db|jwt|oauth|[a-z0-9]+_(?=key|token))?"
    r"[_.-]?(?:keys?|tokens?|secrets?|credentials?|pat|secret[_.-]?keys?|secret[_.-]?access[_.-]?keys?|access[_.-]?keys?)"
    r"(?:[_.-]?(?:value|base|id|hash|v?\d|live|test|prod|dev))?$"
)
_PASSWORD = re.compile(r"passw|passphrase|pwd|_pass$")
_PUBLIC = re.compile(
    r"public|pub_?key|publishable|(?:primary|foreign|cache|sort)_?key|token_?(?:count|type|limit|url|name|id)|max_?token|"
    r"(?:input|output|total|completion|prompt)_?token|key_?(?:name|path|file|code|type|len|size|id)$|keyword|keyboard|"
    r"secret_?name|_(?:url|path|file|name|id|dir)$"
)
_PLACEHOLDER = re.compile(
    r"\$|%[A-Z({]|your[_-]|my[_-]|x{4,}|\*{3,}|\.{3}|…|example|placeholder|changeme|change[_-]me|replace|redacted|"
    r"(?:process|import|meta|os|env|config|settings|self|this|data|secrets|vars|github|props|req|request|ctx)[.\[]|"
    r"(?:none|null|true|false|undefined|string|required|optional|dummy|fake|todo|(?:test|wrong|invalid|secret|password)[a-z]{0,8})\Z|https?:|/|\./|\.\./|~|sha\d|--",
    re.IGNORECASE,
)
_MASKED = re.compile(r"\.{3}|…|\*{3}|x{6}| [=!]=", re.IGNORECASE)
_DIGEST = re.compile(r"(?:[0-9a-f]{32}|[0-9a-f]{40}|(?:[0-9a-f]{32}){2,4}|[0-9a-f]{56})\Z", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.IGNORECASE)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+\Z")


def values(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Places of values given to a secret name. `lowered` is the same text in lower case."""
    for stem in STEMS:
        at = lowered.find(stem)
        while at >= 0:
            yield from _value_after(text, at, at + len(stem))
            at = lowered.find(stem, at + len(stem))


def _value_after(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    found = _ASSIGNED.match(text, end)
    listed = None if found else _LISTED.match(text, end)
    if not (found or listed):
        return
    before = _NAME_END.search(text, max(0, start - 60), start)
    name = (before[0] if before else "") + text[start:end] + _WORD.match(text, end)[0]  # type: ignore[index]
    if found and is_secret(name, found["value"], quoted=bool(found["quote"]), after=found["after"] or ""):
        yield found.span("value")
    elif listed:
        group = "value" if listed["value"] else "value2"
        if is_secret(name, listed[group], quoted=True):
            yield listed.span(group)


def is_secret(name: str, value: str, *, quoted: bool, after: str = "") -> bool:
    """Whether a value under this name is a secret, not a type, a reference, a placeholder or a digest."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().rsplit(".", 1)[-1]
    if _PUBLIC.search(snake) or is_placeholder(value) or _DOTTED.match(value):
        return False
    if not quoted and after[-1:] in ("(", "[", "{"):
        return False
    has_digit = any(char.isdigit() for char in value)
    if _PASSWORD.search(snake):
        odd = has_digit or any(char in "!@#%^&*+?~" for char in value)
        is_long = len(value) >= 12 and not value.isidentifier()
        return (odd and not value.isdigit()) or (is_long and (quoted or name.isupper()))
    if not _STRONG.search(snake) or len(value) < 8 or not has_digit or value.isdigit():
        return False
    if _UUID.match(value) or _DIGEST.match(value):
        return _is_named_credential(snake)
    if name.isupper():
        return True
    return len(value) >= 16 and any(char.isalpha() for char in value) and value.count("-") < 4


def is_placeholder(value: str) -> bool:
    """Whether a value stands for a secret without being one: a reference, a mask, a word of the manual."""
    return bool(_PLACEHOLDER.match(value) or _MASKED.search(value))


def _is_named_credential(snake: str) -> bool:
    return re.search(r"api[_-]?key|secret|auth[_-]?token|access[_-]?(?:key|token)|password", snake) is not None


def is_plausible(match: str, value: str) -> bool:
    """The second opinion on what the scanner calls a generic key or password."""
    if _UUID.match(value) or _DIGEST.match(value):
        return _is_named_credential(match.lower().split(value.lower())[0])
    return not (is_placeholder(value) or _DOTTED.match(value) or _PUBLIC.search(match.split(value)[0].lower()))
