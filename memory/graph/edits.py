"""What people change about a thread: the same as agents may, and the audit says who."""

from memory.graph import links, threads, workers
from memory.graph.links import Target
from memory.graph.models import Thread, Worker
from memory.graph.threads import Wanted
from memory.tenants import audit
from memory.tenants.access import Actor, require


def edit(thread: Thread, wanted: Wanted, *, by: Actor) -> None:
    """Set title, state and summary. Raises Refused."""
    require(by, "graph.record")
    before = thread.state
    threads.change(thread, wanted)
    audit.record(by, "thread.edit", thread.public_id, before=before, after=thread.state)


def own(thread: Thread, worker: Worker, *, pass_through: bool, by: Actor) -> None:
    """Make a worker an owner, or change what is passed to it. Raises Refused."""
    require(by, "graph.record")
    workers.own(thread, worker, pass_through=pass_through)
    said = f"{worker.public_id}{' passed through' if pass_through else ''}"
    audit.record(by, "thread.own", thread.public_id, after=said)


def disown(thread: Thread, worker: Worker, *, by: Actor) -> None:
    """Make a worker an owner no longer. Raises Refused."""
    require(by, "graph.record")
    if workers.disown(thread, worker):
        audit.record(by, "thread.disown", thread.public_id, before=worker.public_id)


def link(thread: Thread, to: Target, *, kind: str, by: Actor) -> None:
    """Link a thread to another, or to a key. Raises Refused, Conflict."""
    require(by, "graph.record")
    if links.add(thread, to, kind=kind, made_by=by.id)[1]:
        audit.record(by, "thread.link", thread.public_id, after=to.shown[:200])


def unlink(thread: Thread, to: Target, *, kind: str, by: Actor) -> None:
    """Take a link away. Raises Refused."""
    require(by, "graph.record")
    if links.remove(thread, to, kind=kind):
        audit.record(by, "thread.unlink", thread.public_id, before=to.shown[:200])
