"""Links made at the doors: beside what was stored, and never at its cost.

What came in is kept first. Only where it may name something do its links cost a transaction; where a trigger's
fail, or are many, they are put down as due, and a worker makes them.
"""

import logging
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from django.db import DatabaseError, transaction

from memory.graph import mentions
from memory.graph.bodies import Packed
from memory.graph.models import Trigger, Worker
from memory.graph.record import Ready, Told
from memory.graph.references import references
from memory.tenants import due, rls
from memory.tenants.races import persistently

log = logging.getLogger(__name__)
# What of a payload is looked at before anything is opened for it; the links themselves are made from more of it.
_LOOK_AT: Final = 64 * 1024
# A thread named by its id may be of any repository: whether a bare #412 is one is seen when its key is.
_ANY: Final = "github:any/any"
TASK: Final = "graph_links"
# A batch answers when its lines are stored: links beyond these are made behind it.
_AT_ONCE: Final = 20


def names_something(ready: Ready, told: Told | None = None) -> bool:
    """Whether a trigger's summary or the head of its payload names a thing that a thread may be."""
    thread = ready.fields["thread"]
    said = [thread["title"] or "", ready.fields["summary"], *_words(ready, told)]
    text = "\n".join(said)
    home = mentions.repository_of(thread["key"]) if thread["key"] else _ANY
    return bool(references(text[:_LOOK_AT], repository=home or None))


def _words(ready: Ready, told: Told | None) -> list[str]:
    if ready.packed is None:
        return []
    if told is not None and told.value is not None and not isinstance(told.value, str):
        # The value is at hand: its bytes would have to be read again.
        return mentions.words_in(told.value)
    # Half a character makes no UTF-8; what is stored has U+FFFD there.
    text = told.value.encode("utf-8", "replace") if told is not None and isinstance(told.value, str) else None
    raw = _head(ready.packed) if text is None else text
    return mentions.words_of(raw, ready.fields["media"]) if raw else []


def _head(packed: Packed) -> bytes:
    if not packed.is_spilled:
        return packed.content
    return zlib.decompressobj().decompress(packed.content, _LOOK_AT) if packed.codec == "zlib" else b""


def triggers(tenant_pk: str, public_ids: Sequence[str]) -> None:
    """Link stored triggers, each in a transaction of its own; what fails and what are too many is put down as due."""
    # The server's own work, whoever sent the triggers: a link to what they may not see is a link all the same.
    with rls.seeing(rls.SERVER):
        failed = [public_id for public_id in public_ids[:_AT_ONCE] if not is_linked(tenant_pk, public_id)]
        later = [*failed, *public_ids[_AT_ONCE:]]
        if later:
            _is_kept(lambda: _put_down(tenant_pk, later), f"{len(later)} triggers")


def _put_down(tenant_pk: str, public_ids: Sequence[str]) -> None:
    with rls.tenant_scope(tenant_pk):
        due.put_all(tenant_pk, TASK, public_ids)


def is_linked(tenant_pk: str, public_id: str) -> bool:
    """Make a trigger's links; False where they could not be made, which the log explains."""
    return _is_kept(lambda: persistently(lambda: _link(tenant_pk, public_id)), public_id)


def _link(tenant_pk: str, public_id: str) -> None:
    with rls.tenant_scope(tenant_pk):
        rows = Trigger.objects.select_related("thread").filter(tenant_id=tenant_pk, deleted_at__isnull=True)
        trigger = rows.filter(public_id=public_id, thread__deleted_at__isnull=True).first()
        if trigger is not None:
            mentions.link_trigger(trigger)


def report(worker: Worker) -> None:
    """Link a worker's report, inside the transaction that stores it: what fails here takes nothing else along. The log
    says so then, and the same report sent again makes the links.
    """

    def inside() -> None:
        with transaction.atomic():
            mentions.link_report(worker)

    _is_kept(lambda: persistently(inside), worker.public_id)


def _is_kept(attempt: Callable[[], Any], public_id: str) -> bool:
    try:
        attempt()
    except Exception as fault:  # what came in is stored, and its sender must hear so
        log.exception("Links of %s were not made", public_id)
        # A text that can't be read today can't be read tomorrow; a database may answer again.
        return not isinstance(fault, DatabaseError)
    return True
