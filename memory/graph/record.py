"""Triggers into the graph: what every way in calls, and what became of each."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

import orjson
from django.db import transaction

from memory import ids, redact
from memory.graph import bodies, content, fields, hot
from memory.graph.bodies import Packed
from memory.graph.content import Content
from memory.graph.models import Trigger
from memory.graph.refusals import Invalid, of_outcome
from memory.graph.summaries import summarize
from memory.tenants.models import AgentKey, Tenant
from memory.tenants.races import persistently

MAX_SOURCE: Final = 100


class Incoming(NamedTuple):
    """One thing that came in, as its sender says it."""

    source: str
    external_id: str | None = None
    trigger_id: str | None = None
    thread_id: str | None = None
    thread_key: str | None = None
    thread_title: str = ""
    occurred_at: datetime | None = None
    summary: str = ""
    payload: bytes = b""
    media_type: str = content.JSON
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """The stored trigger; `is_new` is False for a repeat."""

    trigger: Trigger
    is_new: bool


class Ready(NamedTuple):
    """A trigger as the database takes it: its fields, and the bytes beside them."""

    fields: dict[str, Any]
    packed: Packed | None

    @property
    def body(self) -> bytes | None:
        return self.packed.content if self.packed else None


class Told(NamedTuple):
    """A checked trigger whose payload came as a JSON value, and not as bytes."""

    incoming: Incoming
    value: Any = None


def record_trigger(tenant: Tenant, incoming: Incoming, *, by: AgentKey | None = None) -> Recorded:
    """Store a trigger in the running transaction, bound to the tenant; its thread stays locked from here on.

    Raises graph.refusals: Conflict (409), Invalid (400), UnknownThread (422).
    """
    return record_ready(tenant, prepared(checked(incoming), tenant_pk=None), by=by.public_id if by else "")


def record_ready(tenant: Tenant, ready: Ready, *, by: str = "") -> Recorded:
    """As `record_trigger`, for one that was prepared before the transaction, so that nothing is uploaded inside it."""

    def attempt() -> tuple[Any, ...]:
        with transaction.atomic():
            return hot.row(
                "SELECT outcome, pk, public_id FROM store_trigger(%t::uuid, %t, %t::jsonb, %b)",
                (str(tenant.pk), by, orjson.dumps(ready.fields).decode(), ready.body),
            )

    outcome, pk, public_id = persistently(attempt)
    if outcome not in ("new", "repeat"):
        raise of_outcome(outcome, public_id)
    return Recorded(Trigger.objects.select_related("thread").get(pk=pk), outcome == "new")


def checked(incoming: Incoming) -> Incoming:
    """The same with its ids and names looked at. Raises Invalid."""
    said = {
        "source": incoming.source,
        "external_id": incoming.external_id,
        "key": incoming.thread_key,
        "title": incoming.thread_title[: fields.MAX_TITLE],
        "summary": incoming.summary,
    }
    source = fields.name_of(said, "source", most=MAX_SOURCE)
    if source is None:
        raise Invalid("invalid_field", "source says where it came from, e.g. github, slack, ci.", field="source")
    return incoming._replace(
        source=source,
        external_id=fields.name_of(said, "external_id"),
        trigger_id=fields.own_id(incoming.trigger_id, "trigger"),
        thread_id=fields.named_id(incoming.thread_id, "thread"),
        thread_key=fields.name_of(said, "key"),
        thread_title=fields.line_of(said, "title", most=fields.MAX_TITLE) or "",
        summary=fields.line_of(said, "summary") or "",
        idempotency_key=fields.idempotency_key(incoming.idempotency_key),
    )


def prepared(incoming: Incoming, *, tenant_pk: str | None) -> Ready:
    """A checked trigger without secrets, ready for its row. With `tenant_pk` a large payload is uploaded here, where
    a storage is set; without it stays in PostgreSQL.
    """
    return prepared_many([Told(incoming)], tenant_pk=tenant_pk)[0]


def prepared_many(told: Sequence[Told], *, tenant_pk: str | None) -> list[Ready]:
    """As `prepared`, with one look for secrets at many."""
    said = [part for one in told for part in (_short_texts(one.incoming), one.value)]
    looked_at = redact.clean_many(said)
    fresh = _Fresh()
    return [
        _ready(_with_texts(one.incoming, texts, short), texts, value, tenant_pk, fresh)
        for one, short, texts, value in zip(told, said[::2], looked_at[::2], looked_at[1::2], strict=True)
    ]


class _Fresh(dict[tuple[str, str | None], tuple[str, str]]):
    """Key and id of the threads that triggers may open: those of one name open one, and need one.

    By how they name it too: a thread's key may read like the id that somebody gave another.
    """

    def __missing__(self, named: tuple[str, str | None]) -> tuple[str, str]:
        made = self[named] = ids.new_key(), ids.mint("thread")
        return made


# Sources, keys and titles come again with every trigger of a thread: those that had no secret are not looked through
# each time. So many are known by heart.
_MOST_KNOWN: Final = 20_000
_known: set[str | None] = {None, ""}
_AGAIN: Final = {"source_id": "source", "thread_id": "thread_key", "title_id": "thread_title"}
_TEXTS: Final = {
    **_AGAIN,
    "external_id": "external_id",
    "summary_id": "summary",
    "repeat_id": "idempotency_key",
}


def _short_texts(incoming: Incoming) -> dict[str, str]:
    """What is looked through beside the payload.

    As fields whose names end in `_id`, which holds for nobody that neighbours are pieces of one secret: items of a list
    would be put together, and every external id would be looked at twice.
    """
    return {name: text for name, of in _TEXTS.items() if (text := getattr(incoming, of)) not in _known}


def _with_texts(incoming: Incoming, texts: redact.Clean, short: dict[str, str]) -> Incoming:
    """With its short texts as they were cleaned; a clean one is the very same object."""
    said = texts.value
    if said is not short:
        return incoming._replace(**{_TEXTS[name]: text for name, text in said.items()})
    if len(_known) > _MOST_KNOWN:
        _known.clear()
        _known.update((None, ""))
    _known.update(said[name] for name in _AGAIN if name in said)
    return incoming


def _ready(incoming: Incoming, texts: redact.Clean, value: redact.Clean, tenant_pk: str | None, fresh: _Fresh) -> Ready:
    payload = None
    if value.value is not None:
        payload = _of_value(value, incoming.media_type)
    elif incoming.payload:
        payload = content.cleaned(incoming.payload, incoming.media_type)
    packed = bodies.pack(payload.raw, tenant_pk=tenant_pk) if payload else None
    trigger_id = incoming.trigger_id or ids.mint("trigger")
    stored: dict[str, Any] = {
        "pk": ids.new_key(),
        "id": trigger_id,
        "is_given": incoming.trigger_id is not None,
        "source": incoming.source,
        "external": incoming.external_id,
        "idem": incoming.idempotency_key,
        "fp": _fingerprint(incoming, payload, value.value),
        "at": incoming.occurred_at,
        "summary": incoming.summary or _summary(incoming, payload),
        "step": ids.mint("event"),
        "thread": _thread(incoming, trigger_id, fresh),
        "spill": False,
    }
    if payload and packed:
        stored |= {
            "media": payload.media_type,
            "size": packed.size,
            "sha": packed.sha256.hex(),
            "redactions": payload.redactions + texts.redactions,
            "sanitized": payload.sanitized + texts.sanitized,
            "spill": packed.is_spilled,
            "codec": packed.codec,
        }
    return Ready(stored, packed)


def _of_value(clean: redact.Clean, media_type: str) -> Content:
    is_text = isinstance(clean.value, str) and not content.is_json(media_type)
    raw = clean.value.encode() if is_text else content.dumped(clean.value)
    return Content(raw, media_type, clean.redactions, clean.sanitized)


def _thread(incoming: Incoming, trigger_id: str, fresh: _Fresh) -> dict[str, Any]:
    """The thread it goes to. None given: made from source and external_id, so a repeat or a sibling finds it again."""
    key = incoming.thread_key
    if incoming.thread_id is None and key is None:
        key = f"{incoming.source}:{incoming.external_id or trigger_id}"[: fields.MAX_KEY]
    pk, public_id = fresh[("key", key) if incoming.thread_id is None else ("id", incoming.thread_id)]
    return {
        "id": incoming.thread_id,
        "is_given": incoming.thread_id is not None and not ids.is_typeid(incoming.thread_id),
        "key": key,
        "pk": pk,
        "fresh": public_id,
        "title": incoming.thread_title,
    }


def _summary(incoming: Incoming, payload: Content | None) -> str:
    if payload is None:
        return ""
    return summarize(incoming.source, payload.raw, payload.media_type)


def _fingerprint(incoming: Incoming, payload: Content | None, value: Any) -> str:
    """What a repeat must share: all that was said but the thread's title, which changes with the world."""
    said = [
        incoming.source,
        incoming.external_id,
        incoming.thread_id,
        incoming.thread_key,
        incoming.occurred_at,
        incoming.summary,
        incoming.media_type if payload else "",
        _spelling(payload, value) if payload else "",
    ]
    return hashlib.sha256(orjson.dumps(said)).hexdigest()


def _spelling(payload: Content, value: Any) -> str:
    """The payload's digest; JSON in the one spelling that all of its spellings share. `value`: where it is at hand."""
    raw = payload.raw
    if payload.media_type == content.JSON and len(raw) <= bodies.SPILL_BYTES:
        with suppress(ValueError):
            raw = content.dumped(orjson.loads(raw) if value is None else value, is_sorted=True)
    return hashlib.sha256(raw).hexdigest()
