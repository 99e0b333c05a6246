"""Answers that were not what the tool would have said: reported, dropped, counted."""

from dataclasses import dataclass
from typing import Final

from cache_admin import alerts
from cache_admin.models import Entry, Flight, Incident
from cache_admin.results import is_closed
from memory import redact
from memory.problems import Problem, not_found
from memory.tenants.access import Actor
from memory.tenants.models import Tenant

KINDS: Final = ("stale", "wrong")


@dataclass(frozen=True)
class Reported:
    """What an agent says of an answer it was given."""

    result_id: str = ""
    key: str = ""
    kind: str = "stale"
    detail: str = ""


def report(tenant: Tenant, told: Reported, *, by: Actor) -> tuple[Incident, int]:
    """Put it on record, and drop what gave the answer; gives how many entries went. Raises Problem 400, 404."""
    if told.kind not in KINDS:
        raise Problem(400, "invalid_field", f"kind: one of {', '.join(KINDS)}.", field="kind")
    rows = Entry.objects.filter(tenant=tenant).select_related("result")
    if told.result_id:
        result = tenant.results.filter(public_id=told.result_id).first()
        if result is None or is_closed(result, by):
            raise not_found(told.result_id)
        rows, tool, place = rows.filter(result=result), result.tool, result.project_id
    elif told.key:
        entry = rows.filter(key=bytes.fromhex(told.key)).first()
        if entry is None or is_closed(entry.result, by):
            raise not_found(told.key)
        rows, tool, place = rows.filter(pk=entry.pk), entry.tool, entry.project_id
    else:
        raise Problem(
            400, "invalid_field", "result_id: name the answer by its result_id or its key.", field="result_id"
        )
    first = rows.first()
    incident = Incident.objects.create(
        tenant=tenant,
        kind="report",
        tool=tool,
        project_id=place,
        result_id_text=told.result_id or (first.result.public_id if first else ""),
        document=first.document if first else "",
        detail=redact.brief(f"{told.kind}: {told.detail}", 2_000),
        reporter_id=by.member_pk,
    )
    alerts.soon(str(tenant.pk))
    keys = [bytes(key) for key in rows.values_list("key", flat=True)]
    Flight.objects.filter(tenant=tenant, key__in=keys).delete()
    gone = Entry.objects.filter(tenant=tenant, key__in=keys).delete()[1].get("cache_admin.Entry", 0)
    return incident, gone
