"""The short lane of the graph's hot doors: a plain call is answered before Django makes a request of it.

Request, resolver and response cost more than the row itself. Whatever is not plain (another method, a parameter that
can't be read, a refusal, a fault of any kind) goes the long way, where `memory/graph/api.py` has the answers.
"""

import io
from collections.abc import Callable, Iterable
from typing import Any, Final

import psycopg
from django.conf import settings
from django.db import connection
from django.http import QueryDict

from memory import ids, logs
from memory.graph import asked, incoming
from memory.problems import Problem
from memory.tenants import trip
from memory.tenants.door import PAGE_POLICY, DatabaseAway, away
from memory.tenants.middleware import entering_key
from memory.tenants.rls import seeing

THREADS: Final = "/api/v1/threads/"
TRIGGERS: Final = "/api/v1/triggers"
# A larger body keeps its thread busy for so long that the long way's share no longer counts.
PLAIN_BYTES: Final = 64 * 1024
Environment = dict[str, Any]
Application = Callable[[Environment, Any], Iterable[bytes]]


class GraphLane:
    """A WSGI application that takes plain calls of the graph's hot doors itself and hands everything else on."""

    def __init__(self, application: Application) -> None:
        self.application = application

    def __call__(self, environ: Environment, start_response: Any) -> Iterable[bytes]:
        with seeing(None):
            return self._taken(environ, start_response)

    def _taken(self, environ: Environment, start_response: Any) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if not path.startswith((THREADS, TRIGGERS)) or "\0" in path:
            return self.application(environ, start_response)
        method = environ["REQUEST_METHOD"]
        if method == "POST" and path.rstrip("/") == TRIGGERS:
            return self._post(environ, start_response)
        text = _read(environ, path) if method == "GET" else None
        if text is None:
            return self.application(environ, start_response)
        return _answered(start_response, "200 OK", text, ids.new_key())

    def _post(self, environ: Environment, start_response: Any) -> Iterable[bytes]:
        size = _plain_size(environ)
        if size is None:
            return self.application(environ, start_response)
        body = environ["wsgi.input"].read(size)
        request_id = ids.new_key()
        try:
            with logs.of_request(request_id):
                taken = _recorded(environ, body)
        except DatabaseAway as exc:
            # Not the long way: whether it was stored is not known, and a trigger without a key would be stored again.
            said = away(exc)
            return _answered(start_response, f"503 {said.reason_phrase}", said.content, request_id, said.items())
        finally:
            # Links are made on Django's own connection.
            if connection.connection is not None and not connection.in_atomic_block:
                connection.close()
        if taken is None:
            environ["wsgi.input"] = io.BytesIO(body)
            return self.application(environ, start_response)
        return _answered(start_response, *taken, request_id)


def _read(environ: Environment, path: str) -> bytes | None:
    """The body of the answer to a plain GET; None for what must go the long way."""
    kind, _, rest = path.rstrip("/")[len("/api/v1/") :].partition("/")
    public_id, _, door = rest.partition("/")
    try:
        key_hash = entering_key(environ)
        if kind == "threads" and public_id.startswith("thr_"):
            if door == "":
                return asked.found("thread", key_hash, public_id, by=trip.apart)
            if door == "events":
                return asked.steps(key_hash, public_id, QueryDict(environ.get("QUERY_STRING", "")), by=trip.apart)
        if kind == "triggers" and public_id.startswith("trg_") and door == "":
            return asked.found("trigger", key_hash, public_id, by=trip.apart)
    except (Problem, asked.NotOk, psycopg.Error):
        # Reading twice does no harm, and the long way says what is wrong.
        return None
    return None


def _plain_size(environ: Environment) -> int | None:
    """How long the body of a plain trigger is; None for what must go the long way."""
    size = environ.get("CONTENT_LENGTH") or ""
    if not size.isdecimal() or "HTTP_TRANSFER_ENCODING" in environ or settings.PAYLOADS_IN_STORAGE:
        return None
    return int(size) if int(size) <= PLAIN_BYTES else None


def _recorded(environ: Environment, body: bytes) -> tuple[str, bytes] | None:
    """Status and body of the answer; None where nothing was stored, for whatever reason."""
    try:
        key_hash = entering_key(environ)
        told = incoming.read(body, idempotency_key=environ.get("HTTP_IDEMPOTENCY_KEY"))
        state, text = asked.stored(key_hash, told, tenant_pk=None, by=trip.apart)
    except DatabaseAway:
        raise
    except (Problem, asked.NotOk, psycopg.Error):
        return None
    return ("201 Created" if state == "new" else "200 OK"), text


_JSON: Final = (("Content-Type", "application/json"),)


def _answered(
    start_response: Any, status: str, text: bytes, request_id: str, said: Iterable[tuple[str, str]] = _JSON
) -> Iterable[bytes]:
    headers = [
        *said,
        ("X-Request-Id", request_id),
        ("Content-Security-Policy", PAGE_POLICY),
        ("Cache-Control", "no-store"),
        ("Content-Length", str(len(text))),
    ]
    start_response(status, headers)
    return [text]
