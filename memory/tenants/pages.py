"""What all pages share: the page or the piece of it that htmx swaps, and cursors in addresses."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from memory.paging import decode, encode
from memory.tenants import filters
from memory.tenants.access import TenantRequest


def wants_piece(request: TenantRequest) -> bool:
    """True where htmx asks for a part. After "back" it asks for the whole page again, by the same address."""
    return bool(request.htmx) and not request.htmx.history_restore_request


def answer(
    request: TenantRequest, page: str, piece: str, context: dict[str, Any], *, status: int = 200, more: str = ""
) -> HttpResponse:
    """The page, or the piece of it; `more` is the piece with the rows that follow."""
    template = page
    if wants_piece(request):
        template = more if more and request.htmx.target == "more" else piece
    response = render(request, template, context, status=status)
    patch_vary_headers(response, ["HX-Request", "HX-Target", "HX-History-Restore-Request"])
    return response


def asked(request: TenantRequest, name: str) -> str:
    """A filter or search of the address, fit for the database: it takes no NUL."""
    return request.GET.get(name, "").replace("\0", "").strip()[:200]


def cursor_of(request: TenantRequest, name: str) -> list[Any] | None:
    """The position in the address's cursor, or None for the first page. Raises Problem 400."""
    cursor = request.GET.get("cursor")
    return None if cursor is None else decode(cursor, scope=_scope(request, name))


def next_url(request: TenantRequest, name: str, position: list[Any] | None) -> str:
    """The address of what follows, with the filters kept; empty at the end."""
    if position is None:
        return ""
    kept = {key: value for key, value in request.GET.items() if key != "cursor" and value}
    return f"{request.path}?{urlencode({**kept, 'cursor': encode(position, scope=_scope(request, name))})}"


def saved(request: TenantRequest, page: str, of: str = "") -> filters.Shown:
    """The filters that were saved for a list, and the present one."""
    return filters.shown(request.tenant, filters.Place(page, of), request.GET.urlencode(), by=request.actor)


def query(**said: str) -> str:
    """Names and values as they stand in an address."""
    return urlencode(said)


def _scope(request: TenantRequest, name: str) -> str:
    return f"{request.actor.tenant_pk}:page:{name}"
