"""Notes as resources: the approved ones by path, each read whole."""

from typing import Any, Final
from urllib.parse import quote, unquote

from memory.mcp import note_tools
from memory.mcp.offer import Caller
from memory.notes import lookup
from memory.notes.lookup import Asked, Listed
from memory.paging import Page
from memory.problems import Problem, not_found

SCHEME: Final = "team-memory://"
MARKDOWN: Final = "text/markdown"
PAGE: Final = 100
TEMPLATES: Final = (
    ("team-memory://team/{+path}", "team-note", "A note of the team by its path, e.g. project/payments/retry.md"),
    ("team-memory://members/{handle}/{+path}", "own-note", "A note of your own space by its path"),
    ("team-memory://notes/{id}", "note", "A note by its nte_ id"),
)


def listed(by: Caller, cursor: str | None) -> dict[str, Any]:
    """One page of the approved notes by path. Raises Problem 400 invalid_cursor."""
    page = Page.of_cursor(cursor, limit=PAGE, scope=lookup.list_scope(by.actor, "mcp-resources"))
    return page.of(lookup.listed(Asked(), page, by=by.actor), position=lambda row: row.position, show=_resource)


def _resource(row: Listed) -> dict[str, Any]:
    shown = row.show()
    at, text = shown["revision"], row.note.current.text if row.note.current else ""
    return {
        "uri": address(f"{shown['space']}/{shown['path']}"),
        "name": shown["path"],
        "title": at["title"],
        "description": at["description"] or None,
        "mime_type": MARKDOWN,
        "size": len(text.encode()),
    }


def address(place: str) -> str:
    """The URI of a note's address."""
    return SCHEME + quote(place, safe="/")


def read(by: Caller, uri: str) -> str:
    """The markdown of a note. Raises Problem 404."""
    if not uri.startswith(SCHEME):
        raise not_found(uri)
    which = unquote(uri.removeprefix(SCHEME)).replace("\0", "\ufffd")
    head, _, rest = which.partition("/")
    try:
        note = note_tools.find(rest if head == "notes" else which, by=by)
    except Problem:
        raise not_found(uri) from None
    return note.current.text if note.current else ""
