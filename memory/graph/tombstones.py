"""Deleting: what was here is gone with its words and bytes, its id stays known for ever, and readers are told 410."""

from django.db.models import Q, QuerySet
from django.utils import timezone

from memory.graph import steps
from memory.graph.links import RULE
from memory.graph.models import Citation, Link, Owner, Part, Step, Thread, Trigger, Worker
from memory.tenants import audit
from memory.tenants.access import Actor, require
from memory.tenants.models import KnownId


def delete_trigger(trigger: Trigger, *, by: Actor) -> None:
    """Take a trigger away. Raises Refused."""
    _require(by, is_own=trigger.by == by.id)
    thread = Thread.objects.select_for_update().get(pk=trigger.thread_id)
    _bury_triggers(Trigger.objects.filter(pk=trigger.pk))
    Thread.objects.filter(pk=thread.pk).update(trigger_count=thread.trigger_count - 1)
    steps.add(thread, "deleted", trigger=trigger.public_id)
    audit.record(by, "graph.delete", trigger.public_id)


def delete_worker(worker: Worker, *, by: Actor) -> None:
    """Take a worker, its report and its citations away. Raises Refused."""
    _require(by, is_own=worker.by == by.id)
    bury_worker(worker)
    audit.record(by, "graph.delete", worker.public_id)


def bury_worker(worker: Worker) -> None:
    """The same for whoever has checked the right to it."""
    thread = Thread.objects.select_for_update().get(pk=worker.thread_id) if worker.thread_id else None
    Citation.objects.filter(worker=worker).delete()
    owned = list(Owner.objects.filter(worker=worker).values_list("thread_id", flat=True))
    Owner.objects.filter(worker=worker).delete()
    Step.objects.filter(worker_public_id=worker.public_id, thread_id__in=[*owned, worker.thread_id]).update(summary="")
    Worker.objects.filter(pk=worker.pk).update(
        task="",
        report="",
        report_head="",
        report_tail="",
        report_size=0,
        report_sha256=None,
        state="deleted",
        session_public_id="",
        deleted_at=timezone.now(),
    )
    know(str(worker.tenant_id), [worker.public_id])
    if thread:
        Thread.objects.filter(pk=thread.pk).update(worker_count=thread.worker_count - 1)
        steps.add(thread, "deleted", worker=worker.public_id)


def delete_thread(thread: Thread, *, by: Actor) -> None:
    """Take a thread away with its triggers, links and words; its workers stay. Raises Refused."""
    Thread.objects.select_for_update().get(pk=thread.pk)
    _require(by, is_own=not _holds_of_others(thread, by))
    _bury_triggers(Trigger.objects.filter(thread=thread, deleted_at__isnull=True))
    Link.objects.filter(from_thread=thread).delete()
    # Who linked here by key waits for the key again.
    Link.objects.filter(to_thread=thread).exclude(to_key="").update(to_thread=None)
    Link.objects.filter(to_thread=thread).delete()
    Owner.objects.filter(thread=thread).delete()
    Worker.objects.filter(thread=thread).update(thread=None)
    Step.objects.filter(thread=thread).update(summary="")
    # The key is free for another thread, with another id.
    Thread.objects.filter(pk=thread.pk).update(
        key=None, title="", summary="", state="deleted", trigger_count=0, worker_count=0, deleted_at=timezone.now()
    )
    know(str(thread.tenant_id), [thread.public_id])
    audit.record(by, "graph.delete", thread.public_id)


def _require(by: Actor, *, is_own: bool) -> None:
    """Whoever records may take back what is its own alone; all else is for whoever may delete anything."""
    require(by, "graph.withdraw" if is_own else "graph.delete")


def _holds_of_others(thread: Thread, by: Actor) -> bool:
    triggers = Trigger.objects.filter(thread=thread, deleted_at__isnull=True).exclude(by=by.id)
    workers = Worker.objects.filter(thread=thread, deleted_at__isnull=True).exclude(by=by.id)
    links = Link.objects.filter(Q(from_thread=thread) | Q(to_thread=thread)).exclude(made_by=by.id)
    made = links.exclude(made_by__startswith=RULE)
    return triggers.exists() or workers.exists() or made.exists()


def _bury_triggers(rows: "QuerySet[Trigger]") -> None:
    found = list(rows.values_list("pk", "public_id", "tenant_id", "thread_id", "seq"))
    if not found:
        return
    keys = [pk for pk, *_ in found]
    Part.objects.filter(trigger_id__in=keys).delete()
    know(str(found[0][2]), [public_id for _, public_id, *_ in found])
    Step.objects.filter(thread_id=found[0][3], seq__in=[seq for *_, seq in found]).update(summary="")
    # The identity stays on the row, so that a sender who comes again makes no second one.
    Trigger.objects.filter(pk__in=keys).update(summary="", occurred_at=None, deleted_at=timezone.now())


def know(tenant_pk: str, public_ids: list[str]) -> None:
    """Keep ids from ever being used again, and let readers of them be told 410."""
    KnownId.objects.bulk_create(
        [KnownId(tenant_id=tenant_pk, public_id=public_id, reason="deleted") for public_id in public_ids],
        batch_size=2000,
        ignore_conflicts=True,
    )
