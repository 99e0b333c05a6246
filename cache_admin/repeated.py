"""The duplicate audit as a page shows it: project by project, with the tools and sessions that repeat most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Final

from cache_admin import repeats
from cache_admin.repeats import Audit, Repeats
from memory.events.models import Event
from memory.tenants.models import Tenant

MOST_SESSIONS: Final = 20
_KEPT_AT_MOST: Final = 50

# A count reads up to 50,000 events; until another event comes it stays what it was.
_kept: dict[tuple[str, date, str], list["ProjectRepeats"]] = {}


@dataclass(frozen=True, slots=True)
class ProjectRepeats:
    """What repeats in one project."""

    name: str
    whole: Repeats
    tools: tuple[tuple[str, Repeats], ...]
    sessions: tuple[tuple[str, str, Repeats], ...]
    session_count: int


def counted(tenant: Tenant, *, since: date) -> list[ProjectRepeats]:
    """The audit since a day, the project with the most calls first. The tenant must be bound."""
    last = Event.objects.filter(session__tenant=tenant).order_by("-pk").values_list("pk", flat=True).first()
    place = (str(tenant.pk), since, str(last))
    if place not in _kept:
        if len(_kept) >= _KEPT_AT_MOST:
            _kept.clear()
        audit = repeats.of_team(tenant, since=datetime.combine(since, time(), tzinfo=UTC))
        _kept[place] = by_project(audit, titles=_titles(tenant, [session for _, session in audit.sessions]))
    return _kept[place]


def _titles(tenant: Tenant, sessions: Sequence[str]) -> dict[str, str]:
    rows = tenant.sessions.filter(public_id__in=sessions).values_list("public_id", "last_prompt")
    return {public_id: " ".join(prompt.split())[:200] for public_id, prompt in rows}


def by_project(audit: Audit, *, titles: Mapping[str, str]) -> list[ProjectRepeats]:
    """The audit's three tables as one for each project; of its sessions those that repeat within themselves. Pure."""
    made = []
    for name, whole in audit.projects.items():
        tools = [(tool, one) for (project, tool), one in audit.tools.items() if project == name]
        sessions = [(session, one) for (project, session), one in audit.sessions.items() if project == name]
        ranked = sorted(sessions, key=lambda one: (-one[1].repeats, one[0]))
        made.append(
            ProjectRepeats(
                name,
                whole,
                tuple(sorted(tools, key=lambda one: (-one[1].repeats, one[0]))),
                tuple(
                    (session, titles.get(session, ""), one) for session, one in ranked[:MOST_SESSIONS] if one.repeats
                ),
                len(sessions),
            )
        )
    return sorted(made, key=lambda one: (-one.whole.calls, one.name))
