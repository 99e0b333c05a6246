"""Tools over notes: read, list, and propose. Whatever an agent changes waits for a person."""

from collections.abc import Mapping
from typing import Any, Final

from memory import ids
from memory.mcp import schemas
from memory.mcp.offer import BUDGET, Caller, Tool, beginning, fitted, size
from memory.mcp.schemas import MAYBE, MAYBE_WHOLE, OBJECTS, STRING, STRINGS, WHOLE, YES_OR_NO
from memory.notes import lookup, review, shapes
from memory.notes.lookup import Asked, Listed
from memory.notes.models import Note, Proposal
from memory.notes.review import Draft, InvalidNote, LostUpdate
from memory.paging import Page
from memory.problems import Problem, not_found
from memory.recall import search
from memory.tenants.access import require

_WHICH: Final = "A nte_ id, or its address: team/PATH or members/HANDLE/PATH"
_BASE: Final = "The revision number that you read; needed where the note exists, so that no change is lost"
_REASON: Final = "Why, for the person who decides; name the ids it rests on"
_PROPOSED: Final = schemas.answer(
    {
        "proposal_id": MAYBE,
        "state": STRING,
        "space": STRING,
        "path": STRING,
        "operation": STRING,
        "base_revision": MAYBE_WHOLE,
        "risks": OBJECTS,
        "replaces": MAYBE,
        "note": STRING,
    },
    needed=("proposal_id", "state", "note"),
)


def find(which: str, *, by: Caller) -> Note:
    """The approved note with this id or address. Raises Problem 404."""
    if ids.kind_of(which) == "note" and "/" not in which:
        return lookup.note(which, by=by.actor)
    if "/" not in which:
        raise not_found(which)
    where = lookup.place(which, by=by.actor)
    # Other notes' links name the path that it had before it was moved.
    found = lookup.note_at(where) or lookup.moved(where)
    if found is None:
        raise not_found(which)
    return found


def read(by: Caller, asked: Mapping[str, Any]) -> dict[str, Any]:
    """One note, its text from a line on."""
    note = find(asked["id"], by=by)
    at = lookup.revision(note, str(asked["revision"]) if "revision" in asked else None)
    lines = at.text.split("\n")
    first = asked.get("from_line", 1)
    if first > len(lines):
        raise Problem(400, "no_such_lines", f"The note has {len(lines)} lines.", lines=len(lines))
    rest = "\n".join(lines[first - 1 :])
    whole = shapes.whole_note(note, at)
    about = {
        "id": note.public_id,
        "space": whole["space"],
        "path": whole["path"],
        "project": whole["project"],
        "title": at.title[:300],
        "revision": at.number,
        "tier": whole["revision"]["tier"],
        "by": whole["revision"]["author"],
        "approved_by": whole["revision"]["approved_by"],
        "lines": len(lines),
    }

    def shown(text: str) -> dict[str, Any]:
        is_whole = len(text) == len(rest)
        # Of a line longer than a whole answer only the beginning is shown.
        following = first + text.count("\n") + (0 if text.endswith("\n") else 1)
        more = None if is_whole else f"read_note {note.public_id} from_line={following}"
        return {**about, "text": text, "more": more}

    made = beginning(rest, shown, budget=BUDGET - 200)
    cited = list(dict.fromkeys(event for line in whole["sources"] for event in line["events"]))
    while cited and size({**made, "sources": cited}) > BUDGET:
        cited = cited[: len(cited) // 2]
    return {**made, "sources": cited}


def listing(by: Caller, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Notes by path, or the best hits of a question."""
    where = Asked(asked.get("space"), asked.get("prefix", ""))
    q = asked.get("q")
    scope = lookup.list_scope(by.actor, f"mcp-notes:{where}:{q}")
    page = Page.of_cursor(asked.get("cursor"), limit=asked.get("limit", 20), scope=scope)
    start = int(page.after[0]) if page.after and q is not None else 0
    if q is None:
        rows = lookup.listed(where, page, by=by.actor)
    else:
        hits = search.among(lookup.within(where, by=by.actor), q, by.tenant, limit=start + page.limit + 1)
        rows = [Listed(hit.note, [number], hit.why) for number, hit in enumerate(hits, start=1)][start:]
    found = [(row, _line(row)) for row in rows]

    def answer(shown: list[dict[str, Any]]) -> dict[str, Any]:
        last = found[len(shown) - 1][0].position if shown else None
        return {"items": shown, "next_cursor": page.next_cursor(last), "has_more": len(found) > len(shown)}

    return fitted([line for _, line in found[: page.limit]], answer)


def _line(row: Listed) -> dict[str, Any]:
    shown = row.show()
    at = shown["revision"]
    line = {
        "id": shown["id"],
        "address": f"{shown['space']}/{shown['path']}",
        "title": at["title"],
        "description": at["description"],
        "revision": at["number"],
        "tier": at["tier"],
    }
    return line | ({"why": shown["why"]} if "why" in shown else {})


def propose(by: Caller, asked: Mapping[str, Any]) -> dict[str, Any]:
    """A whole text for a path; a person decides."""
    place = lookup.place(f"{asked.get('space', 'team')}/{asked['path']}", by=by.actor)
    note = lookup.note_at(place)
    if note is None and (moved := lookup.moved(place)) is not None:
        now = f"{moved.space}/{moved.path}"
        raise Problem(409, "moved", f"The note of this path stands at {now} now: propose it there.", id=moved.public_id)
    base = _checked(note, asked.get("base_revision"))
    draft = Draft(place.path.shown, asked["text"], reason=asked.get("reason", ""), member=place.space.member, base=base)
    return _queued(by, draft, note)


def edit(by: Caller, asked: Mapping[str, Any]) -> dict[str, Any]:
    """One exact text of a note, or of a proposal that waits, replaced by another."""
    require(by.actor, "note.read")
    which = asked["id"]
    if ids.kind_of(which) == "proposal":
        return _edit_waiting(by, lookup.proposal(which, by=by.actor), asked)
    note = find(which, by=by)
    base = _checked(note, asked["base_revision"])
    text = _replaced(note.current.text if note.current else "", asked)
    draft = Draft(note.path, text, reason=asked.get("reason", ""), member=note.member, base=base)
    return _queued(by, draft, note)


def _edit_waiting(by: Caller, waiting: Proposal, asked: Mapping[str, Any]) -> dict[str, Any]:
    if waiting.state != "open" or waiting.operation != "write":
        what = "deletes the note and has no text" if waiting.state == "open" else f"is {waiting.state}"
        raise Problem(409, "not_open", f"This proposal {what}: edit the note instead.", id=waiting.public_id)
    base = waiting.base.number if waiting.base else None
    if (base or 0) != asked["base_revision"]:
        raise _stale(base)
    text = _replaced(waiting.text, asked)
    note = waiting.note
    reason = asked.get("reason") or waiting.reason
    return _queued(by, Draft(note.path, text, reason=reason, member=note.member, base=base), note)


def delete(by: Caller, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Propose that a note goes."""
    require(by.actor, "note.read")
    note = find(asked["id"], by=by)
    base = _checked(note, asked.get("base_revision", note.current.number if note.current else None))
    draft = Draft(note.path, "", reason=asked["reason"], member=note.member, operation="delete", base=base)
    return _queued(by, draft, note)


def _checked(note: Note | None, base: int | None) -> int | None:
    """The current revision's number, which the writer must have read. Raises Problem 412, 428."""
    current = note.current.number if note and note.current else None
    if current is None:
        if base:
            raise _stale(None)
        return None
    if base is None:
        detail = f"The note exists, at revision {current}. Read it by read_note, then send base_revision."
        raise Problem(428, "precondition_required", detail, revision=current)
    if base != current:
        raise _stale(current)
    return current


def _stale(current: int | None) -> Problem:
    now = "There is no such note now" if current is None else f"It is at revision {current} now"
    return Problem(412, "stale", f"{now}. Read it again by read_note, then send its base_revision.", revision=current)


def _replaced(text: str, asked: Mapping[str, Any]) -> str:
    old, new = asked["old"], asked["new"]
    many = text.count(old)
    if not many:
        detail = "The text to replace does not stand there. Read it again by read_note and copy it with its spaces."
        raise Problem(422, "not_in_text", detail)
    if many > 1 and not asked.get("all", False):
        detail = f"The text stands there {many} times. Send more of what is around it, or all: true."
        raise Problem(422, "ambiguous", detail, count=many)
    return str(text.replace(old, new))


def _queued(by: Caller, draft: Draft, note: Note | None) -> dict[str, Any]:
    """What became of the draft. Raises Problem 422, 412."""
    waiting = note.proposals.open().filter(author_kind=by.actor.kind).first() if note else None
    try:
        made = review.propose(by.tenant, draft, by=by.actor)
    except InvalidNote as error:
        wrong = [{"code": one.code, "field": one.field, "detail": one.detail} for one in error.problems]
        raise Problem(422, error.problems[0].code, str(error), problems=wrong) from None
    except LostUpdate as lost:
        raise _stale(lost.current) from None
    if made is None:
        return {"proposal_id": None, "state": "unchanged", "note": "The note says this already; nothing was proposed."}
    return _shown(made, waiting)


def _shown(made: Proposal, waiting: Proposal | None) -> dict[str, Any]:
    shown = shapes.proposal(made)
    replaces = waiting.public_id if waiting is not None and waiting.pk != made.pk else None
    said = "It waits for a person, who approves, edits or rejects it; until then the note stays as it is."
    if replaces:
        said += f" It stands in the place of {replaces}: to keep a change of that one, edit_note this one."
    return {
        "proposal_id": made.public_id,
        "state": made.state,
        "space": shown["space"],
        "path": shown["path"],
        "operation": made.operation,
        "base_revision": shown["base"],
        "risks": shown["risks"][:10],
        "replaces": replaces,
        "note": said,
    }


TOOLS: Final = (
    Tool(
        "read_note",
        "Read a note",
        "Read one approved note of the team's memory: its text, revision, tier (T0: approved by a person) and the "
        "events it rests on (open them by recall). A long text goes on at from_line.",
        schemas.shape(
            {
                "id": schemas.text(_WHICH, minLength=1, maxLength=600),
                "revision": {"type": "integer", "description": "An older revision", "minimum": 1},
                "from_line": schemas.number("Where to begin", 1, 1_000_000, 1),
            },
            needed=("id",),
        ),
        schemas.answer(
            {
                "id": STRING,
                "space": STRING,
                "path": STRING,
                "project": MAYBE,
                "title": STRING,
                "revision": WHOLE,
                "tier": STRING,
                "by": STRING,
                "approved_by": MAYBE,
                "lines": WHOLE,
                "text": STRING,
                "more": MAYBE,
                "sources": STRINGS,
            },
            needed=("id", "path", "revision", "text", "more", "sources"),
        ),
        read,
        "note.read",
        reads_only=True,
    ),
    Tool(
        "list_notes",
        "List or search notes",
        "List the approved notes by path, or with q the best hits first, each with why it fits. Families: profile/, "
        "tools/<tool>/, project/<slug>/, general/. Read one by read_note.",
        schemas.shape(
            {
                "space": schemas.text("team, or members/HANDLE for your own; both where left out", maxLength=200),
                "prefix": schemas.text("Only paths that begin so, e.g. project/payments/", maxLength=255),
                "q": schemas.text("Any words", maxLength=2_000),
                "limit": schemas.number("How many", 1, 100, 20),
                "cursor": schemas.text("A next_cursor as it was given", maxLength=1_000),
            }
        ),
        schemas.answer(
            {"items": OBJECTS, "next_cursor": STRING, "has_more": YES_OR_NO},
            needed=("items", "next_cursor", "has_more"),
        ),
        listing,
        "note.read",
        reads_only=True,
    ),
    Tool(
        "propose_note",
        "Propose a note",
        "Propose the whole text of a note, new or instead of what it says. A person decides. One path is one living "
        "document: search first, and rewrite what is there rather than add beside it. Markdown of at most 4 KB that "
        "stands alone, with frontmatter title and description. Say by reason if a note was wrong.",
        schemas.shape(
            {
                "path": schemas.text("e.g. project/payments/retry.md, tools/bash/flags.md", minLength=1, maxLength=600),
                "text": schemas.text("Frontmatter between --- lines, then markdown", minLength=1, maxLength=100_000),
                "reason": schemas.text(_REASON, maxLength=2_000),
                "space": schemas.text("team (the default), or members/HANDLE for your own", maxLength=200),
                "base_revision": {"type": "integer", "description": _BASE, "minimum": 1},
            },
            needed=("path", "text"),
        ),
        _PROPOSED,
        propose,
        "note.propose",
    ),
    Tool(
        "edit_note",
        "Propose an edit",
        "Propose to replace one exact piece of a note's text. A person decides. To go on with a change that still "
        "waits, give its prp_ id.",
        schemas.shape(
            {
                "id": schemas.text(f"{_WHICH}; or the prp_ id of a proposal that waits", minLength=1, maxLength=600),
                "base_revision": {
                    "type": "integer",
                    "description": "The revision that you read; of a proposal its base_revision, 0 for a new note",
                    "minimum": 0,
                },
                "old": schemas.text("The text as it stands there, once", minLength=1, maxLength=70_000),
                "new": schemas.text("What stands there instead; empty to take it out", maxLength=70_000),
                "all": schemas.flag("Replace it wherever it stands"),
                "reason": schemas.text(_REASON, maxLength=2_000),
            },
            needed=("id", "base_revision", "old", "new"),
        ),
        _PROPOSED,
        edit,
        "note.propose",
        is_idempotent=False,
    ),
    Tool(
        "delete_note",
        "Propose to delete a note",
        "Propose that a note goes, because it is wrong or no longer true. A person decides; nothing is lost.",
        schemas.shape(
            {
                "id": schemas.text(_WHICH, minLength=1, maxLength=600),
                "reason": schemas.text(_REASON, minLength=1, maxLength=2_000),
                "base_revision": {"type": "integer", "description": "The revision that you read", "minimum": 1},
            },
            needed=("id", "reason"),
        ),
        _PROPOSED,
        delete,
        "note.propose",
        destroys=True,
    ),
)
