"""What POST /triggers says, read into one shape; pure."""

from typing import Any, Final

from memory.graph import content, fields
from memory.graph.record import MAX_SOURCE, Incoming, Told
from memory.graph.refusals import Invalid

KNOWN: Final = (
    "id", "source", "external_id", "thread", "thread_id", "occurred_at", "summary", "payload", "media_type",
    "idempotency_key",
)  # fmt: skip
SHAPE: Final = '{"source": "ci", "external_id": "run-1", "thread": {"key": "github:acme/payments#412"}, "payload": {…}}'


def read(raw: bytes, *, idempotency_key: str | None) -> Told:
    """The trigger in a body. Raises Problem 400: success for what is not stored would lose it silently."""
    if not raw.strip():
        raise Invalid("empty_body", f"The body is empty. Send JSON like {SHAPE}.")
    return of_value(content.value_of(raw), idempotency_key=idempotency_key)


def of_value(value: Any, *, idempotency_key: str | None = None) -> Told:
    """The trigger in a JSON value. Raises Invalid."""
    body = fields.only(value, KNOWN, shape=SHAPE)
    source = fields.name_of(body, "source", most=MAX_SOURCE)
    if source is None:
        raise Invalid("invalid_field", "source says where it came from, e.g. github, slack, ci.", field="source")
    payload = body.get("payload")
    summary = fields.line_of(body, "summary")
    if payload is None and not summary:
        raise Invalid("nothing_to_record", "Send a payload, a summary, or both.", field="payload")
    thread_id, key, title = fields.thread_named(body.get("thread", body.get("thread_id")))
    incoming = Incoming(
        source=source,
        external_id=fields.name_of(body, "external_id"),
        trigger_id=fields.own_id(body.get("id"), "trigger"),
        thread_id=thread_id,
        thread_key=key,
        thread_title=title,
        occurred_at=fields.time_of(body, "occurred_at"),
        summary=summary or "",
        media_type=_media_type(body, payload),
        idempotency_key=fields.idempotency_key(idempotency_key) or fields.name_of(body, "idempotency_key"),
    )
    return Told(incoming, payload)


def _media_type(body: dict[str, Any], payload: Any) -> str:
    given = fields.words(body, "media_type", most=200)
    if not given:
        return content.TEXT if isinstance(payload, str) else content.JSON
    if not content.is_media_type(given):
        raise Invalid("invalid_field", "media_type is like application/json or text/plain.", field="media_type")
    if not isinstance(payload, str) and payload is not None and not content.is_json(given):
        said = f"A payload of {given} is text here. Send other bytes by PUT /triggers/{{id}}/payload."
        raise Invalid("invalid_field", said, field="payload")
    return content.fit_media_type(given)
