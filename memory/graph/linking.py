"""Links made at the doors: beside what was stored, and never at its cost.

What came in is kept first. Only where it may name something do its links cost a transaction; where they fail, the log
says so, and the same sent again makes them.
"""

import logging
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from django.db import OperationalError, transaction
from psycopg.errors import DeadlockDetected, SerializationFailure

from memory.graph import content, mentions
from memory.graph.bodies import Packed
from memory.graph.models import Trigger, Worker
from memory.graph.record import Ready, Told
from memory.graph.references import references
from memory.tenants import rls

log = logging.getLogger(__name__)
# What of a payload is looked at before anything is opened for it; the links themselves are made from more of it.
_LOOK_AT: Final = 64 * 1024
# A thread named by its id may be of any repository: whether a bare #412 is one is seen when its key is.
_ANY: Final = "github:any/any"
_ATTEMPTS: Final = 5


def names_something(ready: Ready, told: Told | None = None) -> bool:
    """Whether a trigger's summary or the head of its payload names a thing that a thread may be."""
    thread = ready.fields["thread"]
    said = [thread["title"] or "", ready.fields["summary"]]
    raw = _head(ready.packed, told)
    if raw:
        said += mentions.words_of(raw, ready.fields["media"])
    text = "\n".join(said)
    home = mentions.repository_of(thread["key"]) if thread["key"] else _ANY
    return bool(references(text[:_LOOK_AT], repository=home or None))


def _head(packed: Packed | None, told: Told | None) -> bytes:
    if packed is None:
        return b""
    if not packed.is_spilled:
        return packed.content
    if told is not None and told.value is not None:
        # The JSON of a large payload is only whole as a whole.
        return told.value.encode() if isinstance(told.value, str) else content.dumped(told.value)
    return zlib.decompressobj().decompress(packed.content, _LOOK_AT) if packed.codec == "zlib" else b""


def triggers(tenant_pk: str, public_ids: Sequence[str]) -> None:
    """Link stored triggers, each in a transaction of its own."""
    for public_id in public_ids:
        _kept_apart(lambda public_id=public_id: _one(tenant_pk, public_id), public_id)  # type: ignore[misc]


def _one(tenant_pk: str, public_id: str) -> None:
    with rls.tenant_scope(tenant_pk):
        rows = Trigger.objects.select_related("thread").filter(tenant_id=tenant_pk, deleted_at__isnull=True)
        trigger = rows.filter(public_id=public_id, thread__deleted_at__isnull=True).first()
        if trigger is not None:
            mentions.link_trigger(trigger)


def report(worker: Worker) -> None:
    """Link a worker's report, inside the transaction that stores it: what fails here takes nothing else along."""

    def inside() -> None:
        with transaction.atomic():
            mentions.link_report(worker)

    _kept_apart(inside, worker.public_id)


def _kept_apart(attempt: Callable[[], Any], public_id: str) -> None:
    """Two that link two threads to each other may meet crosswise; the one that gives way comes again."""
    for left in range(_ATTEMPTS, 0, -1):
        try:
            attempt()
        except OperationalError as error:
            if left > 1 and isinstance(error.__cause__, DeadlockDetected | SerializationFailure):
                continue
            log.exception("Links of %s were not made", public_id)
        except Exception:  # what came in is stored, and its sender must hear so
            log.exception("Links of %s were not made", public_id)
        return
