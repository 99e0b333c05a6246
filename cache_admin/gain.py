"""Whether a tool's cache is worth its time: what its hits saved, less what all its lookups took."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Avg

from cache_admin.models import Analysis, Entry
from memory.tenants.models import Tenant

_PER_DOUBLING = 8


@dataclass(frozen=True, slots=True)
class Gain:
    """Milliseconds. `lookup_ms` and `tool_ms` are of one call on average; None where nothing was measured."""

    saved_ms: int
    spent_ms: float
    tokens_saved: int
    lookup_ms: float | None
    tool_ms: float | None

    @property
    def net_ms(self) -> float:
        """Time saved, less the time that all lookups took."""
        return self.saved_ms - self.spent_ms

    @property
    def is_too_dear(self) -> bool:
        """Whether a lookup takes as long as the tool itself."""
        return self.lookup_ms is not None and self.tool_ms is not None and self.lookup_ms >= self.tool_ms

    @property
    def warning(self) -> str:
        """What to think twice about; empty where the cache gains time, or nothing can be said yet."""
        if not self.is_too_dear:
            return ""
        return f"A lookup takes {self.lookup_ms:.1f} ms, the tool {self.tool_ms:.1f} ms: the cache gains no time."

    def as_json(self) -> dict[str, Any]:
        """As the metrics door gives it."""
        return {
            "time_saved_ms": self.saved_ms,
            "time_spent_ms": round(self.spent_ms),
            "net_time_ms": round(self.net_ms),
            "tokens_saved": self.tokens_saved,
            "lookup_ms": _rounded(self.lookup_ms),
            "tool_ms": _rounded(self.tool_ms),
            "warning": self.warning or None,
        }


def of(figures: Mapping[str, Any], times: Mapping[str, Mapping[str, int]], *, mean_ms: float | None = None) -> Gain:
    """Pure: of a line of figures and its histograms. `mean_ms` is what the tool's stored answers took, for a tool
    whose hits say nothing.
    """
    hits, saved, asked = figures["hits"], figures["time_saved_ms"], figures["lookups"]
    spent = _spent(times)
    return Gain(
        saved,
        spent,
        figures["tokens_saved"],
        spent / asked if asked and spent else None,
        saved / hits if hits and saved else mean_ms,
    )


def _spent(times: Mapping[str, Mapping[str, int]]) -> float:
    """Milliseconds that went into hashing, looking and embedding, from the middle of each bucket."""
    every = (one for buckets in times.values() for one in buckets.items())
    return sum(many * (2 ** ((int(bucket) + 0.5) / _PER_DOUBLING) - 1) for bucket, many in every) / 1000


def means(tenant: Tenant) -> dict[tuple[str, bool], float]:
    """How long each tool took on average, by its stored answers, and (True) each type of analysis by its own."""
    timed = {"tenant": tenant, "duration_ms__isnull": False}
    tools = Entry.objects.filter(**timed).order_by().values_list("tool").annotate(mean=Avg("duration_ms"))
    types = Analysis.objects.filter(**timed).order_by().values_list("analysis_type").annotate(mean=Avg("duration_ms"))
    return {(name, False): mean for name, mean in tools} | {(name, True): mean for name, mean in types}


def _rounded(count: float | None) -> float | None:
    return None if count is None else round(count, 3)
