"""Existing history taken in: each file's sessions recorded, without doubling what the hooks told already."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from memory.events import imports
from memory.events.imports import History, Skipped, Step
from memory.events.models import Event, Session
from memory.events.record import store
from memory.events.rollouts import rollout
from memory.events.transcripts import transcript
from memory.hooks.payloads import Seen, Told, canonical
from memory.hooks.receive import CHUNK_EVENTS, Call, arrivals, derived_key
from memory.tenants.models import Member, Tenant
from memory.tenants.rls import tenant_scope

READERS: Final = {"hook log": imports.hook_log, "transcript": transcript, "rollout": rollout}
# Logs first: what they tell is exact, and a transcript then adds only what they lack.
ORDER: Final = tuple(READERS)
_DERIVED: Final = ("transcript:", "rollout:")


@dataclass
class Taken:
    """What came of one kind of file."""

    files: int = 0
    sessions: int = 0
    attached: int = 0
    new: int = 0
    repeated: int = 0
    known: int = 0


@dataclass
class Report:
    """What an import took, skipped, and why."""

    taken: dict[str, Taken] = field(default_factory=lambda: {kind: Taken() for kind in ORDER})
    skipped: list[Skipped] = field(default_factory=list)
    new_sessions: int = 0


def import_paths(
    tenant: Tenant, paths: Iterable[Path], *, member: Member | None, step: Callable[[int, int], None]
) -> Report:
    """Take in all that the paths hold. Running it again adds nothing. `step(done, all)` is called after each file."""
    report = Report()
    found = list(_sorted(imports.files(paths), report))
    for done, (kind, path) in enumerate(found, 1):
        histories, lines = READERS[kind](path)
        report.taken[kind].files += 1
        if lines.broken or lines.reasons:
            why = "; ".join([*([f"{lines.broken} lines are not events"] if lines.broken else []), *lines.reasons])
            report.skipped.append(Skipped(path, why))
        if not histories:
            report.skipped.append(Skipped(path, "holds no events"))
        for history in histories:
            _take(tenant, member, history, report)
        step(done, len(found))
    return report


def _sorted(paths: list[Path], report: Report) -> Iterator[tuple[str, Path]]:
    kinds: list[tuple[str, Path]] = []
    for path in paths:
        try:
            kind = imports.kind_of(path)
        except OSError as exc:
            report.skipped.append(Skipped(path, f"can't be read: {exc.strerror or exc}"))
            continue
        if kind is None:
            report.skipped.append(Skipped(path, "is no hook log, Claude Code transcript or Codex rollout"))
        else:
            kinds.append((kind, path))
    return iter(sorted(kinds, key=lambda found: ORDER.index(found[0])))


def _take(tenant: Tenant, member: Member | None, history: History, report: Report) -> None:
    taken = report.taken[history.kind]
    taken.sessions += 1
    steps = [_Read.of(history, step) for step in history.steps]
    with tenant_scope(str(tenant.pk)):
        before = _Before(tenant, history, own={step.key for step in steps})
    taken.attached += before.has_others
    report.new_sessions += not before.is_known
    calls = []
    for step in steps:
        if step.key in before.keys:
            taken.repeated += 1
        elif before.has_told(step):
            taken.known += 1
        else:
            calls.append(step.call)
    for start in range(0, len(calls), CHUNK_EVENTS):
        ready = arrivals(calls[start : start + CHUNK_EVENTS])
        with tenant_scope(str(tenant.pk)):
            outcomes = Counter(row.outcome for row in store(str(tenant.pk), str(member.pk) if member else None, ready))
        taken.new += outcomes.pop("new", 0)
        taken.repeated += outcomes.total()


@dataclass(frozen=True, slots=True)
class _Read:
    """A step as a call, and the key it will get."""

    call: Call
    seen: Seen
    key: str

    @classmethod
    def of(cls, history: History, step: Step) -> "_Read":
        told = Told(remote=history.git_remote, at=step.at)
        seen = canonical(history.client, step.payload, told)
        # The id of a tool call makes one key for hook, log and transcript; a text's digest would not.
        own_key = "" if seen.tool_use_id else step.key
        call = Call(history.client, step.payload, None, told, tool_use_id=step.tool_use_id, own_key=own_key)
        return cls(call, seen, own_key or derived_key(seen))


class _Before:
    """What a session held before this file: each event of another origin stands for one of this file's, once."""

    def __init__(self, tenant: Tenant, history: History, *, own: set[str]) -> None:
        self._own, self._own_marks = own, ("log:",) if history.kind == "hook log" else _DERIVED
        self._is_derived = history.kind != "hook log"
        self.keys: set[str] = set()
        self._by_id: dict[tuple[str, str], list[Event]] = defaultdict(list)
        self._by_text: dict[tuple[str, str, str], list[Event]] = defaultdict(list)
        self._used: set[str] = set()
        session = Session.objects.filter(tenant=tenant, client=history.client, key=history.session_key).first()
        self.is_known = session is not None
        if session is not None:
            for event in session.events.only("key", "kind", "tool", "tool_use_id", "summary").order_by("seq"):
                self._remember(event)
        self.has_others = bool(self._by_text)

    def _remember(self, event: Event) -> None:
        self.keys.add(event.key)
        if event.key in self._own or event.key.startswith(self._own_marks):
            return
        self._by_text[_text_mark(event.kind, event.tool, event.summary)].append(event)
        if event.tool_use_id:
            self._by_id[_moment(event.kind), event.tool_use_id].append(event)

    def has_told(self, step: _Read) -> bool:
        """True where the other origin has told this event; the match is used up by it."""
        seen = step.seen
        if not self.has_others or _moment(seen.kind) not in ("tool_before", "tool_after", "prompt", "stop"):
            return False
        if seen.kind == "stop" and self._is_derived:
            # Where hooks tell when a turn ended, lines do not guess it.
            return True
        use = seen.tool_use_id or step.call.tool_use_id
        if use and self._take(self._by_id[_moment(seen.kind), use], lambda event: True):
            return True
        # Two calls with different ids are two calls, however alike they are.
        alike = self._by_text[_text_mark(seen.kind, seen.tool, seen.summary)]
        return self._take(alike, lambda event: not (use and event.tool_use_id))

    def _take(self, events: list[Event], fits: Callable[[Event], bool]) -> bool:
        for event in events:
            if event.key not in self._used and fits(event):
                self._used.add(event.key)
                return True
        return False


def _moment(kind: str) -> str:
    """Hooks of old report a failed call as any other."""
    return "tool_after" if kind == "tool_failed" else kind


def _text_mark(kind: str, tool: str, summary: str) -> tuple[str, str, str]:
    return _moment(kind), tool, "" if kind == "stop" else summary.split(" — ")[0]
