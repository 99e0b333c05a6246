"""`/mcp`: the SDK's ASGI application behind a plain view. No state outlives a request: any process takes any call."""

import asyncio
import io
import json
import logging
import os
import re
import threading
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from a2wsgi import ASGIMiddleware
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.http.request import validate_host
from django.views.decorators.csrf import csrf_exempt
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from memory import problems, redact
from memory.mcp import server
from memory.mcp.offer import Caller
from memory.problems import Problem
from memory.tenants.access import brings_own_transaction
from memory.tenants.door import DatabaseAway, away
from memory.tenants.middleware import bearer, key_actor
from memory.tenants.models import Tenant

log = logging.getLogger(__name__)
# What is larger goes by REST: no model writes so much in one call.
MOST_BYTES: Final = 4 * 1024 * 1024
_STARTS_IN: Final = 10.0
_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass
class Bridge:
    """One event loop in a thread of its own, with the SDK's application open in it for as long as the process lives."""

    loop: asyncio.AbstractEventLoop
    application: Any
    pid: int = field(default_factory=os.getpid)
    ready: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def opened(cls) -> "Bridge":
        # Host and Origin are checked before: by the settings that every other address obeys.
        unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        made = server.made()
        app = made.streamable_http_app(
            stateless_http=True,
            json_response=True,
            max_request_body_size=MOST_BYTES,
            transport_security=unchecked,
        )
        loop = asyncio.new_event_loop()
        # The same interface in two typings.
        bridge = cls(loop, ASGIMiddleware(app, loop=loop))  # type: ignore[arg-type]
        threading.Thread(target=bridge._run, args=(made,), daemon=True, name="mcp").start()
        if not bridge.ready.wait(_STARTS_IN):
            raise RuntimeError("the MCP application did not start")
        return bridge

    def _run(self, made: Any) -> None:
        async def hold() -> None:
            async with made.session_manager.run():
                self.ready.set()
                await asyncio.Event().wait()

        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(hold())


_lock = threading.Lock()
_open: list[Bridge] = []


def _bridge() -> Bridge:
    """This process's bridge: a fork has the list, and not the thread."""
    with _lock:
        if not _open or _open[-1].pid != os.getpid():
            _open[:] = [Bridge.opened()]
        return _open[-1]


@csrf_exempt
@brings_own_transaction
def endpoint(request: HttpRequest) -> HttpResponse:
    """One message of MCP in, one out."""
    try:
        return _answered(request)
    except Problem as problem:
        return problems.response(problem)
    except DatabaseAway as exc:
        return away(exc)


def _answered(request: HttpRequest) -> HttpResponse:
    _refuse_strangers(request)
    # At every call: a revoked key is out from the next one on.
    actor, key_hash = key_actor(request), bearer(request)
    if request.method != "POST":
        # No stream is offered: it would hold a thread for as long as a client idles.
        refused = Problem(405, "method_not_allowed", "MCP messages come by POST.", headers={"Allow": "POST"})
        return problems.response(refused)
    body = _body(request)
    if not connection.in_atomic_block:
        # Back to the pool: the call itself may need the last one.
        connection.close()
    environ = {
        **request.META,
        "PATH_INFO": "/mcp",
        "SCRIPT_NAME": "",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
        server.CALLER: Caller(actor, Tenant(pk=actor.tenant_pk), key_hash),
    }
    return _through(environ)


def _refuse_strangers(request: HttpRequest) -> None:
    """A page of another site must not speak through its reader's browser, whatever name it has given this address."""
    try:
        request.get_host()
    except DisallowedHost:
        advice = "This server goes by another name: TEAM_MEMORY_PUBLIC_URL, or one of TEAM_MEMORY_ALLOWED_HOSTS."
        raise Problem(403, "strange_host", advice) from None
    origin = request.headers.get("Origin")
    if origin is None:
        return
    try:
        host = urlsplit(origin).hostname or ""
    except ValueError:
        host = ""
    allowed = [*settings.ALLOWED_HOSTS, urlsplit(settings.PUBLIC_URL).hostname or ""]
    if not host or not validate_host(f"[{host}]" if ":" in host else host, allowed):
        raise Problem(403, "strange_origin", "Pages of other sites may not call this. Call it without an Origin.")


def _body(request: HttpRequest) -> bytes:
    """The message. Raises Problem 413, and 404 for a session: none is ever given."""
    size = request.META.get("CONTENT_LENGTH") or "0"
    if size.isdigit() and int(size) > MOST_BYTES:
        detail = "A message is 4 MB at most. Send what is larger by REST."
        raise Problem(413, "too_large", detail, limit_bytes=MOST_BYTES)
    session = request.headers.get("Mcp-Session-Id")
    version = request.headers.get("MCP-Protocol-Version")
    if session and (version is None or version in HANDSHAKE_PROTOCOL_VERSIONS):
        detail = "There is no such session: this server gives none. Initialize again, without Mcp-Session-Id."
        raise Problem(404, "not_found", detail, id=session[:200])
    return _in_whole_characters(request.body)


def _in_whole_characters(body: bytes) -> bytes:
    """The same message with U+FFFD for half characters, as REST takes them: a text that a client cut by UTF-16 ends in
    one, and the SDK would refuse the whole message without a word about why.
    """
    if not _HALF.search(body):
        return body
    try:
        text = json.dumps(json.loads(body), ensure_ascii=False)
    except (ValueError, RecursionError):
        return body
    return redact.sanitize(text)[0].encode()


def _through(environ: dict[str, Any]) -> HttpResponse:
    """The SDK's answer. It is read to its end here: a2wsgi says the status only with the first piece."""
    said: dict[str, Any] = {}

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        said.update(status=int(status.split(" ", 1)[0]), headers=headers)

    body = b"".join(_bridge().application(environ, start_response))
    response = HttpResponse(body, status=said["status"])
    del response["Content-Type"]
    for name, value in said["headers"]:
        response[name] = value
    return response
