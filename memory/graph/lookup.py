"""Finding a thread, trigger or worker of the bound tenant by its public id; what was deleted is 410, not 404."""

from memory.graph.models import Thread, Trigger, Worker
from memory.graph.refusals import gone
from memory.problems import Problem, not_found
from memory.tenants import rls
from memory.tenants.models import KnownId, Tenant

# Longer than any id; the index need not look for it.
MAX_ID = 100


def thread(tenant: Tenant, public_id: str) -> Thread:
    """The live thread. Raises Problem 404 or 410."""
    found = tenant.threads.filter(public_id=public_id[: MAX_ID + 1], deleted_at__isnull=True).first()
    if found is None:
        raise absent(tenant, public_id)
    return found


def trigger(tenant: Tenant, public_id: str) -> Trigger:
    """The live trigger with its thread. Raises Problem 404 or 410."""
    rows = tenant.triggers.select_related("thread")
    found = rows.filter(public_id=public_id[: MAX_ID + 1], deleted_at__isnull=True).first()
    if found is None:
        raise absent(tenant, public_id)
    return found


def worker(tenant: Tenant, public_id: str) -> Worker:
    """The live worker with its thread. Raises Problem 404 or 410."""
    rows = tenant.workers.select_related("thread")
    found = rows.filter(public_id=public_id[: MAX_ID + 1], deleted_at__isnull=True).first()
    if found is None:
        raise absent(tenant, public_id)
    return found


def absent(tenant: Tenant, public_id: str) -> Problem:
    """410 where the id was ours once, else the 404 that an unknown id and another team's id share."""
    if not rls.sees_all() and not _is_seen(public_id):
        return not_found(public_id)
    known = KnownId.objects.filter(tenant_id=tenant.pk, public_id=public_id[: MAX_ID + 1], reason="deleted").first()
    return gone(public_id, known.at.isoformat()) if known else not_found(public_id)


def _is_seen(public_id: str) -> bool:
    """Whether a deleted thing can still be told to be of a project that is not hidden from who asks."""
    return any(kind.objects.filter(public_id=public_id[: MAX_ID + 1]).exists() for kind in (Thread, Trigger, Worker))
