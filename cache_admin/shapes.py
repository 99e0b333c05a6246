"""What the caches' doors take: read field by field, and refused with the name of the field and what it should be."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from cache_admin.analyses import MOST, Made, Wanted
from cache_admin.incidents import Reported as Incident
from cache_admin.invalidate import MOST_PATHS, Doomed
from cache_admin.keys import Call, parameters_hash
from cache_admin.lookup import Asked
from cache_admin.normalize import LONGEST_PLACE, NotKeyable
from cache_admin.policy import SCOPES
from cache_admin.results import Draft
from cache_admin.store import Written, as_text
from cache_admin.usage import Reported, UnknownUsage, read
from memory.events.places import normal_remote, normal_root
from memory.problems import Problem

_NAME: Final = re.compile(r"[^\s\x00-\x1f]{1,200}")
_HASH: Final = re.compile(r"[A-Za-z0-9:_=.+-]{1,100}")
# Of a tool's call any word will do: trees and lock files have digests with other signs in them.
_WORD: Final = re.compile(r"[!-~]{1,200}")
# What a program writes for a digest that it failed to make: it would be the same for ever.
_NO_HASHES: Final = frozenset(
    {"null", "none", "undefined", "nan", "nil", "true", "false", "unknown", "0", "-", "sha256:"}
)
_HEX: Final = re.compile(r"[0-9a-f]{64}")


def invalid(field: str, what: str) -> Problem:
    """400 for one field."""
    return Problem(400, "invalid_field", f"{field}: {what}", field=field)


def text(body: Mapping[str, Any], name: str, *, most: int = 200, needed: bool = False, at: str = "") -> str:
    """A text field; empty where it is left out."""
    value = body.get(name)
    if value is None and not needed:
        return ""
    if not isinstance(value, str) or len(value) > most or (needed and not value.strip()) or "\0" in value:
        raise invalid(at + name, f"a text of at most {most} characters{', needed' if needed else ''}.")
    return value


def mapping(body: Mapping[str, Any], name: str, *, needed: bool = False, at: str = "") -> Mapping[str, Any]:
    """An object field; empty where it is left out."""
    value = body.get(name)
    if value is None and not needed:
        return {}
    if not isinstance(value, Mapping):
        raise invalid(at + name, "a JSON object.")
    return value


def whole(body: Mapping[str, Any], name: str, *, least: int, most: int) -> int | None:
    """A whole number field; None where it is left out."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise invalid(name, f"a whole number from {least} to {most}.")
    return int(value)


def known(body: Mapping[str, Any], names: Sequence[str], at: str = "") -> None:
    """Refuse fields that nobody reads: a misspelt one would change nothing and nobody would know."""
    for name in body:
        if name not in names:
            raise invalid(f"{at}{name}"[:100], f"unknown; known are {', '.join(names)}.")


_CONTEXT: Final = ("project", "root", "scope", "thread", "session", "environment")


def asked(body: Mapping[str, Any]) -> Asked:
    """A tool lookup. Raises Problem 400."""
    known(
        body,
        (
            "tool",
            "server",
            "version",
            "arguments",
            "context",
            "content_hash",
            "hints",
            "have",
            "want",
            "lease",
            "lease_s",
        ),
    )
    return _asked(body, mapping(body, "arguments"))


def question(body: Mapping[str, Any]) -> Asked:
    """A semantic lookup: the query and, beside it, all that the answer hangs on. Raises Problem 400."""
    known(
        body,
        ("tool", "server", "version", "query", "parameters", "context", "content_hash", "hints", "want", "lease_s"),
    )
    query = text(body, "query", most=2_000, needed=True)
    made = _asked(body, {**mapping(body, "parameters"), "query": query})
    return replace(made, kind="semantic", question=query)


def _asked(body: Mapping[str, Any], arguments: Mapping[str, Any]) -> Asked:
    context = mapping(body, "context")
    known(context, _CONTEXT, "context.")
    tool = text(body, "tool", needed=True)
    # What is not seen on a page, or turns its letters round, names nothing there.
    if not _NAME.fullmatch(tool) or any(unicodedata.category(one) == "Cf" for one in tool):
        raise invalid("tool", "a name without spaces and invisible characters.")
    scope = text(context, "scope", at="context.")
    if scope and scope not in SCOPES:
        raise invalid("context.scope", f"one of {', '.join(SCOPES)}; the narrower of this and the policy's holds.")
    project = text(context, "project", most=1_000, at="context.")
    want = text(body, "want")
    if want not in ("", "result", "summary"):
        raise invalid("want", "result for the whole, or leave it out for the summary where there is one.")
    have = body.get("have")
    have = [] if have is None else have
    if not isinstance(have, list) or len(have) > 1_000 or not all(isinstance(one, str) for one in have):
        raise invalid("have", "a list of up to 1,000 result ids that this session still holds.")
    return Asked(
        Call(
            tool=tool,
            arguments=arguments,
            server=text(body, "server"),
            version=text(body, "version"),
            root=normal_root(text(context, "root", most=4_000, at="context.")),
            environment=mapping(context, "environment", at="context."),
            content_hash=_content_hash(body),
        ),
        project=project,
        remote=normal_remote(project),
        thread=text(context, "thread", at="context."),
        scope=scope,
        session=text(context, "session", at="context."),
        have=tuple(one.replace("\0", "\ufffd") for one in have),
        want="result" if want == "result" else "",
        held=text(body, "lease"),
        lease_s=whole(body, "lease_s", least=1, most=600) or 0,
        hints=mapping(body, "hints"),
    )


def _content_hash(body: Mapping[str, Any]) -> str:
    """The digest of what a tool reads; empty where it is left out. Raises Problem 400."""
    value = text(body, "content_hash")
    if value and (not _WORD.fullmatch(value) or value.lower() in _NO_HASHES):
        raise invalid(
            "content_hash", "the digest of what the tool reads, e.g. sha256:…; leave it out where there is none."
        )
    return value


def key(value: str) -> str:
    """A key as a lookup gave it. Raises Problem 404: one of another form is nobody's."""
    if not _HEX.fullmatch(value):
        raise Problem(404, "not_found", "Unknown key. Use the key that a lookup gave.", id=value[:200])
    return value


def written(body: Mapping[str, Any]) -> tuple[str, Written]:
    """The lease and the answer of a tool. Raises Problem 400."""
    known(
        body,
        ("lease", "result", "is_error", "isError", "exit_code", "duration_ms", "content_hash", "session", "kind"),
    )
    if "result" not in body:
        raise invalid("result", "what the tool answered: text, or any JSON.")
    said, is_json = as_text(body["result"])
    flag = body.get("is_error", body.get("isError", False))
    if not isinstance(flag, bool):
        raise invalid("is_error", "true or false.")
    return text(body, "lease", needed=True), Written(
        said,
        is_json,
        body["result"],
        is_error=flag,
        exit_code=whole(body, "exit_code", least=-(2**31), most=2**31),
        duration_ms=whole(body, "duration_ms", least=0, most=2**31 - 1),
        content_hash=text(body, "content_hash") if body.get("content_hash") is not None else None,
        session=text(body, "session"),
        kind=text(body, "kind"),
    )


def wanted(body: Mapping[str, Any], *, at: str = "") -> Wanted:
    """One analysis that is asked for. Raises Problem 400."""
    known(body, ("content_hash", "analysis_type", "version", "parameters", "model", "prompt", "path"), at)
    content_hash = text(body, "content_hash", most=100, needed=True, at=at)
    if not _HASH.fullmatch(content_hash):
        raise invalid(f"{at}content_hash", "letters, digits and : _ = . + -, e.g. sha256:…")
    return _wanted(body, content_hash, text(body, "analysis_type", most=100, needed=True, at=at), at)


def _wanted(body: Mapping[str, Any], content_hash: str, analysis_type: str, at: str) -> Wanted:
    made_by = {name: said for name in ("model", "prompt") if (said := text(body, name, most=1_000, at=at))}
    given = mapping(body, "parameters", at=at)
    try:
        parameters = parameters_hash({**({"of": given} if given else {}), **made_by})
    except NotKeyable as why:
        raise invalid(f"{at}parameters", f"not keyable: {why}.") from None
    path = text(body, "path", most=LONGEST_PLACE, at=at)
    if len(path.encode()) > LONGEST_PLACE:
        raise invalid(f"{at}path", f"at most {LONGEST_PLACE:,} bytes.")
    version = text(body, "version", most=100, needed=True, at=at)
    return Wanted(content_hash, analysis_type, version, parameters, path)


def batch(body: Any) -> tuple[list[Wanted], str]:
    """A batch of up to 1,000, and its project. Raises Problem 400."""
    body = {"items": body} if isinstance(body, list) else body
    if not isinstance(body, Mapping):
        raise invalid("items", "a list of analyses.")
    known(body, ("items", "context"))
    items = body.get("items")
    if not isinstance(items, list) or not 1 <= len(items) <= MOST:
        raise invalid("items", f"a list of 1 to {MOST:,} analyses.")
    for place, one in enumerate(items):
        if not isinstance(one, Mapping):
            raise invalid(f"items[{place}]", "a JSON object.")
    project = text(mapping(body, "context"), "project", most=1_000, at="context.")
    return [wanted(one, at=f"items[{place}].") for place, one in enumerate(items)], project


def made(body: Mapping[str, Any], content_hash: str, analysis_type: str) -> tuple[Made, str]:
    """An analysis that was made, and its project. Raises Problem 400."""
    known(body, ("version", "parameters", "model", "prompt", "path", "analysis", "duration_ms", "context"))
    if not _HASH.fullmatch(content_hash) or not 1 <= len(analysis_type) <= 100:
        raise invalid("content_hash", "letters, digits and : _ = . + -, e.g. sha256:…")
    if "analysis" not in body:
        raise invalid("analysis", "the analysis: text, or any JSON.")
    context = mapping(body, "context")
    names = ("version", "parameters", "model", "prompt")
    return (
        Made(
            _wanted(body, content_hash, analysis_type, ""),
            body["analysis"],
            {name: body[name] for name in names if body.get(name) not in (None, "", {})},
            whole(body, "duration_ms", least=0, most=2**31 - 1),
        ),
        text(context, "project", most=1_000, at="context."),
    )


def doomed(body: Mapping[str, Any]) -> tuple[Doomed, str]:
    """What is to be invalidated, and its project. Raises Problem 400."""
    known(body, ("paths", "root", "project", "tool", "content_hash", "key", "writer", "all"))
    paths = body.get("paths")
    paths = [] if paths is None else paths
    if not isinstance(paths, list) or len(paths) > MOST_PATHS:
        raise invalid("paths", f"a list of up to {MOST_PATHS} paths.")
    project = text(body, "project", most=1_000)
    everything = body.get("all", False)
    if not isinstance(everything, bool):
        raise invalid("all", "true or false.")
    found = Doomed(
        paths=[_path(one, place) for place, one in enumerate(paths)],
        root=normal_root(text(body, "root", most=4_000)),
        tool=text(body, "tool"),
        content_hash=text(body, "content_hash"),
        key=text(body, "key"),
        writer=text(body, "writer"),
        whole_project=bool(project) and not paths,
        everything=everything,
    )
    if not any((paths, project, found.tool, found.content_hash, found.key, found.writer, found.everything)):
        raise invalid("paths", "say what is to go: paths, project, tool, content_hash, key, writer or all: true.")
    if found.key:
        key(found.key)
    return found, project


def _path(one: Any, place: int) -> tuple[str, str]:
    at = f"paths[{place}]."
    if isinstance(one, str):
        one = {"path": one}
    if isinstance(one, Mapping) and isinstance(one.get("path"), str):
        known(one, ("path", "content_hash"), at)
        return text(one, "path", most=4_000, needed=True, at=at), text(one, "content_hash", at=at)
    raise invalid(f"paths[{place}]", 'a path, or {"path", "content_hash"} with the digest that it has now.')


def reported(body: Any) -> list[Reported]:
    """One message's usage, or a list of them. Raises Problem 400."""
    items = body if isinstance(body, list) else body.get("items", [body]) if isinstance(body, Mapping) else None
    if not isinstance(items, list) or not 1 <= len(items) <= 1_000:
        raise invalid("items", "a message's usage, or a list of up to 1,000.")
    return [_reported(one, f"items[{place}].") for place, one in enumerate(items)]


def _reported(one: Any, at: str) -> Reported:
    if not isinstance(one, Mapping):
        raise invalid(at.rstrip("."), "a JSON object.")
    known(one, ("message_id", "model", "harness", "usage", "at"), at)
    try:
        taken = read(mapping(one, "usage", needed=True, at=at))
    except UnknownUsage as why:
        raise invalid(f"{at}usage", str(why)) from None
    return Reported(
        text(one, "message_id", needed=True, at=at),
        text(one, "model", most=120, needed=True, at=at),
        # As sessions name it: both spellings of one harness are one line.
        text(one, "harness", most=40, at=at).replace("-", "_"),
        taken,
        moment(one.get("at"), f"{at}at") or datetime.now(UTC),
    )


def moment(value: Any, field: str) -> datetime | None:
    """A time of RFC 3339 with its zone; None where it is left out. Raises Problem 400."""
    if value is None:
        return None
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        found = None
    if found is None or found.tzinfo is None:
        raise invalid(field, "a time such as 2026-11-29T10:00:00Z.")
    # Far from today pages and the database's own reader fail, each at another place.
    if found.year < 2000 or found > datetime.now(UTC) + timedelta(days=1):
        raise invalid(field, "a time since the year 2000, and not one to come.")
    return found


def span(query: Mapping[str, str]) -> tuple[date, date]:
    """`from` and `to`, days of UTC, both counted in; the last 30 days where they are left out. Raises Problem 400."""
    today = datetime.now(UTC).date()
    until = _day(query, "to") or today
    since = _day(query, "from") or until - timedelta(days=29)
    if since > until or (until - since).days > 400:
        raise invalid("from", "not after to, and at most 400 days before it.")
    return since, until


def _day(query: Mapping[str, str], name: str) -> date | None:
    if name not in query:
        return None
    try:
        found = date.fromisoformat(query[name][:10])
    except ValueError:
        found = date.min
    if not 2000 <= found.year < 3000:
        raise invalid(name, "a day such as 2026-11-29, from the year 2000 to 2999.")
    return found


def result(body: Mapping[str, Any]) -> tuple[Draft, bool, str]:
    """A result to be kept, whether it is its member's alone, and its project. Raises Problem 400."""
    known(body, ("content", "tool", "kind", "scope", "project", "ttl_s"))
    if "content" not in body:
        raise invalid("content", "the result: text, or any JSON.")
    scope = text(body, "scope") or "team"
    if scope not in ("member", "team"):
        raise invalid("scope", "member (only you read it again) or team.")
    said, is_json = as_text(body["content"])
    draft = Draft(
        said,
        is_json,
        text(body, "tool"),
        kind=text(body, "kind", most=4_000),
        ttl_s=whole(body, "ttl_s", least=1, most=30 * 24 * 3600),
    )
    return draft, scope == "member", text(body, "project", most=1_000)


def incident(body: Mapping[str, Any]) -> Incident:
    """What an agent says of an answer. Raises Problem 400."""
    known(body, ("result_id", "key", "kind", "detail"))
    told = Incident(
        text(body, "result_id"), text(body, "key"), text(body, "kind") or "stale", text(body, "detail", most=2_000)
    )
    if told.key and not told.result_id:
        key(told.key)
    return told


# How the API describes where a call is made from.
CONTEXT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "project": {"type": "string", "description": "Id, slug or git remote."},
        "root": {"type": "string", "description": "The workspace root: paths below it are shared between machines."},
        "scope": {"type": "string", "enum": ["member", "thread", "project", "team"]},
        "thread": {"type": "string"},
        "session": {"type": "string", "description": "A session that was given a result gets only its id again."},
        "environment": {
            "type": "object",
            "description": "What else the answer hangs on: versions, flags, tree digest.",
        },
    },
}
# The parameter of the doors that give out leases, for the description of the API.
KEYED: Final[dict[str, Any]] = {
    "in": "header",
    "name": "Idempotency-Key",
    "schema": {"type": "string"},
    "description": "Sent again within 24 h by the same agent key, an answer with a lease comes back as it was, and not"
    " `wait`. An answer without one changed nothing and is asked anew. Another body under the key is 409.",
}
