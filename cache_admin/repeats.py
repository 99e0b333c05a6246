"""The duplicate audit: which tools repeat, what that cost, what a cache would have saved and what served stale."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from cache_admin.keys import canonical
from cache_admin.normalize import NotKeyable, exact
from memory import tokens
from memory.events import bodies
from memory.events.models import Event
from memory.problems import Problem
from memory.tenants.models import Tenant

# Tools that only read. A repeat of any other may be meant.
READERS: Final = frozenset({"Read", "Grep", "Glob", "LS", "read_file", "grep", "list_dir", "WebFetch", "WebSearch"})
WORTH_A_LOOK: Final = 0.15
WORTH_IT: Final = 0.20
MOST_EVENTS: Final = 50_000
_INPUTS: Final = ("tool_input", "toolInput", "tool_args", "arguments", "input")
_OUTPUTS: Final = ("tool_response", "tool_output", "toolOutput", "tool_result", "output", "result", "response")


@dataclass(frozen=True)
class Use:
    """One call of a tool. `answer` is the digest of its result, where that is known."""

    project: str
    session: str
    tool: str
    arguments: str
    answer: str = ""
    tokens: int = 0


@dataclass
class Repeats:
    """What repeats in a project, a session or a tool."""

    calls: int = 0
    repeats: int = 0
    compared: int = 0
    changed: int = 0
    repeated_tokens: int = 0
    saved_tokens: int = 0
    tools: set[str] = field(default_factory=set)

    @property
    def share(self) -> float | None:
        """Repeats of calls; None where there were no calls."""
        return self.repeats / self.calls if self.calls else None

    @property
    def changed_share(self) -> float | None:
        """Of the repeats with known results, those that had changed: a cache by time would have served them stale."""
        return self.changed / self.compared if self.compared else None

    @property
    def verdict(self) -> str:
        """Whether a cache is worth it: `no`, `maybe` or `yes`."""
        share = self.share or 0.0
        return "no" if share < WORTH_A_LOOK else "maybe" if share <= WORTH_IT else "yes"


@dataclass
class Audit:
    """Repeats over all of a project, session by session, and by tool."""

    projects: dict[str, Repeats] = field(default_factory=lambda: defaultdict(Repeats))
    sessions: dict[tuple[str, str], Repeats] = field(default_factory=lambda: defaultdict(Repeats))
    tools: dict[tuple[str, str], Repeats] = field(default_factory=lambda: defaultdict(Repeats))


def audit(uses: Iterable[Use], *, readers: frozenset[str] = READERS) -> Audit:
    """Count. Pure: a call repeats where its project (for a session: that session) saw the very same one before."""
    found = Audit()
    last: dict[tuple[str, ...], Use] = {}
    for use in uses:
        if use.tool not in readers:
            continue
        call = (use.tool, use.arguments)
        for bucket, key in (
            (found.projects[use.project], ("project", use.project, *call)),
            (found.sessions[(use.project, use.session)], ("session", use.project, use.session, *call)),
            (found.tools[(use.project, use.tool)], ("tool", use.project, *call)),
        ):
            _count(bucket, use, last.get(key))
            # Of a call whose result is not known, the result before stands.
            last[key] = use if use.answer or key not in last else last[key]
    return found


def _count(bucket: Repeats, use: Use, before: Use | None) -> None:
    bucket.calls += 1
    bucket.tools.add(use.tool)
    if before is None:
        return
    bucket.repeats += 1
    bucket.repeated_tokens += use.tokens
    if use.answer and before.answer:
        bucket.compared += 1
        bucket.changed += use.answer != before.answer
        bucket.saved_tokens += use.tokens if use.answer == before.answer else 0


def of_team(tenant: Tenant, *, since: datetime | None = None) -> Audit:
    """The audit over what this team's hooks reported, the latest 50,000 tool events."""
    rows = Event.objects.filter(session__tenant=tenant, kind__in=("tool_before", "tool_after"), tool__in=READERS)
    if since is not None:
        rows = rows.filter(received_at__gte=since)
    chosen = list(rows.order_by("-received_at", "-id").values_list("pk", flat=True)[:MOST_EVENTS])
    ordered = Event.objects.filter(pk__in=chosen).select_related("session__project").order_by("id")
    return audit(uses(_told(event) for event in ordered.iterator(chunk_size=500)))


def _told(event: Event) -> tuple[str, str, str, str, Mapping[str, Any]]:
    project = event.session.project
    try:
        payload = bodies.payload(event)
    except Problem:
        payload = {}
    return (
        project.name if project else "",
        event.session.public_id,
        event.kind,
        event.tool_use_id,
        {**payload, "tool_name": event.tool},
    )


def uses(events: Iterable[tuple[str, str, str, str, Mapping[str, Any]]]) -> Iterator[Use]:
    """Calls with their results, from events (project, session, kind, tool use id, payload) in order. Pure."""
    waiting = list(events)
    answers = _answers(waiting)
    taken: dict[tuple[str, str], int] = defaultdict(int)
    for project, session, kind, use_id, payload in waiting:
        if kind != "tool_before":
            continue
        tool, arguments = str(payload.get("tool_name", "")), _arguments(payload)
        key = (session, use_id or f"{tool} {arguments}")
        known: Sequence[tuple[str, int]] = answers.get(key, ())
        place, taken[key] = taken[key], taken[key] + 1
        digest, size = known[place] if place < len(known) else ("", 0)
        yield Use(project, session, tool, arguments, digest, size)


def _answers(
    events: Sequence[tuple[str, str, str, str, Mapping[str, Any]]],
) -> dict[tuple[str, str], list[tuple[str, int]]]:
    """The results of each call, by the harness's id of it, or by the very call where it gives none."""
    found: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for _, session, kind, use_id, payload in events:
        if kind != "tool_after":
            continue
        text = json.dumps(_first(payload, _OUTPUTS), ensure_ascii=False, sort_keys=True)
        key = use_id or f"{payload.get('tool_name', '')} {_arguments(payload)}"
        digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        found[(session, key)].append((digest, tokens.count(text)))
    return found


def _arguments(payload: Mapping[str, Any]) -> str:
    given = _first(payload, _INPUTS)
    try:
        return canonical(exact(given)).decode()
    except NotKeyable:
        return json.dumps(given, sort_keys=True, default=str)


def _first(payload: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((payload[name] for name in names if name in payload), None)
