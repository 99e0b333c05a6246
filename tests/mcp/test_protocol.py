"""/mcp on the wire: who gets in, what is refused and how, and both eras of the protocol."""

import hashlib
import json
import os
import subprocess
import sys

import pytest
from django.test import Client
from django.utils import timezone

from memory.mcp import server
from memory.mcp.endpoint import MOST_BYTES
from memory.tenants.models import AgentKey
from tests import database
from tests.mcp.asked import ACCEPT, LEGACY, MODERN, Mcp

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
LISTING = "import django; django.setup(); from memory.mcp import server; print(server.LISTED.model_dump_json())"


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer tm_live_no"}, {"Authorization": "Basic YTpi"}])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_it_needs_a_key_and_says_which(committed, headers, method) -> None:
    answer = Client(headers=headers).generic(method, "/mcp", json.dumps(PING), "application/json")
    assert answer.status_code == 401 and answer["WWW-Authenticate"].startswith("Bearer ")
    assert answer["Content-Type"] == "application/problem+json"


def test_a_revoked_key_is_out_at_the_next_call(mcp, agent, acme, bound) -> None:
    mcp.call("thread_index")
    with bound(acme):
        AgentKey.objects.filter(pk=agent.key.pk).update(revoked_at=timezone.now())
    assert mcp.post(PING).status_code == 401


def test_it_offers_no_stream(agent) -> None:
    answer = Client(headers=agent.headers).get("/mcp", headers={"Accept": "text/event-stream"})
    assert (answer.status_code, answer["Allow"]) == (405, "POST")


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_it_speaks_with_a_handshake(agent, path) -> None:
    old = Mcp(agent, LEGACY)
    told = old.ask("initialize", protocolVersion=LEGACY, capabilities={}, clientInfo={"name": "t", "version": "1"})
    assert told["protocolVersion"] == LEGACY and told["serverInfo"]["name"] == "team-memory"
    sent = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    headers = {"Accept": ACCEPT, "MCP-Protocol-Version": LEGACY, **agent.headers}
    answer = Client().post(path, sent, content_type="application/json", headers=headers)
    assert (answer.status_code, answer.content) == (202, b"") and "Mcp-Session-Id" not in answer
    assert old.ask("ping") == {}
    assert old.call("thread_index")["items"] == []


def test_it_speaks_without_one(mcp) -> None:
    told = mcp.ask("server/discover")
    assert MODERN in told["supportedVersions"] and len(told["instructions"].split("\n\n")[0]) <= 512
    assert {"tools", "resources", "prompts"} <= set(told["capabilities"])
    assert mcp.told("no/such")["error"]["code"] == -32601


def test_a_session_that_nobody_gave_is_404(agent) -> None:
    answer = Mcp(agent, LEGACY).post(PING, **{"Mcp-Session-Id": "gone-after-restart"})
    assert answer.status_code == 404
    assert (answer.json()["code"], answer.json()["id"]) == ("not_found", "gone-after-restart")


@pytest.mark.parametrize(
    "headers,status",
    [
        ({"Host": "evil.example"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:6274"}, 200),
        ({"Host": "memory.acme.example", "Origin": "https://memory.acme.example"}, 200),
    ],
)
def test_no_other_name_and_no_other_site_gets_in(agent, settings, headers, status) -> None:
    settings.ALLOWED_HOSTS = ["localhost", "testserver", "memory.acme.example"]
    settings.PUBLIC_URL = "https://memory.acme.example"
    assert Mcp(agent, LEGACY).post(PING, **headers).status_code == status


def test_a_message_has_a_limit(mcp) -> None:
    answer = mcp.post(b"[" + b" " * MOST_BYTES + b"]")
    assert (answer.status_code, answer.json()["limit_bytes"]) == (413, MOST_BYTES)


@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b'{"jsonrpc": "2.0"}', b"\xff\xfe"])
@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_what_is_no_message_is_refused_aloud(agent, body, era) -> None:
    answer = Mcp(agent, era).post(body)
    assert answer.status_code == 400 and answer.json()["error"]["code"] < 0
    assert b"Traceback" not in answer.content


def test_its_list_of_tools_is_the_same_bytes_everywhere(mcp, globex_agent) -> None:
    """Clients put it into their prompts, and the provider's cache lives on the same bytes."""
    ours = server.LISTED.model_dump_json()
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "memory.settings", "PYTHONHASHSEED": "1"}
    command = [sys.executable, "-c", LISTING]
    run = subprocess.run(command, env=environment, cwd=database.ROOT, capture_output=True, text=True, check=True)
    assert hashlib.sha256(run.stdout.strip().encode()).digest() == hashlib.sha256(ours.encode()).digest()
    listed = [Mcp(globex_agent).ask("tools/list"), mcp.ask("tools/list"), mcp.ask("tools/list")]
    assert json.dumps(listed[0]) == json.dumps(listed[1]) == json.dumps(listed[2])
    assert listed[0]["cacheScope"] == "public" and listed[0]["ttlMs"] > 0
    names = [tool["name"] for tool in listed[0]["tools"]]
    assert names == sorted(names) and len(names) == 14


def test_each_tool_says_what_it_takes_gives_and_does(mcp) -> None:
    tools = {tool["name"]: tool for tool in mcp.ask("tools/list")["tools"]}
    for tool in tools.values():
        assert len(tool["description"]) > 60 and tool["outputSchema"]["type"] == "object"
        assert {"readOnlyHint", "destructiveHint", "idempotentHint"} <= set(tool["annotations"])
        for name, field in tool["inputSchema"]["properties"].items():
            assert field.get("description") or name in ("exit_code", "duration_ms", "session"), (tool["name"], name)
    reading = {name for name, tool in tools.items() if tool["annotations"]["readOnlyHint"]}
    assert reading == {"recall", "search", "read_note", "list_notes", "expand", "thread_index", "inbox"}
    assert tools["delete_note"]["annotations"]["destructiveHint"]


def test_it_has_two_prompts(mcp) -> None:
    assert [one["name"] for one in mcp.ask("prompts/list")["prompts"]] == ["remember", "wrong_note"]
    told = mcp.ask("prompts/get", name="remember", arguments={"what": "{why} is {text}"})
    assert "{why} is {text}" in told["messages"][0]["content"]["text"]
    assert mcp.told("prompts/get", name="remember", arguments={})["error"]["code"] == -32602
    assert mcp.told("prompts/get", name="nope", arguments={})["error"]["code"] == -32602


def test_notes_are_resources(mcp, acme, alice, things, monkeypatch) -> None:
    from memory.mcp import resources
    from tests.pages import made

    made.note(acme, alice, path="general/été né.md", text="---\ntitle: Été\n---\nAccents.\n")
    monkeypatch.setattr(resources, "PAGE", 1)
    first = mcp.ask("resources/list")
    second = mcp.ask("resources/list", cursor=first["nextCursor"])
    assert "nextCursor" not in second
    uris = [one["uri"] for page in (first, second) for one in page["resources"]]
    assert uris == ["team-memory://team/general/acme-only.md", "team-memory://team/general/%C3%A9t%C3%A9%20n%C3%A9.md"]
    for uri in (*uris, f"team-memory://notes/{things['note']}"):
        contents = mcp.ask("resources/read", uri=uri)["contents"][0]
        assert contents["text"].startswith("---\ntitle:") and contents["mimeType"] == "text/markdown"
    assert len(mcp.ask("resources/templates/list")["resourceTemplates"]) == 3
    assert mcp.told("resources/list", cursor="x")["error"]["data"]["code"] == "invalid_cursor"
    for uri in ("team-memory://team/general/none.md", "file:///etc/passwd", "team-memory://team/../../etc/passwd"):
        error = mcp.told("resources/read", uri=uri)["error"]
        assert (error["code"], error["data"]) == (-32602, {"code": "not_found", "id": uri})
