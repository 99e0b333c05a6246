"""Contracts of the ids: what a caller may choose, and that a deleted id is gone for ever."""

import time
from typing import Any, Final

from memory.management.contracts.client import Answer, short
from memory.management.contracts.unknown import is_problem
from memory.management.contracts.visit import Visit, door_of, minted

_REFUSED: Final = (400, 409, 422)
_KINDS: Final = {"thr": "thread", "trg": "trigger", "wkr": "worker"}


def grammar(visit: Visit) -> None:
    """Own ids follow the grammar, and nothing is stored under one that does not."""
    thread_id = visit.thread("grammar")
    for prefix in _KINDS:
        for bad in _bad(prefix, visit.run):
            answer = _offer(visit, prefix, bad, thread_id)
            if answer.status in (200, 201):
                visit.keep(bad)
            is_problem(answer.must(*_REFUSED, because=f"{short(bad)} is no id that a caller may choose"), answer.status)
        longest = visit.own(prefix, "l").ljust(100, "o")
        visit.keep(longest)
        _offer(visit, prefix, longest, thread_id).must(201, because="96 characters behind the prefix are allowed")
        visit.door.get(door_of(longest)).must(200)
    steps = visit.door.get(f"threads/{thread_id}/events", limit=200).must(200)
    stored = [item["trigger_id"] for item in steps.object()["items"] if item.get("trigger_id")]
    if len(stored) != 1:
        raise steps.broken("one trigger: the refused ones are not stored", short(stored))


def _bad(prefix: str, run: str) -> list[Any]:
    other = "wkr" if prefix != "wkr" else "thr"
    return [
        f"{prefix}_Upper{run}",
        f"{prefix}_",
        f"{prefix}_-{run}",
        f"{prefix}__{run}",
        f"{prefix}_.{run}",
        f"{prefix}_a b{run}",
        f"{prefix}_a/{run}",
        f"{prefix}_ä{run}",
        f"{prefix}_{run}\n",
        f"{prefix}_{'a' * 97}",
        f"{other}_{run}",
        f"ses_{run}",
        run,
        minted(_KINDS[prefix]),  # a minted id that nobody was given: the two must never meet
        7,
        [f"{prefix}_{run}"],
    ]


def _offer(visit: Visit, prefix: str, public_id: Any, thread_id: str) -> Answer:
    if prefix == "thr":
        return visit.door.post("threads", {"id": public_id, "title": "Contract check: grammar"})
    if prefix == "wkr":
        body = {"id": public_id, "thread": {"id": thread_id}, "task": "Contract check: grammar"}
        return visit.door.post("workers", body)
    body = {"id": public_id, "source": "contracts", "thread": {"id": thread_id}, "summary": "grammar"}
    return visit.door.post("triggers", body)


def gone(visit: Visit) -> None:
    """A deleted trigger, worker and thread answer 410, at each of their doors, and their list stays without gaps."""
    thread_id = visit.thread("gone")
    kept, trigger = (visit.trigger(thread_id, f"gone-{at}") for at in range(2))
    worker = visit.worker(thread_id, "gone", cites=[trigger])
    for public_id in (trigger, worker):
        delete(visit, public_id)
        for path in (door_of(public_id), f"recall/{public_id}"):
            is_problem(visit.door.get(path).must(410, because="it was deleted"), 410, public_id)
    visit.door.get(f"triggers/{trigger}/payload").must(410, because="its trigger was deleted")
    visit.door.call("DELETE", door_of(trigger)).must(204, 404, 410)
    visit.door.get(f"triggers/{kept}").must(200, because="another one was deleted")
    steps = visit.door.get(f"threads/{thread_id}/events", limit=200).must(200)
    seqs = [item.get("seq") for item in steps.object()["items"]]
    if seqs != list(range(1, len(seqs) + 1)):
        raise steps.broken("seq 1, 2, 3 … after a deletion too", short(seqs))
    delete(visit, thread_id)
    for path in (f"threads/{thread_id}", f"threads/{thread_id}/events"):
        is_problem(visit.door.get(path).must(410, because="it was deleted"), 410, thread_id)


def delete(visit: Visit, public_id: str) -> None:
    """Delete what we made. Raises Broken."""
    visit.door.call("DELETE", door_of(public_id)).must(200, 204)


def never_again(visit: Visit) -> None:
    """A deleted id is never given again: not to its first owner's own id, nor to anything new."""
    thread_id, doomed = visit.thread("again"), visit.thread("doomed")
    trigger, worker = visit.trigger(thread_id, "again"), visit.worker(thread_id, "again")
    external = {"source": "contracts", "external_id": f"{visit.run}-again", "thread": {"id": thread_id}, "summary": "a"}
    given = str(visit.door.post("triggers", external).must(201).object().get("trigger_id"))
    visit.keep(given)
    dead = [trigger, worker, doomed, given]
    for public_id in dead:
        delete(visit, public_id)
    offers = [(one, _offer(visit, one[:3], one, thread_id)) for one in (trigger, worker, doomed)]
    into = {"id": visit.own("trg", "into"), "source": "contracts", "thread": {"id": doomed}, "summary": "a"}
    for public_id, answer in (*offers, (doomed, visit.door.post("triggers", into))):
        is_problem(
            answer.must(409, 410, 422, because=f"{public_id} was deleted and is never used again"), answer.status
        )
    used = set(dead)
    again = visit.door.post("triggers", external)
    _is_new(visit, again.must(200, 201, 409, 410), used)
    for at in range(5):
        body = {"source": "contracts", "thread": {"id": thread_id}, "summary": f"new {at} {time.time_ns()}"}
        _is_new(visit, visit.door.post("triggers", body).must(201), used)
    for public_id in dead:
        visit.door.get(door_of(public_id)).must(410, because="it was deleted and nothing has its id")


def _is_new(visit: Visit, answer: Answer, used: set[str]) -> None:
    """Where something was made, its id was never used before."""
    if answer.status not in (200, 201):
        return
    made = str(answer.object().get("trigger_id"))
    if made in used:
        raise answer.broken("an id that was never used", f"{made}, which was")
    used.add(made)
    visit.keep(made)
