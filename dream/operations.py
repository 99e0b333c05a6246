"""One operation of a model's answer as a proposal: checked against what the model was shown. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dream import dates, facts
from dream.distill_shapes import PERSON, SeenEvent
from dream.shapes import Cited, KnownNote, Malformed, Proposed, tier_of
from memory import redact
from memory.notes import frontmatter, paths
from memory.notes.lines import HEADING, body_of, normal
from memory.sentences import sentence

MAX_BYTES: Final = 4096
WRITES: Final = ("create", "rewrite", "replace_section", "merge")
_CITED: Final = re.compile(r"\s*\[((?:evt_[\w.-]+)(?:\s*,\s*evt_[\w.-]+)*)\]\s*$")
# A whole body that is one of these came of a failure, or is a place to write into.
_NO_NOTE: Final = re.compile(
    r"\W*(?:(?:i['’]?m|i am|we['’]?re)\s+(?:very |really |so )?sorry\b|sorry[,.!]"
    r"|as an? (?:ai|artificial|large language)\b"
    r"|i\s+(?:can['’]?t|cannot|can not|won['’]?t|am unable|am not able|must decline)\b|i['’]m\s+(?:unable|not able)\b"
    r"|(?:internal server |api |http )?error\s*:|http[ /]?\d|(?:4\d\d|5\d\d)\s+[a-z]|traceback \(most recent"
    r"|(?:the )?(?:request|connection) (?:timed out|failed|was)|rate limit|too many requests|service unavailable"
    r"|bad gateway|overloaded|<!doctype|<html"
    r"|(?:todo|tbd|n/?a|none|null|undefined|nothing(?: new)?|no (?:new )?(?:facts|notes|content))\W*$"
    r"|[<\[{(](?:note|your|insert|content|body|text|placeholder)[^>\])}\n]*[>\])}]\W*$)",
    re.I,
)
_LONGEST_EXCUSE: Final = 400
_FENCE: Final = re.compile(r"\s*(?:```|~~~)")


@dataclass
class Desk:
    """What an answer is checked against, and what of it was left out."""

    shown: Mapping[str, SeenEvent]
    notes: Mapping[str, KnownNote]
    made_by: str
    dropped: list[str] = field(default_factory=list)

    def write(self, raw: Mapping[str, Any], kind: str) -> list[Proposed]:
        """The changes that a writing operation asks for; none where it can't be taken or says nothing new."""
        path = self.path(raw.get("path"))
        if path is None:
            return []
        old = self.notes.get(path.key)
        raw = _without_head(raw)
        body, cited = self.body(raw)
        if old and not old.is_whole and kind != "replace_section":
            # Only its name was shown: what it says can be added to, never replaced.
            return self._added(old, body, cited, str(raw.get("reason") or ""))
        if kind == "replace_section":
            body = _section_replaced(body_of(old.text) if old else "", str(raw.get("heading") or ""), body)
        if old is None and (twin := self._twin(path, body)):
            return self._added(twin, body, cited, f"{path} would say what {twin.path} says. {raw.get('reason') or ''}")
        gone = [self.notes[key] for key in self._merged_away(raw, path)] if kind == "merge" else []
        return self._written(raw, path, _Draft(kind, old, body, cited), gone)

    def path(self, raw: Any) -> paths.NotePath | None:
        """A path that a note may have; None, with the reason noted, where it escapes or can't be one."""
        try:
            return paths.clean_path(str(raw))
        except paths.InvalidPath as why:
            self.dropped.append(f"{redact.brief(str(raw), 80)}: {why.advice}")
            return None

    def body(self, raw: Mapping[str, Any]) -> tuple[str, list[Cited]]:
        """The body without citation marks and secrets, its dates absolute, and what each line rests on."""
        clean = redact.clean_text(redact.sanitize(raw["body"])[0]).value
        body, cited = self.lines_and_sources(clean, ids(raw.get("events") or raw.get("sources")))
        if not body.strip():
            raise Malformed(f'the body of {raw.get("path")} is empty; use the operation "delete" to ask for a deletion')
        if not cited and len(body) <= _LONGEST_EXCUSE and (_NO_NOTE.match(body) or not re.search(r"\w", body)):
            raise Malformed(f"the body of {raw.get('path')} is no note: {redact.brief(body.strip(), 80)}")
        return (body if body.endswith("\n") else f"{body}\n"), cited

    def lines_and_sources(self, body: str, whole: Sequence[str] = ()) -> tuple[str, list[Cited]]:
        """The body without citation marks, and what each line rests on. Ids that were not shown are left out.

        `whole` are the sources named for the whole note: they count for each line that names none itself.
        """
        lines, cited, is_code = [], [], False
        for line in body.splitlines():
            is_code ^= _FENCE.match(line) is not None
            found = _CITED.search(line)
            text = line[: found.start()] if found else line
            own = [each.strip() for each in found[1].split(",")] if found else []
            if not found and text.strip() and not text.startswith("#"):
                own = list(whole)
            sources = [each for each in dict.fromkeys(own) if each in self.shown]
            text = text if is_code else dates.absolute(text, self.time_of(sources))
            cited += [Cited(text, each, tier_of(self.shown[each])) for each in sources]
            lines.append(text)
        return "\n".join(lines), cited

    def time_of(self, sources: Sequence[str]) -> Any:
        """When the sources happened, the last of them; of a line without a source, when the last event did."""
        seen = [self.shown[each] for each in sources] or list(self.shown.values())
        return max((event.time for event in seen if event.time), default=None)

    def _twin(self, path: paths.NotePath, body: str) -> KnownNote | None:
        """A note that says most of this already, in the same family: it is edited instead."""
        same = {key: note for key, note in self.notes.items() if key.split("/")[0] == path.key.split("/")[0]}
        found = facts.near_duplicate(body, [(key, body_of(note.text)) for key, note in same.items()])
        return same[found] if found else None

    def _added(self, old: KnownNote, body: str, cited: list[Cited], reason: str) -> list[Proposed]:
        """The old note with the statements that it does not say yet behind it."""
        fresh = facts.uncovered(body, body_of(old.text))
        if not fresh:
            self.dropped.append(f"{old.path} says it already: {redact.brief(reason.strip(), 160)}")
            return []
        text = old.text.rstrip("\n") + "\n" + "".join(f"{line}\n" for line in fresh)
        kept = tuple(one for one in cited if one.line in fresh)
        return self._fitting(Proposed(old.path, text, kept, _reason(reason, kept), kind="rewrite"))

    def _written(
        self, raw: Mapping[str, Any], path: paths.NotePath, draft: "_Draft", gone: list[KnownNote]
    ) -> list[Proposed]:
        before = "".join(body_of(note.text).rstrip("\n") + "\n" for note in (draft.old, *gone) if note)
        lines = {one.line for one in draft.cited}
        kept = facts.kept(draft.body, old=before, cited=lines, obsolete=self._obsolete(raw)) if before else None
        body = kept.text if kept and kept.put_back else draft.body
        known = _texts(raw, path, self)
        if draft.old:
            # Its other fields stay: another model's name on it would make every restated note a change.
            known = {key: value for key, value in known.items() if key in ("title", "description") and raw.get(key)}
            head = frontmatter.split(frontmatter.with_fields(draft.old.text, **known)).raw_frontmatter
            text = head + body
        else:
            text = frontmatter.compose(known, body)
        reason = redact.brief(str(raw.get("reason") or "").strip(), 300)
        reason += "." if reason and reason[-1].isalnum() and kept and kept.superseded else ""
        for old, new in kept.superseded if kept else ():
            reason += f" Replaces “{old.strip().removeprefix('- ')[:120]}”{self._since(new, draft.cited)}."
        made = Proposed(str(path), text, tuple(draft.cited), _reason(reason, draft.cited), kind=draft.kind)
        found = self._fitting(self.placed(made))
        if not found:
            return []
        merged = f"{sentence('Merged into %(path)s.', path=path)} {reason}".strip()
        cited = tuple(draft.cited)
        return found + [Proposed(note.path, "", cited, merged, operation="delete", kind="merge") for note in gone]

    def _since(self, line: str, cited: Sequence[Cited]) -> str:
        at = self.time_of([one.event for one in cited if one.line == line])
        return f" since {at:%Y-%m-%d}" if at else ""

    def _obsolete(self, raw: Mapping[str, Any]) -> list[str]:
        """The lines an operation says no longer hold; each needs an event it was shown."""
        asked = raw.get("obsolete") or []
        if not isinstance(asked, list):
            raise Malformed('"obsolete" must be a list of {"line", "events"}')
        rows = [each for each in asked if isinstance(each, dict) and isinstance(each.get("line"), str)]
        return [_CITED.sub("", each["line"]) for each in rows if set(ids(each.get("events"))) & self.shown.keys()]

    def _merged_away(self, raw: Mapping[str, Any], path: paths.NotePath) -> list[str]:
        keys = [paths.path_key(each) for each in raw.get("from") or [] if isinstance(each, str)]
        return [
            key for key in dict.fromkeys(keys)
            if key != path.key and key in self.notes and self.notes[key].is_whole and not self.notes[key].is_pinned
        ]  # fmt: skip

    def placed(self, made: Proposed) -> Proposed | None:
        """A profile belongs to one member and holds only what that member said; it goes to that member's own space."""
        family, _, rest = made.path.partition("/")
        if family != "profile":
            return made
        handle, _, inside = rest.partition("/")
        sources = [self.shown[cited.event] for cited in made.cited]
        if not sources or not inside or any(each.member != handle or tier_of(each) != PERSON for each in sources):
            self.dropped.append(
                f"{made.path}: a profile is profile/HANDLE/NAME.md and rests only on that member's own prompts"
            )
            return None
        return replace(made, path=f"profile/{inside}", member=handle)

    def _fitting(self, made: Proposed | None) -> list[Proposed]:
        if made is None:
            return []
        size = len(made.text.encode())
        if size > MAX_BYTES:
            raise Malformed(
                f"{made.path} has {size} bytes with the lines of the note that nothing replaces; a note stands alone"
                f" and has at most {MAX_BYTES}. Write less, split it, or name lines that no longer hold as obsolete"
            )
        return [made]


@dataclass(frozen=True)
class _Draft:
    kind: str
    old: KnownNote | None
    body: str
    cited: list[Cited]


def _without_head(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The operation without the frontmatter that a model wrote into the body, as it sees it in notes."""
    try:
        document = frontmatter.split(raw["body"])
    except ValueError:
        return raw
    if not document.raw_frontmatter:
        return raw
    said = {name: document.fields[name] for name in ("title", "description") if name in document.fields}
    return {**said, **raw, "body": document.body}


def ids(raw: Any) -> list[str]:
    """The event ids in a list, whatever else is in it."""
    return [each for each in raw if isinstance(each, str)] if isinstance(raw, list) else []


def _reason(reason: str, cited: Sequence[Cited]) -> str:
    return reason.strip() if cited else f"{sentence('Cites no event it was shown.')} {reason}".strip()


def _texts(raw: Mapping[str, Any], path: paths.NotePath, desk: Desk) -> dict[str, Any]:
    name = str(path).rsplit("/", 1)[-1].removesuffix(".md").replace("-", " ")
    at = desk.time_of([])
    said = {key: raw[key] for key in ("title", "description") if isinstance(raw.get(key), str) and raw[key].strip()}
    title = " ".join(redact.clean_text(said.get("title", name)).value.split())[:120]
    description = " ".join(redact.clean_text(said.get("description", "")).value.split())
    fields = {
        "title": title, "description": dates.absolute(description, at)[:200], "kind": paths.family(path),
        "made_by": desk.made_by,
    }  # fmt: skip
    return {name: value for name, value in fields.items() if value}


def _section_replaced(old: str, heading: str, body: str) -> str:
    """The old body with the section under a heading replaced; a heading that is not there begins a new one."""
    wanted = normal(heading.lstrip("#"))
    if not wanted:
        raise Malformed('"replace_section" needs "heading", the heading of the section')
    lines = old.rstrip("\n").split("\n") if old.strip() else []
    start = next(
        (at for at, line in enumerate(lines) if HEADING.match(line) and normal(line.lstrip("#")) == wanted), None
    )
    inner = body.rstrip("\n").split("\n")
    if HEADING.match(inner[0]) and normal(inner[0].lstrip("#")) == wanted:
        inner = inner[1:]
    inner = [line for at, line in enumerate(inner) if line.strip() or at]
    if start is None:
        return "\n".join([*lines, *([""] if lines else []), f"## {heading.lstrip('# ')}", "", *inner]) + "\n"
    level = len(lines[start]) - len(lines[start].lstrip("#"))
    ends = (at for at in range(start + 1, len(lines)) if (found := HEADING.match(lines[at])) and len(found[1]) <= level)
    end = next(ends, len(lines))
    after = ["", *lines[end:]] if end < len(lines) else []
    return "\n".join([*lines[: start + 1], "", *inner, *after]) + "\n"
