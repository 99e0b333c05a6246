"""What tokens are worth, at the team's own prices for each model."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final

from django.utils import timezone

from cache_admin.models import CacheSetting
from memory.problems import Problem
from memory.tenants import audit
from memory.tenants.access import Actor, require
from memory.tenants.models import Tenant

MILLION: Final = Decimal(1_000_000)
EARLIEST: Final = date(2020, 1, 1)
_CURRENCY: Final = re.compile(r"[A-Z]{3}")
MOST_MODELS: Final = 200
KINDS: Final = ("input", "cache_read", "cache_write", "output")
_OF: Final = {"fresh": "input", "read": "cache_read", "written": "cache_write", "output": "output"}


def save_prices(tenant: Tenant, prices: Mapping[str, Mapping[str, Any]], *, currency: str = "USD", by: Actor) -> None:
    """Set what a million tokens of each model cost, and in which currency. Raises Refused, Problem 400."""
    require(by, "cache.manage")
    if len(prices) > MOST_MODELS:
        raise Problem(400, "invalid_field", f"prices: at most {MOST_MODELS} models.", field="prices")
    if not _CURRENCY.fullmatch(currency):
        what = "currency: three capital letters, such as USD, EUR or VND."
        raise Problem(400, "invalid_field", what, field="currency")
    fit = {_model(model): _price(model, given) for model, given in prices.items()}
    old = CacheSetting.objects.filter(tenant=tenant).first() or CacheSetting(tenant=tenant)
    if (old.prices, old.currency) == (fit, currency):
        return
    CacheSetting.objects.update_or_create(tenant=tenant, defaults={"prices": fit, "currency": currency})
    before = told(old.prices, old.currency) if old.prices else ""
    audit.record(by, "cache.prices", "prices", before=before, after=told(fit, currency))


def told(prices: Mapping[str, Mapping[str, float]], currency: str) -> str:
    """Prices on one line, for the audit."""
    rows = [
        f"{model} {'/'.join(f'{price[kind]:g}' if kind in price else '-' for kind in KINDS)}"
        for model, price in sorted(prices.items())
    ]
    return f"{currency}: {', '.join(rows) or 'none'}"[:300]


def mark_start(tenant: Tenant, day: date | None, *, by: Actor) -> None:
    """Say since when the caches are in use, for the comparison with the time before; None for no such day. Raises
    Refused, Problem 400.
    """
    require(by, "cache.manage")
    if day is not None and not EARLIEST <= day <= timezone.now().date():
        what = f"started_on: a day from {EARLIEST} to today."
        raise Problem(400, "invalid_field", what, field="started_on")
    old = CacheSetting.objects.filter(tenant=tenant).first() or CacheSetting(tenant=tenant)
    if old.started_on == day:
        return
    before = str(old.started_on or "")
    CacheSetting.objects.update_or_create(tenant=tenant, defaults={"started_on": day})
    audit.record(by, "cache.start", "started_on", before=before, after=str(day or ""))


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


def uncached(row: Mapping[str, Any], prices: Mapping[str, Mapping[str, float]]) -> Decimal | None:
    """What the same line would have cost had nothing been in the provider's prompt cache; None as in `cost`."""
    whole = sum(int(row.get(name) or 0) for name in ("fresh", "read", "written"))
    return cost({"model": row["model"], "fresh": whole, "output": row.get("output")}, prices)


@dataclass(frozen=True, slots=True)
class Bill:
    """What a period cost, as far as prices are known; `spared` is what the providers' prompt caches took off it."""

    cost: Decimal
    spared: Decimal
    unpriced: tuple[str, ...]
    is_known: bool


def bill(rows: Iterable[Mapping[str, Any]], prices: Mapping[str, Mapping[str, float]]) -> Bill:
    """Pure: of lines of `usage.rates`."""
    total, whole = Decimal(0), Decimal(0)
    unpriced: dict[str, None] = {}
    is_known = False
    for row in rows:
        one, other = cost(row, prices), uncached(row, prices)
        if one is None or other is None:
            unpriced[str(row["model"])] = None
            continue
        total, whole, is_known = total + one, whole + other, True
    return Bill(total, whole - total, tuple(unpriced), is_known)


def usual_model(rows: Iterable[Mapping[str, Any]]) -> str:
    """The model that took most input: what was saved would have gone to it. Empty where no usage is known."""
    taken: dict[str, int] = {}
    for row in rows:
        whole = sum(int(row.get(name) or 0) for name in ("fresh", "read", "written"))
        taken[str(row["model"])] = taken.get(str(row["model"]), 0) + whole
    return max(sorted(taken), key=lambda one: taken[one]) if taken else ""
