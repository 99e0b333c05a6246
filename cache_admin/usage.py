"""What model calls took, and how much of it the provider had in its prompt cache."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.db.models import Count, Sum

from cache_admin.models import Usage
from memory.tenants.models import Tenant


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
            cached = _count(inner, "cached_tokens") if isinstance(inner, Mapping) else 0
            if cached > _count(usage, whole):
                raise UnknownUsage(f"{details}.cached_tokens is more than {whole}.")
            return Taken("openai", _count(usage, whole) - cached, cached, 0, _count(usage, output))
    raise UnknownUsage("usage holds input_tokens (Anthropic, OpenAI Responses) or prompt_tokens (OpenAI Chat).")


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name) or 0
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


def hit_rate(fresh: int, cached: int, written: int) -> float | None:
    """read / (read + written + fresh): both providers' own formula, once `read` has brought them to one form."""
    whole = fresh + cached + written
    return round(cached / whole, 4) if whole else None
