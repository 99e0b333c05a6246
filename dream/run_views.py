"""What people do with a run on its page: cancel, undo, replay; and the budget, and events that stand aside."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from dream import budget, deciding, reading, run, store, undo
from dream.models import Change, Run
from dream.shown import show_dream, show_dreams
from memory.llm import UnknownModel
from memory.tenants.access import TenantRequest, needs

LONGEST_PROMPT = 20_000


def _run(request: TenantRequest, public_id: str) -> Run:
    found: Run = get_object_or_404(request.tenant.dreams, public_id=public_id)
    return found


@require_POST
@needs("dream.start")
def dream_cancel(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """End a run that waits or runs; what it has proposed stays."""
    try:
        run.cancel(_run(request, public_id), by=request.actor)
    except run.AlreadyFinished:
        return show_dream(request, public_id, problem=gettext("This dream has ended: nothing to cancel."), status=409)
    return redirect("dream", slug, public_id)


@require_POST
@needs("dream.undo")
def dream_undo(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """Take back all that a run brought, or the one change that `change` names by its proposal."""
    of = _run(request, public_id)
    asked = request.POST.get("change", "")
    try:
        if asked:
            undo.undo_change(_change(of, asked, request), by=request.actor)
        else:
            undo.undo(of, by=request.actor)
    except undo.NotFinished:
        return show_dream(request, public_id, problem=gettext("This dream still runs. Cancel it first."), status=409)
    except undo.NothingToUndo:
        return show_dream(request, public_id, problem=gettext("A dry run changed nothing."), status=409)
    return redirect("dream", slug, public_id)


def _change(of: Run, proposal_id: str, request: TenantRequest) -> Change:
    mine = of.changes.filter(reading.of_mine(request.actor), proposal__public_id=proposal_id.replace("\0", ""))
    found = mine.select_related("proposal__note", "run").first()
    if found is None:
        raise Http404
    return found


@require_http_methods(["GET", "POST"])
@needs("note.propose")
def dream_decide(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """All that a run proposes on one page. A POST approves what is checked, each as it stood there."""
    of = get_object_or_404(reading.runs(request.tenant, by=request.actor), public_id=public_id)
    context: dict[str, Any] = {"run": of}
    status = 200
    if request.method == "POST":
        checked = request.POST.getlist("approve")
        shown = {one: request.POST.get(f"shown-{one}", "") for one in checked}
        try:
            done = deciding.approve(of, shown, by=request.actor)
        except deciding.NothingShown as why:
            context, status = {**context, "problem": str(why)}, 422
        else:
            if not done.left:
                messages.success(
                    request,
                    gettext("Approved %(approved)s. Each can be undone on its page for a minute.")
                    % {"approved": done.approved},
                )
                return redirect("dream", slug, public_id)
            context, status = {**context, "done": done}, 409 if not done.approved else 200
    waiting = deciding.waiting(of, by=request.actor)
    context["rows"] = [(change, reading.shown_change(change)) for change in waiting]
    return render(request, "dream/decide.html", context, status=status)


@require_POST
@needs("dream.start")
def dream_replay(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """Read the same events by another model or prompt, and only show what it would propose."""
    of = _run(request, public_id)
    instructions = request.POST.get("instructions", "").replace("\r\n", "\n").strip()
    problem = ""
    if of.replays_id is not None or of.state in ("queued", "running"):
        problem = gettext("Only a dream that has ended can be replayed.")
    elif len(instructions) > LONGEST_PROMPT:
        problem = gettext("The prompt has %(instructions)s characters; at most %(longest_prompt)s are taken.") % {
            "instructions": len(instructions),
            "longest_prompt": LONGEST_PROMPT,
        }
    else:
        try:
            made = run.start(
                request.tenant, by=request.actor, dry=run.Dry(of, request.POST.get("model", "").strip(), instructions)
            )
            return redirect("dream", slug, made.public_id)
        except run.AlreadyRunning:
            problem = gettext("A dream waits or runs already. Replay when it has ended.")
        except UnknownModel as why:
            problem = str(why)
    return show_dream(request, public_id, problem=problem, status=409)


@require_POST
@needs("dream.budget")
def dream_budget(request: TenantRequest, slug: str) -> HttpResponse:
    """Set what this team's dreams may use a month."""
    try:
        budget.set_budget(
            request.tenant,
            tokens=request.POST.get("tokens", ""),
            dollars=request.POST.get("dollars", ""),
            by=request.actor,
        )
    except budget.InvalidBudget as why:
        return show_dreams(request, problem=str(why), status=400)
    return redirect("dreams", slug)


@require_POST
@needs("dream.start")
def event_again(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """Let the next dream read an event again that stands aside."""
    event = get_object_or_404(request.tenant.events, public_id=public_id)
    store.read_again(event, by=request.actor)
    return redirect("inbox", slug)
