"""Once a week the inbox says how many pairs of questions wait for a person; it stops when none does."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final

from django.db.models import Count
from django.utils import timezone

from cache_admin.models import PairsWeek
from memory.tenants import due
from memory.tenants.models import Tenant

TASK: Final = "cache_pairs"
# Monday morning, UTC.
HOUR: Final = time(6)


@dataclass(frozen=True)
class Waiting:
    """What the inbox shows: how many wait now, of which tools, and since which week it says so."""

    week: date
    count: int
    tools: tuple[tuple[str, int], ...]


def next_at(now: datetime) -> datetime:
    """The coming Monday morning. Pure."""
    monday = datetime.combine(now.date() - timedelta(days=now.weekday()), HOUR, tzinfo=now.tzinfo)
    return monday if monday > now else monday + timedelta(days=7)


def expect(tenant_pk: str) -> None:
    """A pair came in: on Monday the inbox is to say so. The tenant must be bound; many times is once."""
    due.put(tenant_pk, TASK, at=next_at(timezone.now()))


def tell(tenant: Tenant) -> bool:
    """Put this week's item into the inbox, once; False, and none is left, where nothing waits. The tenant is bound."""
    if clear(tenant):
        return False
    today = timezone.now().date()
    week = today - timedelta(days=today.weekday())
    PairsWeek.objects.get_or_create(tenant=tenant, week=week)
    PairsWeek.objects.filter(tenant=tenant, week__lt=week).delete()
    return True


def clear(tenant: Tenant) -> bool:
    """Take the item away where no pair waits any more; whether that was so."""
    if tenant.question_pairs.filter(verdict="").exists():
        return False
    PairsWeek.objects.filter(tenant=tenant).delete()
    return True


def item(tenant: Tenant) -> Waiting | None:
    """The inbox's item with what waits at this moment; None where there is none, or nothing waits."""
    row = PairsWeek.objects.filter(tenant=tenant).order_by("-week").first()
    if row is None:
        return None
    rows = tenant.question_pairs.filter(verdict="").order_by().values_list("tool").annotate(many=Count("pk"))
    tools = tuple(sorted(rows, key=lambda one: (-one[1], one[0])))
    return Waiting(row.week, sum(many for _, many in tools), tools) if tools else None
