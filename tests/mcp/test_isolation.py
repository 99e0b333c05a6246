"""Every tool with an id: another team's and one that nobody has are told apart by nobody."""

import json

import pytest

from memory.mcp.tools import TOOLS
from tests.conftest import new_agent
from tests.mcp.asked import Mcp

CACHE_KEY = "0" * 64
# Each tool, what an id is put into, and which of the made things it may be.
BY_ID = {
    "recall": ({"id": "{}"}, ("trigger", "thread", "worker", "session", "event", "note", "proposal")),
    "read_note": ({"id": "{}"}, ("note", "address")),
    "edit_note": ({"id": "{}", "base_revision": 1, "old": "a", "new": "b"}, ("note", "address", "proposal")),
    "delete_note": ({"id": "{}", "reason": "wrong"}, ("note", "address")),
    "expand": ({"id": "{}"}, ("trigger", "worker", "event", "result")),
    "inbox": ({"worker_id": "{}"}, ("worker",)),
    "report": ({"worker_id": "{}", "state": "done"}, ("worker",)),
    "search": ({"q": "words", "thread": "{}"}, ("thread",)),
    "cache_lookup": ({"tool": "Read", "context": {"project": "{}"}}, ("project",)),
    "file_analysis": (
        {"do": "lookup", "content_hash": "sha256:1", "analysis_type": "a", "version": "1", "project": "{}"},
        ("project",),
    ),
    "cache_store": ({"result": "a text", "project": "{}"}, ("project",)),
}
# Those without an id: what another team has must not be in the answer.
LISTS = {
    "list_notes": {"q": "acme-only words"},
    "thread_index": {},
    "propose_note": {"path": "general/acme-only.md", "text": "---\ntitle: Mine\n---\nMine.\n"},
}


def unknown(public_id: str) -> str:
    return public_id[:-4] + "0000" if not public_id.endswith(".md") else "team/general/none.md"


def asked(arguments, public_id):
    return json.loads(json.dumps(arguments).replace("{}", public_id))


def test_every_tool_is_tried_here() -> None:
    assert set(BY_ID) | set(LISTS) == set(TOOLS)


def test_another_teams_id_is_an_unknown_one(mcp, globex_agent, things) -> None:
    stranger = Mcp(globex_agent)
    for tool, (arguments, kinds) in BY_ID.items():
        for kind in kinds:
            own = things[kind]
            told = [
                json.dumps(stranger.told("tools/call", name=tool, arguments=asked(arguments, public_id))).replace(
                    public_id, "ID"
                )
                for public_id in (own, unknown(own))
            ]
            assert told[0] == told[1], (tool, kind)
            assert "not_found" in told[0] and '"isError": true' in told[0], (tool, kind)
            ours = json.dumps(mcp.told("tools/call", name=tool, arguments=asked(arguments, own)))
            assert "not_found" not in ours, (tool, kind, ours)


def test_a_list_holds_nothing_of_another_team(globex_agent, things) -> None:
    stranger = Mcp(globex_agent)
    for tool, arguments in LISTS.items():
        told = json.dumps(stranger.call(tool, **arguments))
        assert not any(thing in told for thing in things.values() if "acme-only.md" not in thing), tool
    for uri in (f"team-memory://{things['address']}", f"team-memory://notes/{things['note']}"):
        assert stranger.told("resources/read", uri=uri)["error"]["data"] == {"code": "not_found", "id": uri}
    assert stranger.ask("resources/list")["resources"] == []
    assert "acme-only" not in json.dumps(stranger.call("search", q="acme-only words"))


SCOPE_OF = {
    "read": {"recall", "search", "read_note", "list_notes", "thread_index", "inbox"},
    "propose": {"propose_note", "edit_note", "delete_note"},
    "cache": {"cache_lookup", "cache_store", "file_analysis"},
    "ingest": {"report"},
}


@pytest.mark.parametrize("scope", sorted(SCOPE_OF))
def test_a_key_without_the_scope_is_refused_before_anything_is_read(alice, acme, bound, things, scope) -> None:
    others = sorted(set(SCOPE_OF) - {scope})
    short = Mcp(new_agent(alice, scopes=others))
    for tool in sorted(SCOPE_OF[scope]):
        assert short.refused(tool, nonsense=1)["code"] == "forbidden", tool
    if scope == "read":
        assert short.refused("expand", id=things["trigger"])["code"] == "forbidden"
        assert short.told("resources/list")["error"]["data"]["code"] == "forbidden"
    if scope == "cache":
        assert short.refused("expand", id=things["result"])["code"] == "forbidden"
    with bound(acme):
        refused = acme.audit.filter(outcome="refused", target__startswith="/mcp ")
        assert refused.count() >= len(SCOPE_OF[scope])


def test_who_only_reads_proposes_nothing(vera) -> None:
    agent = Mcp(new_agent(vera))
    assert agent.refused("propose_note", path="general/a.md", text="A.\n")["code"] == "forbidden"
    assert agent.call("list_notes")["items"] == []


def test_another_members_notes_are_nobody_elses(acme, alice, mia, bound) -> None:
    from tests.pages import made

    private = made.note(
        acme, mia, path="profile/mine.md", text="---\ntitle: secretly\n---\nsecretly\n", is_private=True
    )
    hers, others = Mcp(new_agent(mia)), Mcp(new_agent(alice))
    assert hers.call("read_note", id=private.public_id)["space"] == "members/mia"
    assert others.refused("read_note", id=private.public_id)["code"] == "not_found"
    assert others.refused("read_note", id="members/mia/profile/mine.md")["code"] == "not_found"
    assert (
        others.refused("propose_note", path="profile/mine.md", text="x\n", space="members/mia")["code"] == "not_found"
    )
    assert others.call("list_notes", q="secretly")["items"] == []
    assert "secretly" not in json.dumps(others.call("search", q="secretly"))
