"""Read a model's answer strictly. Pure: text in, proposals out; whatever is not clean JSON is refused with a reason."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dream import dates
from dream.distill_shapes import SeenEvent
from dream.operations import WRITES, Desk, ids
from dream.shapes import (
    GIST_LINE,
    MOST_GIST_LINES,
    Cited,
    Gist,
    GistLine,
    KnownNote,
    Malformed,
    Proposed,
    Read,
    Refused,
    tier_of,
)
from memory import redact
from memory.notes import paths

__all__ = ["Cited", "Malformed", "Proposed", "Read", "Refused", "parse", "tier_of"]

MAX_OPERATIONS: Final = 40
# Of the notes it was shown, a run may ask to delete this share, and always one.
MAX_DELETED: Final = 0.2
OPERATIONS: Final = (*WRITES, "delete", "none")
_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.S)
_REFUSAL = re.compile(r"\b(sorry|can(?:'|’)?t|cannot|unable|won(?:'|’)t|not able|decline)\b", re.I)
_KEYS: Final = ("operations", "notes", "delete")
# What a model thought aloud may hold drafts of the answer.
_THOUGHT: Final = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?</\1>", re.S | re.I)
# Beside an empty answer: not that there was nothing to learn, but that it did not look.
_DID_NOT: Final = re.compile(
    r"\b(?:can(?:'|’)?t|cannot|can not|won(?:'|’)?t|unable to|not able to|must decline|decline to)"
    r"\W+(?:help|assist|comply|process|complete|continue|provide|fulfil|do)\b",
    re.I,
)


def parse(text: str, *, shown: Mapping[str, SeenEvent], notes: Sequence[KnownNote], made_by: str) -> Read:
    """What the model asks for. `shown` are the events it may cite, `notes` what it may build on.

    Raises Malformed or Refused; a single operation that can't be taken is dropped and the others stay.
    """
    answer = whole_object(text)
    if not any(answer.get(key) for key in _KEYS):
        _refuse_an_excuse(answer, text)
    desk = Desk(shown, {paths.path_key(note.path): note for note in notes}, made_by)
    read = Read(dropped=desk.dropped)
    deletes: list[Mapping[str, Any]] = []
    for raw in _operations(answer):
        kind = raw["op"]
        if kind in WRITES:
            read.proposed += desk.write(raw, kind)
        elif kind == "delete":
            deletes.append(raw)
    read.proposed = _one_a_path([*read.proposed, *_deletes(deletes, desk)], desk)
    _refuse_a_clearance(read.proposed, desk)
    read.gists = _gists(answer.get("sessions", []), desk)
    return read


def _operations(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """All operations, each with a known `op` and the fields it needs; "notes" and "delete" are the older words."""
    wanted, written, deleted = (answer.get(key, []) for key in _KEYS)
    for name, rows in zip(_KEYS, (wanted, written, deleted), strict=True):
        if not isinstance(rows, list):
            raise Malformed(f'"{name}" must be a list')
    rows = [*wanted]
    rows += [{"op": "rewrite", **each} if isinstance(each, dict) else each for each in written]
    rows += [{**each, "op": "delete"} if isinstance(each, dict) else {"op": "delete", "path": each} for each in deleted]
    if len(wanted) + len(written) > MAX_OPERATIONS:
        raise Malformed(f"at most {MAX_OPERATIONS} operations in one answer, not {len(wanted) + len(written)}")
    for raw in rows:
        if not isinstance(raw, dict) or raw.get("op") not in OPERATIONS:
            raise Malformed(f'each operation is an object whose "op" is one of {", ".join(OPERATIONS)}')
        if raw["op"] != "none" and not isinstance(raw.get("path"), str):
            raise Malformed(f'the operation "{raw["op"]}" needs "path", a text')
        if raw["op"] in WRITES and not isinstance(raw.get("body"), str):
            raise Malformed(f'the operation "{raw["op"]}" on {redact.brief(raw["path"], 80)} needs "body", a text')
    return rows


def _refuse_an_excuse(answer: Mapping[str, Any], text: str) -> None:
    """An empty answer beside an error or a refusal says nothing about the events, which must stay to be read again."""
    for key in ("error", "errors", "refusal"):
        if answer.get(key):
            raise Refused(f"the answer is empty, with {key}: {redact.brief(str(answer[key]), 120)}")
    if _DID_NOT.search(text):
        raise Refused(f"the answer is empty, and declines: {redact.brief(text.strip(), 120)}")


def whole_object(text: str, keys: Sequence[str] = _KEYS) -> dict[str, Any]:
    """The JSON object in the text that has one of the keys, of several the first that says something; chatter, thoughts
    and fences around it do no harm.
    """
    text = _THOUGHT.sub("", text)
    if not text.strip():
        raise Malformed("the answer is empty")
    if "{" not in text:
        said = redact.brief(text.strip(), 120)
        raise (Refused if _REFUSAL.search(text) else Malformed)(f"no JSON object in the answer: {said}")
    reason, place, empty = "", text.find("{"), None
    while place >= 0:
        value, end, why = _object_at(text[place:])
        reason = reason or why
        if isinstance(value, dict) and any(key in value for key in keys):
            if any(value.get(key) for key in keys):
                return value
            # "For example {"notes": []}" may stand before the answer.
            empty, place = value if empty is None else empty, text.find("{", place + end)
            continue
        if text[place:].lstrip("{ \n\r\t").startswith(tuple(f'"{key}"' for key in keys)):
            empty = None
            break  # this was the answer; what follows are pieces of it
        place = text.find("{", place + 1)
    if empty is not None:
        return empty
    raise Malformed(f'the answer is not one JSON object with "{keys[0]}": {reason or "no such object"}')


def _object_at(text: str) -> tuple[Any, int, str]:
    """The JSON value that the text begins with, and where to look on; None, 0 and why where there is none."""
    reason = ""
    for candidate in (text, _without_commas(text)):
        try:
            # Not strict: many models write a line break inside a text as itself.
            value, end = json.JSONDecoder(object_pairs_hook=_once, strict=False).raw_decode(candidate)
        except (ValueError, RecursionError) as why:
            reason = reason or str(why)
            continue
        return value, end if candidate is text else 1, ""
    return None, 0, reason


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of a doubled key the last value would stand, and what the first one said would be gone without a word."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _without_commas(text: str) -> str:
    """The text without commas before a closing bracket, strings left alone."""
    return _COMMA.sub(lambda found: found[1] or "", text)


def _deletes(asked: Sequence[Mapping[str, Any]], desk: Desk) -> list[Proposed]:
    """Deletions of notes it was shown whole; a pinned note is never proposed."""
    found = {paths.path_key(each["path"]): each for each in asked}
    rows = [(note, found[key]) for key, note in desk.notes.items() if key in found and note.is_whole]
    shown = {key for key, note in desk.notes.items() if note.is_whole}
    desk.dropped += [
        f"{redact.brief(each['path'], 80)}: it was not shown, so it is not proposed for deletion"
        for key, each in found.items()
        if key not in shown
    ]
    made = []
    for note, each in rows:
        if note.is_pinned:
            desk.dropped.append(f"{note.path} is pinned: it is not proposed for deletion")
            continue
        sources = [one for one in ids(each.get("events") or each.get("sources")) if one in desk.shown]
        cited = tuple(Cited("", one, tier_of(desk.shown[one])) for one in sources)
        reason = redact.brief(str(each.get("reason") or ""), 300)
        made.append(Proposed(note.path, "", cited, reason, operation="delete", kind="delete"))
    return made


def _refuse_a_clearance(proposed: Sequence[Proposed], desk: Desk) -> None:
    """Asked to tidy, a model may clear everything: more than a share of what it was shown is no answer."""
    known = sum(note.is_whole for note in desk.notes.values())
    asked = sum(one.operation == "delete" for one in proposed)
    most = max(1, int(known * MAX_DELETED))
    if asked > most:
        raise Malformed(f"asks to delete {asked} of {known} notes; at most {most} in one run")


def _one_a_path(proposed: Sequence[Proposed], desk: Desk) -> list[Proposed]:
    """The last word on each path; what came before it in the same answer is said to be left out."""
    by_path: dict[tuple[str | None, str], Proposed] = {}
    for one in proposed:
        place = (one.member, paths.path_key(one.path))
        if place in by_path:
            desk.dropped.append(f"{one.path}: two operations in one answer; the last one stands")
        by_path[place] = one
    return list(by_path.values())


def _gists(raw: Any, desk: Desk) -> list[Gist]:
    """Summaries of sessions that were shown, at most five lines each; a line without a source is left out."""
    shown = {event.session for event in desk.shown.values()}
    found = []
    for each in raw if isinstance(raw, list) else []:
        if not isinstance(each, dict) or each.get("session") not in shown or not isinstance(each.get("lines"), list):
            continue
        lines = [line for line in (_gist_line(said, desk) for said in each["lines"]) if line]
        if lines:
            found.append(Gist(each["session"], tuple(lines[:MOST_GIST_LINES])))
    return found


def _gist_line(said: Any, desk: Desk) -> GistLine | None:
    if not isinstance(said, str):
        return None
    text, cited = desk.lines_and_sources(" ".join(redact.clean_text(redact.sanitize(said)[0]).value.split()))
    events = tuple(one.event for one in cited)
    text = dates.absolute(text, desk.time_of(events)).removeprefix("- ").strip()
    return GistLine(text[:GIST_LINE], events) if text and events else None
