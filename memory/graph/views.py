"""Pages of threads, triggers and workers."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory.graph import addresses, edits, fields, forms, hops, lookup, parts, payloads, reached, shown, workers
from memory.graph.links import Target
from memory.graph.models import Thread
from memory.graph.refusals import Conflict, Invalid
from memory.problems import Problem
from memory.tenants import pages
from memory.tenants.access import TenantRequest, needs

PAGE = 50
STEPS = 100
INBOX = 50
# A report that is longer is shown by its ends.
REPORT_SHOWN = 256 * 1024


@require_GET
@needs("graph.read")
def threads(request: TenantRequest, slug: str) -> HttpResponse:
    """Threads, the latest active first; what is searched for is looked for in all states, where none is asked for."""
    said = {name: pages.asked(request, name) for name in ("q", "state", "source", "owned")}
    said["state"] = said["state"] or ("any" if said["q"] else "open")
    rows = shown.listed(request.tenant, shown.Asked(**said))
    after = pages.cursor_of(request, "threads")
    found = list((shown.beyond(rows, after) if after else rows)[: PAGE + 1])
    context = {
        **said,
        "threads": found[:PAGE],
        "saved": pages.saved(request, "threads"),
        "next_url": pages.next_url(request, "threads", shown.position(found[PAGE - 1]) if len(found) > PAGE else None),
        "sources": shown.sources(request.tenant, said["source"]),
        "is_filtered": bool(said["q"] or said["source"] or said["owned"] or said["state"] != "open"),
        "has_threads": bool(found) or request.tenant.threads.filter(deleted_at__isnull=True).exists(),
    }
    return pages.answer(request, "graph/threads.html", "graph/_threads.html", context, more="graph/_thread_rows.html")


@require_GET
@needs("graph.read")
def thread(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """A thread: what happened in it, who owns it, what it is linked to."""
    read = lookup.thread(request.tenant, public_id)
    is_newest_first = request.GET.get("order") == "newest"
    name = f"thread:{public_id}:{'newest' if is_newest_first else 'oldest'}"
    after = pages.cursor_of(request, name)
    rows = read.steps.order_by("-seq" if is_newest_first else "seq")
    if after:
        rows = rows.filter(seq__lt=after[0]) if is_newest_first else rows.filter(seq__gt=after[0])
    elif not is_newest_first:
        rows = rows.filter(seq__gte=_number(request, "from"))
    found = list(rows[: STEPS + 1])
    context = {
        "thread": read,
        "moments": shown.timeline(request.tenant, found[:STEPS]),
        "next_url": pages.next_url(request, name, [found[STEPS - 1].seq] if len(found) > STEPS else None),
        "is_newest_first": is_newest_first,
        "begins_later": _number(request, "from") > 1 and not is_newest_first,
    }
    if not pages.wants_piece(request):
        context |= _sides(request, read)
    return pages.answer(request, "graph/thread.html", "graph/_moments.html", context)


def _sides(request: TenantRequest, thread: Thread) -> dict[str, Any]:
    return {
        "owners": shown.owners(thread),
        "thread_workers": shown.thread_workers(thread),
        "links": shown.links_of(request.tenant, thread),
        "web": addresses.of_thread(thread),
    }


@require_http_methods(["GET", "POST"])
@needs("graph.record")
def thread_edit(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    edited = lookup.thread(request.tenant, public_id)
    initial = {"title": edited.title, "state": edited.state, "summary": edited.summary}
    form = forms.ThreadForm(_typed(request) if request.method == "POST" else None, initial=initial)
    if request.method == "POST" and form.is_valid():
        edits.edit(edited, form.wanted(), by=request.actor)
        messages.success(request, gettext("Saved."))
        return redirect("thread", slug, public_id)
    status = 422 if request.method == "POST" else 200
    return render(request, "graph/thread_edit.html", {"thread": edited, "form": form}, status=status)


@require_POST
@needs("graph.record")
def thread_own(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """Make a worker an owner, or change whether triggers are passed to it."""
    owned = lookup.thread(request.tenant, public_id)
    try:
        worker = lookup.worker(request.tenant, _said(request, "worker_id"))
    except Problem:
        problem = gettext("There is no worker with this id. Ids of workers start with wkr_; take one from the list.")
        return _show_owners(request, owned, problem=problem, status=422)
    edits.own(owned, worker, pass_through=request.POST.get("pass_through") == "yes", by=request.actor)
    return _show_owners(request, owned)


@require_POST
@needs("graph.record")
def thread_disown(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    owned = lookup.thread(request.tenant, public_id)
    edits.disown(owned, lookup.worker(request.tenant, _said(request, "worker_id")), by=request.actor)
    return _show_owners(request, owned)


def _show_owners(request: TenantRequest, thread: Thread, *, problem: str = "", status: int = 200) -> HttpResponse:
    return _shown_side(request, thread, "owners", problem, status)


@require_POST
@needs("graph.record")
def thread_link(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """Link a thread to another, or to a key that one may have later."""
    linked = lookup.thread(request.tenant, public_id)
    try:
        to = forms.target(request.tenant, _said(request, "to"))
        kind = fields.name_of({"kind": _said(request, "kind") or "related"}, "kind", most=40)
        edits.link(linked, to, kind=kind or "related", by=request.actor)
    except (Invalid, Conflict) as refused:
        return _shown_side(request, linked, "links", refused.detail, 422)
    return _shown_side(request, linked, "links", "", 200)


@require_POST
@needs("graph.record")
def thread_unlink(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """Take a link away, whichever way it leads. A rule does not make it again."""
    linked = lookup.thread(request.tenant, public_id)
    to, kind = _said(request, "to"), _said(request, "kind")
    other = lookup.thread(request.tenant, to) if to.startswith("thr_") else None
    if request.POST.get("direction") == "from" and other is not None:
        edits.unlink(other, Target(linked), kind=kind, by=request.actor)
    else:
        edits.unlink(linked, Target(other, "" if other else to), kind=kind, by=request.actor)
    return _shown_side(request, linked, "links", "", 200)


def _shown_side(request: TenantRequest, thread: Thread, side: str, problem: str, status: int) -> HttpResponse:
    """The panel that changed; without htmx the thread's page, where it can be seen."""
    if not request.htmx and not problem:
        return redirect(f"{shown.of_thread(request.tenant, thread).url}#{side}")
    context = {"thread": thread, **_sides(request, thread), f"{side}_problem": problem, "side": side}
    if not request.htmx:
        context["moments"] = shown.timeline(request.tenant, list(thread.steps.order_by("seq")[:STEPS]))
        return render(request, "graph/thread.html", context, status=status)
    return render(request, f"graph/_{side}.html", context, status=status)


@require_GET
@needs("graph.read")
def thread_map(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """How an answer is reached from a thread."""
    start = lookup.thread(request.tenant, public_id)
    to = pages.asked(request, "to")
    found = reached.of_thread(request.tenant, start, to=to)
    context = {
        "thread": start,
        "wide": hops.wide(found, to=to),
        "narrow": hops.narrow(found, to=to),
        "tree": hops.as_list(found),
        "reached": found,
        "to": found.nodes.get(to),
    }
    return render(request, "graph/map.html", context)


@require_GET
@needs("graph.read")
def trigger(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """A trigger: the inline view, its parts, what came before it, who cites it."""
    read = lookup.trigger(request.tenant, public_id)
    stored = shown.parts_of(read)
    main = next((part for part in stored if part.name == parts.MAIN), stored[0] if stored else None)
    before = shown.neighbours(read)
    context = {
        "trigger": read,
        "parts": stored,
        "neighbours": before,
        "previous": before[-1] if before else None,
        "next": shown.following(read),
        "citing": shown.cited_by(request.tenant, public_id),
        "owners": shown.owners(read.thread),
        "web": addresses.of_trigger(read),
        **_peek(read, main.name if main else ""),
    }
    return render(request, "graph/trigger.html", context)


def _peek(trigger: Any, name: str) -> dict[str, Any]:
    """The beginning of a part, as much as fits on the trigger's own page."""
    if not name:
        return {}
    part = parts.find(trigger, name)
    try:
        if payloads.is_binary(part):
            return {"part": part, "is_binary": True}
        text = payloads.pretty(part) if part.size <= payloads.PEEK_BYTES else None
        return {"part": part, "pretty": text, "window": None if text else payloads.window(part, 1, most=payloads.PEEK)}
    except Problem as gone:
        return {"part": part, "problem": gone.detail}


@require_GET
@needs("graph.read")
def worker(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """A worker: its task, its report, what that rests on, and what was passed to it."""
    read = lookup.worker(request.tenant, public_id)
    name = f"worker:{public_id}"
    after = pages.cursor_of(request, name)
    inbox = shown.inbox(read, after=after[0] if after else 0, most=INBOX + 1)
    context: dict[str, Any] = {
        "worker": read,
        "inbox": inbox[:INBOX],
        "next_url": pages.next_url(request, name, [inbox[INBOX - 1].seq] if len(inbox) > INBOX else None),
    }
    if not pages.wants_piece(request):
        cited = shown.citations(request.tenant, [public_id]).get(public_id, [])
        raw = workers.report_of(read) if read.report_size <= REPORT_SHOWN else None
        context |= {
            "cites": shown.in_order(request.tenant, cited),
            "citing": shown.cited_by(request.tenant, public_id),
            "owns": shown.owned_by(read),
            "report": raw.decode("utf-8", "replace") if raw is not None else "",
        }
    return pages.answer(request, "graph/worker.html", "graph/_inbox_rows.html", context)


@require_GET
@needs("graph.read")
def worker_report(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """The whole report, to keep."""
    raw = workers.report_of(lookup.worker(request.tenant, public_id))
    if raw is None:
        raise Problem(404, "no_report", gettext("The worker has not reported yet."))
    response = HttpResponse(raw, content_type="text/markdown; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{public_id}.md"'
    return response


@require_GET
@needs("graph.read")
def unlinked(request: TenantRequest, slug: str) -> HttpResponse:
    """What nothing leads to."""
    rows = shown.unlinked(request.tenant)
    after = pages.cursor_of(request, "unlinked")
    found = list((shown.made_before(rows, after) if after else rows)[: PAGE + 1])
    last = shown.made_position(found[PAGE - 1]) if len(found) > PAGE else None
    context = {"threads": found[:PAGE], "next_url": pages.next_url(request, "unlinked", last)}
    return pages.answer(
        request, "graph/unlinked.html", "graph/_unlinked_rows.html", context, more="graph/_unlinked_rows.html"
    )


def _said(request: TenantRequest, name: str) -> str:
    return request.POST.get(name, "").replace("\0", "").strip()[:600]


def _typed(request: TenantRequest) -> dict[str, str]:
    return {name: value.replace("\0", "") for name, value in request.POST.dict().items()}


def _number(request: TenantRequest, name: str) -> int:
    """A place in an address; 0 for what is none."""
    said = request.GET.get(name, "")
    return int(said) if said.isascii() and said.isdigit() and len(said) <= 15 else 0
