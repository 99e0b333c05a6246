"""What a member sees of what is stored: never another member's own answers, nor those of a project closed to them."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db.models import Count, F, Max, Q, QuerySet, Sum
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop

from cache_admin import charts
from cache_admin.models import Analysis, AnalysisPath, Decision, Entry, Incident, Lookup, Pair
from cache_admin.pairs import Judged, curve
from memory.events.models import Project
from memory.tenants.access import Actor
from memory.tenants.models import Member, Tenant

HOT: Final = 50
_KNOWN: Final = (
    ("tool", gettext_noop("Tool")),
    ("server", gettext_noop("Server")),
    ("tool_version", gettext_noop("Version of the tool")),
    ("scope", gettext_noop("Shared within")),
    ("project", gettext_noop("In the project")),
    ("content_hash", gettext_noop("Content hash")),
    ("salt", gettext_noop("Salt (team.tool)")),
    ("key_version", gettext_noop("Version of the key")),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """Which entries a list is to hold."""

    tool: str = ""
    writer: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a key was made of, to be read."""

    facts: tuple[tuple[str, str], ...]
    arguments: str
    environment: str


def entries(tenant: Tenant, asked: Asked, *, by: Actor) -> "QuerySet[Entry]":
    """Stored answers that this member may see, the newest first."""
    rows = tenant.cache_entries.filter(Q(result__is_private=False) | Q(result__owner_id=by.member_pk))
    if asked.tool:
        rows = rows.filter(tool=asked.tool)
    if asked.writer.startswith("key_"):
        rows = rows.filter(writer_key__public_id=asked.writer)
    elif asked.writer:
        rows = rows.filter(writer__public_id=asked.writer)
    if asked.project:
        rows = rows.filter(project__public_id=asked.project)
    return rows.select_related("result", "writer__user", "writer_key", "project").order_by("-pk")


def entry(tenant: Tenant, key_hex: str, *, by: Actor) -> Entry | None:
    """The answer under a key, where this member may see it."""
    try:
        key = bytes.fromhex(key_hex)
    except ValueError:
        return None
    return entries(tenant, Asked(), by=by).filter(key=key).first()


def hidden(tenant: Tenant, *, by: Actor) -> int:
    """How many entries are other members' own."""
    own = Q(result__owner_id=by.member_pk)
    return tenant.cache_entries.filter(~own, result__is_private=True).count()


def hits(rows: Sequence[Entry]) -> dict[str, int]:
    """How often each entry was served, by the key of its result: on days that are over, and since midnight UTC."""
    found = (
        Lookup.objects.filter(status="hit", result_pk__in=[row.result_id for row in rows])
        .order_by()
        .values_list("result_pk")
        .annotate(many=Sum("times"))
    )
    today = {str(pk): many for pk, many in found}
    return {str(row.result_id): row.hits + today.get(str(row.result_id), 0) for row in rows}


def inputs(tenant: Tenant, document: str) -> Inputs:
    """The canonical document behind a key, in words."""
    try:
        said = json.loads(document)
    except ValueError:
        said = {}
    facts = [
        (gettext(label), scope_words(tenant, str(said["scope"])) if name == "scope" else str(said[name]))
        for name, label in _KNOWN
        if said.get(name) not in (None, "")
    ]
    return Inputs(
        tuple(facts), pretty(said.get("arguments", {})), pretty(said["environment"]) if said.get("environment") else ""
    )


def scope_words(tenant: Tenant, scope: str) -> str:
    """member:<key> → the member's handle; a project's key → its name."""
    kind, _, value = scope.partition(":")
    if kind == "member":
        member = Member.objects.filter(tenant=tenant, pk=value).first() if is_key(value) else None
        return gettext("the member %(member)s") % {"member": member.handle} if member else gettext("one member")
    if kind == "project":
        found = tenant.projects.filter(pk=value).first() if is_key(value) else None
        return gettext("the project %(project)s") % {"project": found.name if found else value.removeprefix("name:")}
    return gettext("the thread %(thread)s") % {"thread": value} if kind == "thread" else gettext("the team")


def is_key(value: str) -> bool:
    """Whether a text has the form of an internal key."""
    return len(value) == 36 and value.count("-") == 4 and all(one in "0123456789abcdef-" for one in value)


def pretty(value: Any) -> str:
    """JSON as people read it."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)


def may_read(document: str, actor: Actor) -> bool:
    """Whether what a call was made of is this member's to see."""
    try:
        scope = str(json.loads(document).get("scope", ""))
    except (ValueError, AttributeError):
        return not document
    kind, _, value = scope.partition(":")
    if kind == "member":
        return value == actor.member_pk
    if kind == "project" and is_key(value):
        return Project.objects.filter(pk=value).exists()
    return True


def incidents(tenant: Tenant) -> "QuerySet[Incident]":
    """What the caches got wrong, the newest first."""
    return tenant.cache_incidents.select_related("reporter__user").order_by("-pk")


def analyses(tenant: Tenant, *, by: Actor) -> "QuerySet[Analysis]":
    """Stored analyses that this member may see, the last used first."""
    rows = tenant.analyses.filter(Q(is_limited=False) | Q(project__isnull=False))
    return rows.select_related("writer__user", "writer_key", "project").order_by("-last_used_at", "-pk")


def hot_files(tenant: Tenant, *, by: Actor, most: int = HOT) -> list[dict[str, Any]]:
    """Paths whose content was analysed, the most asked for first, with how many contents each had."""
    rows = (
        AnalysisPath.objects.filter(analysis__in=analyses(tenant, by=by).order_by().values("pk"))
        .order_by()
        .values("path", "project__name")
        .annotate(asked=Sum("uses"), contents=Count("analysis__content_hash", distinct=True), last=Max("last_at"))
        .order_by("-asked", "path", "project__name")
    )
    return list(rows[:most])


def analysis_types(tenant: Tenant, *, by: Actor) -> list[dict[str, Any]]:
    """What is stored of each type of analysis."""
    rows = analyses(tenant, by=by).order_by().values("analysis_type")
    return list(
        rows.annotate(stored=Count("pk"), files=Count("content_hash", distinct=True), size=Sum("tokens")).order_by(
            "-stored", "analysis_type"
        )
    )


def writers(tenant: Tenant) -> list[tuple[str, str]]:
    """Who stored what there is: members, and the keys they lent to agents."""
    members = Member.objects.filter(tenant=tenant).order_by("handle").values_list("public_id", "handle")
    keys = (
        tenant.keys.order_by("name", "pk").annotate(owner=F("member__handle")).values_list("public_id", "name", "owner")
    )
    return [
        *members,
        *(
            (public_id, gettext("%(owner)s: key %(name)s") % {"owner": owner, "name": name})
            for public_id, name, owner in keys
        ),
    ]


def tools(tenant: Tenant) -> list[str]:
    """Tools with stored answers, by name."""
    return sorted(tenant.cache_entries.order_by().values_list("tool", flat=True).distinct())


def projects(tenant: Tenant, *, by: Actor) -> Sequence[Project]:
    """Projects that may be chosen from, by name."""
    return list(tenant.projects.current().order_by("name", "pk"))


def waiting_by_tool(tenant: Tenant) -> dict[str, int]:
    """Pairs of questions that wait for a person, by tool, the most first."""
    rows = tenant.question_pairs.filter(verdict="").order_by().values_list("tool").annotate(many=Count("pk"))
    return dict(sorted(rows, key=lambda one: (-one[1], one[0])))


def labelled_by_tool(tenant: Tenant) -> Counter[str]:
    """Pairs that people have decided, by tool."""
    rows = tenant.question_pairs.exclude(verdict="").order_by().values_list("tool").annotate(many=Count("pk"))
    return Counter(dict(rows))


def pairs(tenant: Tenant, *, by: Actor) -> "QuerySet[Pair]":
    """Pairs of questions. Those of tools whose answers stay with one member or thread are for who decides on them."""
    rows = tenant.question_pairs.all()
    if by.may("cache.manage"):
        return rows
    narrow = tenant.tool_policies.filter(scope__in=("member", "thread")).values("tool")
    return rows.exclude(tool__in=narrow)


def decisions(tenant: Tenant, *, by: Actor) -> "QuerySet[Decision]":
    """What became of questions, the latest first; of narrow tools as in `pairs`."""
    rows = tenant.question_decisions.order_by("-at", "-pk")
    if by.may("cache.manage"):
        return rows
    narrow = tenant.tool_policies.filter(scope__in=("member", "thread")).values("tool")
    return rows.exclude(tool__in=narrow)


def curve_chart(judged: Sequence[Judged], threshold: float, proposed: float | None) -> charts.Chart:
    """Precision and served share by threshold, with the tool's own threshold and the proposed one."""
    at = curve(judged)
    marks = {
        gettext("now"): threshold,
        **({gettext("proposed"): proposed} if proposed is not None and proposed != threshold else {}),
    }
    right: list[float | None] = [one.precision for one in at]
    served: list[float | None] = [one.served for one in at]
    rows = {gettext("right of all served"): right, gettext("same questions served"): served}
    return charts.curve(gettext("What a threshold would do"), [one.threshold for one in at], rows, marks=marks)


def recent(tenant: Tenant, *, days: int = 7) -> "QuerySet[Incident]":
    """Incidents of the last days."""
    return incidents(tenant).filter(at__gte=timezone.now() - timedelta(days=days))


def explained(incident: Incident, policy: Mapping[str, Any]) -> list[str]:
    """What may have happened and what to do, in sentences. Pure."""
    by_content, ttl = policy["by_content"], policy["ttl_s"]
    why = {
        "report": gettext(
            "An agent said that an answer out of the cache was not what the tool would have said. The entry was"
            " dropped at once."
        ),
        "digest_mismatch": gettext(
            "Two runs of the same call under one key gave different answers. The first one stayed."
        ),
        "shadow": gettext(
            "A share of hits is run again on purpose. This time the tool said something else; the new answer"
            " took the old one's place."
        ),
        "would_be_stale": gettext(
            "The tool is only watched, so nobody was served this. A cache would have served an answer"
            " that was no longer true."
        ),
    }
    lines = [why.get(incident.kind, gettext("The cache gave another answer than the tool."))]
    if ttl and not by_content:
        lines.append(
            gettext(
                "The answer is kept by time (%(ttl)s s), so it changed within that time. Shorten the lifetime, or let"
                " calls carry a content hash."
            )
            % {"ttl": ttl}
        )
    elif by_content:
        lines.append(
            gettext(
                "The key holds a content hash. So either the hash leaves out something that the tool reads (a"
                " configuration, another file, the network), or the tool's output differs from run to run (times,"
                " order). Put what is missing into the environment of the call, or switch the tool off."
            )
        )
    return lines
