"""The payload viewer: windows of lines, a search, the errors; and the stored bytes to keep."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from memory.graph import lookup, parts, payloads, shown
from memory.graph.models import Part
from memory.problems import Problem
from memory.tenants import pages
from memory.tenants.access import TenantRequest, needs

# So many lines stand above the one that is gone to.
ABOVE = 8


@require_GET
@needs("graph.read")
def viewer(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """Some lines of a part. However large it is, a page holds no more than a window of it."""
    trigger = lookup.trigger(request.tenant, public_id)
    part = parts.find(trigger, _part_name(request))
    context: dict[str, Any] = {
        "trigger": trigger,
        "part": part,
        "parts": shown.parts_of(trigger),
        "pattern": _pattern(request),
        "line": _number(request, "line"),
    }
    if payloads.is_binary(part):
        return pages.answer(request, "graph/payload.html", "graph/_viewer.html", context | {"is_binary": True})
    if request.GET.get("errors"):
        context |= {"errors": payloads.errors(part), "errors_asked": True}
        if pages.wants_piece(request) and request.htmx.target == "errors":
            return render(request, "graph/_errors.html", context)
    context |= _found(part, context["pattern"], _number(request, "past"))
    text = payloads.pretty(part) if _is_pretty(request) else None
    context |= {"pretty": text} if text is not None else {"window": _window(request, part, context)}
    context["can_be_pretty"] = payloads.can_be_pretty(part)
    return pages.answer(request, "graph/payload.html", "graph/_viewer.html", context)


def _window(request: TenantRequest, part: Part, context: dict[str, Any]) -> payloads.Window:
    """From the line that is asked for, else around the one to go to, else around the first hit."""
    hits = context.get("hits")
    at = context["line"] or (hits[0]["line"] if hits else 0)
    context["line"] = at
    first = _number(request, "from") or max(1, at - ABOVE)
    window = payloads.window(part, first)
    context["line_is_past"] = at > window.total
    if context["pattern"] and not context.get("problem"):
        for line in window.lines:
            line.pieces.extend(payloads.marked(line.text, context["pattern"]))
    return window


def _found(part: Part, pattern: str, past: int) -> dict[str, Any]:
    if not pattern:
        return {}
    try:
        found = payloads.search(part, pattern, past=past)
    except Problem as refused:
        if refused.code != "invalid_pattern":
            raise
        return {"problem": refused.detail}
    for hit in found["hits"]:
        hit["pieces"] = payloads.marked(hit["text"], pattern)
    last = found["hits"][-1]["line"] if found["more"] else 0
    return {"hits": found["hits"], "more_past": last, "past": past}


def _is_pretty(request: TenantRequest) -> bool:
    asked = any(request.GET.get(name) for name in ("line", "from", "q"))
    return request.GET.get("view", "" if asked else "pretty") == "pretty"


def _pattern(request: TenantRequest) -> str:
    return request.GET.get("q", "").replace("\0", "")[:1_001]


def _part_name(request: TenantRequest) -> str:
    return parts.part_name(request.GET.get("part", parts.MAIN).replace("\0", ""))


@require_GET
@needs("graph.read")
def raw(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """The stored bytes, to keep; never shown as a page."""
    trigger = lookup.trigger(request.tenant, public_id)
    part = parts.find(trigger, _part_name(request))
    response = HttpResponse(parts.stored(part), content_type=part.media_type)
    response["Content-Disposition"] = f'attachment; filename="{public_id}.{part.name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _number(request: TenantRequest, name: str) -> int:
    said = request.GET.get(name, "").strip().replace(",", "")
    return int(said) if said.isascii() and said.isdigit() and len(said) <= 12 else 0
