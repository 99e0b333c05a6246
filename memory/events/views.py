"""Pages of sessions, events and projects."""

from django.contrib import messages
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory.events import bodies, limits, projects, reading
from memory.events.models import Event, Project
from memory.events.places import normal_remote, normal_root
from memory.tenants import pages
from memory.tenants.access import TenantRequest, needs
from memory.tenants.proof import recently

PAGE = 20
# Who sees a project is asked for when it is opened, where this many people and projects would make a page of ticks.
MOST_SEATS = 200


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


def show_projects(
    request: TenantRequest, *, at: Project | None = None, problem: str = "", status: int = 200
) -> HttpResponse:
    """The projects, a page at a time; with `at` the page that begins with this one."""
    q, after = pages.asked(request, "q"), pages.cursor_of(request, "projects")
    rows = reading.projects(request.tenant)
    count = request.tenant.projects.current().count()
    if q:
        rows = rows.filter(Q(name__icontains=q) | Q(slug__icontains=q) | Q(roots__place__icontains=q))
    if after:
        rows = rows.filter(slug__gt=after[0])
    elif at is not None and count > PAGE:
        rows = rows.filter(slug__gte=at.slug)
    found = list(rows[: PAGE + 1])
    shown = found[:PAGE]
    context = {
        "projects": shown,
        "saved": pages.saved(request, "projects"),
        "count": count,
        "q": q,
        "next_url": pages.next_url(request, "projects", [shown[-1].slug] if len(found) > PAGE else None),
        "likely": [] if after or q else projects.likely_same(request.tenant.projects.all()),
        "is_long": count > PAGE,
        "choices": request.tenant.projects.current().order_by("slug"),
        "problem": problem,
    }
    if request.actor.may("project.limit"):
        seats = limits.seats(request.tenant, shown if count <= PAGE else [])
        context["has_seats"] = sum(map(len, seats.values())) <= MOST_SEATS and count <= PAGE
        for one in shown:
            one.seats = seats.get(one.pk, [])  # type: ignore[attr-defined]
    return pages.answer(request, "events/projects.html", "events/_projects.html", context, status=status)


def the_project(request: TenantRequest, public_id: str) -> Project:
    return get_object_or_404(request.tenant.projects.current(), public_id=public_id)


def chosen(request: TenantRequest, into: str) -> Project:
    """The project that was chosen from a list, by its id, or typed, by its short name."""
    return get_object_or_404(request.tenant.projects.current(), Q(public_id=into) | Q(slug=into.casefold()))


@require_POST
@needs("project.edit")
def project_merge(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    merged = the_project(request, public_id)
    into = request.POST.get("into", "").replace("\0", "")
    if not into:
        return show_projects(
            request, at=merged, problem=gettext("Choose the project that this one belongs to."), status=422
        )
    try:
        target = chosen(request, into)
        projects.merge(merged, into=target, by=request.actor)
    except projects.CannotMerge as exc:
        return show_projects(request, at=merged, problem=str(exc), status=409)
    messages.success(
        request,
        gettext("Merged %(name)s into %(name_2)s: its sessions and places are there now.")
        % {"name": merged.name, "name_2": target.name},
    )
    return show_projects(request, at=target) if request.htmx else redirect("projects", slug)


@require_POST
@needs("project.edit")
def project_map(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    mapped = the_project(request, public_id)
    asked = request.POST.get("root", "").replace("\0", "")[:1000]
    kind, place = ("remote", normal_remote(asked)) if normal_remote(asked) else ("root", normal_root(asked))
    if not place.strip("/"):
        return show_projects(
            request, at=mapped, problem=gettext("Give a folder from its root, or a git remote."), status=422
        )
    try:
        projects.map_root(mapped, kind, place, by=request.actor)
    except projects.PlaceTaken as exc:
        return show_projects(request, at=mapped, problem=str(exc), status=409)
    return show_projects(request, at=mapped) if request.htmx else redirect("projects", slug)


@require_http_methods(["GET", "POST"])
@needs("project.limit")
@recently
def project_limit(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """Say who sees a project: the whole team, or the ticked members and keys. A GET shows who does."""
    project = the_project(request, public_id)
    if request.method == "GET":
        project.seats = limits.seats(request.tenant, [project])[project.pk]  # type: ignore[attr-defined]
        context = {"project": project, "has_seats": True}
        return pages.answer(request, "events/limit.html", "events/_limit_form.html", context)
    if request.POST.get("for") == "all":
        change = limits.open_to_all(project, by=request.actor)
    else:
        members = request.tenant.members.current().filter(public_id__in=request.POST.getlist("members"))
        keys = request.tenant.keys.filter(public_id__in=request.POST.getlist("keys"), member__removed_at__isnull=True)
        change = limits.limit(project, list(members), named_keys=list(keys), by=request.actor)
    messages.success(request, _told(project, change))
    return show_projects(request, at=project) if request.htmx else redirect("projects", slug)


def _told(project: Project, change: limits.Change) -> str:
    said = [gettext("%(name)s is open to the whole team.") % {"name": project.name}]
    if project.is_limited:
        words = gettext("%(name)s is limited: only those who are ticked see it, and owners and admins.")
        said = [words % {"name": project.name}]
    if change.lost:
        said.append(gettext("No longer seen by %(names)s, from now on.") % {"names": ", ".join(change.lost)})
    if change.gained:
        said.append(gettext("Seen again by %(names)s.") % {"names": ", ".join(change.gained)})
    return " ".join(said)
