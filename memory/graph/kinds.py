"""What an id of any kind is in the walk. Higher rungs put their kinds in when the app starts: the graph imports none.

A kind is found by its prefix; several may share one (`evt_` is a step of a thread, or a hook call): the first that
knows the id answers.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from memory.tenants.models import Tenant


@dataclass(frozen=True, slots=True)
class Node:
    """One record as the walk shows it, and the ids to go on from: to its causes, and to what came after it."""

    public_id: str
    view: dict[str, Any]
    line: str
    cause: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    # Views to fall back on where the whole one leaves no room, the longest first.
    shorter: tuple[dict[str, Any], ...] = ()


Find = Callable[[Tenant, str], Node | None]
# What not everybody in a team may see is found for whoever asks: `find(tenant, public_id, member_pk)`.
FindFor = Callable[[Tenant, str, str | None], Node | None]
Attach = Callable[[Tenant, str, str], None]


@dataclass(slots=True)
class _Kinds:
    finders: dict[str, list[Find]] = field(default_factory=dict)
    personal: dict[str, FindFor] = field(default_factory=dict)
    attach_session: Attach | None = None


_KINDS = _Kinds()


def register(prefix: str, find: Find) -> None:
    """Let the walk and citations know ids that begin with `prefix_`; twice the same is once."""
    finders = _KINDS.finders.setdefault(prefix, [])
    if find not in finders:
        finders.append(find)


def register_personal(prefix: str, find: FindFor) -> None:
    """As `register`, for a kind of which some records are one member's alone."""
    _KINDS.personal[prefix] = find


def register_session(attach: Attach) -> None:
    """Let a worker be a session: `attach(tenant, session_id, worker_pk)` sets the link on the session's side."""
    _KINDS.attach_session = attach


def find(tenant: Tenant, public_id: str, *, member_pk: str | None = None) -> Node | None:
    """The record with this id in the bound tenant, of whatever kind; for nobody named, only what all may see."""
    prefix = public_id.partition("_")[0]
    for finder in _KINDS.finders.get(prefix, ()):
        node = finder(tenant, public_id)
        if node is not None:
            return node
    personal = _KINDS.personal.get(prefix)
    return personal(tenant, public_id, member_pk) if personal else None


def attach_session(tenant: Tenant, session_id: str, worker_pk: str) -> bool:
    """Tell the session which worker it is; False where there is no such session."""
    if _KINDS.attach_session is None or find(tenant, session_id) is None:
        return False
    _KINDS.attach_session(tenant, session_id, worker_pk)
    return True
