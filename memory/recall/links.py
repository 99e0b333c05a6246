"""What is one hop away from a thing: its thread, the threads that one names, the workers, what their reports cite."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from typing import Final

from django.db.models import Q

from memory.graph.models import Citation, Link, Trigger, Worker
from memory.recall.looks import Key

MOST_OF_ONE: Final = 40
MOST_READ: Final = 400

# For each thing its neighbours: True where it names the neighbour, False where the neighbour names it.
Near = dict[Key, dict[Key, bool]]


def neighbours(keys: Sequence[Key]) -> Near:
    """For each thing those one hop away, in a fixed order; a trigger is near its thread, and not near its siblings."""
    found: Near = defaultdict(dict)
    threads = [pk for kind, pk in keys if kind == "thread"]
    triggers = [pk for kind, pk in keys if kind == "trigger"]
    workers = [pk for kind, pk in keys if kind == "worker"]
    if threads:
        _of_threads(threads, found)
    for trigger in Trigger.objects.filter(pk__in=triggers) if triggers else ():
        found["trigger", str(trigger.pk)]["thread", str(trigger.thread_id)] = True
    for worker in Worker.objects.filter(pk__in=workers, thread__isnull=False) if workers else ():
        found["worker", str(worker.pk)]["thread", str(worker.thread_id)] = True
    if triggers or workers:
        _of_citations(triggers, workers, found)
    return {key: dict(islice(near.items(), MOST_OF_ONE)) for key, near in found.items()}


def _of_threads(threads: Sequence[str], found: Near) -> None:
    live = Link.objects.filter(removed_at__isnull=True, to_thread__isnull=False)
    for link in live.filter(from_thread__in=threads).order_by("pk")[:MOST_READ]:
        found["thread", str(link.from_thread_id)]["thread", str(link.to_thread_id)] = True
    for worker in Worker.objects.filter(thread__in=threads, deleted_at__isnull=True).order_by("pk")[:MOST_READ]:
        found["thread", str(worker.thread_id)]["worker", str(worker.pk)] = True
    for link in live.filter(to_thread__in=threads).order_by("pk")[:MOST_READ]:
        found["thread", str(link.to_thread_id)].setdefault(("thread", str(link.from_thread_id)), False)


def _of_citations(triggers: Sequence[str], workers: Sequence[str], found: Near) -> None:
    pks = dict(Trigger.objects.filter(pk__in=triggers).values_list("public_id", "pk"))
    ends = Q(worker__in=workers) | Q(cited__in=list(pks))
    rows = list(Citation.objects.filter(ends, worker__deleted_at__isnull=True).order_by("position")[:MOST_READ])
    rest = {row.cited for row in rows} - set(pks)
    pks |= dict(Trigger.objects.filter(public_id__in=rest, deleted_at__isnull=True).values_list("public_id", "pk"))
    asked = {*triggers, *workers}
    for row in rows:
        if row.cited in pks:
            worker, trigger = ("worker", str(row.worker_id)), ("trigger", str(pks[row.cited]))
            if worker[1] in asked:
                found[worker][trigger] = True
            if trigger[1] in asked:
                found[trigger].setdefault(worker, False)
