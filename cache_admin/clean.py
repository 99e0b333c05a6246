"""What has had its time goes; what fills a team's room goes by how long nobody used it."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import Sum
from django.utils import timezone

from cache_admin import analyses, metrics, policies
from cache_admin.models import Analysis, Content, Decision, Entry, Flight, Result, Shown
from cache_admin.results import LIFE
from memory.tenants.models import Tenant

# An id that somebody still holds says that its text is gone, and is not just unknown.
GRACE: Final = timedelta(days=7)
# What became of questions is looked at while thresholds are sought.
DECIDED: Final = timedelta(days=30)
AT_ONCE: Final = 500


def clean(tenant: Tenant) -> dict[str, int]:
    """Drop what is over; gives how many of each. The tenant must be bound; running it twice does no harm."""
    now = timezone.now()
    gone = {
        "entries": _count(Entry.objects.filter(tenant=tenant, expires_at__lte=now).delete(), "Entry"),
        "flights": _count(Flight.objects.filter(tenant=tenant, until__lt=now - timedelta(days=1)).delete(), "Flight"),
        "decisions": _count(Decision.objects.filter(tenant=tenant, at__lt=now - DECIDED).delete(), "Decision"),
        "shown": _count(Shown.objects.filter(tenant=tenant, at__lt=now - LIFE).delete(), "Shown"),
        "lookups": metrics.sum_up(tenant, before=now.date()),
    }
    analyses.add_up()
    days = policies.settings_of(tenant).analysis_days
    unused = Analysis.objects.filter(tenant=tenant, last_used_at__lt=now - timedelta(days=days))
    gone["analyses"] = _count(unused.delete(), "Analysis")
    # As long as an entry serves it, a result lives.
    Result.objects.filter(tenant=tenant, expires_at__lt=now + timedelta(days=1), entries__isnull=False).update(
        expires_at=now + LIFE
    )
    gone["results"] = _count(Result.objects.filter(tenant=tenant, expires_at__lt=now - GRACE).delete(), "Result")
    gone["evicted"] = evict(tenant, policies.settings_of(tenant).quota_bytes)
    gone["texts"] = unused_texts()
    return gone


def evict(tenant: Tenant, quota_bytes: int) -> int:
    """Drop the entries that were not hit longest, and then results that no entry serves, until the rest has room."""
    gone = 0
    while (over := used(tenant) - quota_bytes) > 0:
        idle = Entry.objects.filter(tenant=tenant).order_by("last_hit_at", "pk")
        entries = _enough(idle.values_list("pk", "result_id", "result__chars")[:AT_ONCE], over)
        Entry.objects.filter(pk__in=[pk for pk, _ in entries]).delete()
        results = [result for _, result in entries]
        if not entries:
            living = Result.objects.filter(tenant=tenant, expires_at__gt=timezone.now()).order_by("created_at", "pk")
            results = [pk for pk, _ in _enough(living.values_list("pk", "pk", "chars")[:AT_ONCE], over)]
            if not results:
                break
        Result.objects.filter(tenant=tenant, pk__in=results, entries__isnull=True).update(expires_at=timezone.now())
        gone += len(results)
        unused_texts()
    return gone


def _enough(rows: Iterable[tuple[Any, Any, int]], over: int) -> list[tuple[Any, Any]]:
    """The first rows whose texts make up what is too much."""
    chosen = []
    for pk, result, size in rows:
        chosen.append((pk, result))
        over -= size
        if over <= 0:
            break
    return chosen


def used(tenant: Tenant) -> int:
    """The bytes of all stored texts of the team."""
    return Content.objects.filter(tenant=tenant).aggregate(total=Sum("size"))["total"] or 0


def unused_texts() -> int:
    """Drop the texts that no living result holds: a text and its result are kept in one transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM cache_admin_content c WHERE NOT EXISTS (SELECT FROM cache_admin_result r"
            " WHERE r.sha256 = c.sha256 AND (r.expires_at IS NULL OR r.expires_at > clock_timestamp()))"
        )
        return int(cursor.rowcount)


def _count(deleted: tuple[int, dict[str, int]], model: str) -> int:
    return deleted[1].get(f"cache_admin.{model}", 0)
