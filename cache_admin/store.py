"""Keep what a tool answered, under the lease that its caller was given. First write wins."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.db import transaction
from django.utils import timezone

from cache_admin import alerts, outcomes, results, semantic
from cache_admin.lookup import is_lease, leased_at
from cache_admin.models import Entry, EntryPath, Flight, Incident, Lookup, Result, Shown
from memory import redact
from memory.problems import Problem
from memory.sentences import sentence
from memory.tenants import due
from memory.tenants.access import Actor
from memory.tenants.models import Tenant

CLEAN_AFTER = timedelta(hours=1)
FOLLOW_AFTER = timedelta(seconds=10)


class NoLease(Problem):
    """The writer was not told to run this call."""

    def __init__(self) -> None:
        super().__init__(
            409, "no_lease", "Look the call up first, and send the lease that the answer gave to this key."
        )


@dataclass(frozen=True)
class Written:
    """What a tool answered: text, or JSON as text."""

    text: str
    is_json: bool
    value: Any
    is_error: bool = False
    exit_code: Any = None
    duration_ms: int | None = None
    content_hash: str | None = None
    session: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Stored:
    """What became of it: `stored`, `exists`, or not stored and why."""

    outcome: str
    result: Result | None = None
    expires_at: datetime | None = None


def put(tenant: Tenant, key_hex: str, lease: str, written: Written, *, by: Actor, key_hash: bytes) -> Stored:
    """Keep an answer. Raises NoLease; an answer that is not fit to be kept is refused by name."""
    if not is_lease(lease, key_hex, key_hash):
        raise NoLease
    key = bytes.fromhex(key_hex)
    with transaction.atomic():
        flight = Flight.objects.select_for_update().filter(tenant=tenant, key=key).first()
        if flight is None:
            return _landed(tenant, key)
        inputs = flight.inputs
        if lease != flight.lease and lease not in inputs.get("before", []):
            return Stored("invalidated")
        why = _unfit(written, inputs)
        if why:
            # The lease goes back at once: whoever asks next runs the tool.
            flight.delete()
            _count(tenant, inputs["tool"], why, by)
            return Stored(why)
        stored = _put(tenant, flight, lease, written, by=by)
        flight.delete()
    return stored


def _landed(tenant: Tenant, key: bytes) -> Stored:
    """No flight any more: another landed it, or what it rests on was invalidated while the tool ran."""
    entry = Entry.objects.filter(tenant=tenant, key=key).select_related("result").first()
    return Stored("exists", entry.result, entry.expires_at) if entry else Stored("invalidated")


def _unfit(written: Written, inputs: Mapping[str, Any]) -> str:
    why = outcomes.unfit(written.value, is_error=written.is_error, exit_code=written.exit_code)
    if why == "empty" and inputs["empty_ttl_s"]:
        why = ""
    if not why and written.content_hash is not None and written.content_hash != inputs["content_hash"]:
        # The content changed while the tool ran: nobody knows which of both it read.
        return "content_changed"
    return why or ("secret" if redact.has_secret(written.text) else "")


def _put(tenant: Tenant, flight: Flight, lease: str, written: Written, *, by: Actor) -> Stored:
    inputs = flight.inputs
    key = bytes(flight.key)
    now = timezone.now()
    old = Entry.objects.filter(tenant=tenant, key=key).select_related("result").first()
    if old is not None and old.expires_at is not None and old.expires_at <= now:
        old.delete()
        old = None
    text, bad = redact.sanitize(written.text)
    if old is not None:
        return _compared(tenant, old, text.encode(), flight, lease, written, by=by)
    result = results.keep(
        tenant,
        results.Draft(text, written.is_json, inputs["tool"], inputs["summariser"], kind=written.kind, redactions=bad),
        by=by,
        is_private=inputs["is_private"],
        project_pk=inputs["project"] or None,
    )
    entry = _entry(tenant, flight, lease, result, written, by=by)
    if written.session:
        Shown.objects.get_or_create(tenant=tenant, session=written.session[:200], result=result)
    if inputs.get("question"):
        semantic.remember(tenant, entry, inputs)
    due.put(str(tenant.pk), "cache_clean", at=now + CLEAN_AFTER)
    alerts.soon(str(tenant.pk), at=now + alerts.EVERY)
    if inputs["paths"]:
        due.put(str(tenant.pk), "cache_follow", at=now + FOLLOW_AFTER)
    return Stored("stored", result, entry.expires_at)


def _entry(tenant: Tenant, flight: Flight, lease: str, result: Result, written: Written, *, by: Actor) -> Entry:
    inputs = flight.inputs
    ttl = inputs["ttl_s"]
    if outcomes.unfit(written.value) == "empty":
        ttl = min(ttl, inputs["empty_ttl_s"]) if ttl else inputs["empty_ttl_s"]
    # Absolute, from when the tool may have read what it answers. What a writer says of its run is no bound: between
    # the end of the tool and this store a laptop may have slept for hours.
    made_at = leased_at(lease)
    entry = Entry(
        tenant=tenant,
        key=flight.key,
        identity=bytes.fromhex(inputs["identity"]),
        document=flight.document,
        tool=inputs["tool"],
        scope=inputs["scope"],
        content_hash=inputs["content_hash"],
        project_id=inputs["project"] or None,
        result=result,
        writer_id=by.member_pk,
        writer_key_id=by.key_pk,
        duration_ms=written.duration_ms,
        expires_at=made_at + timedelta(seconds=ttl) if ttl else None,
    )
    with transaction.atomic():
        entry.save(force_insert=True)
    EntryPath.objects.bulk_create([EntryPath(tenant=tenant, entry=entry, path=path) for path in inputs["paths"]])
    return entry


def _compared(
    tenant: Tenant, old: Entry, text: bytes, flight: Flight, lease: str, written: Written, *, by: Actor
) -> Stored:
    """The tool ran although an answer is there: by a shadow run, an observer, or a second writer."""
    if hashlib.sha256(text).digest() == bytes(old.result.sha256):
        return Stored("exists", old.result, old.expires_at)
    inputs = flight.inputs
    observes = inputs["mode"] != "serve"
    kind = "would_be_stale" if observes else "shadow" if inputs.get("shadow") else "digest_mismatch"
    Incident.objects.create(
        tenant=tenant,
        kind=kind,
        tool=old.tool,
        project_id=old.project_id,
        result_id_text=old.result.public_id,
        document=old.document,
        detail=sentence("The tool gave another answer under the same key."),
        reporter_id=by.member_pk,
    )
    if not observes:
        alerts.soon(str(tenant.pk))
    if not observes and not inputs.get("shadow"):
        # First write wins, for those who were served it; the difference is on record.
        return Stored("exists", old.result, old.expires_at)
    old.delete()
    return _put(tenant, flight, lease, written, by=by)


def _count(tenant: Tenant, tool: str, why: str, by: Actor) -> None:
    """An answer that may not be kept: its miss was none that a cache could have spared."""
    Lookup.objects.create(
        tenant=tenant, at=timezone.now(), tool=tool, kind="tool", status="unfit", reason=why, member=by.member_pk
    )


def as_text(value: Any) -> tuple[str, bool]:
    """A result as it is kept: text as it is, all else as JSON."""
    if isinstance(value, str):
        return value, False
    try:
        return orjson.dumps(value).decode(), True
    except (TypeError, ValueError):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")), True
