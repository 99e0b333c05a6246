"""What tokens are worth, at the team's own prices, and whether a tool's cache gains more than it costs."""

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from cache_admin.models import CacheSetting
from memory.problems import Problem
from memory.tenants import audit
from memory.tenants.access import Actor, require
from memory.tenants.models import Tenant

MILLION: Final = Decimal(1_000_000)
MOST_MODELS: Final = 200
KINDS: Final = ("input", "cache_read", "cache_write", "output")
_OF: Final = {"fresh": "input", "read": "cache_read", "written": "cache_write", "output": "output"}


def save_prices(tenant: Tenant, prices: Mapping[str, Mapping[str, Any]], *, by: Actor) -> None:
    """Set what a million tokens of each model cost. Raises Refused, Problem 400."""
    require(by, "cache.manage")
    if len(prices) > MOST_MODELS:
        raise Problem(400, "invalid_field", f"prices: at most {MOST_MODELS} models.", field="prices")
    fit = {_model(model): _price(model, given) for model, given in prices.items()}
    CacheSetting.objects.update_or_create(tenant=tenant, defaults={"prices": fit})
    audit.record(by, "cache.prices", ", ".join(sorted(fit))[:200])


def _model(model: str) -> str:
    if not model.strip() or len(model) > 120:
        raise Problem(400, "invalid_field", "prices: a model's name has 1 to 120 characters.", field="prices")
    return model


def _price(model: str, given: Mapping[str, Any]) -> dict[str, float]:
    unknown = [name for name in given if name not in KINDS]
    values = [value for value in given.values() if isinstance(value, bool) or not isinstance(value, int | float)]
    if unknown or values or not all(math.isfinite(one) and 0 <= one <= 1e6 for one in given.values()):
        what = f"prices: for {model[:60]} each of {', '.join(KINDS)} is a price per million tokens, 0 or more."
        raise Problem(400, "invalid_field", what, field="prices")
    return {name: float(value) for name, value in given.items()}


def worth(tokens: int, prices: Mapping[str, Mapping[str, float]], model: str) -> Decimal | None:
    """What input tokens that were not sent would have cost; None where the model has no price."""
    price = prices.get(model, {}).get("input")
    return None if price is None else round(tokens * Decimal(str(price)) / MILLION, 6)


def cost(row: Mapping[str, Any], prices: Mapping[str, Mapping[str, float]]) -> Decimal | None:
    """What a line of `usage.rates` cost; None where any of its kinds of tokens has no price. Unknown is not free."""
    price = prices.get(str(row["model"]), {})
    total = Decimal(0)
    for name, kind in _OF.items():
        count = int(row.get(name) or 0)
        if count and kind not in price:
            return None
        total += count * Decimal(str(price.get(kind, 0))) / MILLION
    return round(total, 6)


def usual_model(rows: Iterable[Mapping[str, Any]]) -> str:
    """The model that took most input: what was saved would have gone to it. Empty where no usage is known."""
    taken: dict[str, int] = {}
    for row in rows:
        whole = sum(int(row.get(name) or 0) for name in ("fresh", "read", "written"))
        taken[str(row["model"])] = taken.get(str(row["model"]), 0) + whole
    return max(sorted(taken), key=lambda one: taken[one]) if taken else ""


def net_gain(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Whether a tool's cache is worth it, of a line of `metrics.report`: time saved by hits less what asking took.

    `warning` says so where a lookup costs as much as the tool itself; None where nothing can be said yet.
    """
    asked_us = sum(int(times["p50"] or 0) for times in figures["overhead_us"].values())
    spent_ms = round(asked_us * figures["lookups"] / 1000)
    hits = figures["hits"]
    tool_ms = figures["time_saved_ms"] / hits if hits else None
    warning = None
    if tool_ms is not None and 0 < tool_ms * 1000 <= asked_us:
        warning = f"A lookup takes {asked_us / 1000:.1f} ms, the tool itself {tool_ms:.1f} ms: the cache gains no time."
    return {
        "time_saved_ms": figures["time_saved_ms"],
        "time_spent_ms": spent_ms,
        "net_time_ms": figures["time_saved_ms"] - spent_ms,
        "tokens_saved": figures["tokens_saved"],
        "warning": warning,
    }
