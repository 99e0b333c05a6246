"""MCP as a client without an SDK speaks it: one message in, one out, in either era."""

import json
from dataclasses import dataclass, field
from typing import Any

from django.test import Client

ACCEPT = "application/json, text/event-stream"
MODERN = "2026-07-28"
LEGACY = "2025-11-25"


@dataclass
class Mcp:
    """A client with an agent's key."""

    agent: Any
    era: str = MODERN
    client: Client = field(default_factory=Client)

    def post(self, message: Any, **headers: str) -> Any:
        """The HTTP answer to a message."""
        sent = {"Accept": ACCEPT, "MCP-Protocol-Version": self.era, **self.agent.headers, **headers}
        return self.client.post("/mcp", message, content_type="application/json", headers=sent)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a request; fails on an error of the protocol."""
        told = self.told(method, **params)
        assert "result" in told, told
        result: dict[str, Any] = told["result"]
        return result

    def told(self, method: str, **params: Any) -> dict[str, Any]:
        """The JSON-RPC answer."""
        headers = {}
        if self.era == MODERN:
            about = {"protocolVersion": MODERN, "clientCapabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
            params["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in about.items()}
            headers["Mcp-Method"] = method
            if named := params.get("name", params.get("uri")):
                headers["Mcp-Name"] = named
        answer = self.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, **headers)
        told: dict[str, Any] = json.loads(answer.content)
        return told

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The structure that a tool answers; fails where it says that it could not."""
        result = self.ask("tools/call", name=tool, arguments=arguments)
        assert not result.get("isError"), result["content"]
        found: dict[str, Any] = result["structuredContent"]
        return found

    def refused(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """What a tool says of a call that it does not take."""
        result = self.ask("tools/call", name=tool, arguments=arguments)
        assert result.get("isError"), result
        said: dict[str, Any] = json.loads(result["content"][0]["text"])
        return said
