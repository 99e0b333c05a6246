"""What model calls took, and how much of it the provider had in its prompt cache."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from django.db.models import Count, Max, Sum

from cache_admin.models import Usage
from memory.tenants.models import Tenant

MONTH: Final = 30
_CODEX: Final = "cached_input_tokens"


class UnknownUsage(ValueError):
    """The figures are in no provider's form; the message says which are known."""


@dataclass(frozen=True)
class Taken:
    """The tokens of one call, whatever the provider calls them. `fresh` are those that were in no cache."""

    provider: str
    fresh: int
    read: int
    written: int
    output: int


def read(usage: Mapping[str, Any]) -> Taken:
    """A provider's own figures. Pure. Raises UnknownUsage.

    Anthropic's `input_tokens` leave out what was cached; OpenAI's `prompt_tokens` count it in. Mixing both up gives
    hit rates over 100 %.
    """
    if "cache_read_input_tokens" in usage or "cache_creation_input_tokens" in usage:
        return Taken(
            "anthropic",
            _count(usage, "input_tokens"),
            _count(usage, "cache_read_input_tokens"),
            _count(usage, "cache_creation_input_tokens"),
            _count(usage, "output_tokens"),
        )
    for whole, details, output in (
        ("prompt_tokens", "prompt_tokens_details", "completion_tokens"),
        ("input_tokens", "input_tokens_details", "output_tokens"),
    ):
        if whole in usage:
            inner = usage.get(details)
            # Codex writes it beside the whole, in the same sense.
            cached = _count(inner, "cached_tokens") if isinstance(inner, Mapping) else _count(usage, _CODEX)
            if cached > _count(usage, whole):
                raise UnknownUsage(f"{details}.cached_tokens is more than {whole}.")
            return Taken("openai", _count(usage, whole) - cached, cached, 0, _count(usage, output))
    raise UnknownUsage("usage holds input_tokens (Anthropic, OpenAI Responses) or prompt_tokens (OpenAI Chat).")


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    value = 0 if value is None else value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**12:
        raise UnknownUsage(f"{name} is a whole number.")
    return value


@dataclass(frozen=True)
class Reported:
    """One message's usage, as a caller reports it."""

    message_id: str
    model: str
    harness: str
    taken: Taken
    at: datetime


def record(tenant: Tenant, reported: Sequence[Reported]) -> int:
    """Keep each message once; gives how many were new. A message that comes again changes nothing."""
    before = Usage.objects.filter(tenant=tenant, message_id__in=[one.message_id for one in reported]).count()
    Usage.objects.bulk_create(
        [
            Usage(
                tenant=tenant,
                message_id=one.message_id,
                model=one.model,
                provider=one.taken.provider,
                harness=one.harness,
                input_tokens=one.taken.fresh,
                cache_read_tokens=one.taken.read,
                cache_write_tokens=one.taken.written,
                output_tokens=one.taken.output,
                at=one.at,
            )
            for one in reported
        ],
        ignore_conflicts=True,
    )
    return Usage.objects.filter(tenant=tenant, message_id__in=[one.message_id for one in reported]).count() - before


def rates(tenant: Tenant, *, since: date, until: date) -> list[dict[str, Any]]:
    """Per model and harness: tokens, and which share of what went in came from the provider's cache."""
    rows = (
        Usage.objects.filter(tenant=tenant, at__date__gte=since, at__date__lte=until)
        .values("model", "harness", "provider")
        .annotate(
            messages=Count("pk"),
            fresh=Sum("input_tokens"),
            read=Sum("cache_read_tokens"),
            written=Sum("cache_write_tokens"),
            output=Sum("output_tokens"),
        )
        .order_by("model", "harness", "provider")
    )
    return [{**row, "hit_rate": hit_rate(row["fresh"], row["read"], row["written"])} for row in rows]


@dataclass(frozen=True, slots=True)
class Span:
    """What went into models on some days, both included."""

    since: date
    until: date
    tokens: int
    messages: int

    @property
    def days(self) -> int:
        """How many days it has."""
        return (self.until - self.since).days + 1

    @property
    def per_day(self) -> float:
        """Input tokens a day."""
        return self.tokens / self.days

    @property
    def per_message(self) -> float | None:
        """Input tokens a message: more use is no waste."""
        return self.tokens / self.messages if self.messages else None


@dataclass(frozen=True, slots=True)
class Compared:
    """The time since a start, or the last 30 days, against the 30 days before."""

    now: Span
    before: Span
    started_on: date | None

    @property
    def per_day(self) -> float | None:
        """The change of input tokens a day: -0.2 is a fifth less; None where nothing is known of the time before."""
        return self.now.per_day / self.before.per_day - 1 if self.before.tokens else None

    @property
    def per_message(self) -> float | None:
        """The change of input tokens a message."""
        now, before = self.now.per_message, self.before.per_message
        return now / before - 1 if now is not None and before else None


def compared(tenant: Tenant, *, today: date, started_on: date | None) -> Compared:
    """Input tokens since a marked start, or of the last 30 days, against the month before. The tenant must be bound."""
    since = min(started_on, today) if started_on else today - timedelta(days=MONTH - 1)
    return Compared(
        _span(tenant, since, today), _span(tenant, since - timedelta(days=MONTH), since - timedelta(days=1)), started_on
    )


def _span(tenant: Tenant, since: date, until: date) -> Span:
    start, end = (datetime.combine(day, time(), tzinfo=UTC) for day in (since, until + timedelta(days=1)))
    rows = Usage.objects.filter(tenant=tenant, at__gte=start, at__lt=end)
    sums = rows.aggregate(
        fresh=Sum("input_tokens"), read=Sum("cache_read_tokens"), written=Sum("cache_write_tokens"), many=Count("pk")
    )
    return Span(since, until, sum(sums[name] or 0 for name in ("fresh", "read", "written")), sums["many"])


def latest(tenant: Tenant) -> datetime | None:
    """When the latest message that usage is known of was; None where there is none."""
    found: datetime | None = Usage.objects.filter(tenant=tenant).aggregate(at=Max("at"))["at"]
    return found


def models(tenant: Tenant) -> list[str]:
    """Models that usage is known of, by name."""
    return sorted(Usage.objects.filter(tenant=tenant).order_by().values_list("model", flat=True).distinct())


def hit_rate(fresh: int, cached: int, written: int) -> float | None:
    """read / (read + written + fresh): both providers' own formula, once `read` has brought them to one form."""
    whole = fresh + cached + written
    return round(cached / whole, 4) if whole else None
