"""What a tool is here, who calls it, and how its answer is kept short."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import orjson

from memory import tokens
from memory.mcp.schemas import Schema
from memory.tenants.access import Actor
from memory.tenants.models import Tenant

# No answer is over 2,000 tokens. It is counted as we write it; clients that put spaces into JSON need a fifth more.
BUDGET: Final = 1_600
# A token is seldom fewer than two bytes: a text that is longer than this is cut before it is counted.
MOST_BYTES: Final = 16_000
_DOOR: Final = re.compile(r"GET /api/v1/(?P<kind>[a-z]+)/(?P<id>[^/?\s]+)(?P<rest>[^\s]*)")
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Caller:
    """Whoever calls a tool: the key's actor and team."""

    actor: Actor
    tenant: Tenant
    key_hash: bytes = b""


Run = Callable[[Caller, dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Tool:
    """One tool: what it is for, what it takes and gives, and what it may do."""

    name: str
    title: str
    about: str
    takes: Schema
    gives: Schema
    run: Run
    # None: it depends on what is asked for, and the tool itself asks.
    action: str | None
    reads_only: bool = False
    destroys: bool = False
    is_idempotent: bool = True
    # It checks, binds and writes in one round trip of its own.
    brings_own_transaction: bool = False
    meta: dict[str, Any] = field(default_factory=dict)


def plain(value: Any) -> Any:
    """The value as plain JSON: times as text, fragments read."""
    return orjson.loads(orjson.dumps(value, default=str))


def size(value: Any) -> int:
    """The tokens of a value as JSON."""
    return tokens.count(orjson.dumps(value).decode())


def fitted(
    entries: Sequence[Entry], whole: Callable[[list[Entry]], dict[str, Any]], *, budget: int = BUDGET
) -> dict[str, Any]:
    """The answer with as many of the entries, from the first on, as the budget holds."""
    costs = tokens.counts([orjson.dumps(entry, default=str).decode() + "," for entry in entries]) if entries else []
    spent, many = size(plain(whole([]))), 0
    for cost in costs:
        if spent + cost > budget:
            break
        spent, many = spent + cost, many + 1
    while True:
        made: dict[str, Any] = plain(whole(list(entries[:many])))
        if not many or size(made) <= budget:
            return made
        many -= 1


def beginning(text: str, whole: Callable[[str], dict[str, Any]], *, budget: int = BUDGET) -> dict[str, Any]:
    """The answer with as much of the text, from its start, as the budget holds: whole lines where there are any."""
    shown = text.encode()[:MOST_BYTES].decode("utf-8", "ignore")
    while True:
        made: dict[str, Any] = plain(whole(shown))
        over = size(made) - budget
        if over <= 0 or not shown:
            return made
        # A piece in proportion to what is too much, and a little more: two or three rounds do.
        keep = int(len(shown) * max(0.0, 1 - (over + 20) / max(tokens.count(shown), over + 20)))
        cut = shown[: min(keep, len(shown) - 1)]
        shown = cut[: cut.rfind("\n") + 1] or cut


def by_tools(value: Any) -> Any:
    """The same with every pointer to an address of the API as the tool that opens it."""
    if isinstance(value, dict):
        return {name: by_tools(one) for name, one in value.items()}
    if isinstance(value, list):
        return [by_tools(one) for one in value]
    if isinstance(value, str) and value.startswith("GET /api/v1/"):
        return _DOOR.sub(_tool_of, value, count=1)
    return value


def _tool_of(door: "re.Match[str]") -> str:
    public_id, rest = door["id"], door["rest"]
    if rest.startswith(("/payload", "/report")) or door["kind"] == "results":
        part = re.search(r"part=([a-z_]+)", rest)
        return f"expand {public_id}{f' part={part[1]}' if part else ''}"
    if door["kind"] == "notes":
        return f"read_note {public_id}"
    return f"recall {public_id}"
