"""What `recall.py` measures the graph's doors against, on the same rows of the same server.

`django_application`: a minimal Django view, one query, no key and no row level security.
`bare`: FastAPI and asyncpg by hand (uvloop, httptools, prepared statements, pooled connections), as bare as that.
`whole`: the same, which checks the key, binds the tenant under row level security, and for writes gives the place in
the thread under its lock, looks whether it knows the trigger, and keeps payload and step.
"""

import json
import os
import uuid
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any

ADDRESS: dict[str, Any] = json.loads(os.environ.get("BENCH_ADDRESS", "{}"))
TENANT = os.environ.get("BENCH_TENANT", "")

# The answer of GET /threads/{id} in plain SQL; `%s` and `$n` stand for the thread and the tenant.
THREAD = """
SELECT json_build_object(
  'thread_id', t.public_id, 'key', t.key, 'title', t.title, 'state', t.state, 'summary', t.summary,
  'owner_workers', coalesce((SELECT json_agg(w.public_id ORDER BY o.since, w.public_id) FROM graph_owner o
    JOIN graph_worker w ON w.id = o.worker_id AND w.deleted_at IS NULL WHERE o.thread_id = t.id), '[]'::json),
  'workers', coalesce((SELECT json_agg(n.public_id) FROM (SELECT w.public_id FROM graph_worker w
    WHERE w.thread_id = t.id AND w.deleted_at IS NULL ORDER BY w.created_at DESC, w.public_id LIMIT 20) n), '[]'::json),
  'counts', json_build_object('triggers', t.trigger_count, 'workers', t.worker_count, 'events', t.last_seq),
  'links', coalesce((SELECT json_agg(json_strip_nulls(json_build_object('kind', n.kind, 'direction', n.direction,
      'thread_id', n.public_id, 'key', nullif(n.key, ''), 'made_by', n.made_by,
      'because_of', nullif(n.because_of, ''))) ORDER BY n.made_at, n.id) FROM (
    SELECT l.kind, 'to' AS direction, o.public_id, coalesce(o.key, l.to_key) AS key, l.made_by, l.because_of, l.made_at,
      l.id FROM graph_link l LEFT JOIN graph_thread o ON o.id = l.to_thread_id AND o.deleted_at IS NULL
      WHERE l.from_thread_id = t.id AND l.removed_at IS NULL AND (l.to_thread_id IS NULL OR o.id IS NOT NULL)
    UNION ALL
    SELECT l.kind, 'from', o.public_id, o.key, l.made_by, l.because_of, l.made_at, l.id FROM graph_link l
      JOIN graph_thread o ON o.id = l.from_thread_id AND o.deleted_at IS NULL
      WHERE l.to_thread_id = t.id AND l.removed_at IS NULL
    ORDER BY made_at, id LIMIT 50) n), '[]'::json),
  'created_at', t.created_at, 'last_at', t.last_at)::text
FROM graph_thread t WHERE t.public_id = {} AND t.tenant_id = {} AND t.deleted_at IS NULL
"""
NOT_FOUND = b'{"type":"about:blank","title":"Not found","status":404}'


def django_application() -> Any:
    """The WSGI application of one Django view, with a connection that stays and prepared statements."""
    from django.conf import settings

    settings.configure(
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF=__name__,
        SECRET_KEY="bench",
        MIDDLEWARE=[],
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": ADDRESS["dbname"],
                "USER": ADDRESS["user"],
                "PASSWORD": ADDRESS["password"],
                "HOST": ADDRESS["host"],
                "PORT": str(ADDRESS["port"]),
                "CONN_MAX_AGE": None,
                "OPTIONS": {"server_side_binding": True, "prepare_threshold": 1},
            }
        },
    )
    from django.core.wsgi import get_wsgi_application
    from django.db import connection
    from django.http import HttpResponse
    from django.urls import path

    def thread(request: Any, thread_id: str) -> HttpResponse:
        with connection.cursor() as cursor:
            cursor.execute(THREAD.format("%s", "%s"), [thread_id, TENANT])
            row = cursor.fetchone()
        return HttpResponse(row[0] if row else NOT_FOUND, status=200 if row else 404, content_type="application/json")

    urlpatterns.append(path("healthz", lambda request: HttpResponse("{}")))
    urlpatterns.append(path("api/v1/threads/<str:thread_id>", thread))
    return get_wsgi_application()


urlpatterns: list[Any] = []

LOGIN = """
SELECT k.tenant_id, k.key_id, k.role, k.scopes, set_config('app.tenant_id', k.tenant_id::text, true)
FROM key_login($1) k
"""
OPEN = """
INSERT INTO graph_thread AS t (id, tenant_id, public_id, key, title, state, summary, last_seq, trigger_count,
    worker_count, created_at, last_at, active_at)
  SELECT g.id, $1, g.public_id, g.key, '', 'open', '', g.many, g.many, 0, now(), now(), now()
  FROM unnest($2::uuid[], $3::text[], $4::text[], $5::int[]) AS g(id, public_id, key, many) ORDER BY g.key
  ON CONFLICT (key, tenant_id) DO UPDATE SET last_seq = t.last_seq + EXCLUDED.last_seq,
    trigger_count = t.trigger_count + EXCLUDED.last_seq, last_at = now(), active_at = now()
  RETURNING t.id, t.public_id, t.key, t.last_seq
"""
KNOWN = """
SELECT g.external_id, g.public_id, g.fingerprint FROM graph_trigger g
WHERE g.external_id = ANY ($2::text[]) AND g.source = ANY ($3::text[]) AND g.tenant_id = $1
"""
TRIGGER = """
INSERT INTO graph_trigger (id, tenant_id, public_id, thread_id, seq, source, external_id, fingerprint, received_at,
  summary, by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, now(), $9, $10)
"""
PART = """
INSERT INTO graph_part (trigger_id, name, tenant_id, media_type, size, sha256, redactions, sanitized, content,
  stored_at) VALUES ($1, 'payload', $2, 'application/json', $3, $4, 0, 0, $5, now())
"""
STEP = """
INSERT INTO graph_step (thread_id, seq, tenant_id, public_id, kind, trigger_public_id, worker_public_id,
  other_public_id, summary, at) VALUES ($1, $2, $3, $4, 'trigger', $5, '', '', $6, now())
"""


def fastapi_application(*, is_whole: bool) -> Any:
    """FastAPI over asyncpg, written by hand: raw bytes out, orjson in, statements prepared by the driver."""
    import asyncpg
    from fastapi import FastAPI, Request, Response

    dsn = {
        "host": ADDRESS["host"],
        "port": ADDRESS["port"],
        "user": ADDRESS["user"],
        "password": ADDRESS["password"],
        "database": ADDRESS["dbname"],
    }

    @asynccontextmanager
    async def pooled(app: Any) -> Any:
        async with asyncpg.create_pool(**dsn, min_size=4, max_size=8) as app.state.pool:
            yield

    app = FastAPI(lifespan=pooled, openapi_url=None)
    query = THREAD.format("$1", "$2")

    def said(body: Any, status: int = 200) -> Response:
        return Response(body, status_code=status, media_type="application/json")

    async def allowed(connection: Any, request: Any, scope: str) -> Any:
        """Who asks; the transaction is bound to the tenant from here on."""
        secret = request.headers.get("authorization", "").removeprefix("Bearer ")
        door = await connection.fetchrow(LOGIN, sha256(secret.encode()).digest())
        return door if door and scope in door["scopes"] else None

    @app.get("/healthz")
    async def healthz() -> Response:
        return said("{}")

    if not is_whole:

        @app.get("/api/v1/threads/{thread_id}")
        async def bare_thread(thread_id: str) -> Response:
            async with app.state.pool.acquire() as connection:
                found = await connection.fetchval(query, thread_id, TENANT)
            return said(found or NOT_FOUND, 200 if found else 404)

        return app

    @app.get("/api/v1/threads/{thread_id}")
    async def thread(thread_id: str, request: Request) -> Response:
        async with app.state.pool.acquire() as connection, connection.transaction():
            door = await allowed(connection, request, "read")
            if door is None:
                return said(b'{"status":401}', 401)
            found = await connection.fetchval(query, thread_id, door["tenant_id"])
        return said(found or NOT_FOUND, 200 if found else 404)

    @app.post("/api/v1/triggers")
    async def trigger(request: Request) -> Response:
        stored, status = await store(request, [await request.body()])
        return said(stored, status)

    @app.post("/api/v1/triggers/batch")
    async def batch(request: Request) -> Response:
        stored, status = await store(request, (await request.body()).split(b"\n"))
        return said(stored, 200 if status == 201 else status)

    async def store(request: Request, lines: list[bytes]) -> tuple[bytes, int]:
        import orjson

        came = [orjson.loads(line) for line in lines if line]
        for one in came:
            if not isinstance(one.get("source"), str) or not isinstance(one.get("thread"), dict):
                return b'{"status":400}', 400
        async with app.state.pool.acquire() as connection, connection.transaction():
            door = await allowed(connection, request, "ingest")
            if door is None:
                return b'{"status":401}', 401
            return await written(connection, door, came)

    async def written(connection: Any, door: Any, came: list[dict[str, Any]]) -> tuple[bytes, int]:
        import orjson

        tenant = door["tenant_id"]
        externals, sources = [one["external_id"] for one in came], list({one["source"] for one in came})
        known = {row[0]: row[1] for row in await connection.fetch(KNOWN, tenant, externals, sources)}
        fresh = [one for one in came if one["external_id"] not in known]
        many: dict[str, int] = {}
        for one in fresh:
            many[one["thread"]["key"]] = many.get(one["thread"]["key"], 0) + 1
        new = [uuid.uuid4() for _ in many]
        names = [f"thr_{made.hex}" for made in new]
        opened = await connection.fetch(OPEN, tenant, new, names, list(many), list(many.values()))
        homes = {row[2]: row for row in opened}
        place = {key: row[3] - many[key] for key, row in homes.items()}
        triggers, parts, steps = [], [], []
        for one in fresh:
            home = homes[one["thread"]["key"]]
            place[home[2]] += 1
            payload, made, seq = orjson.dumps(one["payload"]), uuid.uuid4(), place[home[2]]
            digest, public_id, summary = sha256(payload).digest(), f"trg_{made.hex}", one.get("summary", "")
            triggers.append(
                (made, tenant, public_id, home[0], seq, one["source"], one["external_id"], digest, summary, door[1])
            )
            parts.append((made, tenant, len(payload), digest, payload))
            steps.append((home[0], seq, tenant, f"evt_{uuid.uuid4().hex}", public_id, summary))
        if len(fresh) == 1:
            await connection.execute(TRIGGER, *triggers[0])
            await connection.execute(PART, *parts[0])
            await connection.execute(STEP, *steps[0])
            answer = {"trigger_id": triggers[0][2], "thread_id": opened[0][1], "seq": opened[0][3], "summary": summary}
            return orjson.dumps(answer), 201
        await connection.executemany(TRIGGER, triggers)
        await connection.executemany(PART, parts)
        await connection.executemany(STEP, steps)
        return orjson.dumps({"accepted": len(fresh), "repeated": len(came) - len(fresh), "refused": []}), 201

    return app


def bare() -> Any:
    return fastapi_application(is_whole=False)


def whole() -> Any:
    return fastapi_application(is_whole=True)


def __getattr__(name: str) -> Any:
    """granian wants the application itself, made once it is asked for."""
    if name == "application":
        return django_application()
    raise AttributeError(name)


def selects(address: dict[str, Any], tenant: str, ids: list[str], seconds: float) -> list[float]:
    """Seconds of each bare prepared SELECT of a thread on one connection: the floor under every door."""
    import time

    import psycopg

    key = json.dumps(address)
    if key not in _open:
        _open[key] = psycopg.connect(**address, autocommit=True)
    statement, took, began, place = THREAD.format("%s", "%s").encode(), [], time.perf_counter(), os.getpid()
    with psycopg.Cursor(_open[key]) as cursor:
        while (since := time.perf_counter()) - began < seconds:
            place += 1
            cursor.execute(statement, (ids[place % len(ids)], tenant), prepare=True)
            cursor.fetchone()
            took.append(time.perf_counter() - since)
    return took


_open: dict[str, Any] = {}
