"""Tool results: the hot door that asks, and the one that stores."""

from collections.abc import Callable
from typing import Any, Final

import orjson
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST

from cache_admin import again, shapes, store
from cache_admin.keys import read_call
from cache_admin.lookup import MayNotUse, UnknownKey, look
from cache_admin.respond import CACHE, refused, said
from cache_admin.shapes import CONTEXT, KEYED
from memory.problems import Problem
from memory.tenants.access import TenantRequest, brings_own_transaction, needs
from memory.tenants.middleware import bad_key, bearer, key_actor
from memory.tenants.rest import describe


@csrf_exempt
@require_POST
@brings_own_transaction
def tool_lookup(request: HttpRequest) -> HttpResponse:
    """One call: hit with the answer, miss with a lease, wait, or bypass; each says why."""
    key_hash = bearer(request)
    # Whoever has no key learns nothing of what a good body is.
    try:
        asked = shapes.asked(read_call(request.body))
    except Problem:
        key_actor(request)
        raise

    def ask() -> again.Said:
        answer = look(key_hash, asked)
        return answer, said(answer)

    return asked_of(request, ask)


def asked_of(request: HttpRequest, ask: Callable[[], again.Said]) -> HttpResponse:
    """The cache's answer. Raises Problem 401, 403."""
    try:
        return again.answered(request, ask)
    except UnknownKey:
        raise bad_key(bearer(request)) from None
    except MayNotUse:
        raise refused(request) from None


@csrf_exempt
@require_http_methods(["PUT"])
@needs("cache.use")
def tool_store(request: TenantRequest, key: str) -> HttpResponse:
    """What a tool answered, under the lease of its lookup. First write wins."""
    shapes.key(key)
    lease, written = shapes.written(read_call(request.body))
    stored = store.put(request.tenant, key, lease, written, by=request.actor, key_hash=bearer(request))
    body: dict[str, Any] = {"stored": stored.outcome == "stored", "key": key}
    if stored.outcome != "stored":
        body["reason"] = stored.outcome
    if stored.result is not None:
        body |= {
            "result_id": stored.result.public_id,
            "expires_at": stored.expires_at,
            "full_length_chars": stored.result.chars,
        }
        if stored.result.summary:
            body["summary"] = stored.result.summary
    response = HttpResponse(
        orjson.dumps(body), status=201 if stored.outcome == "stored" else 200, content_type="application/json"
    )
    detail = "stored" if stored.outcome == "stored" else f"detail={stored.outcome}"
    response["Cache-Status"] = f'{CACHE}; fwd=uri-miss; {detail}; key="{key}"'
    return response


_PROBLEM: Final = {"description": "application/problem+json", "content": {"application/problem+json": {}}}
_TEXT: Final = {"type": "string"}
_OBJECT: Final = {"type": "object"}
describe(
    "/api/v1/cache/tools/lookup",
    "post",
    {
        "operationId": "cache_tools_lookup",
        "summary": "Ask the cache before a tool runs",
        "description": "hit: use the result. miss: run the tool, then PUT what it said under `key` with `lease`. "
        "wait: another runs it; ask again after `retry_after` seconds. bypass: run the tool; `reason` says why. "
        "bypass with reason observe gives a lease too: PUT what the tool said, to be compared.",
        "tags": ["caches"],
        "parameters": [KEYED],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "required": ["tool"],
                        "properties": {
                            "tool": _TEXT,
                            "server": {"type": "string", "description": "The MCP server the tool is of."},
                            "version": {"type": "string", "description": "Of the tool, or a digest of its schema."},
                            "arguments": _OBJECT,
                            "context": CONTEXT,
                            "content_hash": {
                                "type": "string",
                                "description": "Of all that the tool reads: a file's digest, or that of the tree.",
                            },
                            "hints": {"type": "object", "description": "The tool's MCP annotations."},
                            "have": {"type": "array", "items": _TEXT},
                            "want": {"type": "string", "enum": ["result", "summary"]},
                            "lease": {"type": "string", "description": "A lease you hold, to make it last longer."},
                            "lease_s": {"type": "integer", "minimum": 1, "maximum": 600},
                        },
                    }
                }
            },
        },
        "responses": {
            "200": {
                "description": "The answer; the header Cache-Status says the same (RFC 9211)",
                "content": {
                    "application/json": {
                        "schema": {
                            "type": "object",
                            "required": ["status"],
                            "properties": {
                                "status": {"type": "string", "enum": ["hit", "miss", "wait", "bypass"]},
                                "reason": _TEXT,
                                "key": _TEXT,
                                "lease": _TEXT,
                                "lease_until": _TEXT,
                                "retry_after": {"type": "number"},
                                "result_id": _TEXT,
                                "result": {},
                                "summary": _TEXT,
                                "unchanged": {"type": "boolean"},
                                "age_s": {"type": "number"},
                                "ttl_s": {"type": "number", "nullable": True},
                                "revalidate": {"type": "boolean"},
                            },
                        }
                    }
                },
            },
            **dict.fromkeys(("400", "401", "403", "404", "409", "413"), _PROBLEM),
        },
    },
)
describe(
    "/api/v1/cache/tools/{key}",
    "put",
    {
        "operationId": "cache_tools_store",
        "summary": "Store what a tool answered",
        "description": "Errors, truncated and empty answers and such with secrets are not kept (`stored` is false and "
        "`reason` says why); their lease goes back at once.",
        "tags": ["caches"],
        "parameters": [{"name": "key", "in": "path", "required": True, "schema": _TEXT}],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "required": ["lease", "result"],
                        "properties": {
                            "lease": _TEXT,
                            "result": {"description": "Text, or any JSON."},
                            "is_error": {"type": "boolean"},
                            "exit_code": {"type": "integer"},
                            "duration_ms": {"type": "integer"},
                            "content_hash": {"type": "string", "description": "As it was when the tool was done."},
                            "session": _TEXT,
                            "kind": {"type": "string", "description": "Of the text: code, logs, tests, json, a path …"},
                        },
                    }
                }
            },
        },
        "responses": {
            "201": {"description": "Stored", "content": {"application/json": {}}},
            "200": {"description": "There before, or not kept: see reason", "content": {"application/json": {}}},
            **dict.fromkeys(("400", "401", "403", "404", "409", "413"), _PROBLEM),
        },
    },
)
