"""A thread's steps: one append-only row for all that happens in it, with the next `seq` under the thread's lock."""

from collections.abc import Iterable
from typing import Any

import orjson

from memory.graph import hot
from memory.graph.models import Step, Thread
from memory.tenants.models import Tenant


def add(thread: Thread, kind: str, *, trigger: str = "", worker: str = "", other: str = "", summary: str = "") -> str:
    """Append a step and give its id. The thread stays locked until the commit: call this last."""
    step = {"kind": kind, "trigger": trigger, "worker": worker, "other": other, "summary": summary}
    sql = "SELECT public_id FROM add_step(%t::uuid, %t::uuid, %t::jsonb)"
    return str(hot.row(sql, (str(thread.tenant_id), str(thread.pk), orjson.dumps(step).decode()))[0])


def lock(threads: Iterable[Thread]) -> None:
    """Lock threads in the order of their ids, so that two that touch the same ones can't wait for each other."""
    keys = [thread.pk for thread in threads]
    list(Thread.objects.select_for_update().filter(pk__in=keys).order_by("pk").values_list("pk", flat=True))


def find(tenant: Tenant, public_id: str) -> Step | None:
    """The step with this evt_ id in a live thread."""
    rows = tenant.steps.select_related("thread").filter(thread__deleted_at__isnull=True)
    return rows.filter(public_id=public_id).first()


def view(step: Step) -> dict[str, Any]:
    """A step as its thread's events show it, with the thread's id."""
    shown: dict[str, Any] = {
        "id": step.public_id,
        "thread_id": step.thread.public_id,
        "seq": step.seq,
        "kind": step.kind,
    }
    for name, value in (
        ("trigger_id", step.trigger_public_id),
        ("worker_id", step.worker_public_id),
        ("other_id", step.other_public_id),
    ):
        if value:
            shown[name] = value
    return shown | {"summary": step.summary, "at": step.at}
