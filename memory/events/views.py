"""Pages of sessions, events and projects."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_GET, require_POST

from memory.events import bodies, projects, reading
from memory.events.models import Event, Project
from memory.events.places import normal_remote, normal_root
from memory.tenants import pages
from memory.tenants.access import TenantRequest, needs


@require_GET
@needs("session.read")
def event_payload(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """The stored bytes, to keep; never shown as a page."""
    found = the_event(request, public_id)
    raw = bodies.stored(found)
    if raw is None:
        raise bodies.gone(found)
    response = HttpResponse(raw, content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{public_id}.json"'
    return response


def the_event(request: TenantRequest, public_id: str) -> Event:
    return get_object_or_404(request.tenant.events.select_related("session", "session__project"), public_id=public_id)


@require_GET
@needs("project.read")
def project_list(request: TenantRequest, slug: str) -> HttpResponse:
    return show_projects(request)


def show_projects(request: TenantRequest, *, problem: str = "", status: int = 200) -> HttpResponse:
    context = {
        "projects": reading.projects(request.tenant),
        "likely": projects.likely_same(request.tenant.projects.all()),
        "problem": problem,
    }
    return pages.answer(request, "events/projects.html", "events/_projects.html", context, status=status)


def the_project(request: TenantRequest, public_id: str) -> Project:
    return get_object_or_404(request.tenant.projects.current(), public_id=public_id)


@require_POST
@needs("project.edit")
def project_merge(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    merged = the_project(request, public_id)
    into = request.POST.get("into", "").replace("\0", "")
    if not into:
        return show_projects(request, problem="Choose the project that this one belongs to.", status=422)
    try:
        target = the_project(request, into)
        projects.merge(merged, into=target, by=request.actor)
    except projects.CannotMerge as exc:
        return show_projects(request, problem=str(exc), status=409)
    messages.success(request, f"Merged {merged.name} into {target.name}: its sessions and places are there now.")
    return show_projects(request) if request.htmx else redirect("projects", slug)


@require_POST
@needs("project.edit")
def project_map(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    mapped = the_project(request, public_id)
    asked = request.POST.get("root", "").replace("\0", "")[:1000]
    kind, place = ("remote", normal_remote(asked)) if normal_remote(asked) else ("root", normal_root(asked))
    if not place.strip("/"):
        return show_projects(request, problem="Give a folder from its root, or a git remote.", status=422)
    try:
        projects.map_root(mapped, kind, place, by=request.actor)
    except projects.PlaceTaken as exc:
        return show_projects(request, problem=str(exc), status=409)
    return show_projects(request) if request.htmx else redirect("projects", slug)
