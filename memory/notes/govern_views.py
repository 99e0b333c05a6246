"""Pages that govern notes: rules, a minute to undo, moves, locks, and reports that a note is wrong."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory.notes import blame, keeping, moving, paths, private, reading, reporting, review, rules, undoing
from memory.notes.models import Note, Proposal, Rule
from memory.notes.rules import Wanted
from memory.notes.showing import proposed_instead
from memory.tenants.access import TenantRequest, needs, require

MODE_WORDS = {
    "auto": gettext_lazy(
        "Let in by itself what a member proposes, and what two people typed word by word; the rest waits"
    ),
    "review": gettext_lazy("A person decides on every change"),
    "locked": gettext_lazy("Nobody changes it, agents and dreams may not even propose"),
}
HITS_SHOWN = 50


@require_http_methods(["GET", "POST"])
@needs("note.read")
def rule_list(request: TenantRequest, slug: str) -> HttpResponse:
    """All rules in their order. A POST tries a rule (which notes would it hit) or keeps it."""
    context: dict[str, Any] = {"wanted": Wanted("", "review")}
    if request.method == "POST":
        require(request.actor, "rule.manage")
        wanted = wanted_of(request)
        context |= {"wanted": wanted, "editing": request.POST.get("rule", "")}
        try:
            if "try" not in request.POST:
                known = the_rule(request, request.POST["rule"]) if request.POST.get("rule") else None
                rules.save(request.tenant, wanted, by=request.actor, rule=known)
                messages.success(request, gettext("The rule for %(glob)s holds from now on.") % {"glob": wanted.glob})
                return redirect("rules", slug)
            hits = rules.hits(request.tenant, wanted.glob)
            context |= {"hits": hits[:HITS_SHOWN], "hit_count": len(hits), "is_tried": True}
        except rules.InvalidRule as refused:
            return listed(request, {**context, "problem": str(refused)}, status=422)
    elif request.GET.get("rule"):
        rule = the_rule(request, request.GET["rule"])
        wanted = Wanted(rule.glob, rule.mode, rule.four_eyes, tuple(rule.approvers), rule.position)
        context = {"wanted": wanted, "editing": rule.public_id}
    return listed(request, context)


def listed(request: TenantRequest, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    context |= {"rules": rules.listed(request.tenant), "modes": MODE_WORDS}
    context["approvers_text"] = ", ".join(context["wanted"].approvers)
    return render(request, "review/rules.html", context, status=status)


def wanted_of(request: TenantRequest) -> Wanted:
    said = request.POST
    position = said.get("position", "")
    return Wanted(
        said.get("glob", ""),
        said.get("mode", "review"),
        bool(said.get("four_eyes")),
        tuple(said.get("approvers", "").replace(",", " ").split()),
        int(position) if position.isascii() and position.isdigit() and len(position) < 5 else None,
    )


def the_rule(request: TenantRequest, public_id: str) -> Rule:
    return get_object_or_404(request.tenant.note_rules, public_id=public_id.replace("\0", ""))


@require_POST
@needs("rule.manage")
def rule_remove(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    rules.remove(the_rule(request, public_id), by=request.actor)
    return redirect("rules", slug)


@require_POST
@needs("note.propose")
def proposal_undo(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """Take the decision back, within its minute."""
    found = request.tenant.proposals.select_related("note")
    decided: Proposal = get_object_or_404(found, public_id=public_id)
    if decided.note.member_id and str(decided.note.member_id) != request.actor.member_pk:
        raise Http404
    try:
        undoing.undo(decided, by=request.actor)
    except undoing.TooLate as late:
        messages.error(request, str(late))
    else:
        messages.success(request, gettext("Taken back. The proposal waits again."))
    return redirect("proposal", slug, public_id)


def the_note(request: TenantRequest, public_id: str) -> Note:
    return get_object_or_404(reading.visible(request.actor), public_id=public_id)


@require_POST
@needs("note.propose")
def note_keep(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """Lock, pin or give an end, and the opposite."""
    kept = the_note(request, public_id)
    said = request.POST.get("until", "").strip()
    try:
        until = keeping.end_of(said) if said else None
    except ValueError:
        messages.error(request, gettext("Say the last day as a date, such as 2027-01-31; leave it empty for no end."))
        return redirect("note", slug, public_id)
    change = keeping.Kept(bool(request.POST.get("lock")), bool(request.POST.get("pin")), until)
    keeping.keep(kept, change, by=request.actor)
    return redirect("note", slug, public_id)


@require_POST
@needs("note.propose")
def note_move(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    moved, to = the_note(request, public_id), request.POST.get("path", "")
    try:
        moving.move(moved, to, by=request.actor)
    except rules.NeedsTwo:
        target = paths.clean_path(to).shown
        draft = review.Draft(moved.path, "", member=moved.member, operation="move", target=target)
        return proposed_instead(request, draft)
    except paths.InvalidPath as refused:
        messages.error(request, refused.advice)
    except moving.PathTaken as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, gettext("Moved. The old path leads here."))
    return redirect("note", slug, public_id)


@require_GET
@needs("note.read")
def note_blame(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """Which revision, by whom, each line came with, and the events it rests on."""
    read = private.note(request.tenant, public_id.replace("\0", ""), by=request.actor, page="lines")
    if read is None:
        raise Http404
    return render(request, "notes/blame.html", {"note": read, "lines": blame.lines_of(read)})


@require_POST
@needs("note.propose")
def report_close(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    found = request.tenant.note_reports.select_related("note__member")
    asked = get_object_or_404(found, public_id=public_id)
    the_note(request, asked.note.public_id)
    reporting.close(asked, answer=request.POST.get("answer", ""), by=request.actor)
    return redirect("inbox", slug)
