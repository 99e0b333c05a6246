"""The graph's hot doors in the OpenAPI file, which DRF's own reading does not see."""

from typing import Any, Final

from memory.tenants.rest import describe

_PROBLEM: Final = {"description": "application/problem+json", "content": {"application/problem+json": {}}}
_JSON: Final = {"application/json": {"schema": {"type": "object"}}}
_TEXT: Final = {"type": "string"}


def _in(place: str, name: str, description: str = "") -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": _TEXT, "description": description}


def _door(
    path: str,
    method: str,
    operation_id: str,
    summary: str,
    *,
    answers: str,
    more: list[dict[str, Any]],
    body: Any = None,
) -> None:
    """`answers` are the statuses, those under 300 with JSON."""
    responses: dict[str, Any] = {
        status: {"description": summary, "content": _JSON} if status < "300" else _PROBLEM for status in answers.split()
    }
    operation: dict[str, Any] = {
        "operationId": operation_id,
        "summary": summary,
        "tags": ["graph"],
        "parameters": more,
        "responses": responses,
    }
    if body is not None:
        operation["requestBody"] = {"required": True, "content": body}
    describe(f"/api/v1/{path}", method, operation)


_TRIGGER_IN: Final = {
    "application/json": {
        "schema": {
            "type": "object",
            "required": ["source"],
            "properties": {
                "id": _TEXT | {"description": "Your own id, like trg_run_7"},
                "source": _TEXT | {"description": "Where it came from, e.g. github, slack, ci"},
                "external_id": _TEXT | {"description": "Its id there; with the source it is the trigger's identity"},
                "thread": {
                    "type": "object",
                    "properties": {"id": _TEXT, "key": _TEXT, "title": _TEXT},
                    "description": "Left out: a thread of its own, made from source and external_id",
                },
                "occurred_at": {"type": "string", "format": "date-time"},
                "summary": _TEXT | {"description": "One line; made from the payload where left out"},
                "payload": {"description": "Any JSON value, or text"},
                "media_type": _TEXT,
            },
        }
    }
}
_THREAD: Final = _in("path", "thread_id")
_TRIGGER: Final = _in("path", "trigger_id")
_WORKER: Final = _in("path", "worker_id")
_PIECES: Final = [
    _in("query", "lines", "120-180, 120-, -20 or 120"),
    _in("query", "grep", "An RE2 pattern: the first hundred lines that match, as JSON"),
    _in("header", "Range", "bytes=0-999"),
]
_KEYED: Final = [_in("header", "Idempotency-Key", "The trigger's identity. Another body under the same key is 409.")]
_CHANGE: Final = {"application/json": {"schema": {"type": "object"}}}


def register() -> None:
    """Describe each hot door; twice is once."""
    _door(
        "triggers", "post", "triggers_record", "Record a trigger; 200 for an identical repeat",
        answers="201 200 400 401 403 409 413 422", more=_KEYED, body=_TRIGGER_IN,
    )  # fmt: skip
    _door(
        "triggers/batch", "post", "triggers_batch", "Many triggers, one a line; a bad line is refused alone",
        answers="200 400 401 403 413", more=[], body={"application/x-ndjson": {"schema": _TEXT}},
    )  # fmt: skip
    _door(
        "triggers/{trigger_id}",
        "get",
        "triggers_read",
        "A trigger in its inline view",
        answers="200 401 403 404 410",
        more=[_TRIGGER],
    )
    _door(
        "triggers/{trigger_id}",
        "delete",
        "triggers_delete",
        "Delete a trigger for ever",
        answers="200 401 403 404 410",
        more=[_TRIGGER],
    )
    _door(
        "triggers/{trigger_id}/payload", "get", "triggers_payload", "The stored bytes of a part, or a piece of them",
        answers="200 206 400 401 403 404 410 416",
        more=[_TRIGGER, _in("query", "part", "payload, full_log, diff, body …"), *_PIECES],
    )  # fmt: skip
    _door(
        "triggers/{trigger_id}/payload", "put", "triggers_put_payload", "Store raw bytes as a part, up to 32 MB",
        answers="201 200 400 401 403 404 410 413", more=[_TRIGGER, _in("query", "part")],
        body={"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    )  # fmt: skip
    _door("threads/{thread_id}", "get", "threads_read", "A thread", answers="200 401 403 404 410", more=[_THREAD])
    _door(
        "threads/{thread_id}", "put", "threads_change", "Set a thread's title, state or summary",
        answers="200 400 401 403 404 410", more=[_THREAD], body=_CHANGE,
    )  # fmt: skip
    _door(
        "threads/{thread_id}",
        "delete",
        "threads_delete",
        "Delete a thread with its triggers",
        answers="200 401 403 404 410",
        more=[_THREAD],
    )
    _door(
        "threads/{thread_id}/events", "get", "threads_events", "What happened in a thread, by a dense seq",
        answers="200 400 401 403 404 410", more=[_THREAD, _in("query", "limit", "1 to 200"), _in("query", "cursor")],
    )  # fmt: skip
    _door(
        "workers/{worker_id}",
        "get",
        "workers_read",
        "A worker: task, state, report, what it cites",
        answers="200 401 403 404 410",
        more=[_WORKER],
    )
    _door(
        "workers/{worker_id}", "patch", "workers_change", "Set a worker's state, report or cites",
        answers="200 400 401 403 404 410 422", more=[_WORKER], body=_CHANGE,
    )  # fmt: skip
    _door(
        "workers/{worker_id}",
        "delete",
        "workers_delete",
        "Delete a worker with its report",
        answers="200 401 403 404 410",
        more=[_WORKER],
    )
    _door(
        "workers/{worker_id}/report", "get", "workers_report", "The whole report as markdown, or a piece of it",
        answers="200 206 400 401 403 404 410 416", more=[_WORKER, *_PIECES],
    )  # fmt: skip
