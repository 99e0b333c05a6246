"""One line for whatever arrived: what a router and a timeline show instead of the payload.

Pure: bytes in, one line out. The payload comes redacted; what is decoded here (a mail's header, a page's entities, a
chat's markup) is looked through once more, for a secret may only now be one.
"""

from typing import Any, Final
from urllib.parse import parse_qs

from memory.graph.summaries import chat, fields, github, gitlab, mail, text
from memory.graph.summaries.line import LIMIT, one_line, size_of
from memory.problems import Problem
from memory.tenants.rest import fast_json

__all__ = ["LIMIT", "one_line", "summarize"]

# What a first look needs of a payload that is no JSON and no log.
_HEAD: Final = 64 * 1024
_MAIL: Final = ("mail", "email", "imap", "smtp")
_CHAT: Final = ("chat", "slack", "teams", "discord", "mattermost", "telegram", "matrix", "irc", "zulip")
_LOGS: Final = (
    "ci", "jenkins", "buildkite", "circleci", "travis", "actions", "teamcity", "drone", "bamboo", "log", "build",
    "treeherder", "taskcluster", "azure", "woodpecker",
)  # fmt: skip
_JSON_MAKERS: Final = {"github": github.line, "gitlab": gitlab.line}


def summarize(source: str, payload: bytes, media_type: str) -> str:
    """At most 200 characters, never empty, without control and direction characters.

    `source` says who sent it: `github`, `gitlab`, `slack`, `mail`, `ci`, or any name; `github.push` names the kind too.
    """
    family, _, kind = source.strip().lower().replace(":", ".").partition(".")
    bare = media_type.partition(";")[0].strip().lower()
    said = _said(family, kind, payload, bare)
    return one_line(said) or f"{_what(bare)}, {size_of(len(payload))}"


def _said(family: str, kind: str, payload: bytes, bare: str) -> str:
    if not payload.strip():
        return f"Empty {_what(bare)}"
    if bare == "message/rfc822" or (family in _MAIL and not _may_be_json(payload)):
        return mail.line(payload)
    value = _form(payload) if bare == "application/x-www-form-urlencoded" else _parsed(payload, bare)
    if isinstance(value, dict | list):
        return _of_json(family, kind, value)
    if value is not None:
        payload, bare = str(value).encode("utf-8", "replace"), "text/plain"
    if _is_binary(payload, bare):
        return ""
    # A log may run to 32 MB; of other text the beginning says it.
    return text.log_line(payload) if _is_log(family, kind) else text.line(payload, _HEAD, is_html="html" in bare)


def _of_json(family: str, kind: str, value: Any) -> str:
    said = ""
    if isinstance(value, dict):
        if family in _JSON_MAKERS:
            said = _JSON_MAKERS[family](kind, value)
        elif family in _CHAT:
            said = chat.line(value)
        elif family in _MAIL:
            said = mail.line_of_fields(value)
    return said or fields.line(value)


def _parsed(payload: bytes, bare: str) -> Any:
    """The JSON value, or None where it is none (or one too large to be walked)."""
    if not ("json" in bare or _may_be_json(payload)):
        return None
    try:
        return fast_json(payload)[0]
    except Problem:
        return None


def _may_be_json(payload: bytes) -> bool:
    """Logs begin with brackets too; to try each as JSON costs more than to read it."""
    ends = payload[:64].lstrip()[:1] + payload[-64:].rstrip()[-1:]
    return ends in (b"{}", b"[]")


def _form(payload: bytes) -> Any:
    """The fields of a form; what GitHub and Slack send in its `payload` field is the JSON itself."""
    try:
        pairs = parse_qs(payload.decode("utf-8", "replace"), max_num_fields=1000)
    except ValueError:
        return None
    if "payload" in pairs:
        return _parsed(pairs["payload"][0].encode("utf-8", "replace"), "application/json")
    return {name: values[0] for name, values in pairs.items()} or None


def _is_log(family: str, kind: str) -> bool:
    words = {*family.replace("-", "_").split("_"), *kind.replace("-", "_").split("_")}
    return not words.isdisjoint(_LOGS) or "log" in kind


def _is_binary(payload: bytes, bare: str) -> bool:
    if bare.split("/")[0] in ("image", "audio", "video", "font") or bare in ("application/zip", "application/pdf"):
        return True
    head = payload[:4096]
    return b"\0" in head or sum(byte < 9 or 13 < byte < 27 for byte in head) > len(head) // 10


def _what(bare: str) -> str:
    return bare or "payload"
