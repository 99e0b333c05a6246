"""What is reached from a thread, hop by hop: its workers, their reports, what those cite, and the threads behind."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from django.utils.translation import gettext

from memory.graph import shown
from memory.graph.models import Owner, Thread, Worker
from memory.graph.shown import Named
from memory.sentences import word
from memory.tenants.models import Tenant

# A map of more than this is no map: the rest is counted, and stands on the pages themselves.
MOST_WORKERS: Final = 8
MOST_CITED: Final = 10
MOST_THREADS: Final = 10


@dataclass(slots=True)
class Node:
    """One stop on the way, `hop` steps from the thread."""

    key: str
    kind: str
    title: str
    note: str
    url: str
    hop: int
    state: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """A way from one stop to the next, and what it means."""

    start: str
    end: str
    words: str


@dataclass(slots=True)
class Reached:
    """The stops in the order in which they are found, the ways between them, and how many stops were left out."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    left_out: int = 0

    def lead(self, start: str, node: Node, words: str) -> None:
        """A way to a stop; one that is there already keeps its place."""
        if node.key not in self.nodes:
            self.nodes[node.key] = node
        if self.nodes[node.key].hop > self.nodes[start].hop:
            self.edges.append(Edge(start, node.key, words))


def of_thread(tenant: Tenant, thread: Thread, *, to: str = "") -> Reached:
    """What is reached from a thread, in a fixed number of queries. What leads to `to` is never left out."""
    found = Reached()
    home = shown.of_thread(tenant, thread)
    found.nodes[home.public_id] = Node(home.public_id, "thread", home.line, thread.key or "", home.url, 0, home.state)
    workers, owners = _workers(thread)
    cites = shown.citations(tenant, [worker.public_id for worker in workers])
    kept = _first(workers, cites, to)
    found.left_out += len(workers) - len(kept)
    cited = {worker.public_id: _cut(cites.get(worker.public_id, []), to, MOST_CITED) for worker in kept}
    found.left_out += sum(len(cites.get(one, [])) - len(some) for one, some in cited.items())
    named = shown.named(tenant, [one for some in cited.values() for one in some])
    behind = {one.home for one in named.values() if one.home} - {thread.public_id}
    homes = shown.named(tenant, behind)
    for worker in kept:
        _put_worker(found, tenant, home.public_id, worker, owners)
    _put_links(found, tenant, thread)
    for worker in kept:
        _put_cited(found, worker, [named[one] for one in cited[worker.public_id] if one in named], homes)
    return found


def _workers(thread: Thread) -> tuple[list[Worker], dict[str, Owner]]:
    owners = {owner.worker.public_id: owner for owner in shown.owners(thread)}
    rows = {owner.worker.public_id: owner.worker for owner in owners.values()}
    rows |= {worker.public_id: worker for worker in shown.thread_workers(thread, 100) if worker.public_id not in rows}
    # Those with a report answer something: they come first.
    return sorted(rows.values(), key=lambda worker: worker.reported_at is None), owners


def _first(workers: list[Worker], cites: dict[str, list[str]], to: str) -> list[Worker]:
    leading = [worker for worker in workers if to and to in (worker.public_id, *cites.get(worker.public_id, []))]
    return [*leading, *(worker for worker in workers if worker not in leading)][: max(MOST_WORKERS, len(leading))]


def _cut(some: list[str], to: str, most: int) -> list[str]:
    return [one for place, one in enumerate(some) if place < most or one == to]


def _put_worker(found: Reached, tenant: Tenant, home: str, worker: Worker, owners: dict[str, Owner]) -> None:
    one = shown.of_worker(tenant, worker)
    owner = owners.get(worker.public_id)
    note = gettext("worker") if owner is None else gettext("owner")
    words = gettext("worked on by") if owner is None else gettext("owned by")
    if owner is not None and owner.pass_through:
        words = gettext("owned by, new triggers go to")
    found.lead(home, Node(one.public_id, "worker", one.line, note, one.url, 1, worker.state), words)
    if worker.reported_at:
        text = worker.report or worker.report_head
        line = next((line.strip("#* ") for line in text.splitlines() if line.strip("#* ")), gettext("Empty report"))
        report = Node(f"{one.public_id}.report", "report", line[:300], gettext("report"), f"{one.url}#report", 2)
        found.lead(one.public_id, report, gettext("reported"))


def _put_links(found: Reached, tenant: Tenant, thread: Thread) -> None:
    links = [link for link in shown.links_of(tenant, thread) if link.to.kind == "thread"]
    found.left_out += max(0, len(links) - MOST_THREADS)
    for link in links[:MOST_THREADS]:
        note = gettext("links to") if link.direction == "to" else gettext("linked from")
        node = Node(link.to.public_id, "thread", link.to.line, note, link.to.url, 1, link.to.state)
        found.lead(thread.public_id, node, f"{word(link.kind)}, {note}")


def _put_cited(found: Reached, worker: Worker, cited: Iterable[Named], homes: dict[str, Named]) -> None:
    start = f"{worker.public_id}.report" if worker.reported_at else worker.public_id
    hop = found.nodes[start].hop
    for one in cited:
        found.lead(
            start,
            Node(
                one.public_id,
                one.kind,
                one.line,
                gettext("cited %(kind)s") % {"kind": word(one.kind)},
                one.url,
                hop + 1,
                one.state,
            ),
            gettext("cites"),
        )
        home = homes.get(one.home)
        if home and found.nodes[one.public_id].hop == hop + 1:
            node = Node(home.public_id, "thread", home.line, gettext("its thread"), home.url, hop + 2, home.state)
            found.lead(one.public_id, node, gettext("is in"))
