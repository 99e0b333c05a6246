"""Work that is due: put down in the transaction that makes it due, taken by one worker under a lease.

The broker only carries; a row of `Due` is the truth. A row is taken by a conditional update, kept by a heartbeat, and
removed in the transaction that ends the work. Whoever dies leaves the row; the sweeper sends it again when the lease
has run out.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import Error, connection
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone

from memory import ids
from memory.tenants.models import Due, Tenant
from memory.tenants.rls import tenant_scope

log = logging.getLogger(__name__)
SWEPT_AT_ONCE = 50


class LeaseLost(Exception):
    """Another worker has the work now, or it is done: whatever was not committed is theirs."""


@dataclass(frozen=True)
class Claim:
    """A piece of work that this process holds."""

    tenant_pk: str
    pk: str
    task: str
    argument: str
    attempts: int
    owner: str


@dataclass(frozen=True)
class Swept:
    """A row that the sweeper sends."""

    tenant_pk: str
    pk: str
    task: str


def put(tenant_pk: str, task: str, argument: str = "", *, at: datetime | None = None) -> str:
    """Make work due, inside the bound transaction that makes it so; gives its key. The same twice: the earlier."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO tenants_due (id, tenant_id, task, argument, due_at, attempts, owner)"
            " VALUES (%s, %s, %s, %s, coalesce(%s, clock_timestamp()), 0, '')"
            " ON CONFLICT (tenant_id, task, argument)"
            " DO UPDATE SET due_at = LEAST(tenants_due.due_at, excluded.due_at) RETURNING id",
            [ids.new_key(), tenant_pk, task, argument, at],
        )
        return str(cursor.fetchone()[0])


def put_all(tenant_pk: str, task: str, arguments: Sequence[str]) -> None:
    """Make work due now for each argument, inside the bound transaction; what is due already stays as it is."""
    now = timezone.now()
    rows = [Due(id=ids.new_key(), tenant_id=tenant_pk, task=task, argument=one, due_at=now) for one in arguments]
    Due.objects.bulk_create(rows, ignore_conflicts=True, batch_size=1000)


def next_of(tenant_pk: str, task: str) -> Claim | None:
    """Take the next free row of a task that is due, or None; None in a suspended team, too."""
    with tenant_scope(tenant_pk):
        if _is_suspended(tenant_pk):
            return None
        free = Due.objects.filter(task=task, due_at__lte=Now()).filter(Q(owner="") | Q(leased_until__lt=Now()))
        pk = free.order_by("due_at", "pk").values_list("pk", flat=True).first()
    return claim(tenant_pk, str(pk)) if pk else None


def sweep() -> list[Swept]:
    """What is due in all teams, leased to whoever is sent; nothing while another sweeper is at it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tenant_id, id, task FROM claim_due(%s, make_interval(secs => %s))",
            [SWEPT_AT_ONCE, settings.LEASE_SECONDS],
        )
        return [Swept(str(tenant), str(pk), task) for tenant, pk, task in cursor.fetchall()]


def owner_name() -> str:
    """A name that no other holder has: of two threads of one process, one holds the row."""
    return f"{socket.gethostname()[:30]}:{os.getpid()}:{ids.new_key()[-12:]}"


def claim(tenant_pk: str, pk: str) -> Claim | None:
    """Take the row, or None: it is gone, not yet due, somebody's, or its team is suspended. Commits at once."""
    owner = owner_name()
    with tenant_scope(tenant_pk):
        if _is_suspended(tenant_pk):
            return None
        free = Due.objects.filter(pk=pk, due_at__lte=Now()).filter(Q(owner="") | Q(leased_until__lt=Now()))
        if not free.update(owner=owner, leased_until=_lease(), attempts=F("attempts") + 1):
            return None
        row = Due.objects.get(pk=pk)
    return Claim(tenant_pk, pk, row.task, row.argument, row.attempts, owner)


def _is_suspended(tenant_pk: str) -> bool:
    return Tenant.objects.filter(pk=tenant_pk, suspended_at__isnull=False).exists()


def take_all_back(tenant_pk: str) -> None:
    """Inside the bound transaction: whoever works for the team loses the lease, and stops where they next write."""
    Due.objects.filter(tenant_id=tenant_pk).exclude(owner="").update(owner="", leased_until=None)


def _lease() -> object:
    return Now() + timedelta(seconds=settings.LEASE_SECONDS)


def hold(claim: Claim) -> None:
    """Inside the bound transaction that writes: raises LeaseLost unless the row is still ours, and keeps it locked.

    Progress, so the count of attempts begins again.
    """
    if not Due.objects.filter(pk=claim.pk, owner=claim.owner).update(attempts=0):
        raise LeaseLost(claim.task)


def done(claim: Claim) -> None:
    """Remove the row, inside the transaction that ends the work. Raises LeaseLost where it is no longer ours."""
    if not Due.objects.filter(pk=claim.pk, owner=claim.owner).delete()[0]:
        raise LeaseLost(claim.task)


def postpone(claim: Claim, wait: timedelta) -> None:
    """Give the row back, to be sent again after a while: its work could not be done now."""
    rows = Due.objects.filter(pk=claim.pk, owner=claim.owner)
    rows.update(owner="", leased_until=None, due_at=Now() + wait)


def renew(claim: Claim) -> bool:
    """Make the lease last from now; False where the row is no longer ours."""
    with tenant_scope(claim.tenant_pk):
        return bool(Due.objects.filter(pk=claim.pk, owner=claim.owner).update(leased_until=_lease()))


def release(claim: Claim) -> None:
    """Give the row back, to be sent again at once: after a failure that is not the work's own."""
    with tenant_scope(claim.tenant_pk):
        Due.objects.filter(pk=claim.pk, owner=claim.owner).update(owner="", leased_until=None)


@contextmanager
def heartbeat(claim: Claim) -> Iterator[None]:
    """Keeps the lease while the block runs, from a thread with a database connection of its own."""
    stop = threading.Event()
    beating = threading.Thread(target=_beat, args=(claim, stop), name="heartbeat", daemon=True)
    beating.start()
    try:
        yield
    finally:
        stop.set()
        beating.join(timeout=settings.HEARTBEAT_SECONDS)


def _beat(claim: Claim, stop: threading.Event) -> None:
    since = time.monotonic()
    try:
        while not stop.wait(settings.HEARTBEAT_SECONDS):
            try:
                if not renew(claim):
                    return
            except Error:
                # The database may be away for a moment. The lease is in it: without it nobody else can take over.
                log.warning("heartbeat of %s missed after %.0f s", claim.task, time.monotonic() - since)
                connection.close()
    finally:
        connection.close()
