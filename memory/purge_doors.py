"""The page and the API address of purging by source. Only admins and owners; a key gets 403."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from memory import purging
from memory.graph.answers import idempotent
from memory.problems import Problem
from memory.tenants.access import TenantRequest, also_by_session, needs
from memory.tenants.proof import recently, require_fresh

_ASKED = {
    "application/json": {
        "type": "object",
        "required": ["source"],
        "properties": {
            "source": {"type": "string", "description": "key_…, thr_… or ses_…"},
            "mode": {"type": "string", "enum": ["preview", *purging.MODES], "default": "preview"},
        },
    }
}


@also_by_session
@extend_schema(
    summary="What came from a key, thread or session: seen, quarantined or purged. People only",
    request=_ASKED,
    responses={200: dict},
)
@api_view(["POST"])
@needs("note.purge")
@idempotent
def api_purge(request: Request) -> Response:
    said = request.data if isinstance(request.data, dict) else {}
    source, mode = said.get("source"), said.get("mode", "preview")
    if not isinstance(source, str) or mode not in ("preview", *purging.MODES):
        raise Problem(
            400, "invalid", gettext('Send JSON like {"source": "key_…", "mode": "preview"}, quarantine or purge.')
        )
    tenant, by = request.tenant, request.actor  # type: ignore[attr-defined]
    found = purging.trace(tenant, source)
    answer = {"mode": mode, **purging.shown(found, by=by)}
    if mode != "preview":
        require_fresh(request)
        purging.take_out(tenant, source, mode=mode, by=by)
    return Response(answer)


@require_http_methods(["GET", "POST"])
@needs("note.purge")
@recently
def page(request: TenantRequest, slug: str) -> HttpResponse:
    """Name a source, look at what came from it, then take it out."""
    source = (request.POST.get("source") or request.GET.get("source") or "").replace("\0", "").strip()[:200]
    context: dict[str, Any] = {"source": source}
    if not source:
        return render(request, "notes/purge.html", context)
    try:
        found = purging.trace(request.tenant, source)
    except Problem:
        problem = gettext(
            "Nothing here has this id. Give the id of a key, a thread or a session: key_…, thr_… or ses_…"
        )
        return render(request, "notes/purge.html", {**context, "problem": problem}, status=404)
    report = purging.shown(found, by=request.actor)
    context |= {"report": report, "told": told(found), "waiting": len(report["proposals"]) + len(report["reports"])}
    mode = request.POST.get("mode", "")
    if request.method == "POST" and mode in purging.MODES:
        purging.take_out(request.tenant, source, mode=mode, by=request.actor)
        context["done"] = mode
        messages.success(request, gettext("Taken out. Whoever was told it stands in the list."))
    return render(request, "notes/purge.html", context)


def told(found: purging.Trace) -> list[Any]:
    """The sessions that were told, each once."""
    return list({telling.session_id: telling.session for telling in found.tellings}.values())
