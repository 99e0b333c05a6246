"""Pages of dream runs, and of the sessions they read."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_GET, require_POST

from dream import forget as forgetting
from dream import reading, run
from dream.shown import show_dream, show_dreams
from memory.events import reading as events
from memory.events.models import Session
from memory.notes import reading as notes
from memory.sentences import thousands
from memory.tenants import pages
from memory.tenants.access import TenantRequest, needs
from memory.tenants.proof import recently

PAGE = 50
EVENTS = 50


@require_GET
@needs("session.read")
def sessions(request: TenantRequest, slug: str) -> HttpResponse:
    asked = {name: pages.asked(request, name) for name in ("q", "project", "client", "state")}
    filtered = events.filtered(
        events.sessions(request.tenant), q=asked["q"], project=asked["project"], client=asked["client"]
    )
    rows: Any = reading.dreamt(filtered, by=request.actor)
    if asked["state"] == "open":
        rows = rows.filter(state="open")
    elif asked["state"]:
        rows = rows.filter(dream_state=asked["state"])
    after = pages.cursor_of(request, "sessions")
    if after:
        rows = events.before(rows, after)
    found = list(rows[: PAGE + 1])
    last = found[PAGE - 1] if len(found) > PAGE else None
    context = {
        **asked,
        "sessions": found[:PAGE],
        "saved": pages.saved(request, "sessions"),
        "next_url": pages.next_url(request, "sessions", events.position(last) if last else None),
        "projects": request.tenant.projects.current().order_by("slug"),
        "clients": events.clients(request.tenant),
    }
    return pages.answer(
        request, "events/sessions.html", "events/_sessions.html", context, more="events/_session_rows.html"
    )


@require_GET
@needs("session.read")
def session(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """The timeline, what was told, what was learnt."""
    rows: Any = reading.dreamt(events.sessions(request.tenant), by=request.actor)
    read: Session = get_object_or_404(rows, public_id=public_id)
    name = f"session:{public_id}"
    after = pages.cursor_of(request, name)
    found = list(events.timeline(read).filter(seq__gt=after[0] if after else 0)[: EVENTS + 1])
    told = reading.tellings(read, by=request.actor)
    context = {
        "session": read,
        "events": reading.with_tellings(events.with_outcomes(read, found[:EVENTS]), told),
        "next_url": pages.next_url(request, name, [found[EVENTS - 1].seq] if len(found) > EVENTS else None),
        "tellings": told,
        "repeated": events.repeated(read),
        "gist": reading.gist(read),
        "proposals": reading.learnt_from(read, by=request.actor),
        "may_forget": forgetting.may_forget(read, request.actor),
    }
    return pages.answer(request, "events/session.html", "events/_event_rows.html", context)


@require_POST
@needs("session.delete")
@recently
def session_delete(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    read: Session = get_object_or_404(request.tenant.sessions.all(), public_id=public_id)
    try:
        gone = forgetting.forget(read, by=request.actor, keep_report=request.POST.get("keep_report") == "on")
    except Session.DoesNotExist:  # another request deleted it a moment ago
        return redirect("sessions", slug)
    words = ngettext(
        "The session is deleted, with its %(events)s event.",
        "The session is deleted, with its %(events)s events.",
        gone.events,
    )
    messages.success(request, words % {"events": thousands(gone.events)})
    return redirect("sessions", slug)


@require_GET
@needs("session.read")
def event(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """One event and its payload, made readable."""
    rows = request.tenant.events.select_related("session", "session__project")
    read = get_object_or_404(rows, public_id=public_id)
    read.session.first_prompt = events.first_prompt(read.session)  # type: ignore[attr-defined]
    text, is_cut = events.readable(read)
    context = {
        "event": read,
        "payload_text": text,
        "is_cut": is_cut,
        "telling": reading.told_at(read, by=request.actor),
        "citing": notes.citing(read, by=request.actor),
        "previous": events.timeline(read.session).filter(seq=read.seq - 1).first(),
        "next": events.timeline(read.session).filter(seq=read.seq + 1).first(),
    }
    return pages.answer(request, "events/event.html", "events/_payload.html", context)


@require_GET
@needs("dream.read")
def dreams(request: TenantRequest, slug: str) -> HttpResponse:
    return show_dreams(request)


@require_GET
@needs("dream.read")
def dream(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    return show_dream(request, public_id)


@require_POST
@needs("dream.start")
def dream_start(request: TenantRequest, slug: str) -> HttpResponse:
    try:
        run.start(request.tenant, by=request.actor)
    except run.AlreadyRunning:
        problem = gettext("A dream waits or runs already. It is below; start another when it has ended.")
        return show_dreams(request, problem=problem, status=409)
    return show_dreams(request) if request.htmx else redirect("dreams", slug)
