"""What the caches did: per tool and day. A rate over nothing is none, not 0 %."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import Count, Sum

from cache_admin import gain, money, policies, usage
from cache_admin.models import Analysis, Content, Entry, Incident, Result, ToolDay
from memory.tenants.models import Tenant

# Incidents that an agent was served; what only would have been stale is counted beside them.
STALE: Final = ("report", "digest_mismatch", "shadow")
_SUMS: Final = ("tokens_stored", "tokens_returned", "saved_ms")
_TIMES: Final = ("hash_us", "lookup_us", "embed_us")
_PER_DOUBLING: Final = 8

_DAYS: Final = """
SELECT (at AT TIME ZONE 'UTC')::date, tool, kind, status, reason, would_hit, sum(times), sum(tokens_stored),
  sum(tokens_returned), sum(saved_ms)
FROM cache_admin_lookup WHERE at >= %s AND at < %s GROUP BY 1, 2, 3, 4, 5, 6
"""
_HISTOGRAM: Final = """
SELECT (at AT TIME ZONE 'UTC')::date, tool, kind, floor({n} * ln({column} + 1) / ln(2))::int, sum(times)
FROM cache_admin_lookup WHERE at >= %s AND at < %s AND {column} > 0 GROUP BY 1, 2, 3, 4
"""

# What is dropped with its day is kept with the entry: how often it was served.
_LASTING: Final = """
UPDATE cache_admin_entry e SET hits = e.hits + g.many FROM (
  SELECT c.result_pk, sum(c.times) AS many FROM cache_admin_lookup c
  WHERE c.at < %s AND c.status = 'hit' AND c.result_pk IS NOT NULL GROUP BY c.result_pk) AS g
WHERE e.result_id = g.result_pk
"""


@dataclass
class Tally:
    """Sums of lookups; two of them add up."""

    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    times: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, other: "Tally") -> None:
        self.counts.update(other.counts)
        self.reasons.update(other.reasons)
        for name, buckets in other.times.items():
            self.times[name].update(buckets)

    def as_json(self) -> dict[str, Any]:
        """What `ToolDay.counts` holds."""
        return {**self.counts, "times": {name: dict(buckets) for name, buckets in self.times.items()}}


Cell = tuple[date, str, str]


def by_day(since: date, until: date) -> dict[Cell, Tally]:
    """Sums by day, tool and kind, from the days that are summed up and the lookups that are not. Tenant bound."""
    cells = live(_start(since), _start(until + timedelta(days=1)))
    for row in ToolDay.objects.filter(day__gte=since, day__lte=until):
        cells[(row.day, row.tool, row.kind)].add(_of_row(row))
    return cells


def live(since: datetime, until: datetime) -> dict[Cell, Tally]:
    """Sums of the lookups that are still rows."""
    cells: dict[Cell, Tally] = defaultdict(Tally)
    with connection.cursor() as cursor:
        cursor.execute(_DAYS, [since, until])
        for day, tool, kind, status, reason, would_hit, count, *sums in cursor.fetchall():
            tally = cells[(day, tool, kind)]
            tally.counts[status] += count
            tally.counts["would_hit"] += count if would_hit and status == "observe" else 0
            for name, total in zip(_SUMS, sums, strict=True):
                tally.counts[name] += int(total or 0) if status == "hit" else 0
            if reason:
                tally.reasons[f"{status}:{reason}"] += count
        for column in _TIMES:
            cursor.execute(_HISTOGRAM.format(n=_PER_DOUBLING, column=column), [since, until])
            for day, tool, kind, bucket, count in cursor.fetchall():
                cells[(day, tool, kind)].times[column][str(bucket)] += count
    return cells


def _of_row(row: ToolDay) -> Tally:
    counts = dict(row.counts)
    times = counts.pop("times", {})
    tally = Tally(Counter(counts), Counter(row.reasons))
    for name, buckets in times.items():
        tally.times[name].update(buckets)
    return tally


def report(tenant: Tenant, *, by: str, since: date, until: date) -> dict[str, Any]:
    """The metrics door's answer: one item for each tool, day, or both."""
    groups: dict[tuple[str, ...], Tally] = defaultdict(Tally)
    total = Tally()
    for (day, tool, kind), tally in by_day(since, until).items():
        groups[_group(by, day, tool, kind)].add(tally)
        total.add(tally)
    incidents = _incidents(tenant, since, until)
    expansions = _expansions(tenant)
    every: Counter[str] = Counter()
    for kinds in incidents.values():
        every.update(kinds)
    rates, kept = usage.rates(tenant, since=since, until=until), policies.settings_of(tenant)
    model = money.usual_model(rates)
    took = gain.means(tenant) if by != "day" else {}

    def line(tally: Tally, incidents: Mapping[str, int], name: tuple[str, ...] = ("",)) -> dict[str, Any]:
        figures = shown(tally, incidents)
        mean = took.get((name[0], name[1:2] == ("analysis",)))
        return {
            **figures,
            "net_gain": gain.of(figures, tally.times, mean_ms=mean).as_json(),
            "money_saved": money.worth(figures["tokens_saved"], kept.prices, model),
        }

    items = [
        {**_named(by, name), **line(tally, incidents.get(name[0], {}) if by == "tool" else {}, name)}
        for name, tally in sorted(groups.items())
    ]
    return {
        "by": by,
        "priced_as": model or None,
        "currency": kept.currency,
        "from": since.isoformat(),
        "to": until.isoformat(),
        "items": items,
        "total": line(total, every),
        "expansions": expansions,
        "storage": _storage(tenant, kept.quota_bytes),
    }


def _storage(tenant: Tenant, quota_bytes: int) -> dict[str, int]:
    """What the caches take at this moment."""
    return {
        "bytes": Content.objects.filter(tenant=tenant).aggregate(total=Sum("size"))["total"] or 0,
        "quota_bytes": quota_bytes,
        "entries": Entry.objects.filter(tenant=tenant).count(),
        "analyses": Analysis.objects.filter(tenant=tenant).count(),
    }


def _group(by: str, day: date, tool: str, kind: str) -> tuple[str, ...]:
    return {"tool": (tool, kind), "day": (day.isoformat(),)}.get(by, (tool, kind, day.isoformat()))


def _named(by: str, name: tuple[str, ...]) -> dict[str, str]:
    fields = {"tool": ("tool", "kind"), "day": ("day",)}.get(by, ("tool", "kind", "day"))
    return dict(zip(fields, name, strict=True))


def shown(tally: Tally, incidents: Mapping[str, int]) -> dict[str, Any]:
    """The figures of one line. Hit rate: hits of hits and misses; bypasses and waits are none of both."""
    counts = tally.counts
    cacheable = counts["hit"] + counts["miss"] - counts["unfit"]
    return {
        "lookups": sum(counts[status] for status in ("hit", "miss", "wait", "bypass", "observe")),
        "cacheable_lookups": cacheable,
        "hits": counts["hit"],
        "misses": counts["miss"],
        "waits": counts["wait"],
        "bypasses": counts["bypass"],
        "not_cacheable_results": counts["unfit"],
        "observed": counts["observe"],
        "would_be_hits": counts["would_hit"],
        "would_be_stale": incidents.get("would_be_stale", 0),
        "hit_rate": round(counts["hit"] / cacheable, 4) if cacheable > 0 else None,
        "miss_reasons": _reasons(tally, "miss"),
        "bypass_reasons": _reasons(tally, "bypass"),
        "not_cacheable_reasons": _reasons(tally, "unfit"),
        "tokens_stored": counts["tokens_stored"],
        "tokens_returned": counts["tokens_returned"],
        "tokens_saved": counts["tokens_stored"] - counts["tokens_returned"],
        "time_saved_ms": counts["saved_ms"],
        "staleness_incidents": sum(incidents.get(kind, 0) for kind in STALE),
        "incidents": dict(incidents),
        "overhead_us": {
            name.removesuffix("_us"): {"p50": quantile(buckets, 0.5), "p95": quantile(buckets, 0.95)}
            for name, buckets in sorted(tally.times.items())
        },
    }


def _reasons(tally: Tally, status: str) -> dict[str, int]:
    return {
        reason.partition(":")[2]: count
        for reason, count in sorted(tally.reasons.items())
        if reason.startswith(f"{status}:")
    }


def quantile(buckets: Mapping[str, int], share: float) -> int | None:
    """The value below which `share` of all lie, within 9 %: a bucket is an eighth of a doubling."""
    total = sum(buckets.values())
    seen = 0
    for bucket, count in sorted(buckets.items(), key=lambda one: int(one[0])):
        seen += count
        if seen >= share * total:
            return round(math.pow(2, (int(bucket) + 0.5) / _PER_DOUBLING) - 1)
    return None


def _incidents(tenant: Tenant, since: date, until: date) -> dict[str, dict[str, int]]:
    rows = (
        Incident.objects.filter(tenant=tenant, at__gte=_start(since), at__lt=_start(until + timedelta(days=1)))
        .values_list("tool", "kind")
        .annotate(count=Count("pk"))
    )
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for tool, kind, count in rows:
        found[tool][kind] = count
    return found


def _expansions(tenant: Tenant) -> dict[str, dict[str, int]]:
    """By summariser: how many results it made short, and how often one was fetched in full all the same."""
    rows: Iterable[Any] = (
        Result.objects.filter(tenant=tenant)
        .exclude(summary="")
        .values_list("summariser")
        .annotate(results=Count("pk"), expansions=Sum("expansions"))
    )
    return {name: {"results": results, "expansions": expansions or 0} for name, results, expansions in rows}


def sum_up(tenant: Tenant, *, before: date) -> int:
    """Turn the lookups of days that are over into sums; gives how many rows went. Running it twice does no harm."""
    until = _start(before)
    cells = live(datetime(1970, 1, 1, tzinfo=UTC), until)
    for (day, tool, kind), tally in cells.items():
        row, _ = ToolDay.objects.select_for_update().get_or_create(tenant=tenant, day=day, tool=tool, kind=kind)
        whole = _of_row(row)
        whole.add(tally)
        row.counts, row.reasons = whole.as_json(), dict(whole.reasons)
        row.save()
    with connection.cursor() as cursor:
        cursor.execute(_LASTING, [until])
        cursor.execute("DELETE FROM cache_admin_lookup WHERE at < %s", [until])
        return int(cursor.rowcount)


def _start(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)
