"""What sessions would have been told, had a proposal been approved."""

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from memory.notes.showing import the_proposal
from memory.recall import foretold
from memory.tenants import pages
from memory.tenants.access import TenantRequest, needs


@require_GET
@needs("session.read")
def proposal_foretold(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """For an open proposal: the last sessions in its reach, and how each would have been told."""
    seen = the_proposal(request, public_id)
    if seen.state != "open":
        # Somebody decided while the page was being read: there is nothing more to say there, and no fault.
        return HttpResponse(status=204)
    context = {"proposal": seen, "foretold": foretold.foretell(seen, by=request.actor), "last": foretold.LAST}
    return pages.answer(request, "review/foretold.html", "review/_foretold.html", context)
