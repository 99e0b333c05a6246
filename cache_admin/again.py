"""Idempotency-Key on the doors that ask: a repeat gets the lease of the first time, and never an old hit.

What gives out a lease is a write, so its answer is kept for a day and given again as it was. What gives none changes
nothing: a `wait` would be told for ever, and a hit could have become stale or been purged, so those are asked anew.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse

from cache_admin.lookup import Answer
from cache_admin.respond import told
from memory.graph import answers, fields
from memory.tenants import rls
from memory.tenants.access import Actor
from memory.tenants.middleware import key_actor

Said = tuple[Answer, Mapping[str, Any]]


def answered(request: HttpRequest, ask: Callable[[], Said]) -> HttpResponse:
    """The answer of a lookup's door, with its headers. Raises what `ask` raises, Problem 400, 401, 409."""
    key = key_of(request)
    if key is None:
        return told(*ask())
    actor = key_actor(request)
    with rls.tenant_scope(actor.tenant_pk):
        place = (actor.tenant_pk, door_of(request, actor), key, digest(request.body))
        kept = answers.find(*place)
        if kept is not None and kept.status:
            return _replayed(orjson.loads(kept.body))
        answer, body = ask()
        response = told(answer, body)
        # A hit that is to be run again to check gives a lease too, and is a hit all the same.
        if answer.lease and answer.status != "hit":
            whole = {"body": body, "cache_status": response["Cache-Status"]}
            answers.keep(*place, response.status_code, orjson.dumps(whole).decode())
        elif kept is None:
            answers.keep(*place, 0, "")
    return response


def key_of(request: HttpRequest) -> str | None:
    """The Idempotency-Key of a request. Raises Problem 400."""
    return fields.idempotency_key(request.headers.get("Idempotency-Key"))


def check(request: Any, key: str) -> None:
    """The same for a door that only reads: another body under the key is 409. The tenant must be bound."""
    place = (str(request.tenant.pk), door_of(request, request.actor), key, digest(request.body))
    if answers.find(*place) is None:
        answers.keep(*place, 0, "")


def door_of(request: Any, actor: Actor) -> str:
    """A lease is good for the one agent key that it was given to, so keys do not share answers."""
    return f"{actor.key_pk or actor.member_pk}{request.path}"[:200]


def digest(body: bytes) -> bytes:
    """What tells bodies apart."""
    return hashlib.sha256(body).digest()


def _replayed(whole: Mapping[str, Any]) -> HttpResponse:
    response = HttpResponse(orjson.dumps(whole["body"]), content_type="application/json", headers=answers.REPLAYED)
    response["Cache-Status"] = whole["cache_status"]
    return response
