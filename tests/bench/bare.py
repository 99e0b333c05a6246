"""The least a web server can do with a hook call: one insert. What `ingest.py` measures itself against, over HTTP."""

import os
import threading
from collections.abc import Callable
from typing import Any

import psycopg

_own = threading.local()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    body: bytes = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    if body:
        if not hasattr(_own, "connection"):
            _own.connection = psycopg.connect(os.environ["BENCH_DSN"], autocommit=True)
        statement = b"INSERT INTO bench_floor VALUES (%s, %s) ON CONFLICT DO NOTHING"
        with psycopg.Cursor(_own.connection) as cursor:
            cursor.execute(statement, (environ["HTTP_IDEMPOTENCY_KEY"], body.decode()), prepare=True)
    start_response("200 OK", [("Content-Type", "application/json")])
    return [b"{}"]
