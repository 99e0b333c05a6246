"""Keeping, renaming and removing filters; each answer leads back to the list that the filter is of."""

from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from memory.tenants import filters
from memory.tenants.access import TenantRequest, needs
from memory.tenants.filters import BadFilter, Place
from memory.tenants.models import SavedFilter


@require_POST
@needs("filter.save")
def filter_save(request: TenantRequest, slug: str) -> HttpResponse:
    """Keep the filter of a list under a name."""
    try:
        at = filters.place(_said(request, "page"), _said(request, "of"))
    except BadFilter as why:
        messages.error(request, str(why))
        return redirect("inbox", slug)
    query = request.POST.get("query", "")
    try:
        made = filters.save(
            request.tenant, at, query, name=_said(request, "name"), is_shared=_is_shared(request), by=request.actor
        )
        messages.success(request, gettext("Saved “%(name)s”. It stands above the list.") % {"name": made.name})
    except BadFilter as why:
        messages.error(request, str(why))
    return _back(request, at, query)


@require_POST
@needs("filter.save")
def filter_change(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """Rename it, or show it to the whole team."""
    changed = _the_filter(request, public_id)
    try:
        filters.rename(changed, name=_said(request, "name"), is_shared=_is_shared(request), by=request.actor)
        messages.success(request, gettext("Saved “%(name)s”.") % {"name": changed.name})
    except BadFilter as why:
        messages.error(request, str(why))
    return _to(request, changed)


@require_POST
@needs("filter.save")
def filter_remove(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """Take it away. The list then offers to bring it back."""
    gone = _the_filter(request, public_id)
    filters.remove(gone, by=request.actor)
    messages.success(request, gettext("Removed “%(name)s”.") % {"name": gone.name})
    return _to(request, gone)


@require_POST
@needs("filter.save")
def filter_restore(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """Bring back what was removed just now."""
    kept = _the_filter(request, public_id)
    try:
        filters.restore(kept, by=request.actor)
        messages.success(request, gettext("“%(name)s” is back.") % {"name": kept.name})
    except BadFilter as why:
        messages.error(request, str(why))
    return _to(request, kept)


def _the_filter(request: TenantRequest, public_id: str) -> SavedFilter:
    """One's own, or one that is for everybody."""
    seen = Q(member_id=request.actor.member_pk) | Q(is_shared=True)
    rows: Any = request.tenant.filters.filter(seen)
    found: SavedFilter = get_object_or_404(rows, public_id=public_id.replace("\0", ""))
    return found


def _said(request: TenantRequest, name: str) -> str:
    return request.POST.get(name, "").strip()[:200]


def _is_shared(request: TenantRequest) -> bool:
    return request.POST.get("share") == "yes"


def _to(request: TenantRequest, kept: SavedFilter) -> HttpResponse:
    return _back(request, Place(kept.page, kept.of), kept.query)


def _back(request: TenantRequest, at: Place, query: str) -> HttpResponse:
    """To the list, filtered so. Its address is made from its name: nothing that was sent is an address."""
    slug = request.tenant.slug
    try:
        address = reverse(at.page, args=[slug, at.of] if at.of else [slug])
    except NoReverseMatch:
        address = reverse("inbox", args=[slug])
    return redirect(f"{address}?{filters.canonical(at.page, query)}".rstrip("?"))
