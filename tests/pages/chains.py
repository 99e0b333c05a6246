"""Threads, triggers, workers and endpoints for the pages, made in one line each without the front door."""

from typing import Any

from memory.graph import endpoints, links, parts, steps, threads, workers
from memory.graph.models import Endpoint, Thread, Trigger, Worker
from memory.graph.record import Incoming, record_trigger
from memory.graph.workers import Said
from memory.tenants import rls
from memory.tenants.access import member_actor
from memory.tenants.models import Tenant

JSON = "application/json"


def thread(tenant: Tenant, key: str | None = None, **said: Any) -> Thread:
    """A thread, with its own key and title."""
    with rls.tenant_scope(str(tenant.pk)):
        return threads.open_thread(tenant, thread_id=None, key=key, wanted=threads.Wanted(**said))[0]


def trigger(
    tenant: Tenant, key: str | None = "github:acme/payments#412", payload: bytes | None = b"", **said: Any
) -> Trigger:
    """A trigger in the thread with this key."""
    given = {"source": "github", "media_type": "text/plain", **said}
    with rls.tenant_scope(str(tenant.pk)):
        incoming = Incoming(thread_key=key, payload=payload or None, **given)
        made = record_trigger(tenant, incoming).trigger
        return tenant.triggers.select_related("thread").get(pk=made.pk)


def part(of: Trigger, name: str, raw: bytes, media_type: str = "text/plain") -> None:
    """Another part of a trigger."""
    sent = parts.packed(name, raw, media_type, tenant_pk=str(of.tenant_id))
    with rls.tenant_scope(str(of.tenant_id)):
        parts.store(of, sent)


def worker(
    tenant: Tenant, of: Thread | None, *, task: str = "Find the cause", report: str | None = None, **said: Any
) -> Worker:
    """A worker of a thread; with a report it has cited the ids in it."""
    packed = workers.packed_report(report) if report is not None else None
    with rls.tenant_scope(str(tenant.pk)):
        return workers.start(tenant, None, of, Said(task=task, report=packed, **said), by="tests")[0]


def owner(of: Thread, owned_by: Worker, *, pass_through: bool = False) -> None:
    with rls.tenant_scope(str(of.tenant_id)):
        workers.own(of, owned_by, pass_through=pass_through)


def link(start: Thread, end: Thread, kind: str = "mentions", made_by: str = "rule:mention") -> None:
    with rls.tenant_scope(str(start.tenant_id)):
        links.add(start, links.Target(end), kind=kind, made_by=made_by)


def happened(of: Thread, times: int) -> None:
    """More steps of a thread."""
    with rls.tenant_scope(str(of.tenant_id)):
        for place in range(times):
            steps.add(of, "state", summary=f"open → open {place}")


def endpoint(tenant: Tenant, by: Any, kind: str = "generic", name: str = "Ticket tracker", **said: Any) -> Endpoint:
    """An endpoint that a member made."""
    with rls.tenant_scope(str(tenant.pk)):
        wanted = endpoints.Wanted(**said)
        return endpoints.create(tenant, kind, name, wanted=wanted, by=member_actor(by))[0]


def answered(tenant: Tenant) -> dict[str, Any]:
    """A pull request whose failed check one worker looked into: a thread, its triggers, the worker, a linked thread."""
    opened = trigger(tenant, summary="acme/payments#412 opened: Retry thrice", thread_title="Retry thrice")
    run = trigger(tenant, "github:acme/payments/runs/7", summary="build failed: test_retries", source="ci")
    report = f"# Why it failed\n\nThe check {run.public_id} timed out; {opened.public_id} had changed the wait."
    done = worker(tenant, opened.thread, task="Why did the build fail?", report=report, state="done")
    ticket = trigger(tenant, "jira:PAY-7", summary="Customers are charged twice", source="jira").thread
    link(opened.thread, ticket)
    owner(opened.thread, done, pass_through=True)
    return {"opened": opened, "run": run, "worker": done, "thread": opened.thread, "ticket": ticket}
