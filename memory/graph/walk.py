"""Recall: from any id to its causes, or to what came after, breadth first, in one answer never over its budget."""

from collections import deque
from dataclasses import dataclass
from typing import Any, Final

import orjson

from memory import ids, tokens
from memory.graph import kinds
from memory.graph.kinds import Node
from memory.tenants.models import Tenant

DIRECTIONS: Final = ("cause", "after")
MOST_HOPS: Final = 8
# A record costs a few statements; more of them than this fit into no budget that is asked for.
MOST_NODES: Final = 200
POINTER_CUT: Final = 120
# Where an id of each kind is fetched.
_DOORS: Final = {
    "thread": "threads",
    "trigger": "triggers",
    "worker": "workers",
    "session": "sessions",
    "event": "events",
    "note": "notes",
    "proposal": "proposals",
    "dream": "dreams",
    "result": "results",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """How far, how much, and which way."""

    hops: int = 3
    budget_tokens: int = 2_000
    direction: str = "cause"
    # Who asks: what is one member's alone is in nobody else's walk.
    member_pk: str | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    node: Node
    hop: int
    via: str | None


def recall(tenant: Tenant, start: str, asked: Asked) -> bytes | None:
    """The answer as JSON; None where nothing in the tenant has the id.

    Inline views as long as they fit, in the order of the walk; what does not fit is a pointer, and what not even
    that, a number.
    """
    found, is_cut = _walk(tenant, start, asked)
    if not found:
        return None
    items: list[dict[str, Any]] = []
    pointers: list[dict[str, Any]] = []
    whole = _answer(start, asked, items, pointers, len(found), is_cut)
    spent = tokens.count(orjson.dumps(whole).decode())
    lines = tokens.counts([orjson.dumps(_pointer(one)).decode() + "," for one in found])
    for one, line in zip(found, lines, strict=True):
        item, cost = _fitting(one, asked.budget_tokens - spent)
        if item is not None:
            items.append(item)
            spent += cost
        elif spent + line <= asked.budget_tokens:
            pointers.append(_pointer(one))
            spent += line
    while True:
        # The parts' tokens do not add up exactly: what counts is the whole.
        raw = orjson.dumps(_answer(start, asked, items, pointers, len(found), is_cut))
        if tokens.count(raw.decode()) <= asked.budget_tokens or not (items or pointers):
            return raw
        (pointers or items).pop()


def _walk(tenant: Tenant, start: str, asked: Asked) -> tuple[list[_Found], bool]:
    """Records in the order of the walk, and whether there would have been more of them."""
    found: list[_Found] = []
    seen = {start}
    queue: deque[tuple[str, int, str | None]] = deque([(start, 0, None)])
    while queue:
        public_id, hop, via = queue.popleft()
        if len(found) >= MOST_NODES:
            return found, True
        node = kinds.find(tenant, public_id, member_pk=asked.member_pk)
        if node is None:
            continue
        found.append(_Found(node, hop, via))
        if hop == asked.hops:
            continue
        for following in node.cause if asked.direction == "cause" else node.after:
            if following not in seen:
                seen.add(following)
                queue.append((following, hop + 1, public_id))
    return found, False


def _answer(
    start: str,
    asked: Asked,
    items: list[dict[str, Any]],
    pointers: list[dict[str, Any]],
    total: int,
    is_cut: bool,
) -> dict[str, Any]:
    return {
        "start": start,
        "direction": asked.direction,
        "hops": asked.hops,
        "budget_tokens": asked.budget_tokens,
        "items": items,
        "pointers": pointers,
        "left_out": total - len(items) - len(pointers),
        "is_cut": is_cut,
    }


def _fitting(found: _Found, room: int) -> tuple[dict[str, Any] | None, int]:
    """The longest view that fits, with its tokens; None where none does."""
    if room <= 0:
        return None, 0
    views = [_item(found, view) for view in (found.node.view, *found.node.shorter)]
    costs = tokens.counts([orjson.dumps(view).decode() + "," for view in views])
    return next(((view, cost) for view, cost in zip(views, costs, strict=True) if cost <= room), (None, 0))


def _item(found: _Found, view: dict[str, Any]) -> dict[str, Any]:
    return {"id": found.node.public_id, "hop": found.hop, "via": found.via, "view": view}


def _pointer(found: _Found) -> dict[str, Any]:
    line = found.node.line
    shown = line if len(line) <= POINTER_CUT else line[: POINTER_CUT - 1] + "…"
    return {"hop": found.hop, "line": shown, "get": address(found.node.public_id)}


def address(public_id: str) -> str:
    """Where an id is fetched."""
    door = _DOORS.get(ids.kind_of(public_id) or "", "recall")
    return f"GET /api/v1/{door}/{public_id}"
