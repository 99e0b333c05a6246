"""The clients as they are handed out: one file each, its digest, and nothing that depends on who asks."""

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response
from django.views.decorators.http import require_safe

import cache_admin
from memory.tenants.access import public

_HOOK: Final = Path(__file__).with_name("client.py")
_CACHE: Final = Path(cache_admin.__file__).with_name("client.py")


@cache
def script(file: Path = _HOOK) -> tuple[bytes, str]:
    """A script's bytes and their SHA-256, read once: a new one comes with a new process."""
    content = file.read_bytes()
    return content, hashlib.sha256(content).hexdigest()


@public
@require_safe
def hook_script(request: HttpRequest) -> HttpResponse:
    """`GET /clients/hook.py`: open to everyone, for whoever installs it has no key yet on that machine."""
    content, digest = script()
    return _answer(request, content, digest, "text/x-python; charset=utf-8")


@public
@require_safe
def hook_digest(request: HttpRequest) -> HttpResponse:
    """`GET /clients/hook.py.sha256`: what `sha256sum --check` reads."""
    _, digest = script()
    return _answer(request, f"{digest}  hook.py\n".encode(), digest, "text/plain; charset=utf-8")


@public
@require_safe
def cache_client(request: HttpRequest) -> HttpResponse:
    """`GET /clients/python/team_memory.py`: the module that tool authors put beside their tools."""
    content, digest = script(_CACHE)
    return _answer(request, content, digest, "text/x-python; charset=utf-8")


@public
@require_safe
def cache_client_digest(request: HttpRequest) -> HttpResponse:
    """`GET /clients/python/team_memory.py.sha256`."""
    _, digest = script(_CACHE)
    return _answer(request, f"{digest}  team_memory.py\n".encode(), digest, "text/plain; charset=utf-8")


def _answer(request: HttpRequest, content: bytes, digest: str, media_type: str) -> HttpResponse:
    response = HttpResponse(content, content_type=media_type)
    response["ETag"] = etag = f'"{digest}"'
    response["X-Content-SHA256"] = digest
    response["Content-Digest"] = f"sha-256=:{base64.b64encode(hashlib.sha256(content).digest()).decode()}:"
    response["Cache-Control"] = "public, no-cache"
    return get_conditional_response(request, etag=etag, response=response) or response
