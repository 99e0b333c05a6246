"""What the caches' overview shows: figures day by day and tool by tool, and what needs a person."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

from django.db.models import Count, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext

from cache_admin import charts, gain, metrics, money, policies, usage
from cache_admin.gain import Gain
from cache_admin.metrics import STALE, Tally
from cache_admin.models import Incident
from cache_admin.policy import Policy
from memory.tenants.models import AuditEntry, Tenant

PERIODS: Final = (7, 30, 90)
# Below so many looks nobody can say what a tool's cache would do.
ENOUGH_SEEN: Final = 20
WORTH_SERVING: Final = 0.15


@dataclass(frozen=True, slots=True)
class Day:
    """One day's figures; a rate over nothing is none."""

    day: date
    figures: Mapping[str, Any]
    incidents: int

    @property
    def p50(self) -> int | None:
        """Half of the lookups took at most so many microseconds."""
        return _overhead(self.figures, "p50")

    @property
    def p95(self) -> int | None:
        """95 of 100 lookups took at most so many microseconds."""
        return _overhead(self.figures, "p95")


@dataclass(frozen=True, slots=True)
class ToolLine:
    """One tool's figures, its policy, and whether its cache is worth its time."""

    tool: str
    kind: str
    figures: Mapping[str, Any]
    policy: Policy | None
    gain: Gain
    reasons: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Tool and kind: one tool may be asked in its own words and in others."""
        return f"{self.tool} {self.kind}"

    @property
    def would_be_rate(self) -> float | None:
        """Of the calls that were only watched, the share that a cache would have answered."""
        seen = self.figures["observed"]
        return self.figures["would_be_hits"] / seen if seen else None

    @property
    def is_ready(self) -> bool:
        """Whether it was watched long enough, would have hit often, and never stale."""
        if self.policy is None or self.policy.mode != "observe" or self.figures["observed"] < ENOUGH_SEEN:
            return False
        return (self.would_be_rate or 0) >= WORTH_SERVING and not self.figures["would_be_stale"]


@dataclass(frozen=True, slots=True)
class Seen:
    """All that the overview and the table of tools rest on: read once."""

    days: list[Day]
    tools: list[ToolLine]
    total: Mapping[str, Any]


def seen(tenant: Tenant, *, since: date, until: date) -> Seen:
    """The figures of a period, each day of it, with or without lookups. The tenant must be bound."""
    cells = metrics.by_day(since, until)
    stale = _incidents(tenant, since, until)
    by_day: dict[date, Tally] = defaultdict(Tally)
    by_tool: dict[tuple[str, str], Tally] = defaultdict(Tally)
    total = Tally()
    for (day, tool, kind), tally in cells.items():
        by_day[day].add(tally)
        by_tool[(tool, kind)].add(tally)
        total.add(tally)
    of_tools: dict[str, Counter[str]] = defaultdict(Counter)
    of_days: Counter[date] = Counter()
    for (tool, kind, day), many in stale.items():
        of_tools[tool][kind] += many
        of_days[day] += many if kind in STALE else 0
    days = [
        Day(day, metrics.shown(by_day[day], {}), of_days[day])
        for day in (since + timedelta(days=place) for place in range((until - since).days + 1))
    ]
    every: Counter[str] = Counter()
    for kinds in of_tools.values():
        every.update(kinds)
    return Seen(days, _lines(tenant, by_tool, of_tools), metrics.shown(total, every))


def _lines(
    tenant: Tenant, by_tool: Mapping[tuple[str, str], Tally], incidents: Mapping[str, Mapping[str, int]]
) -> list[ToolLine]:
    own = {one.tool: one for one in policies.of_team(tenant)}
    took = gain.means(tenant)
    lines = []
    for (tool, kind), tally in by_tool.items():
        figures = metrics.shown(tally, incidents.get(tool, {}))
        policy = None if kind == "analysis" else own.get(tool) or Policy(tool)
        worth = gain.of(figures, tally.times, mean_ms=took.get((tool, kind == "analysis")))
        lines.append(ToolLine(tool, kind, figures, policy, worth, dict(tally.reasons)))
    return sorted(lines, key=lambda line: (-line.figures["lookups"], line.tool, line.kind))


def _incidents(tenant: Tenant, since: date, until: date) -> dict[tuple[str, str, date], int]:
    rows = (
        Incident.objects.filter(tenant=tenant, at__gte=_start(since), at__lt=_start(until + timedelta(days=1)))
        .order_by()
        .values_list("tool", "kind", TruncDate("at", tzinfo=UTC))
        .annotate(many=Count("pk"))
    )
    return {(tool, kind, day): many for tool, kind, day, many in rows}


@dataclass(frozen=True, slots=True)
class Worth:
    """What saved tokens would have cost as input of the model that takes most; none where it has no price."""

    model: str
    currency: str
    total: Decimal | None
    by_line: Mapping[str, Decimal]


def worth(tenant: Tenant, read: Seen, *, since: date, until: date) -> Worth:
    """The period's savings in the team's money. The tenant must be bound."""
    kept = policies.settings_of(tenant)
    model = money.usual_model(usage.rates(tenant, since=since, until=until))
    each = {line.name: money.worth(line.figures["tokens_saved"], kept.prices, model) for line in read.tools}
    by_line = {name: amount for name, amount in each.items() if amount is not None}
    return Worth(model, kept.currency, money.worth(read.total["tokens_saved"], kept.prices, model), by_line)


def unasked(tenant: Tenant, lines: list[ToolLine]) -> list[Policy]:
    """Policies of tools that nobody asked about in the period."""
    known = {line.tool for line in lines if line.kind != "analysis"}
    return [one for one in policies.of_team(tenant) if one.tool not in known]


def without_policy(lines: list[ToolLine]) -> list[ToolLine]:
    """Tools that agents asked about and nobody has decided on."""
    found = [
        line for line in lines if line.reasons.get("bypass:unknown_tool") and line.policy and _is_open(line.policy)
    ]
    # A tool that was asked in both ways is one that nobody decided on.
    return list({line.tool: line for line in reversed(found)}.values())[::-1]


def _is_open(policy: Policy) -> bool:
    return policy.source == "unknown"


def changes(tenant: Tenant, tool: str) -> "list[AuditEntry]":
    """Who changed a tool's policy, the latest first."""
    return list(tenant.audit.filter(action="cache.policy", target=tool, outcome="done").order_by("-seq")[:20])


def summarisers(tenant: Tenant) -> list[dict[str, Any]]:
    """By summariser: how many results it made short, and the share that was fetched in full all the same."""
    rows = (
        tenant.results.exclude(summary="")
        .order_by()
        .values("summariser")
        .annotate(
            made=Count("pk"),
            opened=Sum("expansions"),
            whole=Sum("tokens"),
            short=Sum("summary_tokens"),
        )
        .order_by("-made", "summariser")
    )
    return [
        {**row, "per_result": row["opened"] / row["made"], "left": row["short"] / (row["whole"] or 1)} for row in rows
    ]


def drawn(days: list[Day]) -> list[charts.Chart]:
    """The overview's charts."""
    names = [date_format(one.day, "j M") for one in days]

    def by_name(values: list[float]) -> dict[str, float]:
        return dict(zip(names, values, strict=True))

    rates = [one.figures["hit_rate"] for one in days]
    return [
        charts.lines(
            gettext("Hit rate of cacheable lookups"), names, {gettext("hit rate"): rates}, say=charts.percent, top=1.0
        ),
        charts.bars(gettext("Tokens saved"), by_name([one.figures["tokens_saved"] for one in days]), say=charts.count),
        charts.bars(
            gettext("Time saved"), by_name([one.figures["time_saved_ms"] for one in days]), say=charts.milliseconds
        ),
        charts.bars(gettext("Lookups"), by_name([one.figures["lookups"] for one in days]), say=charts.count),
        charts.bars(gettext("Stale or wrong answers"), by_name([one.incidents for one in days]), say=charts.count),
        charts.lines(
            gettext("Time a lookup takes"),
            names,
            {
                gettext("half within"): [_ms(one.p50) for one in days],
                gettext("95 % within"): [_ms(one.p95) for one in days],
            },
            say=charts.milliseconds,
        ),
    ]


def _overhead(figures: Mapping[str, Any], share: str) -> int | None:
    value = figures["overhead_us"].get("lookup", {}).get(share)
    return None if value is None else int(value)


def _ms(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1000


def period(asked: str) -> tuple[int, date, date]:
    """How many days an address asks for, the first and the last of them; 30 for anything else."""
    days = int(asked) if asked in {str(one) for one in PERIODS} else 30
    today = timezone.now().astimezone(UTC).date()
    return days, today - timedelta(days=days - 1), today


def _start(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)
