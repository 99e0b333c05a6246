"""Retention: payloads go after the time a team chose, those that something cites last; ids and summaries stay.

A row keeps its id, its place and its line, and says when its bytes went. Bodies over 16 KB are addressed by content and
shared, so one goes when the last row that holds it lets go. Nothing here hurts when it is run twice, or broken off.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.core.files.storage import storages
from django.db import connection, transaction
from django.utils import timezone

from memory.graph import bodies, endpoints
from memory.graph.models import Answer
from memory.tenants import choices, due, outbox
from memory.tenants.models import Setting, Tenant
from memory.tenants.rls import tenant_scope

AT_ONCE: Final = 500
RAN: Final = "retention_ran"
ANSWERS_LIFE: Final = timedelta(days=1)


@dataclass(frozen=True)
class Cutoffs:
    """What came before these moments goes; None keeps it."""

    events: datetime | None
    triggers: datetime | None
    cited: datetime | None


def cutoffs(tenant: Tenant, now: datetime) -> Cutoffs:
    """What the team chose, as moments. What is cited is never dropped before what is not."""

    def before(name: str) -> datetime | None:
        days = choices.number(tenant, name)
        return now - timedelta(days=days) if days else None

    return Cutoffs(before("retention_events"), before("retention_triggers"), before("retention_cited"))


def perform(claim: due.Claim) -> dict[str, int]:
    """Do a team's retention under its lease, in short transactions; gives how many of each kind went."""
    gone: dict[str, int] = {}
    with due.heartbeat(claim):
        with tenant_scope(claim.tenant_pk):
            tenant = Tenant.objects.get(pk=claim.tenant_pk)
            cuts = cutoffs(tenant, timezone.now())
        for kind, drop in _steps(tenant, cuts):
            while True:
                with tenant_scope(claim.tenant_pk):
                    due.hold(claim)
                    count = drop()
                gone[kind] = gone.get(kind, 0) + count
                if count < AT_ONCE:
                    break
        with tenant_scope(claim.tenant_pk):
            gone["marks"] = endpoints.forget_marks(tenant)
            gone["answers"] = Answer.objects.filter(tenant=tenant, at__lt=timezone.now() - ANSWERS_LIFE).delete()[0]
            gone["messages"] = outbox.forget(tenant)
            _ran(tenant, gone)
            due.done(claim)
    return gone


def _steps(tenant: Tenant, cuts: Cutoffs) -> list[tuple[str, Callable[[], int]]]:
    found: list[tuple[str, Callable[[], int]]] = []
    for kind, drop, cut in (("events", drop_events, cuts.events), ("triggers", drop_triggers, cuts.triggers)):
        if cut is None:
            continue
        found.append((kind, _bind(drop, tenant, cut, is_cited=False)))
        if cuts.cited is not None:
            found.append((f"cited_{kind}", _bind(drop, tenant, min(cut, cuts.cited), is_cited=True)))
    return found


def _bind(drop: Callable[..., int], tenant: Tenant, cut: datetime, *, is_cited: bool) -> Callable[[], int]:
    return lambda: drop(tenant, cut, is_cited=is_cited)


# A note's line rests on the event, or a worker's report cites it.
_CITED_EVENT: Final = """(EXISTS (SELECT FROM notes_source s WHERE s.event_id = e.id)
  OR EXISTS (SELECT FROM graph_citation c WHERE c.cited = e.public_id AND c.tenant_id = e.tenant_id))"""
_CITED_TRIGGER: Final = (
    "EXISTS (SELECT FROM graph_citation c WHERE c.cited = t.public_id AND c.tenant_id = t.tenant_id)"
)


def drop_events(tenant: Tenant, cut: datetime, *, is_cited: bool) -> int:
    """Drop the payloads of up to `AT_ONCE` events from before `cut`; gives how many. The tenant must be bound."""
    rows = _rows(
        f"""SELECT e.id, e.sha256, e.body IS NULL FROM events_event e
            WHERE e.tenant_id = %s AND e.dropped_at IS NULL AND e.received_at < %s AND {"" if is_cited else "NOT"}
              {_CITED_EVENT} ORDER BY e.received_at LIMIT {AT_ONCE} FOR UPDATE OF e SKIP LOCKED""",  # noqa: S608
        [tenant.pk, cut],
    )
    if rows:
        _rows(
            "UPDATE events_event SET body = NULL, head = '', tail = '', dropped_at = now() WHERE id = ANY (%s)"
            " RETURNING id",
            [[row[0] for row in rows]],
        )
        _forget_words("event", [row[0] for row in rows])
        drop_bodies(tenant, [bytes(sha) for _, sha, is_spilled in rows if is_spilled])
    return len(rows)


def drop_triggers(tenant: Tenant, cut: datetime, *, is_cited: bool) -> int:
    """The same for the parts of triggers."""
    rows = _rows(
        f"""SELECT p.trigger_id, p.name, p.sha256, p.content IS NULL
            FROM graph_part p JOIN graph_trigger t ON t.id = p.trigger_id
            WHERE p.tenant_id = %s AND p.dropped_at IS NULL AND p.stored_at < %s AND {"" if is_cited else "NOT"}
              {_CITED_TRIGGER} ORDER BY p.stored_at LIMIT {AT_ONCE} FOR UPDATE OF p SKIP LOCKED""",  # noqa: S608
        [tenant.pk, cut],
    )
    if rows:
        _rows(
            "UPDATE graph_part p SET content = NULL, dropped_at = now()"
            " FROM unnest(%s::uuid[], %s::text[]) AS gone (trigger_id, name)"
            " WHERE p.trigger_id = gone.trigger_id AND p.name = gone.name RETURNING p.name",
            [[row[0] for row in rows], [row[1] for row in rows]],
        )
        drop_bodies(tenant, [bytes(sha) for _, _, sha, is_spilled in rows if is_spilled])
    return len(rows)


def drop_bodies(tenant: Tenant, digests: Sequence[bytes]) -> int:
    """Drop those of the bodies that no row holds any more, in the storage too once this is committed."""
    if not digests:
        return 0
    rows = _rows(
        """DELETE FROM graph_body b WHERE b.tenant_id = %s AND b.sha256 = ANY (%s)
             AND NOT EXISTS (SELECT FROM events_event e
               WHERE e.sha256 = b.sha256 AND e.tenant_id = b.tenant_id AND e.body IS NULL AND e.dropped_at IS NULL)
             AND NOT EXISTS (SELECT FROM graph_part p
               WHERE p.sha256 = b.sha256 AND p.tenant_id = b.tenant_id AND p.content IS NULL AND p.dropped_at IS NULL)
             AND NOT EXISTS (SELECT FROM graph_worker w
               WHERE w.report_sha256 = b.sha256 AND w.tenant_id = b.tenant_id)
           RETURNING b.sha256, b.codec""",
        [tenant.pk, list(dict.fromkeys(digests))],
    )
    names = {bodies.name_of(str(tenant.pk), bytes(sha)) for sha, codec in rows if codec == "s3"}
    if names:
        transaction.on_commit(lambda: _delete(sorted(names)))
    return len(rows)


def _delete(names: Sequence[str]) -> None:
    for name in names:
        storages[bodies.STORAGE].delete(name)


def _forget_words(kind: str, pks: Sequence[Any]) -> None:
    """Search kept the text too: it reads the things again, and finds what is left of them."""
    _rows(
        "INSERT INTO recall_mark (tenant_id, kind, target)"
        " SELECT tenant_id, kind, target FROM recall_entry WHERE kind = %s AND target = ANY (%s) RETURNING id",
        [kind, list(pks)],
    )


def _ran(tenant: Tenant, gone: dict[str, int]) -> None:
    told = ", ".join(f"{kind} {count}" for kind, count in gone.items() if count)
    Setting.objects.update_or_create(tenant=tenant, name=RAN, defaults={"value": told, "changed_by": "retention"})


def _rows(sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())
