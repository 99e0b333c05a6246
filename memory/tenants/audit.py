"""The audit: one hash-chained row for every change and every refusal, without bodies."""

import csv
import hashlib
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import IO, Any, Final

import orjson
from django.db.models import Q, QuerySet
from django.utils import timezone

from memory.tenants.access import Actor
from memory.tenants.models import AuditEntry, AuditHead, Tenant

_COLUMNS: Final = (
    *("seq", "at", "actor_kind", "actor_id", "actor_label", "action", "target", "before", "after"),
    *("outcome", "ip", "request_id", "previous_hash", "hash"),
)


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


# What is recorded while a long piece of work gathers it; None: every entry is appended at once.
_GATHERED: ContextVar[list[AuditEntry] | None] = ContextVar("gathered", default=None)


def record(
    by: Actor, action: str, target: str = "", *, before: str = "", after: str = "", outcome: str = "done"
) -> None:
    """Append one entry inside the running transaction. The head's row lock orders the chain."""
    entry = AuditEntry(
        tenant_id=by.tenant_pk,
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
    )
    gathering = _GATHERED.get()
    if gathering is None:
        _append(by.tenant_pk, [entry])
    else:
        gathering.append(entry)


@contextmanager
def gathered(by: Actor) -> Iterator[None]:
    """What is recorded inside is appended at the end, in its order: the head is locked for that moment alone.

    Every audited write of a team waits for that lock, so work that takes seconds must not hold it. Inside one
    transaction; an exception drops the entries, as it undoes the work.
    """
    entries: list[AuditEntry] = []
    token = _GATHERED.set(entries)
    try:
        yield
    finally:
        _GATHERED.reset(token)
    if entries:
        _append(by.tenant_pk, entries)


def _append(tenant_pk: str, entries: list[AuditEntry]) -> None:
    AuditHead.objects.get_or_create(tenant_id=tenant_pk)
    head = AuditHead.objects.select_for_update().get(tenant_id=tenant_pk)
    for entry in entries:
        entry.seq, entry.previous_hash, entry.at = head.seq + 1, bytes(head.hash), timezone.now()
        entry.hash = _hash(bytes(head.hash), _fields(entry))
        head.seq, head.hash = entry.seq, entry.hash
    AuditEntry.objects.bulk_create(entries)
    head.save(update_fields=["seq", "hash"])


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


@dataclass(frozen=True)
class Break:
    """A place where the chain does not hold: the entry's seq, and what is wrong there."""

    seq: int
    why: str


@dataclass(frozen=True)
class Verified:
    """How many entries were read, and where the chain does not hold."""

    entries: int
    breaks: list[Break]


def verify(tenant: Tenant) -> Verified:
    """Read the whole chain of a team, and whether it ends where its head says. Inside the bound transaction."""
    found: list[Break] = []
    previous, seq = b"", 0
    for entry in AuditEntry.objects.filter(tenant=tenant).order_by("seq").iterator():
        if entry.seq != seq + 1:
            missing = f"{seq + 1} to {entry.seq - 1} are" if entry.seq - seq > 2 else f"{seq + 1} is"
            found.append(Break(entry.seq, f"entry {missing} missing before it"))
        elif bytes(entry.previous_hash) != previous:
            found.append(Break(entry.seq, "it does not follow from the entry before"))
        if bytes(entry.hash) != _hash(bytes(entry.previous_hash), _fields(entry)):
            found.append(Break(entry.seq, "it was changed after it was written"))
        previous, seq = bytes(entry.hash), entry.seq
    head = AuditHead.objects.filter(tenant=tenant).first()
    if (head.seq, bytes(head.hash)) != (seq, previous) if head else seq:
        ends = head.seq if head else 0
        found.append(Break(seq, f"the chain ends here, and its head says {ends}: entries were removed or added"))
    return Verified(seq, found)


def asked(tenant: Tenant, words: Mapping[str, str]) -> "QuerySet[AuditEntry]":
    """The entries that fit a filter, the latest first."""
    found = AuditEntry.objects.filter(tenant=tenant)
    if words.get("action"):
        found = found.filter(action__startswith=words["action"])
    if words.get("who"):
        found = found.filter(Q(actor_label__icontains=words["who"]) | Q(actor_id=words["who"]))
    if words.get("target"):
        found = found.filter(target__icontains=words["target"])
    if words.get("outcome") in ("done", "refused"):
        found = found.filter(outcome=words["outcome"])
    return found.order_by("-seq")


def written(entries: "QuerySet[AuditEntry]", form: str, file: IO[bytes]) -> int:
    """The entries as CSV or NDJSON, with their hashes, so that the chain can be checked elsewhere; how many."""
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    table = csv.writer(text)
    if form == "csv":
        table.writerow(_COLUMNS)
    count = 0
    for entry in entries.iterator():
        count += 1
        hashes = {"previous_hash": bytes(entry.previous_hash).hex(), "hash": bytes(entry.hash).hex()}
        line = {**_fields(entry), **hashes}
        if form == "csv":
            kind, public_id, label = line.pop("actor")
            line |= {"actor_kind": kind, "actor_id": public_id, "actor_label": label}
            table.writerow([_cell(line[column]) for column in _COLUMNS])
        else:
            text.write(orjson.dumps(line).decode() + "\n")
    text.detach()
    return count


def _cell(value: Any) -> str:
    # A spreadsheet takes what begins so for a formula, and labels are what people and agents chose.
    said = str(value)
    return f"'{said}" if said.startswith(("=", "+", "-", "@", "\t", "\r")) else said
