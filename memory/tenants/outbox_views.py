"""What left the server for this team, with its outcome, and the buttons that try mail and Slack."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from memory.tenants import outbox, outgoing, pages, trials
from memory.tenants.access import TenantRequest, needs

ROWS = 50


@require_GET
@needs("settings.manage")
def message_list(request: TenantRequest, slug: str) -> HttpResponse:
    """The latest messages first; those of the last month."""
    after = pages.cursor_of(request, "messages")
    found = request.tenant.messages.order_by("-public_id")
    if after:
        found = found.filter(public_id__lt=after[0])
    rows = list(found[: ROWS + 1])
    shown = rows[:ROWS]
    context = {
        "rows": shown,
        "is_moving": any(row.state in ("waiting", "sending") and not row.next_at for row in shown),
        "has_mail": outgoing.has_mail(),
        "has_slack": trials.has_slack(request.tenant),
        "next_url": pages.next_url(request, "messages", [shown[-1].public_id] if len(rows) > ROWS else None),
    }
    return pages.answer(
        request, "tenants/messages.html", "tenants/_messages.html", context, more="tenants/_message_rows.html"
    )


@require_POST
@needs("settings.manage")
def message_try(request: TenantRequest, slug: str) -> HttpResponse:
    """A message to oneself, or to the team's Slack, so that an admin sees whether the way is open."""
    try:
        trials.send(request.tenant, request.POST.get("channel", ""), by=request.actor)
    except trials.NoWay as why:
        messages.error(request, str(why))
    return redirect("messages", slug)


@require_POST
@needs("settings.manage")
def message_again(request: TenantRequest, slug: str, message_id: str) -> HttpResponse:
    message = get_object_or_404(request.tenant.messages.all(), public_id=message_id)
    if not outbox.again(message, by=request.actor):
        messages.error(request, gettext("It was sent, waits to be sent, or its words are gone."))
    return redirect("messages", slug)
