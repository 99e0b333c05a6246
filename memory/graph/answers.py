"""Idempotency-Key on a POST: the same again gets the answer of the first time, for a day; something else is 409."""

import hashlib
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import orjson
from django.db import connection
from rest_framework.request import Request
from rest_framework.response import Response

from memory.graph import fields
from memory.graph.models import Answer
from memory.problems import Problem

KEPT: Final = "interval '24 hours'"
REPLAYED: Final = {"Idempotent-Replay": "true"}
# Each new answer takes a few that are over their time along.
_SWEPT: Final = 20

View = Callable[..., Response]


def idempotent(view: View) -> View:
    """Decorator of an API view, below `@needs`: it runs once for each Idempotency-Key and address."""

    @wraps(view)
    def once(request: Request, *args: Any, **kwargs: Any) -> Response:
        key = fields.idempotency_key(request.headers.get("Idempotency-Key"))
        if key is None or request.method != "POST":
            return view(request, *args, **kwargs)
        tenant_pk = str(request.tenant.pk)  # type: ignore[attr-defined]
        # One member's answer is not another's, whatever keys they choose.
        door = f"{request.actor.member_pk}{request.path}"[:200]  # type: ignore[attr-defined]
        asked = hashlib.sha256(request.body).digest()
        kept = find(tenant_pk, door, key, asked)
        if kept is not None:
            return Response(orjson.loads(kept.body), status=kept.status, headers=REPLAYED)
        answer = view(request, *args, **kwargs)
        if answer.status_code < 400:
            keep(tenant_pk, door, key, asked, answer.status_code, orjson.dumps(answer.data, default=str).decode())
        return answer

    return once


def find(tenant_pk: str, door: str, key: str, asked: bytes) -> Answer | None:
    """What is kept under a key, locked till the transaction ends: two that send the same at once wait for each other.

    `asked` is the SHA-256 of the body. The tenant must be bound. Raises Problem 409 for another body under the key.
    """
    _lock(tenant_pk, door, key)
    kept = _kept(tenant_pk, door, key)
    if kept is not None and bytes(kept.asked) != asked:
        raise Problem(409, "idempotency_conflict", "This Idempotency-Key was used with another body. Use a new one.")
    return kept


def keep(tenant_pk: str, door: str, key: str, asked: bytes, status: int, body: str) -> None:
    """Keep an answer under a key that `find` has locked; a status of 0 keeps only what was asked."""
    Answer.objects.update_or_create(
        tenant_id=tenant_pk, door=door, key=key, defaults={"asked": asked, "status": status, "body": body}
    )


def _lock(tenant_pk: str, door: str, key: str) -> None:
    """Two that send the same at once wait for each other."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 7))", ["\n".join((tenant_pk, door, key))])


def _kept(tenant_pk: str, door: str, key: str) -> Answer | None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"DELETE FROM graph_answer WHERE id IN (SELECT id FROM graph_answer WHERE at < now() - {KEPT}"  # noqa: S608
            " ORDER BY at LIMIT %s FOR UPDATE SKIP LOCKED) OR (tenant_id = %s AND door = %s AND key = %s"
            f" AND at < now() - {KEPT})",
            [_SWEPT, tenant_pk, door, key],
        )
    return Answer.objects.filter(tenant_id=tenant_pk, door=door, key=key).first()
