"""The short lane of hook calls: a plain one is answered before Django makes a request of it.

Request, signals, resolver and response cost as much as the event itself. Whatever is not plain (a key not seen lately,
a large body, a fault of any kind) goes the long way, where `memory/hooks/api.py` has the answers.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import orjson
from django.http import QueryDict

from memory.events.record import MayNotRecord, UnknownKey
from memory.hooks import receive, take, tell
from memory.hooks.answers import answer
from memory.hooks.payloads import Told, known_client
from memory.problems import Problem
from memory.tenants.lane import JSON, Answer, Environment, Lane, plain_size
from memory.tenants.middleware import entering_key

PREFIX: Final = "/api/v1/hooks/"


class HookLane(Lane):
    """A WSGI application that takes plain hook calls itself and hands everything else on."""

    def answered(self, environ: Environment, start_response: Any) -> Iterable[bytes]:
        """What a harness reads of a hook call."""
        size = _plain_size(environ)
        if size is None:
            return self.application(environ, start_response)
        return self.written(environ, start_response, size=size, taken=partial(_taken, environ))


def _plain_size(environ: Environment) -> int | None:
    """How long the body of a plain hook call is; None for what must go the long way."""
    if environ["REQUEST_METHOD"] != "POST" or not environ["PATH_INFO"].startswith(PREFIX):
        return None
    if "HTTP_X_TEAM_MEMORY_TELL" in environ:
        return None
    return plain_size(environ, most=take.ALONE_BYTES)


def _taken(environ: Environment, body: bytes) -> Answer | None:
    """The answer; None where nothing was stored, for whatever reason."""
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
    return "200 OK", text, (*JSON, *take.headers_of(row).items())


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
