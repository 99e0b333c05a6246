"""Read a model's answer strictly. Pure: text in, proposals out; whatever is not clean JSON is refused with a reason."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dream.distill_shapes import OWN_AGENT, PERSON, TOOL_OUTPUT, SeenEvent
from memory import redact
from memory.notes import paths
from memory.notes.frontmatter import compose

MAX_BYTES: Final = 4096
MAX_NOTES: Final = 40
# Of the notes it was shown, a run may ask to delete this share, and always one.
MAX_DELETED: Final = 0.2
TIERS: Final = {PERSON, OWN_AGENT, TOOL_OUTPUT}
_CITED = re.compile(r"\s*\[((?:evt_[\w.-]+)(?:\s*,\s*evt_[\w.-]+)*)\]\s*$")
_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.S)
_REFUSAL = re.compile(r"\b(sorry|can(?:'|’)?t|cannot|unable|won(?:'|’)t|not able|decline)\b", re.I)


class Malformed(ValueError):
    """The answer does not follow the form; the message says what is wrong, for the model to read."""


class Refused(ValueError):
    """The model declined."""


@dataclass(frozen=True)
class Cited:
    """A line of the note and the event it rests on. Tier 1 is a person's prompt, 2 an agent's doing, 3 tool output."""

    line: str
    event: str
    tier: int


@dataclass(frozen=True)
class Proposed:
    """A change to one note. `member` is the handle whose private space it is in; None is the team's."""

    path: str
    text: str
    cited: tuple[Cited, ...]
    reason: str = ""
    member: str | None = None
    operation: str = "write"


@dataclass
class Read:
    """The proposals of an answer, and what was left out of it, with the reason."""

    proposed: list[Proposed] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


def tier_of(event: SeenEvent) -> int:
    """How far an event is trusted as a source."""
    if event.name == "prompt" and not event.agent_id:
        return PERSON
    return TOOL_OUTPUT if event.name in ("tool_after", "tool_failed") else OWN_AGENT


def parse(text: str, *, shown: Mapping[str, SeenEvent], notes: Sequence[str], made_by: str) -> Read:
    """What the model asks for. `shown` are the events it may cite, `notes` the paths it may rewrite or delete.

    Raises Malformed or Refused; a single note that can't be taken is dropped and the others stay.
    """
    answer = _object(text)
    read = Read()
    wanted = answer.get("notes", [])
    if not isinstance(wanted, list) or len(wanted) > MAX_NOTES:
        raise Malformed(f'"notes" must be a list of at most {MAX_NOTES} objects')
    for raw in wanted:
        _note(raw, read, shown=shown, made_by=made_by)
    _deletes(answer.get("delete", []), read, shown=shown, notes=notes)
    return read


def _object(text: str) -> dict[str, Any]:
    """The first JSON object in the text that has our keys; chatter and fences around it do no harm."""
    if not text.strip():
        raise Malformed("the answer is empty")
    if "{" not in text:
        raise (Refused if _REFUSAL.search(text) else Malformed)(f"no JSON object in the answer: {text.strip()[:120]}")
    reason = ""
    for place in (found.start() for found in re.finditer(r"\{", text)):
        for candidate in (text[place:], _without_commas(text[place:])):
            try:
                value, _ = json.JSONDecoder().raw_decode(candidate)
            except (json.JSONDecodeError, RecursionError) as why:
                reason = reason or str(why)
                continue
            if isinstance(value, dict) and ("notes" in value or "delete" in value):
                return value
        if text[place:].lstrip("{ \n\r\t").startswith('"notes"'):
            break  # this was the answer; what follows are pieces of it
    raise Malformed(f'the answer is not one JSON object with "notes": {reason or "no such object"}')


def _without_commas(text: str) -> str:
    """The text without commas before a closing bracket, strings left alone."""
    return _COMMA.sub(lambda found: found[1] or "", text)


def _note(raw: Any, read: Read, *, shown: Mapping[str, SeenEvent], made_by: str) -> None:
    if not isinstance(raw, dict) or not isinstance(raw.get("path"), str) or not isinstance(raw.get("body"), str):
        raise Malformed('each of "notes" needs "path" and "body", both text')
    try:
        path = paths.clean_path(raw["path"])
    except paths.InvalidPath as why:
        read.dropped.append(f"{raw['path'][:80]}: {why.advice}")
        return
    clean = redact.clean_text(redact.sanitize(raw["body"])[0]).value
    body, cited = lines_and_sources(clean, shown, _ids(raw.get("sources")))
    if not body.strip():
        raise Malformed(f'the body of {path} is empty; use "delete" to ask for a deletion')
    known = _texts(raw, path, made_by)
    text = compose(known, body if body.endswith("\n") else body + "\n")
    if len(text.encode()) > MAX_BYTES:
        raise Malformed(f"{path} has {len(text.encode())} bytes; a note stands alone and has at most {MAX_BYTES}")
    reason = str(raw.get("reason") or "")[:300]
    if not cited:
        reason = f"Cites no event it was shown. {reason}".strip()
    _place(read, str(path), Proposed(str(path), text, tuple(cited), reason), shown)


def _texts(raw: dict[str, Any], path: paths.NotePath, made_by: str) -> dict[str, Any]:
    name = str(path).rsplit("/", 1)[-1].removesuffix(".md").replace("-", " ")
    title = redact.clean_text(" ".join(str(raw.get("title") or name).split())).value[:120]
    description = redact.clean_text(" ".join(str(raw.get("description") or "").split())).value[:200]
    fields = {"title": title, "description": description, "kind": paths.family(path), "made_by": made_by}
    return {name: value for name, value in fields.items() if value}


def _place(read: Read, path: str, proposed: Proposed, shown: Mapping[str, SeenEvent]) -> None:
    """A profile belongs to one member and holds only what that member said; it goes to that member's own space."""
    family, _, rest = path.partition("/")
    if family != "profile":
        read.proposed.append(proposed)
        return
    handle, _, inside = rest.partition("/")
    sources = [shown[cited.event] for cited in proposed.cited]
    if not sources or not inside or any(event.member != handle or tier_of(event) != PERSON for event in sources):
        read.dropped.append(f"{path}: a profile is profile/HANDLE/NAME.md and rests only on that member's own prompts")
        return
    read.proposed.append(Proposed(f"profile/{inside}", proposed.text, proposed.cited, proposed.reason, member=handle))


def lines_and_sources(body: str, shown: Mapping[str, SeenEvent], whole: Sequence[str] = ()) -> tuple[str, list[Cited]]:
    """The body without citation marks, and what each line rests on. Ids that were not shown are left out.

    `whole` are the sources named for the whole note: they count for each list item that names none itself.
    """
    lines, cited = [], []
    for line in body.splitlines():
        found = _CITED.search(line)
        text = line[: found.start()] if found else line
        own = [each.strip() for each in found[1].split(",")] if found else []
        if not found and text.strip() and not text.startswith("#"):
            own = list(whole)
        cited += [Cited(text, each, tier_of(shown[each])) for each in dict.fromkeys(own) if each in shown]
        lines.append(text)
    return "\n".join(lines), cited


def _ids(raw: Any) -> list[str]:
    return [each for each in raw if isinstance(each, str)] if isinstance(raw, list) else []


def _deletes(raw: Any, read: Read, *, shown: Mapping[str, SeenEvent], notes: Sequence[str]) -> None:
    if not isinstance(raw, list):
        raise Malformed('"delete" must be a list')
    asked = [each if isinstance(each, dict) else {"path": each} for each in raw]
    known = [each for each in asked if each.get("path") in notes]
    most = max(1, int(len(notes) * MAX_DELETED))
    if len(known) > most:
        raise Malformed(f"asks to delete {len(known)} of {len(notes)} notes; at most {most} in one run")
    for each in known:
        sources = [event for event in _ids(each.get("sources")) if event in shown]
        cited = tuple(Cited("", event, tier_of(shown[event])) for event in sources)
        read.proposed.append(Proposed(each["path"], "", cited, str(each.get("reason") or "")[:300], operation="delete"))
