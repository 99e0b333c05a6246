"""Pages of sessions, events and projects."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_GET, require_POST

from memory.events import bodies, limits, projects, reading
from memory.events.models import Event, Project
from memory.events.places import normal_remote, normal_root
from memory.tenants import pages
from memory.tenants.access import TenantRequest, needs
from memory.tenants.proof import recently


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
    shown = list(reading.projects(request.tenant))
    if request.actor.may("project.limit"):
        seats = limits.seats(request.tenant, shown)
        for one in shown:
            one.seats = seats[one.pk]  # type: ignore[attr-defined]
    context = {
        "projects": shown,
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


@require_POST
@needs("project.limit")
@recently
def project_limit(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """Say who sees a project: the whole team, or the ticked members and keys."""
    project = the_project(request, public_id)
    if request.POST.get("for") == "all":
        change = limits.open_to_all(project, by=request.actor)
    else:
        members = request.tenant.members.current().filter(public_id__in=request.POST.getlist("members"))
        keys = request.tenant.keys.filter(public_id__in=request.POST.getlist("keys"), member__removed_at__isnull=True)
        change = limits.limit(project, list(members), named_keys=list(keys), by=request.actor)
    messages.success(request, _told(project, change))
    return show_projects(request) if request.htmx else redirect("projects", slug)


def _told(project: Project, change: limits.Change) -> str:
    said = [f"{project.name} is open to the whole team."]
    if project.is_limited:
        said = [f"{project.name} is limited: only those who are ticked see it, and owners and admins."]
    if change.lost:
        said.append(f"No longer seen by {', '.join(change.lost)}, from now on.")
    if change.gained:
        said.append(f"Seen again by {', '.join(change.gained)}.")
    return " ".join(said)
