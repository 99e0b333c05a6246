"""The agents' door: hook calls one by one and in batches. Both check the key, bind and write in one round trip."""

from typing import Final

import orjson
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from memory.events.record import Arrival, MayNotRecord, Recorded, UnknownKey
from memory.hooks import ask, receive, take, tell
from memory.hooks.answers import answer
from memory.hooks.batch import record_lines
from memory.hooks.payloads import Told, known_client
from memory.problems import Problem, forbidden
from memory.tenants import audit, limits, rls
from memory.tenants.access import brings_own_transaction
from memory.tenants.batch import lines_of
from memory.tenants.middleware import bad_key, bearer, key_actor
from memory.tenants.rest import describe


@csrf_exempt
@require_POST
@brings_own_transaction
def hook(request: HttpRequest, client: str) -> HttpResponse:
    """One hook call: stored once, answered with what the harness prints on stdout."""
    key_hash = welcome(request)
    name = known_client(client)
    if name is None:
        raise receive.unknown_client(client)
    call = receive.read_call(name, request.body, told(request), header(request, "Idempotency-Key"))
    if header(request, "X-Team-Memory-Tell") == "only":
        return only_told(request, call)
    arrival, row = recorded(request, key_hash, call)
    if (why := receive.refusal(arrival, row)) is not None:
        raise why
    said = answer(arrival.home.client, arrival.kind, tell.telling(arrival, row))
    return HttpResponse(orjson.dumps(said), content_type="application/json", headers=take.headers_of(row))


def only_told(request: HttpRequest, call: receive.Call) -> HttpResponse:
    """The harness's answer for an event that comes later, by a batch."""
    actor = key_actor(request)
    if not actor.may("event.record"):
        raise refused(request)
    arrival, text = ask.told_without_event(actor, call)
    said = answer(arrival.home.client, arrival.kind, text)
    return HttpResponse(orjson.dumps(said), content_type="application/json")


@csrf_exempt
@require_POST
@brings_own_transaction
def batch(request: HttpRequest) -> HttpResponse:
    """Many events, one a line. A line that can't be stored is refused alone, by its number."""
    key_hash = welcome(request)
    lines = lines_of(request.body)
    limits.admit(key_hash, "events", len(lines) - 1)
    try:
        tally = record_lines(key_hash, lines, told=told(request))
    except UnknownKey:
        raise bad_key(key_hash) from None
    except MayNotRecord:
        raise refused(request) from None
    return HttpResponse(orjson.dumps(tally.told()), content_type="application/json")


def welcome(request: HttpRequest) -> bytes:
    """The digest of the presented key, looked up before a body is worked on unless it was good a minute ago.

    The write itself checks the key again, so a revoked one ends at once.
    """
    key_hash = bearer(request)
    if not take.is_known(key_hash):
        key_actor(request)
        take.remember(key_hash)
    return key_hash


def recorded(request: HttpRequest, key_hash: bytes, call: receive.Call) -> tuple[Arrival, Recorded]:
    """The stored event. Raises Problem 401 or 403."""
    try:
        return take.take(key_hash, call)
    except UnknownKey:
        raise bad_key(key_hash) from None
    except MayNotRecord:
        raise refused(request) from None


def refused(request: HttpRequest) -> Problem:
    """403, and a line of the audit."""
    actor = key_actor(request)
    with rls.tenant_scope(actor.tenant_pk):
        audit.record(actor, "event.record", request.path_info, outcome="refused")
    return forbidden("event.record")


def told(request: HttpRequest) -> Told:
    """What the hook client says beside the payload."""
    return Told(
        event=request.GET.get("event", "")[:80],
        remote=header(request, "X-Team-Memory-Remote"),
        root=header(request, "X-Team-Memory-Root"),
        at=header(request, "X-Team-Memory-At"),
        is_internal=header(request, "X-Team-Memory-Internal") == "1",
    )


def header(request: HttpRequest, name: str) -> str:
    """A header as the UTF-8 it was sent in."""
    return take.as_sent(str(request.headers.get(name, "")))


_PROBLEM: Final = {"description": "application/problem+json", "content": {"application/problem+json": {}}}
_HEADERS: Final = [
    {
        "name": "Idempotency-Key",
        "in": "header",
        "schema": {"type": "string"},
        "description": "The event's identity. Another payload under the same key is 409.",
    },
    {
        "name": "X-Team-Memory-Tell",
        "in": "header",
        "schema": {"type": "string", "enum": ["only"]},
        "description": "Answer now what is told; the event comes later, by a batch, and gets what was told.",
    },
    {
        "name": "X-Team-Memory-Remote",
        "in": "header",
        "schema": {"type": "string"},
        "description": "The git remote of the work; it decides the project.",
    },
    {"name": "X-Team-Memory-Root", "in": "header", "schema": {"type": "string"}, "description": "The workspace root."},
    {"name": "X-Team-Memory-At", "in": "header", "schema": {"type": "string"}, "description": "When it happened."},
    {
        "name": "X-Team-Memory-Internal",
        "in": "header",
        "schema": {"type": "string", "enum": ["1"]},
        "description": "The session is the memory's own; it is stored and never learnt from.",
    },
]
describe(
    "/api/v1/hooks/{client}",
    "post",
    {
        "operationId": "hooks_receive",
        "summary": "Take one hook call of a coding agent",
        "description": "The body is the hook's stdin as it was; the answer is what the harness reads from its stdout.",
        "tags": ["hooks"],
        "parameters": [
            {
                "name": "client",
                "in": "path",
                "required": True,
                "schema": {"type": "string"},
                "description": "The harness, e.g. claude-code.",
            },
            {
                "name": "event",
                "in": "query",
                "schema": {"type": "string"},
                "description": "The event's name where the payload lacks it.",
            },
            *_HEADERS,
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}},
        "responses": {
            "200": {
                "description": "Stored, or stored before",
                "content": {"application/json": {"schema": {"type": "object"}}},
            },
            **dict.fromkeys(("400", "401", "403", "404", "409", "410", "413", "429"), _PROBLEM),
        },
    },
)
describe(
    "/api/v1/events/batch",
    "post",
    {
        "operationId": "events_batch",
        "summary": "Take many hook calls at once",
        "description": "NDJSON: client and payload, and if known event, key, occurred_at, git_remote, workspace_root. "
        "At most 50,000 lines.",
        "tags": ["hooks"],
        "parameters": _HEADERS[2:],
        "requestBody": {"required": True, "content": {"application/x-ndjson": {"schema": {"type": "string"}}}},
        "responses": {
            "200": {
                "description": "Counts, and the lines that were refused (of over 1,000 the first, and how many more)",
                "content": {
                    "application/json": {
                        "schema": {
                            "type": "object",
                            "properties": {
                                "accepted": {"type": "integer"},
                                "repeated": {"type": "integer"},
                                "refused": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "properties": {
                                            "line": {"type": "integer"},
                                            "code": {"type": "string"},
                                            "detail": {"type": "string"},
                                        },
                                    },
                                },
                            },
                        }
                    }
                },
            },
            **dict.fromkeys(("400", "401", "403", "413", "429"), _PROBLEM),
        },
    },
)
