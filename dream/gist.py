"""A session in at most five lines by rules: what was asked, what was touched, what failed, how it ended. Pure."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from dream.distill_shapes import SeenEvent
from dream.shapes import GIST_LINE, MOST_GIST_LINES, Gist, GistLine
from memory.events.blocks import without_injected

_WRITES = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit", "apply_patch", "write_file", "replace"})


def gists(events: Iterable[SeenEvent], *, before: Sequence[Gist] = ()) -> tuple[Gist, ...]:
    """One a session that was shown. What it was first asked stays from the summary before."""
    told = {gist.session: gist for gist in before}
    ordered = sorted(events, key=lambda event: (event.session, event.seq))
    made = (
        _gist(session, list(seen), told.get(session)) for session, seen in groupby(ordered, lambda one: one.session)
    )
    return tuple(gist for gist in made if gist.lines)


def _gist(session: str, seen: list[SeenEvent], before: Gist | None) -> Gist:
    prompts = [event for event in seen if event.name == "prompt" and not event.agent_id and _said(event)]
    first = [before.lines[0]] if before and before.lines[0].text.startswith("Asked: ") else []
    found = [*first, *(_line("Asked: ", event) for event in prompts[: 1 - len(first)])]
    if prompts and (first or len(prompts) > 1):
        found.append(_line("Last asked: ", prompts[-1]))
    found += [*_touched(seen), *_failed(seen), *_ended(seen)]
    if before and not prompts and not found[len(first) :]:
        return before
    return Gist(session, tuple(found[:MOST_GIST_LINES]))


def _touched(seen: list[SeenEvent]) -> list[GistLine]:
    writes = [event for event in seen if event.name == "tool_after" and event.tool in _WRITES]
    given = [event.payload.get("tool_input") for event in writes]
    names = [str(one.get("file_path") or one.get("path") or "") for one in given if isinstance(one, dict)]
    short = [name.rsplit("/", 1)[-1] for name in dict.fromkeys(names) if name]
    if not short:
        return []
    rest = f" and {len(short) - 4} more" if len(short) > 4 else ""
    return [GistLine(f"Wrote {', '.join(short[:4])}{rest}"[:GIST_LINE], (writes[-1].id,))]


def _failed(seen: list[SeenEvent]) -> list[GistLine]:
    failed = [event for event in seen if event.name == "tool_failed"]
    if not failed:
        return []
    error = str(failed[-1].payload.get("error") or failed[-1].payload.get("tool_response") or "")
    return [GistLine(f"Failed {failed[-1].tool or 'call'}: {_first(error)}"[:GIST_LINE].rstrip(": "), (failed[-1].id,))]


def _ended(seen: list[SeenEvent]) -> list[GistLine]:
    last = next((event for event in reversed(seen) if event.name in ("stop", "session_end")), None)
    said = _first(str(last.payload.get("last_assistant_message") or "")) if last else ""
    return [GistLine(f"Ended: {said}"[:GIST_LINE], (last.id,))] if last and said else []


def _line(head: str, event: SeenEvent) -> GistLine:
    return GistLine((head + _first(_said(event)))[:GIST_LINE], (event.id,))


def _said(event: SeenEvent) -> str:
    return without_injected(str(event.payload.get("prompt") or "")).strip()


def _first(text: str) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "")
    return " ".join(line.split())
