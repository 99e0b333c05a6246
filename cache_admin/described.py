"""What the doors that are not DRF's say of themselves in the API's description."""

from typing import Any, Final

from cache_admin.shapes import CONTEXT, KEYED
from memory.tenants.rest import describe

_PROBLEM: Final = {"description": "application/problem+json", "content": {"application/problem+json": {}}}
_TEXT: Final = {"type": "string"}
_OBJECT: Final = {"type": "object"}
_QUESTION: Final = {
    "tool": _TEXT,
    "server": _TEXT,
    "version": _TEXT,
    "query": {"type": "string", "description": "The question, in words.", "maxLength": 2000},
    "parameters": {"type": "object", "description": "All else that the answer hangs on: it must be the very same."},
    "context": CONTEXT,
    "content_hash": _TEXT,
    "hints": _OBJECT,
    "want": {"type": "string", "enum": ["result", "summary"]},
    "lease_s": {"type": "integer", "minimum": 1, "maximum": 600},
}
_FOUND: Final = {
    "status": {"type": "string", "enum": ["hit", "miss", "wait", "bypass"]},
    "reason": _TEXT,
    "key": _TEXT,
    "lease": _TEXT,
    "result_id": _TEXT,
    "result": {},
    "summary": _TEXT,
    "score": {"type": "number", "description": "How alike the nearest question is, served or not."},
    "matched_query": {"type": "string", "description": "The question that was answered: read it before you trust it."},
    "guard": {"type": "string", "description": "Why a question as alike was not served: number, negation, …"},
}


def _query(name: str, kind: str, what: str) -> dict[str, Any]:
    return {"in": "query", "name": name, "schema": {"type": kind}, "description": what}


describe(
    "/api/v1/cache/semantic/lookup",
    "post",
    {
        "operationId": "cache_semantic_lookup",
        "summary": "Ask whether a question was answered in other words",
        "description": "The same words are served as a tool's call is. The nearest other question is served only at "
        "the tool's threshold, past the guard on numbers, names and negation, and where the team has turned it on. "
        "On a miss run the tool and PUT what it said to /cache/tools/{key}.",
        "tags": ["caches"],
        "parameters": [KEYED],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"type": "object", "required": ["tool", "query"], "properties": _QUESTION}
                }
            },
        },
        "responses": {
            "200": {
                "description": "The answer; the header Cache-Status says the same (RFC 9211)",
                "content": {
                    "application/json": {"schema": {"type": "object", "required": ["status"], "properties": _FOUND}}
                },
            },
            **dict.fromkeys(("400", "401", "403", "404", "409", "413"), _PROBLEM),
        },
    },
)
describe(
    "/api/v1/results/{id}",
    "get",
    {
        "operationId": "results_expand",
        "summary": "The full text of a stored result, or a part of it",
        "description": "Text as it is, JSON as JSON. `lines` and `grep` give plain text; Range gives bytes.",
        "tags": ["caches"],
        "parameters": [
            {"in": "path", "name": "id", "required": True, "schema": _TEXT},
            _query("lines", "string", "120-180, 120- (to the end), -20 (the last 20) or 7"),
            _query("grep", "string", "An RE2 pattern; lines come with their numbers"),
            _query("context", "integer", "Lines around a match, up to 20"),
            {"in": "header", "name": "Range", "schema": _TEXT, "description": "bytes=0-999"},
        ],
        "responses": {
            "200": {"description": "The text", "content": {"text/plain": {}, "application/json": {}}},
            "206": {"description": "The bytes that Range asked for", "content": {"text/plain": {}}},
            **dict.fromkeys(("400", "401", "403", "404", "410", "416"), _PROBLEM),
        },
    },
)
