"""Tools over the id graph: the walk, search, payloads, and what routers and workers need."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from cache_admin import results
from memory import ids
from memory.events import bodies
from memory.graph import citations, content, fields, linking, lookup, parts, slices, steps, threads, walk, workers
from memory.graph.workers import Said
from memory.mcp import schemas
from memory.mcp.offer import BUDGET, Caller, Tool, beginning, by_tools, fitted, plain
from memory.mcp.schemas import MAYBE, OBJECTS, STRING, STRINGS, WHOLE, YES_OR_NO
from memory.notes.lookup import list_scope
from memory.paging import Page
from memory.problems import Problem, not_found
from memory.recall import asking, everywhere, vectors
from memory.recall.kinds import KINDS
from memory.tenants.access import require

# Rewritten pointers may be some tokens longer than those that were counted.
_ROOM: Final = 1_450
_MAX_REPORT: Final = 4 * 1024 * 1024


def recall(by: Caller, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The walk from an id to its causes, or to what came after."""
    start = asked["id"]
    most = min(asked.get("budget_tokens", _ROOM), _ROOM)
    how = walk.Asked(asked.get("hops", 3), most, asked.get("direction", "cause"), by.actor.member_pk)
    raw = walk.recall(by.tenant, start, how) if ids.kind_of(start) else None
    if raw is None:
        raise lookup.absent(by.tenant, start)
    found: dict[str, Any] = by_tools(orjson.loads(raw))
    return found


def search(by: Caller, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The first id: what fits a question, best first."""
    query = {name: asked[name] for name in ("q", "project", "thread") if name in asked}
    if asked.get("kinds"):
        query["kinds"] = ",".join(asked["kinds"])
    query["follow"] = "1" if asked.get("follow") else "0"
    scope = list_scope(by.actor, f"mcp-search:{sorted(query.items())}")
    page = Page.of_cursor(asked.get("cursor"), limit=asked.get("limit", 10), scope=scope)
    start = int(page.after[0]) if page.after else 0
    most = min(start + page.limit + 1, everywhere.DEPTH)
    read = asking.read(query, tenant_pk=by.actor.tenant_pk, member_pk=by.actor.member_pk)
    hits = everywhere.find(read, limit=most, by=vectors.maker())[start:]

    def answer(shown: list[dict[str, Any]]) -> dict[str, Any]:
        cursor = page.next_cursor([start + len(shown)] if shown else None)
        return {"items": shown, "next_cursor": cursor, "has_more": len(hits) > len(shown)}

    return fitted([by_tools(hit.show()) for hit in hits[: page.limit]], answer)


def expand(by: Caller, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The text behind an id: its beginning, some lines of it, or the lines that match."""
    public_id = asked["id"]
    part = asked.get("part")
    raw, about = _behind(by, public_id, part)
    if part not in (None, about["part"]):
        raise Problem(422, "no_such_part", f"{public_id} has one part, {about['part']}. Leave part out.", id=public_id)
    first = 1
    if "lines" in asked:
        piece = slices.lines(raw, asked["lines"])
        raw, first = piece.raw, piece.first
    whole = first + slices.count_lines(raw) - 1
    if "grep" in asked:
        found = slices.grep(raw, asked["grep"], first_line=first)

        def matching(shown: list[dict[str, Any]]) -> dict[str, Any]:
            return {**about, "hits": shown, "has_more": found["more"] or len(shown) < len(found["hits"])}

        return fitted(found["hits"], matching)
    text = raw.decode("utf-8", "replace")

    def shown(part: str) -> dict[str, Any]:
        last = first + max(slices.count_lines(part.encode()) - 1, 0)
        following = last + 1 if part.endswith("\n") else last
        is_cut = len(part) < len(text)
        more = f"expand {public_id} lines={following}-{whole}, or grep=" if is_cut else None
        return {**about, "first_line": first, "last_line": last, "text": part, "more": more}

    return beginning(text, shown)


def _behind(by: Caller, public_id: str, part: str | None) -> tuple[bytes, dict[str, Any]]:
    """The bytes behind an id, and what they are. Raises Problem 404, 410."""
    match ids.kind_of(public_id):
        case "trigger":
            require(by.actor, "graph.read")
            found = parts.find(lookup.trigger(by.tenant, public_id), parts.part_name(part or parts.MAIN))
            return parts.stored(found), _about(public_id, found.name, found.media_type, found.size)
        case "worker":
            require(by.actor, "graph.read")
            report = workers.report_of(lookup.worker(by.tenant, public_id))
            if report is None:
                raise not_found(public_id)
            return report, _about(public_id, "report", "text/markdown", len(report))
        case "event":
            return _event(by, public_id)
        case "result":
            return _result(by, public_id)
    raise not_found(public_id)


def _event(by: Caller, public_id: str) -> tuple[bytes, dict[str, Any]]:
    require(by.actor, "session.read")
    step = steps.find(by.tenant, public_id)
    if step is not None:
        told = orjson.dumps(plain(steps.view(step)))
        return told, _about(public_id, "step", content.JSON, len(told))
    event = by.tenant.events.filter(public_id=public_id).first()
    if event is None:
        raise not_found(public_id)
    raw = bodies.stored(event)
    if raw is None:
        raise Problem(410, "payload_gone", "The payload was dropped by retention; the event stays.", id=public_id)
    return raw, _about(public_id, "payload", content.JSON, len(raw))


def _result(by: Caller, public_id: str) -> tuple[bytes, dict[str, Any]]:
    require(by.actor, "cache.read")
    result, text = results.readable(by.tenant, public_id, by=by.actor)
    results.expanded(result)
    raw = text.encode()
    return raw, _about(public_id, "result", content.JSON if result.is_json else "text/plain", len(raw))


def _about(public_id: str, part: str, media_type: str, size: int) -> dict[str, Any]:
    return {"id": public_id, "part": part, "media_type": media_type, "bytes": size}


def thread_index(by: Caller, asked: Mapping[str, Any]) -> dict[str, Any]:
    """One line for each open thread, the newest activity first."""
    found: dict[str, Any] = orjson.loads(
        threads.index(by.tenant, budget_tokens=min(asked.get("budget_tokens", BUDGET), BUDGET))
    )
    return found


def inbox(by: Caller, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What was passed straight through to a worker, in order."""
    worker = lookup.worker(by.tenant, asked["worker_id"])
    scope = f"{by.tenant.pk}:inbox:{worker.public_id}"
    page = Page.of_cursor(asked.get("cursor"), limit=asked.get("limit", 20), scope=scope)
    rows = workers.inbox(worker, after=page.after[0] if page.after else 0, most=page.limit + 1)

    def answer(shown: list[dict[str, Any]]) -> dict[str, Any]:
        last = [rows[len(shown) - 1].seq] if shown else None
        return {"items": shown, "next_cursor": page.next_cursor(last), "has_more": len(rows) > len(shown)}

    return fitted([workers.entry_view(entry) for entry in rows[: page.limit]], answer)


def report(by: Caller, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Set a worker's state, report or cites."""
    worker = lookup.worker(by.tenant, asked["worker_id"])
    words = fields.words(asked, "report", most=_MAX_REPORT)
    said = Said(
        state=fields.state_of(asked),
        report=None if words is None else workers.packed_report(words),
        cites=None if asked.get("cites") is None else citations.given(asked["cites"]),
    )
    if said == Said():
        raise Problem(400, "invalid_arguments", "report: say at least one of state, report and cites.")
    workers.change(worker, said)
    if said.report is not None:
        linking.report(worker)
    view = plain(workers.view(worker))
    return {
        "worker_id": view["worker_id"],
        "thread_id": view["thread_id"],
        "state": view["state"],
        "cites": view["cites"][:30],
        "cited": len(view["cites"]),
        "report_bytes": worker.report_size,
        "more": f"expand {worker.public_id}" if worker.report_size else None,
    }


def _id(what: str) -> schemas.Schema:
    return schemas.text(what, minLength=1, maxLength=200)


TOOLS: Final = (
    Tool(
        "recall",
        "Walk from an id",
        "Walk from any id (trg_, thr_, wkr_, ses_, evt_, nte_, prp_) to its causes, or by direction=after to what came "
        "after it: threads, workers, their reports, the triggers those cite. What does not fit is a pointer: recall or "
        "expand it. No id yet? Use search.",
        schemas.shape(
            {
                "id": _id("Where to begin"),
                "hops": schemas.number("How far", 0, walk.MOST_HOPS, 3),
                "direction": schemas.one_of("cause (the default) or after", *walk.DIRECTIONS),
                "budget_tokens": schemas.number("How much", 100, 100_000, _ROOM),
            },
            needed=("id",),
        ),
        schemas.answer(
            {
                "start": STRING,
                "direction": STRING,
                "hops": WHOLE,
                "budget_tokens": WHOLE,
                "items": OBJECTS,
                "pointers": OBJECTS,
                "left_out": WHOLE,
                "is_cut": YES_OR_NO,
            },
            needed=("start", "items", "pointers", "left_out"),
        ),
        recall,
        "graph.read",
        reads_only=True,
    ),
    Tool(
        "search",
        "Search the memory",
        "Find the first id by any words: threads, triggers, workers' reports, notes, prompts. Each hit says why it "
        "fits. Go on from there by recall, read_note or expand.",
        schemas.shape(
            {
                "q": schemas.text("Any words; nothing in them is an operator", minLength=1, maxLength=2_000),
                "kinds": schemas.listed("Only these", {"type": "string", "enum": list(KINDS)}),
                "project": schemas.text("A prj_ id or a project's name", maxLength=300),
                "thread": _id("A thr_ id: only what belongs to it"),
                "follow": schemas.flag("Also what the best hits are linked with"),
                "limit": schemas.number("How many", 1, 50, 10),
                "cursor": schemas.text("A next_cursor as it was given", maxLength=1_000),
            },
            needed=("q",),
        ),
        schemas.answer(
            {"items": OBJECTS, "next_cursor": STRING, "has_more": YES_OR_NO},
            needed=("items", "next_cursor", "has_more"),
        ),
        search,
        "note.read",
        reads_only=True,
    ),
    Tool(
        "expand",
        "Read a payload or result",
        "Read the whole text behind an id by parts: the payload of a trigger (trg_) or event (evt_), a stored result "
        "(res_), a worker's report (wkr_). Without lines or grep it begins at the start; `more` says how to go on.",
        schemas.shape(
            {
                "id": _id("trg_, evt_, res_ or wkr_"),
                "part": schemas.text("Of a trigger: payload (the default), full_log, diff, body", maxLength=100),
                "lines": schemas.text("120-180, 120-, -20 for the last twenty, or 7", maxLength=30),
                "grep": schemas.text("An RE2 pattern: only the lines that match", minLength=1, maxLength=1_000),
            },
            needed=("id",),
        ),
        schemas.answer(
            {
                "id": STRING,
                "part": STRING,
                "media_type": STRING,
                "bytes": WHOLE,
                "first_line": WHOLE,
                "last_line": WHOLE,
                "text": STRING,
                "more": MAYBE,
                "hits": OBJECTS,
                "has_more": YES_OR_NO,
            },
            needed=("id", "part", "media_type", "bytes"),
        ),
        expand,
        None,
        reads_only=True,
    ),
    Tool(
        "thread_index",
        "Index of open threads",
        "One line for each open thread, the newest activity first: what a router reads to see where a trigger belongs.",
        schemas.shape({"budget_tokens": schemas.number("How much", 100, 100_000, BUDGET)}),
        schemas.answer({"items": STRINGS, "left_out": WHOLE, "budget_tokens": WHOLE}, needed=("items", "left_out")),
        thread_index,
        "graph.read",
        reads_only=True,
    ),
    Tool(
        "inbox",
        "A worker's inbox",
        "Triggers that were passed straight through to a worker, in order. Keep next_cursor: asked with it later, only "
        "what is new comes.",
        schemas.shape(
            {
                "worker_id": _id("Your wkr_ id"),
                "limit": schemas.number("How many", 1, 100, 20),
                "cursor": schemas.text("A next_cursor as it was given", maxLength=1_000),
            },
            needed=("worker_id",),
        ),
        schemas.answer(
            {"items": OBJECTS, "next_cursor": STRING, "has_more": YES_OR_NO},
            needed=("items", "next_cursor", "has_more"),
        ),
        inbox,
        "graph.read",
        reads_only=True,
    ),
    Tool(
        "report",
        "Report as a worker",
        "Set a worker's state (running, done, failed, …), its report in markdown, and the ids it rests on. Ids written "
        "in the report are cited too. What is left out stays; a report replaces the one before.",
        schemas.shape(
            {
                "worker_id": _id("Your wkr_ id"),
                "state": schemas.text("One lower-case word", maxLength=20),
                "report": schemas.text("Markdown: what you found, what you did, what is left"),
                "cites": schemas.listed("trg_, thr_, wkr_, ses_ or evt_ ids", STRING, maxItems=citations.MOST),
            },
            needed=("worker_id",),
        ),
        schemas.answer(
            {
                "worker_id": STRING,
                "thread_id": MAYBE,
                "state": STRING,
                "cites": STRINGS,
                "cited": WHOLE,
                "report_bytes": WHOLE,
                "more": MAYBE,
            },
            needed=("worker_id", "state", "cites"),
        ),
        report,
        "graph.record",
        destroys=True,
    ),
)
