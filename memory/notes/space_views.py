"""A member's own space: to its member, and to admins while the team's rule lets them read it."""

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_GET

from memory.notes import browsing, private
from memory.notes.showing import one_folder
from memory.tenants import pages
from memory.tenants.access import TenantRequest, needs


@require_GET
@needs("note.read")
def space(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    owner = get_object_or_404(request.tenant.members.current(), public_id=public_id.replace("\0", ""))
    notes = private.notes(request.tenant, owner, by=request.actor)
    if notes is None:
        raise Http404
    folder, after = (pages.asked(request, name) for name in ("folder", "after"))
    if folder:
        level = browsing.of_space(str(owner.pk), folder.strip("/"), after=after)
        return one_folder(request, level, folder.strip("/"), owner=owner)
    is_own = request.actor.member_pk == str(owner.pk)
    context = {
        "owner": owner,
        "is_own": is_own,
        "folders": browsing.whole_or_top(notes, owner),
        "now": timezone.now(),
        "rule": private.rule(request.tenant),
        "readings": private.readings(owner) if is_own else [],
        "others": private.others(request.tenant, request.actor),
    }
    return render(request, "notes/space.html", context)
