"""What an operator's own tools ask."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET
from prometheus_client import CONTENT_TYPE_LATEST

from memory import problems
from memory.ops import figures
from memory.tenants.access import public

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
