"""All tools, and one call of one: checked, bound, short, and nothing left of it where it fails."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from django.db import connection

from memory import problems
from memory.mcp import cache_tools, graph_tools, note_tools, schemas
from memory.mcp.offer import Caller, Tool
from memory.problems import Problem
from memory.tenants import audit, rls
from memory.tenants.access import Refused, require
from memory.tenants.door import DatabaseAway
from memory.tenants.races import is_race, persistently

log = logging.getLogger(__name__)
# In the order of their names: clients put the list into their prompts, whose cache lives on the same bytes.
TOOLS: Final[dict[str, Tool]] = {
    tool.name: tool
    for tool in sorted((*note_tools.TOOLS, *graph_tools.TOOLS, *cache_tools.TOOLS), key=lambda tool: tool.name)
}


def call(tool: Tool, given: Mapping[str, Any], *, by: Caller) -> dict[str, Any]:
    """The tool's answer. Raises Problem, for every fault there may be; its transaction is gone then."""
    with rls.seeing(by.actor.sight):
        return _answered(tool, given, by)


def _answered(tool: Tool, given: Mapping[str, Any], by: Caller) -> dict[str, Any]:
    try:
        return _called(tool, given, by)
    except Refused as refused:
        _audit(by, str(refused), tool)
        raise problems.forbidden(str(refused)) from None
    except Problem:
        raise
    except DatabaseAway as exc:
        log.error("the database does not answer: %s", exc)
        raise Problem(503, "unavailable", "The database does not answer. Send the same again in a moment.") from None
    except Exception as exc:
        raise _told(exc, tool, by) from None
    finally:
        # These threads are none of Django's: nobody else gives the connection back to the pool.
        if not connection.in_atomic_block:
            connection.close()


def _called(tool: Tool, given: Mapping[str, Any], by: Caller) -> dict[str, Any]:
    # Who may not use it learns nothing of what good arguments are.
    if tool.action is not None:
        require(by.actor, tool.action)
    asked = schemas.taken(tool.takes, given, tool=tool.name)
    if tool.brings_own_transaction:
        return tool.run(by, asked)
    return persistently(lambda: _bound(tool, asked, by))


def _bound(tool: Tool, asked: dict[str, Any], by: Caller) -> dict[str, Any]:
    with rls.tenant_scope(by.actor.tenant_pk):
        return tool.run(by, asked)


def _audit(by: Caller, action: str, tool: Tool) -> None:
    with rls.tenant_scope(by.actor.tenant_pk):
        audit.record(by.actor, action, f"/mcp {tool.name}", outcome="refused")


def _told(exc: Exception, tool: Tool, by: Caller) -> Problem:
    """What may be said of a fault: never its words, which may hold anything."""
    if is_race(exc):
        return Problem(503, "unavailable", "Others change the same right now. Send the same again in a moment.")
    known = problems.from_exception(exc)
    if known is not None:
        return known
    log.exception("tool %s failed in request %s", tool.name, by.actor.request_id)
    detail = f"A fault on the server. Name the request {by.actor.request_id} when you ask about it."
    return Problem(500, "server_error", detail)
