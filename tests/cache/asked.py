"""Calls as tests make them."""

from typing import Any


def call(tool: str = "read_file", **more: Any) -> dict[str, Any]:
    """A lookup of a file's content in the project `shop`."""
    body: dict[str, Any] = {
        "tool": tool,
        "arguments": {"path": "src/pay.py"},
        "context": {"project": "shop", "root": "/home/dev/shop"},
        "content_hash": "sha256:1",
    }
    return {**body, **more}


def stored(api: Any, body: dict[str, Any], result: Any = "def pay(): ...", **more: Any) -> Any:
    """Look up, which must miss, and store what the tool said; gives the answer of the PUT."""
    missed = api.post("cache/tools/lookup", body).json()
    assert missed["status"] == "miss", missed
    return api.put(f"cache/tools/{missed['key']}", {"lease": missed["lease"], "result": result, **more})
