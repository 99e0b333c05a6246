"""The short lane of the graph's hot doors: a plain call is answered before Django makes a request of it.

Request, resolver and response cost more than the row itself. Whatever is not plain (another method, a parameter that
can't be read, a refusal, a fault of any kind) goes the long way, where `memory/graph/api.py` has the answers.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import psycopg
from django.conf import settings
from django.http import QueryDict

from memory import ids
from memory.graph import asked, incoming
from memory.problems import Problem
from memory.tenants import trip
from memory.tenants.door import DatabaseAway
from memory.tenants.lane import JSON, Answer, Environment, Lane, plain_size, sent
from memory.tenants.middleware import entering_key

THREADS: Final = "/api/v1/threads/"
TRIGGERS: Final = "/api/v1/triggers"
# A larger body keeps its thread busy for so long that the long way's share no longer counts.
PLAIN_BYTES: Final = 64 * 1024


class GraphLane(Lane):
    """A WSGI application that takes plain calls of the graph's hot doors itself and hands everything else on."""

    def answered(self, environ: Environment, start_response: Any) -> Iterable[bytes]:
        """A thread, its events or a trigger by id; or what became of a new trigger."""
        path = environ["PATH_INFO"]
        if not path.startswith((THREADS, TRIGGERS)) or "\0" in path:
            return self.application(environ, start_response)
        method = environ["REQUEST_METHOD"]
        if method == "POST" and path.rstrip("/") == TRIGGERS:
            size = None if settings.PAYLOADS_IN_STORAGE else plain_size(environ, most=PLAIN_BYTES)
            if size is not None:
                return self.written(environ, start_response, size=size, taken=partial(_recorded, environ))
        text = _read(environ, path) if method == "GET" else None
        if text is None:
            return self.application(environ, start_response)
        return sent(start_response, ("200 OK", text, JSON), ids.new_key())


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


def _recorded(environ: Environment, body: bytes) -> Answer | None:
    """The answer; None where nothing was stored, for whatever reason."""
    try:
        key_hash = entering_key(environ)
        told = incoming.read(body, idempotency_key=environ.get("HTTP_IDEMPOTENCY_KEY"))
        state, text = asked.stored(key_hash, told, tenant_pk=None, by=trip.apart)
    except DatabaseAway:
        raise
    except (Problem, asked.NotOk, psycopg.Error):
        return None
    return ("201 Created" if state == "new" else "200 OK"), text, JSON
