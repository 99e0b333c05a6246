"""Tools over the caches: ask before a tool runs, keep what it said, share analyses of files."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from cache_admin import analyses, projects, results, shapes, store
from cache_admin.lookup import MayNotUse, UnknownKey, look
from cache_admin.respond import said
from cache_admin.store import Stored
from memory.mcp import schemas
from memory.mcp.offer import BUDGET, Caller, Tool, beginning, by_tools, fitted, plain, size
from memory.mcp.schemas import MAYBE, OBJECT, OBJECTS, STRING, WHOLE, YES_OR_NO
from memory.problems import Problem
from memory.tenants.access import Refused
from memory.tenants.middleware import bad_key

_ANALYSIS: Final = ("content_hash", "analysis_type", "version", "parameters", "model", "prompt", "path")


def lookup(by: Caller, asked: Mapping[str, Any]) -> dict[str, Any]:
    """hit, miss, wait or bypass; a long answer by its beginning. Raises Refused, Problem."""
    read = shapes.asked(asked)
    try:
        answer = look(by.key_hash, read)
    except UnknownKey:
        raise bad_key(by.key_hash) from None
    except MayNotUse:
        raise Refused("cache.use") from None
    found: dict[str, Any] = by_tools(plain(said(answer)))
    if "note" in found:
        found["note"] = f"The whole: expand {found['result_id']} (lines=, grep=)"
    if size(found) <= BUDGET:
        return found
    result = found.pop("result", None)
    text = result if isinstance(result, str) else orjson.dumps(result).decode()
    found["note"] = f"Cut; the whole: expand {found['result_id']} (lines=, grep=)"
    return beginning(text, lambda part: {**found, "result": part, "is_cut": True})


def keep(by: Caller, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What a tool said, under its lease; or without one a long text that is to leave the context."""
    if "key" not in asked and "lease" not in asked:
        return _offload(by, asked)
    if "key" not in asked or "lease" not in asked:
        raise Problem(400, "invalid_arguments", "cache_store: key and lease go together, as cache_lookup gave them.")
    body = {name: value for name, value in asked.items() if name not in ("key", "tool", "scope", "project")}
    key = shapes.key(asked["key"])
    lease, written = shapes.written(body)
    return _of(store.put(by.tenant, key, lease, written, by=by.actor, key_hash=by.key_hash))


def _of(stored: Stored) -> dict[str, Any]:
    is_new = stored.outcome == "stored"
    found: dict[str, Any] = {"stored": is_new, "reason": None if is_new else stored.outcome}
    if stored.result is not None:
        found |= {"result_id": stored.result.public_id, "full_length_chars": stored.result.chars}
        return beginning(stored.result.summary, lambda part: {**found, "summary": part})
    return found


def _offload(by: Caller, asked: Mapping[str, Any]) -> dict[str, Any]:
    names = ("tool", "kind", "scope", "project")
    body = {"content": asked["result"], **{name: asked[name] for name in names if name in asked}}
    draft, is_private, project = shapes.result(body)
    project_pk = projects.pk_of(by.tenant, project, by=by.actor)
    kept, summary = results.offload(by.tenant, draft, by=by.actor, is_private=is_private, project_pk=project_pk)
    found = {
        "stored": True,
        "reason": None,
        "result_id": kept.public_id,
        "full_length_chars": kept.chars,
        "note": f"The whole: expand {kept.public_id} (lines=, grep=)",
    }
    return beginning(summary, lambda part: {**found, "summary": part})


def analysis(by: Caller, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Look up analyses of file contents, or store one."""
    context = {"project": asked["project"]} if "project" in asked else {}
    if asked["do"] == "store":
        return _stored(by, asked, context)
    if "analysis" in asked:
        raise Problem(400, "invalid_arguments", "file_analysis: an analysis is stored by do=store.")
    one = {name: asked[name] for name in _ANALYSIS if name in asked}
    items = asked.get("items", []) + ([one] if one else [])
    wanted, project = shapes.batch({"items": items, "context": context})
    project_pk = projects.pk_of(by.tenant, project, by=by.actor)
    looked, hits = analyses.look(by.tenant, wanted, by=by.actor, project_pk=project_pk)
    found = orjson.loads(orjson.dumps(looked))
    return fitted(
        found,
        lambda shown: {
            "items": shown,
            "hits": hits,
            "left_out": len(found) - len(shown),
            "note": "Ask for those left out by themselves, or by REST." if len(shown) < len(found) else None,
        },
    )


def _stored(by: Caller, asked: Mapping[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    for name in ("content_hash", "analysis_type", "version", "analysis"):
        if name not in asked:
            raise Problem(400, "invalid_arguments", f"file_analysis: do=store needs {name}.")
    names = ("version", "parameters", "model", "prompt", "path", "analysis", "duration_ms")
    body = {name: asked[name] for name in names if name in asked} | {"context": context}
    made, project = shapes.made(body, asked["content_hash"], asked["analysis_type"])
    kept = analyses.keep(by.tenant, made, by=by.actor, project_pk=projects.pk_of(by.tenant, project, by=by.actor))
    is_new = kept.outcome == "stored"
    found: dict[str, Any] = {"stored": is_new, "reason": None if is_new else kept.outcome}
    if kept.analysis_id:
        found |= {"analysis_id": kept.analysis_id, "only_at_its_path": kept.is_bound}
    return found


_HASH: Final = "A digest of the content, e.g. sha256:…"
_WANTED: Final[dict[str, schemas.Schema]] = {
    "content_hash": schemas.text(_HASH, maxLength=100),
    "analysis_type": schemas.text("What kind, e.g. outline, review", maxLength=100),
    "version": schemas.text("Of the analyser", maxLength=100),
    "parameters": schemas.obj("What else the analysis hangs on"),
    "model": schemas.text("Which model made it", maxLength=200),
    "prompt": schemas.text("A digest of its prompt", maxLength=200),
    "path": schemas.text("Where the file lies", maxLength=4_000),
}
_CONTEXT: Final = schemas.obj(
    "Where the call is made",
    properties={
        "project": schemas.text("Id, name or git remote"),
        "root": schemas.text("The workspace root: paths below it are shared between machines"),
        "scope": schemas.one_of("Who may share it, at most", "member", "thread", "project", "team"),
        "thread": STRING,
        "session": schemas.text("A session that was given a result gets only its id again"),
        "environment": schemas.obj("What else the answer hangs on: versions, flags, tree digest"),
    },
)

TOOLS: Final = (
    Tool(
        "cache_lookup",
        "Ask the cache",
        "Ask before you run a tool. hit: use the result. miss: run it, then cache_store what it said with key and "
        "lease. wait: another runs it; ask again after retry_after seconds. bypass: run it; reason says why.",
        schemas.shape(
            {
                "tool": schemas.text("The tool's name", minLength=1, maxLength=200),
                "arguments": schemas.obj("The tool's arguments"),
                "server": schemas.text("The MCP server the tool is of", maxLength=200),
                "version": schemas.text("Of the tool", maxLength=200),
                "context": _CONTEXT,
                "content_hash": schemas.text("Of all that the tool reads: a file's digest, or the tree's"),
                "hints": schemas.obj("The tool's MCP annotations"),
                "have": schemas.listed("res_ ids that you still hold", STRING, maxItems=1_000),
                "want": schemas.one_of("result for the whole, else a summary where there is one", "result", "summary"),
                "lease": schemas.text("A lease you hold, to make it last longer", maxLength=200),
                "lease_s": {"type": "integer", "minimum": 1, "maximum": 600, "description": "How long, in seconds"},
            },
            needed=("tool",),
        ),
        schemas.answer(
            {
                "status": schemas.one_of("What to do", "hit", "miss", "wait", "bypass"),
                "reason": STRING,
                "key": STRING,
                "lease": STRING,
                "lease_until": {},
                "retry_after": {"type": "number"},
                "result_id": STRING,
                "result": {},
                "summary": STRING,
                "is_cut": YES_OR_NO,
                "note": STRING,
            },
            needed=("status",),
        ),
        lookup,
        "cache.use",
        # A miss is a lease that others wait for.
        is_idempotent=False,
        brings_own_transaction=True,
    ),
    Tool(
        "cache_store",
        "Keep a tool's result",
        "After a miss: keep what the tool said under the key and lease of cache_lookup; errors are not kept. Without "
        "key and lease: keep a long text out of your context; a summary and its res_ id come back, expand reads it.",
        schemas.shape(
            {
                "result": {"description": "What the tool said: text, or any JSON"},
                "key": schemas.text("As cache_lookup gave it", maxLength=200),
                "lease": schemas.text("As cache_lookup gave it", maxLength=200),
                "is_error": schemas.flag("The tool failed"),
                "exit_code": WHOLE,
                "duration_ms": {"type": "integer", "minimum": 0},
                "content_hash": schemas.text("As it was when the tool was done"),
                "session": STRING,
                "kind": schemas.text("Of the text: code, logs, tests, json, a path …", maxLength=4_000),
                "tool": schemas.text("Without a lease: which tool said it", maxLength=200),
                "scope": schemas.one_of("Without a lease: who may read it", "member", "team"),
                "project": schemas.text("Without a lease: id, name or git remote", maxLength=1_000),
            },
            needed=("result",),
        ),
        schemas.answer(
            {
                "stored": YES_OR_NO,
                "reason": MAYBE,
                "result_id": STRING,
                "full_length_chars": WHOLE,
                "summary": STRING,
                "note": STRING,
            },
            needed=("stored", "reason"),
        ),
        keep,
        "cache.use",
        is_idempotent=False,
    ),
    Tool(
        "file_analysis",
        "Share analyses of files",
        "Analyses of file contents that the team has made: do=lookup finds one (or many by items) by the content's "
        "digest, do=store keeps one that you made. The content is the key: a changed file has none yet.",
        schemas.shape(
            {
                "do": schemas.one_of("What to do", "lookup", "store"),
                **_WANTED,
                "items": schemas.listed("Several to look up, with the same fields", OBJECT, maxItems=analyses.MOST),
                "analysis": {"description": "For store: the analysis, text or any JSON"},
                "duration_ms": {"type": "integer", "minimum": 0},
                "project": schemas.text("Id, name or git remote", maxLength=1_000),
            },
            needed=("do",),
        ),
        schemas.answer(
            {
                "items": OBJECTS,
                "hits": WHOLE,
                "left_out": WHOLE,
                "stored": YES_OR_NO,
                "reason": MAYBE,
                "analysis_id": STRING,
                "only_at_its_path": YES_OR_NO,
                "note": MAYBE,
            }
        ),
        analysis,
        "cache.use",
    ),
)
