"""Links between threads: made by people, keys and rules; a removed one is not made again by a rule."""

from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from memory.graph import steps
from memory.graph.models import Link, Thread
from memory.graph.refusals import Conflict
from memory.sentences import sentence
from memory.tenants.models import Tenant

RULE: Final = "rule:"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a link leads: a thread, or the key of one that may come later."""

    thread: Thread | None = None
    key: str = ""

    @property
    def shown(self) -> str:
        return self.thread.public_id if self.thread else self.key


def target(tenant: Tenant, key: str) -> Target:
    """The live thread with this key, else the key alone, which waits for it."""
    return Target(tenant.threads.filter(key=key, deleted_at__isnull=True).first(), key)


def add(thread: Thread, to: Target, *, kind: str, made_by: str, because_of: str = "") -> tuple[Link, bool]:
    """The link from a thread to a target, and whether it was made now.

    `made_by` is a public id (mem_…, key_…) or `rule:name`. A rule does not make again what was removed, and its link
    comes back as it is, with `removed_at`. Raises Conflict for a link of a thread to itself.
    """
    if to.thread and to.thread.pk == thread.pk:
        raise Conflict("link_to_itself", gettext("A thread does not link to itself."), thread.public_id)
    steps.lock([thread, *([to.thread] if to.thread else [])])
    old = _rows(thread, to).filter(kind=kind).select_for_update().first()
    if old is not None:
        if old.removed_at is None or made_by.startswith(RULE):
            return old, False
        old.removed_at, old.made_by, old.made_at = None, made_by, timezone.now()
        old.save(update_fields=["removed_at", "made_by", "made_at"])
    else:
        old = Link(
            tenant_id=thread.tenant_id,
            from_thread=thread,
            to_thread=to.thread,
            to_key=to.key,
            kind=kind,
            made_by=made_by,
            because_of=because_of,
        )
        with transaction.atomic():
            old.save(force_insert=True)
    _told(thread, to, "linked", kind)
    return old, True


def remove(thread: Thread, to: Target, *, kind: str | None = None) -> int:
    """Take the links from a thread to a target away, of one kind or all; gives how many there were."""
    rows = _rows(thread, to).filter(removed_at__isnull=True)
    if kind is not None:
        rows = rows.filter(kind=kind)
    removed = rows.update(removed_at=timezone.now())
    if removed:
        _told(thread, to, "unlinked", kind or sentence("all kinds"))
    return removed


def _rows(thread: Thread, to: Target) -> "QuerySet[Link]":
    rows = Link.objects.filter(from_thread=thread)
    return rows.filter(to_thread=to.thread) if to.thread else rows.filter(to_thread__isnull=True, to_key=to.key)


def _told(thread: Thread, to: Target, step: str, kind: str) -> None:
    """A step in each thread that the link touches, in the order of their locks."""
    words = {
        "linked": (sentence("Linked to"), sentence("Linked from")),
        "unlinked": (sentence("No longer linked to"), sentence("No longer linked from")),
    }[step]
    ends = [(thread, to.shown, to.thread.public_id if to.thread else "", words[0])]
    if to.thread:
        ends.append((to.thread, thread.public_id, thread.public_id, words[1]))
    for end, shown, other, said in sorted(ends, key=lambda end: str(end[0].pk)):
        steps.add(end, step, other=other, summary=f"{said} {shown} ({kind})")
