"""The first page after login, the guide, and answers that belong to no team."""

from dataclasses import replace

from django.db import DatabaseError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from cache_admin import weekly
from dream import budget
from dream import reading as dreams
from memory import finding, guide
from memory.notes import discussing, findings, reporting
from memory.notes import reading as notes
from memory.ops import alerts, first_run
from memory.recall.room import profile_room
from memory.tenants import outbox, pages
from memory.tenants.access import TenantRequest, needs, public
from memory.tenants.rls import UnboundRole, require_bound_role

# Of each list; the rest is one click away. Each proposal shown is a text whose frontmatter is read.
SHOWN = 10
SHOWN_OF_ONE_RISK = 100
FINDINGS_SHOWN = 5


@public
@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """To the teams of whoever is logged in, else to the login page."""
    return redirect("choose" if request.user.is_authenticated else "login")


@public
@require_GET
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


@public
@require_GET
def readyz(request: HttpRequest) -> HttpResponse:
    """The process can serve: the database answers, and as a role that row level security binds."""
    try:
        require_bound_role()
    except DatabaseError:
        return JsonResponse({"status": "unavailable", "database": "does not answer"}, status=503)
    except UnboundRole as exc:
        return JsonResponse({"status": "unavailable", "database": str(exc)}, status=503)
    return JsonResponse({"status": "ok", "database": "ok"})


@require_GET
@needs("note.read")
def find(request: TenantRequest, slug: str) -> HttpResponse:
    """One field for everything: the page, or the hits alone while somebody types."""
    q = pages.asked(request, "q")
    found = finding.find(request.tenant, request.actor, q, is_typing=pages.wants_piece(request))
    return pages.answer(request, "find.html", "_found.html", {"q": q, "found": found})


@require_GET
@needs("note.read")
def inbox(request: TenantRequest, slug: str) -> HttpResponse:
    """What waits for a person: proposals by risk, failed dreams, pairs of questions, sessions no dream has read."""
    risk = request.GET.get("risk", "")
    if risk:
        return one_risk(request, risk)
    if request.GET.get("for") == "me":
        return given_to_me(request)
    groups = notes.groups(request.actor, most=SHOWN)
    undreamed = dreams.waiting(request.tenant)
    # Proposals of the gardener stand among the proposals.
    noticed = findings.standing(request.actor).exclude(proposal__state="open")
    context = {
        "groups": groups,
        "first_proposal": groups[0].proposals[0] if groups else None,
        "proposal_count": sum(group.count for group in groups),
        "mine_count": discussing.given_to(request.actor.member_pk).count(),
        "failed_dreams": dreams.failed(request.tenant),
        "aside": dreams.aside(),
        "budget": budget.month(),
        "reports": reporting.waiting(request.tenant, by=request.actor)[:SHOWN],
        "findings": [(one, gettext(findings.LABELS[one.kind][0])) for one in noticed[:FINDINGS_SHOWN]],
        "finding_count": noticed.count(),
        "undreamed": undreamed[:SHOWN],
        "undreamed_count": undreamed.count(),
        "profile": profile_room(request.actor.member_pk),
        "saved": pages.saved(request, "inbox"),
        "has_events": request.tenant.sessions.exists(),
        "steps": first_run.steps(request.tenant, request.actor),
        "late": alerts.late(request.tenant),
        "pairs": weekly.item(request.tenant) if request.actor.may("cache.manage") else None,
        "unsent": outbox.troubled(request.tenant) if request.actor.may("settings.manage") else 0,
    }
    return render(request, "review/inbox.html", context)


def given_to_me(request: TenantRequest) -> HttpResponse:
    """What somebody gave to this person, by risk."""
    groups = notes.groups(request.actor, most=SHOWN_OF_ONE_RISK, is_mine=True)
    if not groups:
        return redirect(reverse("inbox", args=[request.tenant.slug]))
    context = {
        "groups": groups,
        "is_mine": True,
        "first_proposal": groups[0].proposals[0],
        "proposal_count": notes.waiting(request.actor).count(),
        "mine_count": sum(group.count for group in groups),
        "profile": profile_room(request.actor.member_pk),
        "saved": pages.saved(request, "inbox"),
        "has_events": True,
    }
    return render(request, "review/inbox.html", context)


def one_risk(request: TenantRequest, risk: str) -> HttpResponse:
    """All that waits of one risk, by cursor."""
    name = f"inbox:{risk}"
    if risk not in notes.LEVELS:
        raise Http404
    after = pages.cursor_of(request, name)
    groups = notes.groups(request.actor, risk=risk, after=after, most=SHOWN_OF_ONE_RISK + 1)
    if not groups:
        return redirect(reverse("inbox", args=[request.tenant.slug]))
    [group] = groups
    shown, more = group.proposals[:SHOWN_OF_ONE_RISK], group.proposals[SHOWN_OF_ONE_RISK:]
    context = {
        "groups": [replace(group, proposals=shown)],
        "risk": risk,
        "first_proposal": shown[0] if shown else None,
        "proposal_count": notes.waiting(request.actor).count(),
        "next_url": pages.next_url(request, name, notes.position(shown[-1]) if more else None),
        "profile": profile_room(request.actor.member_pk),
        "saved": pages.saved(request, "inbox"),
        "has_events": True,
    }
    return render(request, "review/inbox.html", context)


@require_GET
@needs("note.read")
def docs(request: TenantRequest, slug: str, page: str = "start") -> HttpResponse:
    """The guide."""
    found = guide.page(page)
    if found is None:
        raise Http404
    context = {"page": page, "page_title": found.title, "page_html": found.html, "pages": guide.pages()}
    return render(request, "docs/page.html", context)
