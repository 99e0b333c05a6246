"""What an operator's own tools ask, and the pages of settings."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods
from prometheus_client import CONTENT_TYPE_LATEST

from memory import problems
from memory.ops import figures, server_settings
from memory.tenants import choices
from memory.tenants.access import TenantRequest, needs, public, require

WHO = (
    "Figures are given to this machine itself, or to who presents the token: set TEAM_MEMORY_METRICS_TOKEN on the"
    " server and send it as Authorization: Bearer."
)


@public
@require_GET
def metrics(request: HttpRequest) -> HttpResponse:
    """Requests, lag, backlog and caches for Prometheus, of all teams together."""
    status = figures.may_read(request.META)
    if status == 401:
        return problems.response(problems.Problem(401, "unauthenticated", WHO, headers={"WWW-Authenticate": "Bearer"}))
    if status == 403:
        return problems.response(problems.Problem(403, "forbidden", WHO))
    return HttpResponse(figures.text(), content_type=CONTENT_TYPE_LATEST)


@require_http_methods(["GET", "POST"])
@needs("settings.read")
def team(request: TenantRequest, slug: str) -> HttpResponse:
    """A team's settings: what holds, since when, by whom. A POST changes one; an empty value is the default again."""
    context: dict[str, object] = {}
    status = 200
    if request.method == "POST":
        require(request.actor, "settings.manage")
        name = request.POST.get("name", "")
        value = request.POST.get("value", "")
        if name not in choices.BY_NAME:
            context, status = {"problem": gettext("There is no such setting.")}, 422
        else:
            try:
                choices.choose(request.tenant, name, value, by=request.actor)
            except choices.Invalid as why:
                context, status = {"problem": str(why), "failed": name, "typed": value}, 422
            else:
                messages.success(
                    request, gettext("Saved: %(label)s.") % {"label": gettext(choices.BY_NAME[name].label)}
                )
                return redirect("settings", slug)
    context["groups"] = choices.grouped(choices.shown(request.tenant))
    return render(request, "ops/settings.html", context, status=status)


@require_GET
@needs("settings.manage")
def server(request: TenantRequest, slug: str) -> HttpResponse:
    """What the operator set for all teams, by the environment: read once at the start, so shown and not changed."""
    return render(request, "ops/server.html", {"groups": server_settings.shown()})
