"""Workers: started, reporting, owning threads, and the inbox of what is passed straight through to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.utils import timezone

from memory import redact
from memory.graph import bodies, citations, kinds, steps
from memory.graph.models import InboxEntry, Owner, Thread, Worker
from memory.graph.refusals import Conflict, UnknownWorker
from memory.sentences import sentence
from memory.tenants.models import KnownId, Tenant


@dataclass(frozen=True, slots=True)
class Report:
    """A report without secrets, packed."""

    text: str
    packed: bodies.Packed
    redactions: int


@dataclass(frozen=True, slots=True)
class Said:
    """What a caller says of a worker; None leaves a field as it is."""

    task: str | None = None
    state: str | None = None
    session_id: str | None = None
    report: Report | None = None
    cites: Sequence[str] | None = None


def packed_report(text: str) -> Report:
    """A report ready for its row. It stays in PostgreSQL, where search reads it."""
    clean = redact.clean_text(text)
    return Report(clean.value, bodies.pack(clean.value.encode(), tenant_pk=None), clean.redactions)


def start(tenant: Tenant, worker_id: str | None, thread: Thread | None, said: Said, *, by: str) -> tuple[Worker, bool]:
    """A new worker, or the one that has this id already. Raises Conflict, UnknownWorker, UnknownCitation."""
    task = redact.clean(said.task or "").value
    if worker_id is not None:
        old = _same(tenant, worker_id, thread, task)
        if old is not None:
            return old, False
    worker = Worker(tenant_id=tenant.pk, thread=thread, task=task, state=said.state or "running", by=by)
    if worker_id is not None:
        worker.public_id = worker_id
        KnownId.objects.bulk_create(
            [KnownId(tenant_id=tenant.pk, public_id=worker_id, reason="given")], ignore_conflicts=True
        )
    worker.save(force_insert=True)
    if thread:
        _count(thread)
        steps.add(thread, "worker_started", worker=worker.public_id, summary=_first_line(task))
    change(worker, Said(session_id=said.session_id, report=said.report, cites=said.cites))
    return worker, True


def _same(tenant: Tenant, worker_id: str, thread: Thread | None, task: str) -> Worker | None:
    old = tenant.workers.select_related("thread").filter(public_id=worker_id).first()
    is_deleted = KnownId.objects.filter(tenant_id=tenant.pk, public_id=worker_id, reason="deleted").exists()
    if is_deleted or (old and old.deleted_at):
        raise Conflict("deleted", "The worker with this id was deleted; an id is never used again.", worker_id)
    if old and (old.task != task or old.thread_id != (thread.pk if thread else None)):
        raise Conflict("conflict", "This id belongs to a worker with another task or thread.", worker_id)
    return old


def _count(thread: Thread) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE graph_thread SET worker_count = worker_count + 1 WHERE id = %s", [thread.pk])


def change(worker: Worker, said: Said) -> None:
    """Set what is said; each report and change of state is a step of the thread."""
    if worker.thread:
        # A trigger locks its thread and then the inboxes of its owners: in that order here too.
        steps.lock([worker.thread])
    before = worker.state
    changed: list[str] = []
    if said.task is not None:
        worker.task = redact.clean(said.task).value
        changed.append("task")
    if said.state is not None and said.state != before:
        worker.state = said.state
        changed.append("state")
    if said.report is not None:
        changed += _take(worker, said.report)
    if said.session_id is not None:
        changed += _attach(worker, said.session_id)
    if changed:
        worker.save(update_fields=changed)
    if said.cites is not None or said.report is not None:
        citations.replace(worker, given=said.cites, text=said.report.text if said.report else None)
    if worker.thread is None:
        return
    if said.report is not None:
        steps.add(worker.thread, "worker_reported", worker=worker.public_id, summary=_first_line(said.report.text))
    if "state" in changed:
        steps.add(worker.thread, "worker_state", worker=worker.public_id, summary=f"{before} → {worker.state}")


def _take(worker: Worker, report: Report) -> list[str]:
    raw = report.text.encode()
    is_spilled = report.packed.is_spilled
    if is_spilled:
        bodies.keep(str(worker.tenant_id), report.packed)
    worker.report = "" if is_spilled else report.text
    worker.report_head, worker.report_tail = bodies.edges(raw) if is_spilled else ("", "")
    worker.report_size, worker.report_sha256 = report.packed.size, report.packed.sha256
    worker.report_redactions, worker.reported_at = report.redactions, timezone.now()
    return [
        "report",
        "report_head",
        "report_tail",
        "report_size",
        "report_sha256",
        "report_redactions",
        "reported_at",
    ]


def _attach(worker: Worker, session_id: str) -> list[str]:
    if not kinds.attach_session(Tenant(pk=worker.tenant_id), session_id, str(worker.pk)):
        raise UnknownWorker(session_id, kind="session")
    worker.session_public_id = session_id
    return ["session_public_id"]


def draft(tenant: Tenant, session_id: str, text: str) -> int:
    """Give the workers that a session is, and that have not reported, a draft of their report; gives how many."""
    rows = tenant.workers.filter(session_public_id=session_id, deleted_at__isnull=True, reported_at__isnull=True)
    return rows.exclude(session_public_id="").update(draft_report=redact.clean_text(text).value)


def of_session(tenant: Tenant, session_id: str) -> list[str]:
    """The workers that a session is, the oldest first."""
    rows = tenant.workers.filter(session_public_id=session_id, deleted_at__isnull=True).exclude(session_public_id="")
    return list(rows.order_by("created_at", "public_id").values_list("public_id", flat=True))


def report_of(worker: Worker) -> bytes | None:
    """The whole report; None where there is none, or retention has dropped it."""
    if worker.report_sha256 is None:
        return None
    if worker.report or not worker.report_size:
        return worker.report.encode()
    return bodies.fetch(str(worker.tenant_id), bytes(worker.report_sha256))


def own(thread: Thread, worker: Worker, *, pass_through: bool) -> bool:
    """Make a worker an owner of a thread, or change what is passed to it; True where it is one only now."""
    steps.lock([thread])
    old = Owner.objects.filter(thread=thread, worker=worker).first()
    if old is not None and old.pass_through == pass_through:
        return False
    if old is None:
        Owner(thread=thread, worker=worker, tenant_id=thread.tenant_id, pass_through=pass_through).save(
            force_insert=True
        )
    else:
        Owner.objects.filter(thread=thread, worker=worker).update(pass_through=pass_through)
    said = sentence("New triggers go straight into its inbox") if pass_through else sentence("Owns the thread")
    steps.add(thread, "owner_added", worker=worker.public_id, summary=said)
    return old is None


def disown(thread: Thread, worker: Worker) -> bool:
    """Make a worker an owner no longer; False where it was none."""
    if not Owner.objects.filter(thread=thread, worker=worker).delete()[0]:
        return False
    steps.add(thread, "owner_removed", worker=worker.public_id)
    return True


def inbox(worker: Worker, *, after: int, most: int) -> list[InboxEntry]:
    """What was passed to a worker past a place, in order."""
    rows = worker.inbox.select_related("trigger__thread").filter(seq__gt=after)
    return list(rows.order_by("seq")[:most])


def entry_view(entry: InboxEntry) -> dict[str, Any]:
    """One thing in an inbox. What was deleted keeps its place, so that no reader's cursor sees a gap."""
    trigger = entry.trigger
    return {
        "seq": entry.seq,
        "trigger_id": trigger.public_id,
        "thread_id": trigger.thread.public_id,
        "source": trigger.source,
        "summary": trigger.summary,
        "is_deleted": trigger.deleted_at is not None,
        "at": entry.at,
    }


def view(worker: Worker) -> dict[str, Any]:
    """The worker as GET /workers/{id} shows it; a report over 16 KB by its ends and where the whole is."""
    shown: dict[str, Any] = {
        "worker_id": worker.public_id,
        "thread_id": worker.thread.public_id if worker.thread and not worker.thread.deleted_at else None,
        "task": worker.task,
        "state": worker.state,
        "session_id": worker.session_public_id or None,
        "report": worker.report or None,
        "draft_report": (worker.draft_report or None) if worker.reported_at is None else None,
        "cites": citations.of(worker),
        "owns": list(
            worker.owned.filter(thread__deleted_at__isnull=True)
            .order_by("since", "thread__public_id")
            .values_list("thread__public_id", flat=True)[:50]
        ),
        "spilled": {},
        "created_at": worker.created_at,
        "reported_at": worker.reported_at,
    }
    if worker.report_size > bodies.SPILL_BYTES:
        size = round(worker.report_size / 1024)
        shown |= {
            "report_head": worker.report_head,
            "report_tail": worker.report_tail,
            "spilled": {"report": f"GET /api/v1/workers/{worker.public_id}/report ({size} KB, truncated)"},
        }
    return shown


def _first_line(text: str) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "")
    return " ".join(line.lstrip("# ").split())[:200]
