"""Pages of webhook endpoints: made, set up, given a new secret, paused, and what was sent to them last."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory.graph import endpoints, forms, received
from memory.graph.endpoints import Wanted, WrongEndpoint
from memory.graph.webhooks.models import Delivery, Endpoint
from memory.tenants import pages
from memory.tenants.access import TenantRequest, needs, require
from memory.tenants.proof import recently

DELIVERIES = 50


@require_http_methods(["GET", "POST"])
@needs("graph.read")
@recently
def endpoint_list(request: TenantRequest, slug: str) -> HttpResponse:
    """All endpoints. A POST makes one and shows its secret, once."""
    if request.method == "GET":
        return _list(request, forms.EndpointForm())
    require(request.actor, "webhook.manage")
    form = forms.EndpointForm(_typed(request))
    if form.is_valid():
        said = form.cleaned_data
        try:
            wanted = Wanted(secret=said["secret"].strip(), proof=form.proof())
            made, secret = endpoints.create(request.tenant, said["kind"], said["name"], wanted=wanted, by=request.actor)
        except WrongEndpoint as refused:
            field = refused.more.get("field")
            form.add_error(field if field in form.fields else None, refused.detail)
        except ValueError as refused:
            form.add_error("header", str(refused))
        else:
            return _show(request, made, secret=secret)
    return _list(request, form, status=422)


def _list(request: TenantRequest, form: forms.EndpointForm, *, status: int = 200) -> HttpResponse:
    context = {"endpoints": received.endpoints(request.tenant), "form": form}
    return render(request, "graph/endpoints.html", context, status=status)


@require_GET
@needs("graph.read")
def endpoint(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    return _show(request, _the_endpoint(request, public_id))


def _show(
    request: TenantRequest,
    shown: Endpoint,
    *,
    secret: str = "",
    form: forms.MapForm | None = None,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    asked = pages.asked(request, "status")
    asked = asked if asked in Delivery.Status.values else ""
    name = f"endpoint:{shown.public_id}"
    after = pages.cursor_of(request, name)
    rows = endpoints.deliveries(shown, status=asked)
    found = list((received.before(rows, after) if after else rows)[: DELIVERIES + 1])
    last = received.position(found[DELIVERIES - 1]) if len(found) > DELIVERIES else None
    context: dict[str, Any] = {
        "endpoint": shown,
        "address": settings.PUBLIC_URL.rstrip("/") + shown.path,
        "secret": secret,
        "proof": endpoints.proof_of(shown),
        "form": form or forms.MapForm(None, shown),
        "overlaps": forms.OVERLAPS,
        "problem": problem,
        "deliveries": found[:DELIVERIES],
        "saved": pages.saved(request, "endpoint", shown.public_id),
        # The address of a POST is no address of what follows.
        "next_url": "" if request.method == "POST" else pages.next_url(request, name, last),
        "status": asked,
        "statuses": Delivery.Status.values,
    }
    if request.method == "POST":
        return render(request, "graph/endpoint.html", context, status=status)
    return pages.answer(
        request, "graph/endpoint.html", "graph/_deliveries.html", context, more="graph/_delivery_rows.html"
    )


@require_POST
@needs("webhook.manage")
@recently
def endpoint_rotate(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """A new secret, shown once; the old one is good for as long as was chosen."""
    rotated = _the_endpoint(request, public_id)
    said = _typed(request)
    try:
        overlap = forms.overlap(said.get("overlap", ""))
        secret = endpoints.rotate(rotated, by=request.actor, secret=said.get("secret", "").strip(), overlap=overlap)
    except WrongEndpoint as refused:
        return _show(request, rotated, problem=refused.detail, status=422)
    return _show(request, rotated, secret=secret)


@require_POST
@needs("webhook.manage")
def endpoint_pause(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    paused = _the_endpoint(request, public_id)
    endpoints.pause(paused, by=request.actor, is_paused=request.POST.get("is_paused", "yes") == "yes")
    return redirect("endpoint", slug, public_id)


@require_POST
@needs("webhook.manage")
def endpoint_change(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """Another name, another field map."""
    changed = _the_endpoint(request, public_id)
    form = forms.MapForm(_typed(request), changed)
    if form.is_valid():
        try:
            name, field_map = form.cleaned_data["name"], form.field_map()
            endpoints.change(changed, by=request.actor, name=name, field_map=field_map)
        except WrongEndpoint as refused:
            form.add_error("name" if refused.more.get("field") == "name" else None, refused.detail)
            changed.refresh_from_db()
        else:
            messages.success(request, gettext("Saved."))
            return redirect("endpoint", slug, public_id)
    return _show(request, changed, form=form, status=422)


@require_POST
@needs("webhook.manage")
@recently
def endpoint_remove(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    removed = _the_endpoint(request, public_id)
    endpoints.remove(removed, by=request.actor)
    messages.success(
        request,
        gettext("Removed %(name)s. Its address answers 404 from now on; what it brought stays.")
        % {"name": removed.name},
    )
    return redirect("endpoints", slug)


def _the_endpoint(request: TenantRequest, public_id: str) -> Endpoint:
    return get_object_or_404(request.tenant.endpoints, public_id=public_id[:110])


def _typed(request: TenantRequest) -> dict[str, str]:
    return {name: value.replace("\0", "") for name, value in request.POST.dict().items()}
