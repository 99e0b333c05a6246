"""Tell people when a cache served something stale or its hit rate collapsed: once at the edge, again after recovery.

An open `Alert` is the edge. Whoever raises one puts its messages down in the same transaction, by an occasion of their
own, so that they go out once however many workers look at the same moment.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import F, Max, Sum
from django.urls import reverse
from django.utils import timezone

from cache_admin import metrics, policies
from cache_admin.charts import percent
from cache_admin.models import Alert, Incident, Lookup
from memory.tenants import choices, due, outbox, vault
from memory.tenants.models import Setting, Tenant

log = logging.getLogger(__name__)
TASK: Final = "cache_watch"
EVERY: Final = timedelta(minutes=5)
WINDOW: Final = timedelta(hours=2)
BASE_DAYS: Final = 7
# Of fewer cacheable lookups no rate is worth a word.
ENOUGH_NOW: Final = 50
ENOUGH_BEFORE: Final = 200
LOW_ANYWAY: Final = 0.15
SHOWN: Final = 20
HOOK: Final = outbox.Hook(url_setting="alert_webhook", secret_setting="alert_webhook_secret")  # noqa: S106 - names

Cell = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Rate:
    """Hits of cacheable lookups."""

    hits: int
    cacheable: int

    @property
    def share(self) -> float:
        """The hit rate; 0 of nothing."""
        return self.hits / self.cacheable if self.cacheable else 0.0


def soon(tenant_pk: str, *, at: datetime | None = None) -> None:
    """Something happened that may be worth an alert: have a worker look. The tenant must be bound."""
    due.put(tenant_pk, TASK, at=at)


def watch(tenant: Tenant) -> bool:
    """Raise what is new, clear what is over; whether to look again. Running it twice does no harm. Tenant bound."""
    now = timezone.now()
    hours, drop = choices.number(tenant, "alert_stale_hours"), choices.number(tenant, "alert_hit_rate")
    _stale(tenant, now, timedelta(hours=hours))
    recent = rates(tenant, now)
    _collapsed(tenant, now, recent, drop)
    return bool(recent) or Alert.objects.filter(tenant=tenant, cleared_at__isnull=True).exists()


def _stale(tenant: Tenant, now: datetime, quiet: timedelta) -> None:
    rows = Incident.objects.filter(tenant=tenant, kind__in=metrics.STALE, at__gt=now - quiet)
    latest = dict(rows.order_by().values_list("tool").annotate(at=Max("at")))
    known = {alert.tool: alert for alert in _open(tenant, "stale")}
    for tool, alert in known.items():
        if tool not in latest:
            _clear(alert, now)
    closed = Alert.objects.filter(tenant=tenant, kind="stale", cleared_at__isnull=False)
    over = dict(closed.order_by().values_list("tool").annotate(at=Max("cleared_at")))
    for tool, at in latest.items():
        # An incident that an alert was cleared over is no news, however long the team makes the time.
        if tool not in known and (tool not in over or at > over[tool]):
            _raise(tenant, Alert(tenant=tenant, kind="stale", tool=tool))


def rates(tenant: Tenant, now: datetime) -> dict[Cell, Rate]:
    """Each tool's rate in the last two hours, by tool and kind; of those that were asked at all."""
    counts: dict[Cell, Counter[str]] = defaultdict(Counter)
    rows = Lookup.objects.filter(at__gt=now - WINDOW).order_by().values_list("tool", "kind", "status")
    for tool, kind, status, many in rows.annotate(many=Sum("times")):
        counts[(tool, kind)][status] += many
    return {cell: _rate(count) for cell, count in counts.items()}


def usual(tenant: Tenant, now: datetime, recent: Mapping[Cell, Rate]) -> dict[Cell, Rate]:
    """Each tool's rate in the week before, without the last two hours."""
    today = now.astimezone(UTC).date()
    totals: dict[Cell, Counter[str]] = defaultdict(Counter)
    for (_, tool, kind), tally in metrics.by_day(today - timedelta(days=BASE_DAYS), today).items():
        totals[(tool, kind)].update(tally.counts)
    found = {}
    for cell, count in totals.items():
        whole, late = _rate(count), recent.get(cell, Rate(0, 0))
        found[cell] = Rate(max(0, whole.hits - late.hits), max(0, whole.cacheable - late.cacheable))
    return found


def _rate(counts: Mapping[str, int]) -> Rate:
    hits = counts.get("hit", 0)
    return Rate(hits, max(hits, hits + counts.get("miss", 0) - counts.get("unfit", 0)))


def _collapsed(tenant: Tenant, now: datetime, recent: Mapping[Cell, Rate], drop: int) -> None:
    known = {(alert.tool, alert.call_kind): alert for alert in _open(tenant, "collapse")}
    for cell, alert in known.items():
        if not drop or _is_well(recent.get(cell), alert.usual or 0.0, drop) or not _serves(tenant, cell):
            _clear(alert, now)
    before = usual(tenant, now, recent) if drop and recent else {}
    for cell, rate in recent.items():
        base = before.get(cell, Rate(0, 0))
        if cell not in known and drop and is_collapse(rate, base, drop):
            tool, kind = cell
            _raise(
                tenant,
                Alert(tenant=tenant, kind="collapse", tool=tool, call_kind=kind, rate=rate.share, usual=base.share),
            )


def is_collapse(now: Rate, before: Rate, drop: int) -> bool:
    """Pure: whether a rate fell by more than `drop` % of what it was, and both are of enough lookups to say so."""
    if now.cacheable < ENOUGH_NOW or before.cacheable < ENOUGH_BEFORE or before.share < LOW_ANYWAY:
        return False
    return now.share < before.share * (1 - drop / 100)


def _is_well(now: Rate | None, usual: float, drop: int) -> bool:
    """Half of the way back: at the edge itself it would be told again and again."""
    return now is not None and now.cacheable >= ENOUGH_NOW and now.share >= usual * (1 - drop / 200)


def _serves(tenant: Tenant, cell: Cell) -> bool:
    """A tool that was switched off has no rate to recover."""
    tool, kind = cell
    return kind == "analysis" or policies.of_tool(tenant, tool).mode == "serve"


def _open(tenant: Tenant, kind: str) -> list[Alert]:
    return list(Alert.objects.filter(tenant=tenant, kind=kind, cleared_at__isnull=True))


def _clear(alert: Alert, now: datetime) -> None:
    Alert.objects.filter(pk=alert.pk, cleared_at__isnull=True).update(cleared_at=now)


def _raise(tenant: Tenant, alert: Alert) -> None:
    """Of two workers that see the same edge one has the row, and tells."""
    Alert.objects.bulk_create([alert], ignore_conflicts=True)
    if Alert.objects.filter(pk=alert.pk).exists():
        _tell(tenant, alert)


def _tell(tenant: Tenant, alert: Alert) -> None:
    title, text, where = words(tenant, alert)
    about = f"{tenant.name}: {title}"
    page = settings.PUBLIC_URL + reverse("settings", args=[tenant.slug]) + "#alert_mail"
    for to in choices.addresses(choices.text(tenant, "alert_mail")):
        try:
            outbox.mail(tenant, to, about, text, occasion=f"cache-alert:{alert.pk}:{to}", page=page)
        except outbox.NoMail:
            break
    if has_hook(tenant):
        try:
            outbox.webhook(tenant, HOOK, body(tenant, alert, where), about=about, occasion=f"cache-alert:{alert.pk}")
        except vault.Unreadable as why:
            log.warning("no webhook is told of an alert: %s", why)


def has_hook(tenant: Tenant) -> bool:
    """Whether the team has a webhook for alerts."""
    return Setting.objects.filter(tenant=tenant, name="alert_webhook").exists()


def words(tenant: Tenant, alert: Alert) -> tuple[str, str, str]:
    """What an alert says: its title, the mail, and the page to look at. Names no argument and no answer."""
    page = "cache_incidents" if alert.kind == "stale" else "cache_tools"
    where = settings.PUBLIC_URL + reverse(page, args=[tenant.slug])
    if alert.kind == "stale":
        title = f"The cache of {alert.tool} served a stale answer"
        what = (
            f"The cache of {alert.tool} served an answer that was not what the tool would have said."
            " You are told once; again only after it has been quiet for as long as the team's settings say."
        )
    else:
        title = f"The hit rate of {alert.tool} collapsed to {percent(alert.rate)}"
        what = (
            f"In the last two hours the cache of {alert.tool} answered {percent(alert.rate)} of the calls that it"
            f" could have; in the week before it was {percent(alert.usual)}. A new version of a tool, a content hash"
            " that changes with every call, or a purge are the usual causes. You are told once; again only after it"
            " has recovered."
        )
    return title, f"{what}\n\nLook at it: {where}\n", where


def body(tenant: Tenant, alert: Alert, where: str) -> dict[str, Any]:
    """The JSON of the webhook."""
    told: dict[str, Any] = {
        "team": tenant.slug,
        "tool": alert.tool,
        "kind": alert.call_kind,
        "raised_at": alert.raised_at.isoformat(),
        "url": where,
    }
    if alert.kind == "collapse":
        told |= {"hit_rate": round(alert.rate or 0, 4), "usual_hit_rate": round(alert.usual or 0, 4)}
    name = "cache.stale_answer" if alert.kind == "stale" else "cache.hit_rate_collapsed"
    return {"type": name, "timestamp": alert.raised_at.isoformat(), "data": told}


def latest(tenant: Tenant) -> list[Alert]:
    """The latest alerts, the open ones first."""
    rows = tenant.cache_alerts.order_by(F("cleared_at").desc(nulls_first=True), "-raised_at", "-pk")
    return list(rows[:SHOWN])


def ways(tenant: Tenant) -> list[str]:
    """How alerts reach people, in words; empty where nobody is told."""
    mails = choices.addresses(choices.text(tenant, "alert_mail"))
    return [*mails, *(["the webhook"] if has_hook(tenant) else [])]
