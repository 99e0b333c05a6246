"""What a team asked to be warned of."""

from datetime import timedelta

from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone
from django.utils.translation import ngettext

from dream.models import Watermark
from memory.sentences import thousands
from memory.tenants import choices
from memory.tenants.models import Tenant


def late(tenant: Tenant) -> str:
    """A sentence where finished sessions wait longer for a dream than the team wants; else "". The tenant is bound."""
    hours = choices.number(tenant, "alert_backlog_hours")
    if not hours:
        return ""
    dreamt = Watermark.objects.filter(session=OuterRef("pk"), seq__gte=OuterRef("last_stop_seq"))
    since = timezone.now() - timedelta(hours=hours)
    rows = tenant.sessions.filter(Q(is_internal=False), last_stop_seq__gt=0, last_received_at__lt=since)
    count = rows.filter(~Exists(dreamt)).exclude(last_seq__lt=F("last_stop_seq")).count()
    if not count:
        return ""
    words = ngettext(
        "%(many)s session waits longer than %(hours)s hours for a dream: see Dreams, or let the operator run"
        " manage.py doctor.",
        "%(many)s sessions wait longer than %(hours)s hours for a dream: see Dreams, or let the operator run"
        " manage.py doctor.",
        count,
    )
    return words % {"many": thousands(count), "hours": hours}
