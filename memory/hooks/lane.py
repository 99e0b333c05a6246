"""The short lane of hook calls: a plain one is answered before Django makes a request of it.

Request, signals, resolver and response cost as much as the event itself. Whatever is not plain (a key not seen lately,
a large body, a fault of any kind) goes the long way, where `memory/hooks/api.py` has the answers.
"""

import io
from collections.abc import Callable, Iterable
from typing import Any, Final

import orjson
from django.db import connection
from django.http import QueryDict

from memory import ids, logs
from memory.events.record import MayNotRecord, UnknownKey
from memory.hooks import receive, take, tell
from memory.hooks.answers import answer
from memory.hooks.payloads import Told, known_client
from memory.problems import Problem
from memory.tenants.door import PAGE_POLICY, DatabaseAway, away
from memory.tenants.middleware import entering_key
from memory.tenants.rls import seeing

PREFIX: Final = "/api/v1/hooks/"
Environment = dict[str, Any]
Application = Callable[[Environment, Any], Iterable[bytes]]


class HookLane:
    """A WSGI application that takes plain hook calls itself and hands everything else on."""

    def __init__(self, application: Application) -> None:
        self.application = application

    def __call__(self, environ: Environment, start_response: Any) -> Iterable[bytes]:
        with seeing(None):
            return self._answered(environ, start_response)

    def _answered(self, environ: Environment, start_response: Any) -> Iterable[bytes]:
        size = _plain_size(environ)
        if size is None:
            return self.application(environ, start_response)
        body = environ["wsgi.input"].read(size)
        request_id = ids.new_key()
        try:
            with logs.of_request(request_id):
                said = _taken(environ, body, request_id)
        except DatabaseAway as exc:
            # Not the long way: whether it was stored is not known, and an event without a key would be stored again.
            return _unavailable(exc, start_response)
        finally:
            if connection.connection is not None and not connection.in_atomic_block:
                connection.close()
        if said is None:
            environ["wsgi.input"] = io.BytesIO(body)
            return self.application(environ, start_response)
        headers, text = said
        start_response("200 OK", headers)
        return [text]


def _plain_size(environ: Environment) -> int | None:
    """How long the body of a plain hook call is; None for what must go the long way."""
    if environ["REQUEST_METHOD"] != "POST" or not environ["PATH_INFO"].startswith(PREFIX):
        return None
    size = environ.get("CONTENT_LENGTH") or ""
    if not size.isdecimal() or "HTTP_TRANSFER_ENCODING" in environ or "HTTP_X_TEAM_MEMORY_TELL" in environ:
        return None
    return int(size) if int(size) <= take.ALONE_BYTES else None


def _taken(environ: Environment, body: bytes, request_id: str) -> tuple[list[tuple[str, str]], bytes] | None:
    """Headers and body of the answer; None where nothing was stored, for whatever reason."""
    name = known_client(environ["PATH_INFO"][len(PREFIX) :].rstrip("/"))
    try:
        key_hash = entering_key(environ)
        if name is None or not take.is_known(key_hash):
            return None
        call = receive.read_call(name, body, _told(environ), _header(environ, "IDEMPOTENCY_KEY"))
        arrival, row = take.take(key_hash, call)
    except (Problem, UnknownKey, MayNotRecord):
        return None
    if row.outcome in ("conflict", "deleted", "closed"):
        return None
    text = orjson.dumps(answer(arrival.home.client, arrival.kind, tell.telling(arrival, row)))
    headers = {
        "Content-Type": "application/json",
        **take.headers_of(row),
        "X-Request-Id": request_id,
        "Content-Security-Policy": PAGE_POLICY,
        "Cache-Control": "no-store",
        "Content-Length": str(len(text)),
    }
    return list(headers.items()), text


def _told(environ: Environment) -> Told:
    asked = environ.get("QUERY_STRING")
    return Told(
        event=QueryDict(asked).get("event", "")[:80] if asked else "",
        remote=_header(environ, "X_TEAM_MEMORY_REMOTE"),
        root=_header(environ, "X_TEAM_MEMORY_ROOT"),
        at=_header(environ, "X_TEAM_MEMORY_AT"),
        is_internal=_header(environ, "X_TEAM_MEMORY_INTERNAL") == "1",
    )


def _header(environ: Environment, name: str) -> str:
    value = environ.get(f"HTTP_{name}")
    return take.as_sent(value) if value else ""


def _unavailable(exc: Exception, start_response: Any) -> Iterable[bytes]:
    response = away(exc)
    start_response(f"{response.status_code} {response.reason_phrase}", list(response.items()))
    return [response.content]
