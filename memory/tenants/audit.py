"""The audit: one hash-chained row for every change and every refusal, without bodies."""

import hashlib
from collections.abc import Iterator
from typing import Any

import orjson
from django.utils import timezone

from memory.tenants.access import Actor
from memory.tenants.models import AuditEntry, AuditHead


def _hash(previous: bytes, fields: dict[str, Any]) -> bytes:
    return hashlib.sha256(previous + orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)).digest()


def _fields(entry: AuditEntry) -> dict[str, Any]:
    return {
        "seq": entry.seq,
        "at": entry.at.isoformat(),
        "actor": [entry.actor_kind, entry.actor_id, entry.actor_label],
        "action": entry.action,
        "target": entry.target,
        "before": entry.before,
        "after": entry.after,
        "outcome": entry.outcome,
        "ip": entry.ip,
        "request_id": entry.request_id,
    }


def record(
    by: Actor, action: str, target: str = "", *, before: str = "", after: str = "", outcome: str = "done"
) -> AuditEntry:
    """Append one entry inside the running transaction. The head's row lock orders the chain."""
    AuditHead.objects.get_or_create(tenant_id=by.tenant_pk)
    head = AuditHead.objects.select_for_update().get(tenant_id=by.tenant_pk)
    entry = AuditEntry(
        tenant_id=by.tenant_pk,
        seq=head.seq + 1,
        at=timezone.now(),
        actor_kind=by.kind,
        actor_id=by.id,
        actor_label=by.label[:200],
        action=action,
        target=target[:300],
        before=before[:200],
        after=after[:200],
        outcome=outcome,
        ip=by.ip,
        request_id=by.request_id,
        previous_hash=bytes(head.hash),
    )
    entry.hash = _hash(bytes(head.hash), _fields(entry))
    entry.save(force_insert=True)
    head.seq, head.hash = entry.seq, entry.hash
    head.save(update_fields=["seq", "hash"])
    return entry


def breaks(entries: Iterator[AuditEntry]) -> Iterator[int]:
    """The seq of each entry that does not follow from the one before, in order of seq."""
    previous, seq = b"", 0
    for entry in entries:
        if (
            entry.seq != seq + 1
            or bytes(entry.previous_hash) != previous
            or bytes(entry.hash) != _hash(previous, _fields(entry))
        ):
            yield entry.seq
        previous, seq = bytes(entry.hash), entry.seq
