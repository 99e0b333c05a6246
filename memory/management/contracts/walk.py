"""Contracts of recall: the walk reaches the cause, is the same bytes each time, and is never over its budget."""

from typing import Final

from memory import tokens
from memory.management.contracts.client import Answer, short
from memory.management.contracts.visit import Visit

_BUDGETS: Final = (200, 600, 2_000, 8_000)


def _chain(visit: Visit) -> tuple[str, str, str]:
    """A thread, the worker that reports there at length, and the trigger of another thread which it cites first."""
    cause = visit.trigger(visit.thread("recall-cause"), "cause", summary="Customers are charged twice 東京 🙂")
    thread_id = visit.thread("recall")
    steps = [visit.trigger(thread_id, f"step-{at}") for at in range(8)]
    report = f"Retries charged twice, as {cause} says.\n\n" + "\n".join(f"- then {one} | été {{}}" for one in steps)
    worker = visit.worker(thread_id, "recall", report=report * 12, cites=[cause, *steps], state="done")
    visit.door.post(f"threads/{thread_id}/owners", {"worker_id": worker}).must(200, 201)
    return thread_id, worker, cause


def same_bytes(visit: Visit) -> None:
    """Two calls of one walk are the same bytes, whichever connection; breadth first, each id once, the cause in it."""
    thread_id, worker, cause = _chain(visit)
    again = visit.door.another()
    for start, direction, wanted in ((thread_id, "cause", (worker, cause)), (cause, "after", (worker,))):
        query = {"hops": 3, "budget_tokens": 8_000, "direction": direction}
        first = visit.door.get(f"recall/{start}", **query).must(200)
        for door in (visit.door, again):
            second = door.get(f"recall/{start}", **query).must(200)
            if second.body != first.body:
                raise second.broken("the bytes of the first call", "other bytes")
        _breadth_first(first, start, hops=3)
        text = first.body.decode("utf-8", "replace")
        for one in wanted:
            if one not in text:
                raise first.broken(f"{one}, which is within three hops", "an answer without it")
    again.close()


def _breadth_first(answer: Answer, start: str, *, hops: int) -> None:
    items = answer.object().get("items")
    if not isinstance(items, list) or not items or items[0].get("id") != start:
        raise answer.broken(f"items that begin with {start}")
    ids = [item.get("id") for item in items]
    if len(set(ids)) != len(ids):
        raise answer.broken("each record once", short(ids))
    depths = [item.get("hop") for item in items]
    if depths != sorted(depths) or depths[0] != 0 or depths[-1] > hops:
        raise answer.broken(f"hops 0 to {hops}, the nearest first", short(depths))


def in_budget(visit: Visit) -> None:
    """No answer has more tokens than were asked for: recall from each kind of id, and the index of threads."""
    asked = [f"recall/{one}" for one in _chain(visit)] + ["threads/index"]
    for path in asked:
        for budget in _BUDGETS:
            answer = visit.door.get(path, budget_tokens=budget).must(200)
            answer.object()
            spent = tokens.count(answer.body.decode("utf-8", "replace"))
            if spent > budget:
                raise answer.broken(f"at most {budget} tokens", f"{spent}")
