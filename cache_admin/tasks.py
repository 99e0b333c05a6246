"""What workers do for the caches. Only the sweeper sends these; running any of it twice does no harm."""

from collections.abc import Callable
from datetime import timedelta

from celery import shared_task
from django.db import connection
from django.utils import timezone

from cache_admin import alerts, analyses, imported, weekly
from cache_admin.clean import clean
from cache_admin.follow import follow
from cache_admin.models import Analysis, Content, Lookup
from memory.tenants import due
from memory.tenants.access import command_actor
from memory.tenants.models import Tenant
from memory.tenants.rls import tenant_scope

CLEAN_EVERY = timedelta(hours=1)
FOLLOW_EVERY = timedelta(seconds=10)
PATHS_EVERY = timedelta(seconds=5)


@shared_task(name="due.cache_clean")
def cache_clean(*, tenant_id: str, due_id: str) -> None:
    """Drop what is over, and come again in an hour as long as there is something to drop."""
    _again(tenant_id, due_id, _cleaned, CLEAN_EVERY)


@shared_task(name="due.cache_follow")
def cache_follow(*, tenant_id: str, due_id: str) -> None:
    """Drop what reported writes made useless, and come again as long as entries name paths."""
    _again(tenant_id, due_id, lambda tenant: follow(tenant, by=command_actor(tenant, "cache")), FOLLOW_EVERY)


@shared_task(name="due.cache_paths")
def cache_paths(*, tenant_id: str, due_id: str) -> None:
    """Add up at which paths analyses were asked for; whoever asks makes it due."""
    # Once more after the last: what comes in while it works finds this row there, and makes none of its own.
    _again(tenant_id, due_id, lambda _: analyses.add_up() > 0, PATHS_EVERY)


@shared_task(name="due.cache_pairs")
def cache_pairs(*, tenant_id: str, due_id: str) -> None:
    """Say once a week in the inbox how many pairs wait, as long as any does."""
    now = timezone.now()
    _again(tenant_id, due_id, weekly.tell, weekly.next_at(now) - now)


@shared_task(name="cache.find_due")
def find_due() -> int:
    """Make it due for each team whose sessions may hold usage that nobody read yet."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT usage_due()")
        return int(cursor.fetchone()[0])


@shared_task(name="due.cache_usage")
def cache_usage(*, tenant_id: str, due_id: str) -> None:
    """Take what model calls took out of imported transcripts."""
    _again(tenant_id, due_id, imported.take, timedelta())


@shared_task(name="due.cache_watch")
def cache_watch(*, tenant_id: str, due_id: str) -> None:
    """Look whether somebody has to be told, and look again as long as the caches are in use or something is open."""
    _again(tenant_id, due_id, alerts.watch, alerts.EVERY)


def _cleaned(tenant: Tenant) -> bool:
    clean(tenant)
    alerts.soon(str(tenant.pk))
    return any(model.objects.filter(tenant=tenant).exists() for model in (Content, Analysis, Lookup))


def _again(tenant_id: str, due_id: str, work: Callable[[Tenant], bool], every: timedelta) -> None:
    """Do the work under its lease; in the same transaction the row goes, and the next one comes."""
    claim = due.claim(tenant_id, due_id)
    if claim is None:
        return
    with due.heartbeat(claim), tenant_scope(tenant_id):
        goes_on = work(Tenant.objects.get(pk=tenant_id))
        due.done(claim)
        if goes_on:
            due.put(tenant_id, claim.task, claim.argument, at=timezone.now() + every)
