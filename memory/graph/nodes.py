"""The graph's own kinds in the walk: threads, triggers, workers and steps."""

from typing import Any, Final

import orjson

from memory.graph import bodies, hot, kinds, steps, threads, workers
from memory.graph.kinds import Node
from memory.graph.models import Citation, Link, Trigger, Worker
from memory.tenants.models import Tenant

# So many ids of a kind lead on from one record; what is beyond is a page of its own.
FAN_OUT: Final = 20
NEAR: Final = 3
# A report over this many characters is shown by its beginning, with a pointer to the whole; less, where room is scarce.
REPORT_SHOWN: Final = 2_400
REPORT_SHORT: Final = (900, 240)
CITES_SHORT: Final = 5


def register() -> None:
    """Put the graph's kinds into the walk."""
    for prefix, find in (("thr", thread), ("trg", trigger), ("wkr", worker), ("evt", step)):
        kinds.register(prefix, find)


def thread(tenant: Tenant, public_id: str) -> Node | None:
    """A thread: to its workers, what it links to, its last triggers; after it came what links here."""
    found = tenant.threads.filter(public_id=public_id, deleted_at__isnull=True).first()
    if found is None:
        return None
    owners = found.owners.filter(worker__deleted_at__isnull=True).order_by("since", "worker__public_id")
    owned_by = list(owners.values_list("worker__public_id", flat=True)[:FAN_OUT])
    others = found.workers.filter(deleted_at__isnull=True).order_by("-created_at", "public_id")
    all_workers = dict.fromkeys([*owned_by, *others.values_list("public_id", flat=True)[:FAN_OUT]])
    latest = found.triggers.filter(deleted_at__isnull=True).order_by("-seq").values_list("public_id", flat=True)
    links = Link.objects.filter(removed_at__isnull=True).order_by("made_at", "pk")
    leads_to = links.filter(from_thread=found, to_thread__deleted_at__isnull=True, to_thread__isnull=False)
    comes_from = links.filter(to_thread=found, from_thread__deleted_at__isnull=True)
    near = list(latest[:NEAR])
    return Node(
        public_id,
        orjson.loads(threads.view(found)),
        threads.line(found),
        cause=(*all_workers, *leads_to.values_list("to_thread__public_id", flat=True)[:FAN_OUT], *near),
        after=(*comes_from.values_list("from_thread__public_id", flat=True)[:FAN_OUT], *near, *all_workers),
    )


def trigger(tenant: Tenant, public_id: str) -> Node | None:
    """A trigger: to what came just before it and its thread; after it came who cites it and the next triggers."""
    rows = tenant.triggers.select_related("thread").filter(thread__deleted_at__isnull=True, deleted_at__isnull=True)
    found = rows.filter(public_id=public_id).first()
    if found is None:
        return None
    view = hot.row("SELECT trigger_view(%t::uuid, %t::uuid)::text", (str(tenant.pk), str(found.pk)))[0]
    live = Trigger.objects.filter(thread_id=found.thread_id, deleted_at__isnull=True)
    before = live.filter(seq__lt=found.seq).order_by("-seq").values_list("public_id", flat=True)[:NEAR]
    later = live.filter(seq__gt=found.seq).order_by("seq").values_list("public_id", flat=True)[:NEAR]
    home = found.thread.public_id
    return Node(
        public_id,
        orjson.loads(view),
        f"{public_id}: {found.summary}",
        cause=(*before, home),
        after=(*_citing(tenant, public_id), *later, home),
    )


def worker(tenant: Tenant, public_id: str) -> Node | None:
    """A worker: to what its report cites, its session, its thread; after it came who cites it."""
    rows = tenant.workers.select_related("thread").filter(deleted_at__isnull=True)
    found = rows.filter(public_id=public_id).first()
    if found is None:
        return None
    view = workers.view(found)
    home = [view["thread_id"]] if view["thread_id"] else []
    session = [found.session_public_id] if found.session_public_id else []
    return Node(
        public_id,
        _shown(found, view),
        f"{public_id}: {' '.join(found.task.split())[:160]} ({found.state})",
        cause=(*view["cites"][: FAN_OUT * 5], *session, *home),
        after=(*_citing(tenant, public_id), *home, *session),
        shorter=tuple(_shown(found, view, most=most) for most in REPORT_SHORT),
    )


def _shown(found: Worker, view: dict[str, Any], *, most: int = REPORT_SHOWN) -> dict[str, Any]:
    """The worker's view with a report that leaves room for what it cites."""
    text = found.report or found.report_head
    whole = {name: value for name, value in view.items() if name not in ("report_head", "report_tail")}
    shown: dict[str, Any] = orjson.loads(orjson.dumps(whole))
    if most < REPORT_SHOWN:
        shown |= {"task": found.task[:most], "cites": view["cites"][:CITES_SHORT], "cited": len(view["cites"])}
    if len(text) > most or found.report_size > bodies.SPILL_BYTES:
        size = max(1, round(found.report_size / 1024))
        pointer = f"GET /api/v1/workers/{found.public_id}/report ({size} KB, truncated)"
        shown |= {"report": text[:most] + "…", "spilled": {"report": pointer}}
    return shown


def step(tenant: Tenant, public_id: str) -> Node | None:
    """A step of a thread: to the trigger, worker or thread it speaks of, then its thread."""
    found = steps.find(tenant, public_id)
    if found is None:
        return None
    spoken = (found.trigger_public_id, found.worker_public_id, found.other_public_id)
    leads = tuple(dict.fromkeys(one for one in (*spoken, found.thread.public_id) if one))
    view = orjson.loads(orjson.dumps(steps.view(found)))
    return Node(public_id, view, f"{public_id}: {found.kind} {found.summary}".strip(), leads, leads)


def _citing(tenant: Tenant, public_id: str) -> list[str]:
    rows = Citation.objects.filter(tenant_id=tenant.pk, cited=public_id, worker__deleted_at__isnull=True)
    ordered = rows.order_by("worker__created_at", "worker__public_id")
    return list(ordered.values_list("worker__public_id", flat=True)[:FAN_OUT])
