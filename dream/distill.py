"""The mind that needs no model: plain notes from the events of sessions, by rules.

`state` holds what earlier runs counted, so a run costs as much as its new events, and a run without new events gives
the same notes, byte for byte. Sessions may come all at once or in any chunks of whole sessions: the notes are the same
as long as no table of the state overflows its limit (`distill_ledger.LIMITS`); beyond it the rarest entries differ.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from dream import distill_commands as commands
from dream import distill_ledger as ledger
from dream.distill_absorb import absorb
from dream.distill_fixes import fixes
from dream.distill_history import stuck
from dream.distill_notes import drafts
from dream.distill_shapes import Distilled, Draft, Section, SeenEvent, Statement, render

__all__ = ["Distilled", "Draft", "Section", "SeenEvent", "Statement", "distill", "render"]


def distill(events: Iterable[SeenEvent], *, project: str, slug: str, state: dict[str, Any] | None = None) -> Distilled:
    """The notes of one project after these events. Pass the state of the run before, and only events new to it."""
    known = copy.deepcopy(state) if state and state.get("version") == ledger.VERSION else ledger.new_state()
    fresh = sorted(events, key=lambda event: (event.session, event.seq))
    for event in fresh:
        absorb(known, _timed(event, known), project=project)
    for session in {event.session for event in fresh}:
        # Kept with the session: its trail is let go when others need the room, and what is told of it stays the same.
        known["sessions"][session]["stuck"] = stuck(known, session)
    if fresh:
        _close_trails(known)
        ledger.trim(known)
    shown = copy.copy(known)
    shown["fixes"] = copy.deepcopy(known["fixes"])
    for trail in known["trails"].values():
        _merge(shown["fixes"], fixes(trail["steps"]))
    shown["forms"] = {text: {**row, **commands.named(text)} for text, row in known["forms"].items()}
    return Distilled(drafts=drafts(shown, project=project, slug=slug), state=known)


def _timed(event: SeenEvent, state: dict[str, Any]) -> SeenEvent:
    """Most events of most logs carry no time: they take the latest known of their session, for order only."""
    latest = state["sessions"].get(event.session, {}).get("clock", "")
    own = event.at.isoformat() if event.at else ""
    if own >= latest:
        return event
    return replace(event, at=datetime.fromisoformat(latest))


def _close_trails(state: dict[str, Any]) -> None:
    _, closed = ledger.live_trails(state["trails"])
    for session in closed:
        _merge(state["fixes"], fixes(state["trails"].pop(session)["steps"]))


def _merge(into: dict[str, dict[str, Any]], found: dict[str, dict[str, Any]]) -> None:
    for key, row in found.items():
        old = into.get(key)
        if old is None:
            into[key] = row
            continue
        # One of the two is told whole: an error of one session beside the repair of another would be false.
        into[key] = max(old, row, key=lambda fix: (fix["told"], bool(fix["error"]), bool(fix["edits"]), fix["when"]))
