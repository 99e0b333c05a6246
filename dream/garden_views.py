"""What the gardener noticed, its looks, and the answer that something may stay as it is."""

from itertools import groupby

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from dream import garden, reading
from memory.notes import findings
from memory.tenants import pages
from memory.tenants.access import TenantRequest, needs

# Each comes with a form: as many as one sitting answers.
MOST = 50


@require_GET
@needs("note.read")
def page(request: TenantRequest, slug: str) -> HttpResponse:
    rows = findings.standing(request.actor)
    shown = list(rows[:MOST])
    looks = reading.looks(request.tenant)
    context = {
        "groups": [
            (kind, *findings.LABELS[kind], list(some)) for kind, some in groupby(shown, key=lambda one: one.kind)
        ],
        "count": rows.count(),
        "shown_count": len(shown),
        "looks": looks,
        "is_looking": garden.is_running(request.actor.tenant_pk),
        "has_notes": request.tenant.notes.live().exists(),
    }
    return pages.answer(request, "dream/garden.html", "dream/_garden.html", context)


@require_POST
@needs("dream.start")
def start(request: TenantRequest, slug: str) -> HttpResponse:
    garden.start(request.tenant, by=request.actor)
    return redirect("garden", slug)


@require_POST
@needs("note.propose")
def dismiss(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """Leave it as it is: the gardener does not say the same again."""
    visible = findings.seen(request.actor)
    finding = get_object_or_404(visible, public_id=public_id)
    findings.dismiss(finding, answer=request.POST.get("answer", ""), by=request.actor)
    messages.success(request, gettext("Left as it is. The gardener does not say the same again."))
    return (
        redirect("note", slug, finding.note.public_id)
        if request.POST.get("from") == "note"
        else redirect("garden", slug)
    )
