"""Pages of the caches: what they did, what they hold, what is decided about them, and what waits for a person."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from cache_admin import alerts, forms, invalidate, pairs, policies, purge, repeated, results, seen, trends, trial
from cache_admin.models import Entry
from cache_admin.policy import InvalidPolicy
from memory.problems import Problem
from memory.sentences import thousands
from memory.tenants import pages
from memory.tenants.access import TenantRequest, needs, require

PAGE = 50
DECIDED = 8
LOGGED = 20
# A stored text that is longer is shown by its beginning; the whole is one click away.
SHOWN = 64 * 1024


@require_GET
@needs("cache.read")
def overview(request: TenantRequest, slug: str) -> HttpResponse:
    """Trends by day, and what needs a person."""
    days, since, until = trends.period(pages.asked(request, "days"))
    read = trends.seen(request.tenant, since=since, until=until)
    context = {
        "read": read,
        "charts": trends.drawn(read.days),
        "open_alerts": [one for one in alerts.latest(request.tenant) if one.cleared_at is None],
        "waiting": seen.waiting_by_tool(request.tenant),
        "incidents": list(seen.recent(request.tenant)[:5]),
        "ready": [line for line in read.tools if line.is_ready],
        "dear": [line for line in read.tools if line.gain.is_too_dear],
        "worth": trends.worth(request.tenant, read, since=since, until=until),
        "undecided": trends.without_policy(read.tools),
        "days": days,
        "periods": trends.PERIODS,
    }
    return pages.answer(request, "cache_admin/overview.html", "cache_admin/_overview.html", context)


@require_GET
@needs("cache.read")
def tools(request: TenantRequest, slug: str) -> HttpResponse:
    """Every tool with its figures; those nobody asked about with their policies."""
    days, since, until = trends.period(pages.asked(request, "days"))
    read = trends.seen(request.tenant, since=since, until=until)
    context = {
        "read": read,
        "unasked": trends.unasked(request.tenant, read.tools),
        "summarisers": trends.summarisers(request.tenant),
        "worth": trends.worth(request.tenant, read, since=since, until=until),
        "form": forms.ToolForm(),
        "days": days,
        "periods": trends.PERIODS,
    }
    return pages.answer(request, "cache_admin/tools.html", "cache_admin/_tools.html", context)


@require_http_methods(["GET", "POST"])
@needs("cache.read")
def policy(request: TenantRequest, slug: str) -> HttpResponse:
    """One tool's policy, to read, to try, and for admins to change."""
    tool = pages.asked(request, "tool")
    if not tool or any(one.isspace() for one in tool):
        return redirect("cache_tools", slug)
    if request.method == "GET":
        return _show_policy(request, tool, forms.PolicyForm(None, request.tenant, tool))
    require(request.actor, "cache.manage")
    form = forms.PolicyForm(forms.typed(request.POST), request.tenant, tool)
    if form.is_valid():
        try:
            policies.save(request.tenant, tool, by=request.actor, **form.given())
        except InvalidPolicy as refused:
            form.refuse(str(refused))
        else:
            messages.success(
                request, gettext("Saved. What was stored under the old policy of %(tool)s is gone.") % {"tool": tool}
            )
            return redirect(f"{reverse('cache_policy', args=[slug])}?{pages.query(tool=tool)}")
    return _show_policy(request, tool, form, status=422)


def _show_policy(
    request: TenantRequest, tool: str, form: forms.PolicyForm, *, status: int = 200, **more: Any
) -> HttpResponse:
    row = request.tenant.tool_policies.select_related("updated_by__user").filter(tool=tool).first()
    judged = pairs.judged(request.tenant, tool)
    context = {
        "tool": tool,
        "form": form,
        "row": row,
        "policy": policies.of_tool(request.tenant, tool),
        "changes": trends.changes(request.tenant, tool),
        "call": forms.CallForm(prefix="call"),
        "warning": form.warning(),
        "label_count": len(judged),
        "proposed": pairs.proposed(judged),
        **more,
    }
    return render(request, "cache_admin/policy.html", context, status=status)


@require_POST
@needs("cache.read")
def try_call(request: TenantRequest, slug: str) -> HttpResponse:
    """What a lookup of a call would say, with the policy as it is typed or else as it is saved. Writes nothing."""
    tool = pages.asked(request, "tool")
    form = forms.PolicyForm(forms.typed(request.POST) if "mode" in request.POST else None, request.tenant, tool)
    policy = form.typed() if form.is_bound else policies.of_tool(request.tenant, tool)
    call = forms.CallForm(forms.typed(request.POST), prefix="call")
    verdict, problem = None, "" if policy else gettext("A field of the policy can't be read. Mend it first.")
    if policy and call.is_valid():
        said = call.cleaned_data
        try:
            verdict = trial.attempt(
                request.tenant,
                policy,
                call.call(tool),
                project=said["project"].strip(),
                thread=said["thread"].strip(),
                by=request.actor,
            )
        except Problem:
            call.add_error("project", gettext("There is no project with this id. Take one from the Projects page."))
    context = {"verdict": verdict, "call": call, "problem": problem, "is_typed": form.is_bound}
    status = 200 if verdict else 422
    if pages.wants_piece(request):
        return render(request, "cache_admin/_trial.html", {**context, "tool": tool}, status=status)
    return _show_policy(request, tool, form, status=status, **context)


@require_GET
@needs("cache.read")
def entries(request: TenantRequest, slug: str) -> HttpResponse:
    """Stored answers, the newest first."""
    said = {name: pages.asked(request, name) for name in ("tool", "writer", "project")}
    after = pages.cursor_of(request, "cache_entries")
    rows = seen.entries(request.tenant, seen.Asked(**said), by=request.actor)
    found = list((rows.filter(pk__lt=after[0]) if after else rows)[: PAGE + 1])
    context = {
        **said,
        "entries": found[:PAGE],
        "saved": pages.saved(request, "cache_entries"),
        "hits": seen.hits(found[:PAGE]),
        "next_url": pages.next_url(request, "cache_entries", [str(found[PAGE - 1].pk)] if len(found) > PAGE else None),
        "is_filtered": any(said.values()),
        "purge_query": pages.query(**{name: value for name, value in said.items() if value}),
        "can_purge": sum(map(bool, said.values())) == 1,
    }
    if not pages.wants_piece(request):
        context |= {
            "tools": seen.tools(request.tenant),
            "writers": seen.writers(request.tenant),
            "projects": seen.projects(request.tenant, by=request.actor),
            "hidden": seen.hidden(request.tenant, by=request.actor),
        }
    return pages.answer(
        request, "cache_admin/entries.html", "cache_admin/_entries.html", context, more="cache_admin/_entry_rows.html"
    )


@require_GET
@needs("cache.read")
def entry(request: TenantRequest, slug: str, key: str) -> HttpResponse:
    """One stored answer: what its key was made of, who stored it, how it was used, and its text."""
    read = _the_entry(request, key)
    try:
        text, problem = results.readable(request.tenant, read.result.public_id, by=request.actor)[1], ""
    except Problem as gone:
        text, problem = "", gone.detail
    context = {
        "entry": read,
        "inputs": seen.inputs(request.tenant, read.document),
        "hits": seen.hits([read])[str(read.result_id)],
        "paths": list(read.paths.order_by("path").values_list("path", flat=True)),
        "text": text[:SHOWN],
        "is_cut": len(text) > SHOWN,
        "problem": problem,
    }
    return render(request, "cache_admin/entry.html", context)


def _the_entry(request: TenantRequest, key: str) -> Entry:
    found = seen.entry(request.tenant, key, by=request.actor)
    if found is None:
        raise Http404
    return found


@require_http_methods(["GET", "POST"])
@needs("cache.manage")
def purge_page(request: TenantRequest, slug: str) -> HttpResponse:
    """Drop what is stored, by writer, tool, project, content hash, key, or all by a new salt: counted first."""
    said = request.GET if request.method == "GET" else request.POST
    asked = purge.of(request.tenant, {name: str(said.get(name, "")) for name in purge.KINDS}, by=request.actor)
    if request.method == "POST" and asked.doomed:
        gone = invalidate.invalidate(request.tenant, asked.doomed, by=request.actor)
        messages.success(
            request,
            gettext("Dropped %(gone)s. Whoever asks next runs the tool.") % {"gone": thousands(gone)},
        )
        return redirect("cache_entries", slug)
    context = {
        "asked": asked,
        "tools": seen.tools(request.tenant),
        "writers": seen.writers(request.tenant),
        "projects": seen.projects(request.tenant, by=request.actor),
    }
    return render(request, "cache_admin/purge.html", context, status=422 if asked.problem else 200)


@require_GET
@needs("cache.read")
def similar(request: TenantRequest, slug: str) -> HttpResponse:
    """Pairs of questions that look alike, and what thresholds would do by what people said of them."""
    return _show_pairs(request, pages.asked(request, "tool"))


@require_POST
@needs("cache.manage")
def pair_decide(request: TenantRequest, slug: str, pair_id: str) -> HttpResponse:
    """Say of a pair whether it asks the same."""
    found = _the_pair(request, pair_id)
    try:
        pairs.decide(request.tenant, str(found.pk), request.POST.get("verdict", ""), by=request.actor)
    except ValueError:
        return _show_pairs(request, found.tool, problem=gettext("Say same or different."), status=422)
    if pages.wants_piece(request):
        return _show_pairs(request, found.tool)
    return redirect(f"{reverse('cache_pairs', args=[slug])}?{pages.query(tool=found.tool)}")


def _the_pair(request: TenantRequest, pair_id: str) -> Any:
    if not seen.is_key(pair_id):
        raise Http404
    return get_object_or_404(request.tenant.question_pairs, pk=pair_id)


def _show_pairs(request: TenantRequest, tool: str, *, problem: str = "", status: int = 200) -> HttpResponse:
    waiting, labelled = seen.waiting_by_tool(request.tenant), seen.labelled_by_tool(request.tenant)
    log = seen.decisions(request.tenant, by=request.actor)
    compared = log.order_by("tool").values_list("tool", flat=True).distinct()
    known = list(dict.fromkeys([*waiting, *sorted(labelled), *compared]))
    chosen = tool if tool in known else next(iter(known), "")
    judged = pairs.judged(request.tenant, chosen)
    policy = policies.of_tool(request.tenant, chosen) if chosen else None
    mine = seen.pairs(request.tenant, by=request.actor).filter(tool=chosen)
    proposed = pairs.proposed(judged)
    context = {
        "tool": chosen,
        "choices": [(name, waiting.get(name, 0)) for name in known],
        "waiting_count": waiting.get(chosen, 0),
        "waiting": list(mine.filter(verdict="").order_by("-at", "-pk")[:PAGE]),
        "decided": list(mine.exclude(verdict="").select_related("decided_by").order_by("-at", "-pk")[:DECIDED]),
        "log": list(log.filter(tool=chosen)[:LOGGED]),
        "judged": judged,
        "policy": policy,
        "curve": pairs.curve(judged),
        "proposed": proposed,
        "refusal": pairs.refusal(judged, policy.threshold) if policy else "",
        "problem": problem,
        "chart": seen.curve_chart(judged, policy.threshold, proposed) if policy and judged else None,
    }
    return pages.answer(request, "cache_admin/similar.html", "cache_admin/_similar.html", context, status=status)


@require_GET
@needs("cache.read")
def analyses(request: TenantRequest, slug: str) -> HttpResponse:
    """Stored analyses by type, the files that are asked for most, and what is stored."""
    path = request.GET.get("path", "").replace("\0", "")[:4_000]
    after = pages.cursor_of(request, "cache_analyses")
    rows = seen.analyses(request.tenant, by=request.actor).order_by("-pk")
    rows = rows.filter(seen_at__path=path) if path else rows
    found = list((rows.filter(pk__lt=after[0]) if after else rows)[: PAGE + 1])
    more = pages.next_url(request, "cache_analyses", [str(found[PAGE - 1].pk)] if len(found) > PAGE else None)
    context: dict[str, Any] = {"path": path, "analyses": found[:PAGE], "next_url": more}
    if not pages.wants_piece(request):
        days, since, until = trends.period(pages.asked(request, "days"))
        read = trends.seen(request.tenant, since=since, until=until)
        context |= {
            "types": seen.analysis_types(request.tenant, by=request.actor),
            "figures": {line.tool: line.figures for line in read.tools if line.kind == "analysis"},
            "hot": seen.hot_files(request.tenant, by=request.actor),
            "days": days,
            "keep_days": policies.settings_of(request.tenant).analysis_days,
        }
    return pages.answer(request, "cache_admin/analyses.html", "cache_admin/_analysis_rows.html", context)


@require_GET
@needs("cache.read")
def analysis(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """One stored analysis: of which content, by what, where it was seen, and what it says."""
    read = get_object_or_404(seen.analyses(request.tenant, by=request.actor), public_id=public_id)
    text = seen.pretty(read.content)
    context = {
        "analysis": read,
        "paths": list(read.seen_at.order_by("-uses", "path")[:PAGE]),
        "made_by": sorted(read.made_by.items()),
        "text": text[:SHOWN],
        "is_cut": len(text) > SHOWN,
    }
    return render(request, "cache_admin/analysis.html", context)


@require_GET
@needs("cache.read")
def incidents(request: TenantRequest, slug: str) -> HttpResponse:
    """Answers that were not what the tool would have said, the newest first."""
    after = pages.cursor_of(request, "cache_incidents")
    rows = seen.incidents(request.tenant)
    found = list((rows.filter(pk__lt=after[0]) if after else rows)[: PAGE + 1])
    more = pages.next_url(request, "cache_incidents", [str(found[PAGE - 1].pk)] if len(found) > PAGE else None)
    context: dict[str, Any] = {"incidents": found[:PAGE], "next_url": more}
    if not pages.wants_piece(request):
        context |= {"alerts": alerts.latest(request.tenant), "ways": alerts.ways(request.tenant)}
    return pages.answer(request, "cache_admin/incidents.html", "cache_admin/_incident_rows.html", context)


@require_GET
@needs("cache.read")
def incident(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """One incident: what happened, what the key was made of, and what to do."""
    read = get_object_or_404(seen.incidents(request.tenant), public_id=public_id)
    is_open = seen.may_read(read.document, request.actor)
    policy = policies.of_tool(request.tenant, read.tool)
    context = {
        "incident": read,
        "policy": policy,
        "explained": seen.explained(read, {"by_content": policy.by_content, "ttl_s": policy.ttl_s}),
        "inputs": seen.inputs(request.tenant, read.document) if is_open and read.document else None,
        "is_open": is_open,
    }
    return render(request, "cache_admin/incident.html", context)


@require_GET
@needs("cache.read")
def repeats(request: TenantRequest, slug: str) -> HttpResponse:
    """The duplicate audit. The count itself comes as a piece: it reads every tool event of the period."""
    days, since, _ = trends.period(pages.asked(request, "days") or "7")
    context: dict[str, Any] = {"days": days, "periods": trends.PERIODS, "is_counted": "count" in request.GET}
    if context["is_counted"]:
        context["projects"] = repeated.counted(request.tenant, since=since)
    return pages.answer(request, "cache_admin/repeats.html", "cache_admin/_repeats.html", context)
