"""Threads: opened by key or own id, changed, listed, and told in one line each."""

from dataclasses import dataclass
from typing import Any

import orjson
from django.db.models import Q, QuerySet

from memory import ids, redact
from memory.graph import budget, hot, steps
from memory.graph.models import Thread
from memory.graph.refusals import of_outcome
from memory.tenants.models import Tenant

# A line of the index is about this many tokens at least, so that many rows are enough for any budget.
LEAST_LINE = 12


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a caller says of a thread; None leaves a field as it is."""

    title: str | None = None
    state: str | None = None
    summary: str | None = None

    def cleaned(self) -> "Wanted":
        """The same without secrets."""
        title, summary = redact.clean([self.title, self.summary]).value
        return Wanted(title, self.state, summary)


def open_thread(tenant: Tenant, *, thread_id: str | None, key: str | None, wanted: Wanted) -> tuple[Thread, bool]:
    """The thread with this id or key, and whether it is new. One that exists takes what is said. Raises Conflict."""
    said = wanted.cleaned()
    asked = {
        "id": thread_id,
        "is_given": thread_id is not None and not ids.is_typeid(thread_id),
        "key": redact.clean(key).value,
        "pk": ids.new_key(),
        "fresh": ids.mint("thread"),
        "title": said.title,
        "state": said.state,
        "summary": said.summary,
    }
    sql = "SELECT outcome, pk, public_id FROM open_thread(%t::uuid, %t::jsonb)"
    outcome, pk, public_id = hot.row(sql, (str(tenant.pk), orjson.dumps(asked).decode()))
    if outcome not in ("new", "old"):
        raise of_outcome(outcome, public_id)
    thread = Thread.objects.get(pk=pk)
    if outcome == "new":
        steps.add(thread, "opened", summary=thread.title)
    else:
        change(thread, said)
    return thread, outcome == "new"


def change(thread: Thread, wanted: Wanted) -> None:
    """Set what is said; a change of state is a step of the thread."""
    said = wanted.cleaned()
    told = {name: value for name, value in vars_of(said).items() if value not in (None, getattr(thread, name))}
    if not told:
        return
    before = thread.state
    Thread.objects.filter(pk=thread.pk).update(**told)
    for name, value in told.items():
        setattr(thread, name, value)
    if "state" in told:
        steps.add(thread, "state", summary=f"{before} → {thread.state}")


def vars_of(wanted: Wanted) -> dict[str, str | None]:
    return {"title": wanted.title, "state": wanted.state, "summary": wanted.summary}


def listed(tenant: Tenant, *, key: str = "", state: str = "", q: str = "") -> "QuerySet[Thread]":
    """Live threads in the order in which they began."""
    rows = tenant.threads.filter(deleted_at__isnull=True)
    if key:
        rows = rows.filter(key=key)
    if state:
        rows = rows.filter(state=state)
    for word in q.split()[:10]:
        rows = rows.filter(
            Q(title__icontains=word) | Q(summary__icontains=word) | Q(key__icontains=word) | Q(public_id=word)
        )
    return rows.order_by("created_at", "pk")


def past(rows: "QuerySet[Thread]", at: str, pk: str) -> "QuerySet[Thread]":
    """The rows behind a position of `listed`."""
    return rows.filter(Q(created_at__gte=at) & (Q(created_at__gt=at) | Q(pk__gt=pk)))


def view(thread: Thread) -> str:
    """The thread as GET /threads/{id} shows it, as JSON text."""
    return str(hot.row("SELECT thread_view(%t::uuid, %t)::text", (str(thread.tenant_id), thread.public_id))[0])


def row(thread: Thread) -> dict[str, Any]:
    """The thread as a list shows it."""
    return {
        "thread_id": thread.public_id,
        "key": thread.key,
        "title": thread.title,
        "state": thread.state,
        "summary": thread.summary,
        "counts": {"triggers": thread.trigger_count, "workers": thread.worker_count, "events": thread.last_seq},
        "created_at": thread.created_at,
        "last_at": thread.last_at,
    }


def index(tenant: Tenant, *, budget_tokens: int) -> bytes:
    """One line for each open thread, newest activity first: JSON within the budget; says how many were left out."""
    open_now = tenant.threads.filter(state="open", deleted_at__isnull=True)
    # The index knows the latest activity to ten seconds; the exact order among those comes from the rows.
    most = budget_tokens // LEAST_LINE + 200
    rows = sorted(open_now.order_by("-active_at")[:most], key=lambda t: (t.last_at, t.public_id), reverse=True)
    total = len(rows) if len(rows) < most else open_now.count()

    def answer(shown: list[str]) -> dict[str, Any]:
        return {"items": shown, "left_out": total - len(shown), "budget_tokens": budget_tokens}

    return budget.fitted([line(thread) for thread in rows], answer, budget_tokens=budget_tokens)


def line(thread: Thread) -> str:
    """The thread in one line: id, key, title, summary, and when something happened last."""
    words = " · ".join(part for part in (thread.title, thread.summary) if part) or "no title"
    key = f" {thread.key}" if thread.key else ""
    told = f"{thread.public_id}{key}: {' '.join(words.split())}"
    cut = told if len(told) <= 240 else told[:239] + "…"
    return f"{cut} ({thread.last_seq} events, last {thread.last_at:%Y-%m-%d %H:%M})"
