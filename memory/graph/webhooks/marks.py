"""Marks: by what a delivery finds the thread that earlier ones made."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection
from django.utils import timezone

from memory.graph.webhooks.models import Mark
from memory.graph.webhooks.taken import Marks
from memory.tenants.models import Tenant


@dataclass(frozen=True)
class Found:
    """The key a delivery's thread has, and whether anything but the delivery itself says so."""

    key: str | None
    is_known: bool


def found(tenant: Tenant, marks: Marks, own_key: str | None) -> Found:
    """The key of the first mark that leads somewhere, else the delivery's own."""
    known = (
        dict(Mark.objects.filter(mark__in=marks.seek, tenant=tenant).values_list("mark", "key")) if marks.seek else {}
    )
    key = next((known[mark] for mark in marks.seek if mark in known), None)
    return Found(key or own_key, key is not None)


def keep(tenant: Tenant, marks: Marks, key: str) -> None:
    """Let later deliveries find the thread by these marks: the first thread keeps a mark, a renewed one moves."""
    _write(tenant, sorted(marks.keep), key, "UPDATE SET at = now()")
    _write(tenant, sorted(marks.renew), key, "UPDATE SET key = excluded.key, at = now()")
    if marks.drop:
        Mark.objects.filter(mark__in=marks.drop, tenant=tenant, key=key).delete()


def rename(tenant: Tenant, mark: str, key: str) -> None:
    """Let a mark say this; written only where it says something else, for every delivery of a repository comes by."""
    if named(tenant, [mark]).get(mark) != key:
        _write(tenant, [mark], key, "UPDATE SET key = excluded.key, at = now()")


def named(tenant: Tenant, names: Sequence[str]) -> dict[str, str]:
    """The keys of marks, by mark."""
    return dict(Mark.objects.filter(mark__in=names, tenant=tenant).values_list("mark", "key"))


def _write(tenant: Tenant, marks: Sequence[str], key: str, conflict: str) -> None:
    """One statement, in the order of the marks, so that no two deliveries wait for each other crosswise."""
    if not marks:
        return
    rows = [Mark(tenant=tenant, mark=mark, key=key, at=timezone.now()) for mark in marks]
    values = ", ".join(["(%s, %s, %s, %s, %s)"] * len(rows))
    sql = f"""INSERT INTO graph_mark (id, tenant_id, mark, key, at) VALUES {values}
              ON CONFLICT (mark, tenant_id) DO {conflict}"""  # noqa: S608 - no value stands in it
    with connection.cursor() as cursor:
        cursor.execute(sql, [value for row in rows for value in (row.pk, tenant.pk, row.mark, row.key, row.at)])
