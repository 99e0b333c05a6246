"""Agents that speak MCP, and one of everything in a team."""

from typing import Any

import pytest

from tests.cache import made as made_cache
from tests.graph import made as made_graph
from tests.mcp.asked import Mcp
from tests.pages import made


@pytest.fixture
def mcp(agent: Any) -> Mcp:
    """Acme's agent, in the era without a handshake."""
    return Mcp(agent)


@pytest.fixture
def things(acme: Any, alice: Any) -> dict[str, str]:
    """One of everything in acme, by what it is called."""
    session = made.session(acme, last_prompt="acme-only words")
    event = made.event(session, body='{"prompt": "acme-only words"}')
    note = made.note(
        acme, alice, path="general/acme-only.md", text="---\ntitle: acme-only words\n---\nacme-only words\n"
    )
    return {
        "session": session.public_id,
        "event": event.public_id,
        "note": note.public_id,
        "address": f"team/{note.path}",
        "proposal": made.proposal(acme, path="general/acme-too.md", rests_on=(event,)).public_id,
        "project": made.project(acme, "acme-only").public_id,
        "result": made_cache.result(acme, alice).public_id,
        **made_graph.chain(acme),
    }
