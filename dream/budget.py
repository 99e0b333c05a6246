"""What a team's dreams may use in a month: asked before each call to a model, and a hard stop."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final

from django.conf import settings
from django.db import connection
from django.utils import timezone
from django.utils.translation import gettext

from dream.mind import MindFailed
from dream.models import Budget, Spent
from memory import ids
from memory.llm import MAX_TOKENS, Usage
from memory.sentences import sentence
from memory.tenants import access, audit
from memory.tenants.access import Actor
from memory.tenants.models import Tenant
from memory.tenants.rls import tenant_scope

OVER: Final = "over_budget"
# An answer shorter than this is no answer: the call is not worth its question.
SHORTEST_ANSWER: Final = 500
MOST_TOKENS: Final = 10**13
MOST_DOLLARS: Final = Decimal(10) ** 7


class InvalidBudget(ValueError):
    """The figures can't be a budget; the message says what to write."""


@dataclass(frozen=True)
class Month:
    """How a month stands. A limit of 0 is none."""

    tokens: int
    dollars: Decimal
    most_tokens: int
    most_dollars: Decimal
    # What the team itself set, else None.
    own_tokens: int | None = None
    own_dollars: Decimal | None = None

    @property
    def is_over(self) -> bool:
        used_up = self.most_tokens and self.tokens + SHORTEST_ANSWER >= self.most_tokens
        return bool(used_up or (self.most_dollars and self.dollars >= self.most_dollars))

    @property
    def percent(self) -> int:
        """How much of the nearer limit is used."""
        shares = [self.tokens / self.most_tokens] if self.most_tokens else []
        shares += [float(self.dollars / self.most_dollars)] if self.most_dollars else []
        return min(100, int(100 * max(shares, default=0.0)))

    @property
    def next_at(self) -> datetime:
        return next_month()


def this_month() -> date:
    return timezone.now().astimezone(UTC).date().replace(day=1)


def next_month() -> datetime:
    """When the next budget begins, in UTC."""
    later = this_month() + timedelta(days=32)
    return datetime(later.year, later.month, 1, tzinfo=UTC)


def month() -> Month:
    """How this month of the bound team stands."""
    own = Budget.objects.first()
    spent = Spent.objects.filter(month=this_month()).first()
    tokens = own.tokens if own else None
    dollars = own.dollars if own else None
    return Month(
        spent.tokens if spent else 0,
        spent.dollars if spent else Decimal(0),
        settings.DREAM_TOKENS_PER_MONTH if tokens is None else tokens,
        Decimal(settings.DREAM_DOLLARS_PER_MONTH) if dollars is None else dollars,
        tokens,
        dollars,
    )


def set_budget(tenant: Tenant, *, tokens: str, dollars: str, by: Actor) -> None:
    """Set a team's own budget; "" leaves a figure to the settings. Raises Refused, InvalidBudget."""
    access.require(by, "dream.budget")
    values = {"tokens": _tokens(tokens), "dollars": _dollars(dollars)}
    Budget.objects.update_or_create(tenant_id=tenant.pk, defaults=values)
    audit.record(by, "dream.budget", tenant.public_id)


def _tokens(text: str) -> int | None:
    plain = text.replace(",", "").replace(" ", "").replace("_", "")
    if not plain:
        return None
    if not (plain.isascii() and plain.isdigit()) or int(plain) > MOST_TOKENS:
        raise InvalidBudget(gettext("Tokens are a whole number from 0 (no limit), such as 5000000."))
    return int(plain)


def _dollars(text: str) -> Decimal | None:
    plain = text.strip().removeprefix("$").strip()
    if not plain:
        return None
    whole, _, cents = plain.partition(".")
    is_number = f"{whole}{cents}".isascii() and f"{whole}{cents}".isdigit() and len(cents) <= 2 and len(whole) < 9
    if not is_number or Decimal(plain) > MOST_DOLLARS:
        raise InvalidBudget(gettext("Dollars are a number from 0 (no limit) with at most two decimals, such as 25.50."))
    return Decimal(plain)


@dataclass
class TeamMeter:
    """The account of one team, kept call by call in transactions of its own: a run that fails has still spent."""

    tenant_pk: str

    def before(self, sent: int, *, priced: bool) -> int:
        with tenant_scope(self.tenant_pk):
            stands = month()
        if stands.most_dollars and not priced:
            raise MindFailed(
                OVER,
                sentence(
                    "A budget in dollars is set, and nobody knows this model's price. Set TEAM_MEMORY_MODEL_PRICE."
                ),
            )
        if stands.most_dollars and stands.dollars >= stands.most_dollars:
            raise MindFailed(
                OVER,
                sentence(
                    "%(dollars)s of this month's %(most_dollars)s are used.",
                    dollars=f"${stands.dollars:.2f}",
                    most_dollars=f"${stands.most_dollars:.2f}",
                ),
            )
        if not stands.most_tokens:
            return MAX_TOKENS
        left = stands.most_tokens - stands.tokens - sent
        if left < SHORTEST_ANSWER:
            raise MindFailed(
                OVER,
                sentence(
                    "%(tokens)s of this month's %(most_tokens)s tokens are used, and the next call sends %(sent)s.",
                    tokens=format(stands.tokens, ","),
                    most_tokens=format(stands.most_tokens, ","),
                    sent=format(sent, ","),
                ),
            )
        return min(MAX_TOKENS, left)

    def after(self, usage: Usage) -> None:
        with tenant_scope(self.tenant_pk), connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO dream_spent (id, tenant_id, month, calls, tokens, dollars) VALUES (%s, %s, %s, 1, %s, %s)"
                " ON CONFLICT (month, tenant_id) DO UPDATE SET calls = dream_spent.calls + 1,"
                " tokens = dream_spent.tokens + excluded.tokens, dollars = dream_spent.dollars + excluded.dollars",
                [ids.new_key(), self.tenant_pk, this_month(), usage.sent + usage.received, usage.cost],
            )
