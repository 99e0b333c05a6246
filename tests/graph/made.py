"""A small chain of the id graph, made without the front door."""

from typing import Any

from memory.graph import threads, workers
from memory.graph.record import Incoming, record_trigger
from memory.graph.workers import Said
from memory.tenants import rls


def chain(tenant: Any) -> dict[str, str]:
    """A thread with a trigger and a worker that cites it, by their ids."""
    with rls.tenant_scope(str(tenant.pk)):
        stored = record_trigger(
            tenant, Incoming(source="made", external_id="1", thread_title="acme-only words", payload=b'{"a": 1}')
        ).trigger
        report = workers.packed_report(f"acme-only words rest on {stored.public_id}")
        worker, _ = workers.start(tenant, None, stored.thread, Said(task="Look", report=report), by="tests")
    return {"trigger": stored.public_id, "thread": stored.thread.public_id, "worker": worker.public_id}


def thread_of(tenant: Any, key: str) -> Any:
    """A thread with a key."""
    with rls.tenant_scope(str(tenant.pk)):
        return threads.open_thread(tenant, thread_id=None, key=key, wanted=threads.Wanted())[0]
