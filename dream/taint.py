"""What dreams keep of sessions that can't be trusted: counts, summaries, and copies of what was proposed from them."""

from collections.abc import Iterable, Sequence
from typing import Final

from django.db.models import Q

from dream.models import Change, Digest, Quarantined, SessionGist, Watermark, Window
from memory.events.models import Session
from memory.graph.models import Worker
from memory.notes.models import Proposal
from memory.tenants import choices
from memory.tenants.models import Tenant

BLANK: Final = {"text": "", "old_text": "", "reason": "", "undo_detail": ""}


def stop(tenant: Tenant, session_pks: Iterable[str]) -> None:
    """No dream reads these sessions again, and what the rules counted of their projects is counted anew without them.

    Where a model dreams nothing is read again: it keeps no counts, and reading costs money.
    """
    pks = set(session_pks)
    projects = set(Session.objects.filter(pk__in=pks).values_list("project_id", flat=True))
    counted = Q(project__in=[pk for pk in projects if pk])
    counted = counted | Q(project__isnull=True) if None in projects else counted
    if Digest.objects.filter(counted).delete()[0] and not choices.model_of(tenant).model:
        of_projects = Q(session__project__in=[pk for pk in projects if pk])
        of_projects = of_projects | Q(session__project__isnull=True) if None in projects else of_projects
        Watermark.objects.filter(of_projects).exclude(session__in=pks).delete()
    # What stood aside is not read again either, however often somebody asks for it.
    Quarantined.objects.filter(session__in=pks).delete()
    for session in Session.objects.filter(pk__in=pks):
        Watermark.objects.update_or_create(
            tenant_id=tenant.pk, session=session, defaults={"seq": session.last_seq, "failures": 0, "retry_at": None}
        )


def blank(session_pks: Iterable[str], proposals: Sequence[Proposal]) -> None:
    """The words go from summaries, draft reports and the changesets of runs; that there were runs stays."""
    pks = set(session_pks)
    SessionGist.objects.filter(session__in=pks).delete()
    names = Session.objects.filter(pk__in=pks).values("public_id")
    Worker.objects.filter(session_public_id__in=names).exclude(draft_report="").update(draft_report="")
    Window.objects.filter(session__in=pks).update(detail="")
    dry = Q(proposal__isnull=True, run__windows__session__in=pks)
    found = Change.objects.filter(Q(proposal__in=[one.pk for one in proposals]) | dry).values_list("pk", flat=True)
    Change.objects.filter(pk__in=list(found)).update(**BLANK)
