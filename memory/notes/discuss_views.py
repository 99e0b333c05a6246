"""What people do around a decision: say something, give a proposal to somebody, choose their news."""

from typing import Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext, gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from memory.notes import discussing, news
from memory.notes.showing import decided, show_proposal, the_proposal
from memory.tenants import outgoing
from memory.tenants.access import TenantRequest, needs

KINDS: Final = {
    "review": (
        gettext_lazy("A proposal waits for your review"),
        gettext_lazy("For reviewers, and for whom a rule names as approver."),
    ),
    "assigned": (
        gettext_lazy("A proposal is given to you"),
        gettext_lazy("When somebody else gives it to you, not when you take it."),
    ),
    "comment": (
        gettext_lazy("Somebody comments"),
        gettext_lazy(
            "On what you proposed, are given, have commented on, or where the comment names you by @ and your handle."
        ),
    ),
}
PACES: Final = {
    "now": gettext_lazy("At once"),
    "hourly": gettext_lazy("Hourly digest"),
    "daily": gettext_lazy("Daily digest"),
    "never": pgettext_lazy("pace", "Never"),
}


@require_POST
@needs("note.comment")
def proposal_comment(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    said = the_proposal(request, public_id)
    try:
        discussing.comment(said, request.POST.get("text", ""), by=request.actor)
    except discussing.NoWords as why:
        return show_proposal(request, said, problem=str(why), status=422)
    return decided(request, public_id)


@require_POST
@needs("note.comment")
def comment_remove(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    gone = get_object_or_404(request.tenant.comments.select_related("proposal"), public_id=public_id)
    about = the_proposal(request, gone.proposal.public_id)
    # The proposal on whose page it was read: a later one shows what was said about those before it.
    here = the_proposal(request, request.POST["at"]) if request.POST.get("at") else about
    discussing.remove(gone, by=request.actor)
    return decided(request, here.public_id)


@require_POST
@needs("note.assign")
def proposal_assign(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    given = the_proposal(request, public_id)
    try:
        discussing.assign(given, request.POST.get("to", ""), by=request.actor)
    except discussing.NotTheirs as why:
        return show_proposal(request, given, problem=str(why), status=422)
    return decided(request, public_id)


@require_http_methods(["GET", "POST"])
@needs("news.choose")
def choices(request: TenantRequest, slug: str) -> HttpResponse:
    """What this member is told of, by which way, and how often."""
    assert request.member is not None  # noqa: S101 - pages are for members
    context: dict[str, object] = {}
    if request.method == "POST":
        wanted = {
            (kind, way): request.POST[f"{kind}-{way}"]
            for kind in KINDS
            for way in news.CHANNELS
            if f"{kind}-{way}" in request.POST
        }
        try:
            news.choose(request.member, wanted, by=request.actor)
        except news.InvalidChoice as why:
            context["problem"] = str(why)
        else:
            messages.success(request, gettext("Saved. What waits already follows it."))
            return redirect("news", slug)
    rows = [(row, *KINDS[row.kind]) for row in news.chosen(request.member)]
    context |= {
        "rows": rows,
        "paces": PACES,
        "has_mail": outgoing.has_mail(),
        "has_slack": news.has_slack(request.actor.tenant_pk),
        "digest_hour": news.hour(request.tenant),
    }
    return render(request, "notes/news.html", context, status=422 if "problem" in context else 200)
