"""Contracts of the chain: a thread is the same on the second call, and each id in an answer leads to its record."""

import re
from collections.abc import Iterable
from typing import Any, Final

from memory.management.contracts.client import Answer, Broken, Door, encoded, short
from memory.management.contracts.visit import DOORS, VIEW_IDS, Visit, door_of

# What another's new event may change while we look.
_MOVING: Final = ("last_at", "links")
_FIXED: Final = ("thread_id", "key", "created_at")
_ID: Final = re.compile(r"(thr|trg|wkr|ses|evt|nte|drm|res)_")
_STEPS: Final = 50


def same_twice(visit: Visit) -> None:
    """A thread is the same on the second call, on this connection and on another."""
    thread_id = visit.thread("twice", summary="It must not change by being read.")
    visit.trigger(thread_id, "first")
    visit.trigger(thread_id, "second")
    first = visit.door.get(f"threads/{thread_id}").must(200).must_hold("thread_id", thread_id)
    again = visit.door.another()
    for door in (visit.door, visit.door, again):
        same_fields(first, door.get(f"threads/{thread_id}"), but=_MOVING)
    for path in (f"threads/{thread_id}/events", door_of(_triggers(visit, thread_id)[0])):
        one = visit.door.get(path).must(200)
        for door in (visit.door, again):
            same_fields(one, door.get(path))
    again.close()


def same_fields(first: Answer, second: Answer, *, but: Iterable[str] = (), only: Iterable[str] | None = None) -> None:
    """The two answers agree, but for fields that may move. Raises Broken with the first field that differs."""
    second.must(200, because="the same id answered 200 before")
    before, after = first.object(), second.object()
    names = [name for name in {**before, **after} if name not in but and (only is None or name in only)]
    for name in names:
        if short_of(before, name) != short_of(after, name):
            raise second.broken(
                f"the same {name} as on the call before, {short_of(before, name)}", f"{name} {short_of(after, name)}"
            )


def short_of(said: dict[str, Any], name: str) -> str:
    """A field as text, or that it is missing."""
    return short(said[name]) if name in said else "missing"


def _triggers(visit: Visit, thread_id: str) -> list[str]:
    items = visit.door.get(f"threads/{thread_id}/events", limit=_STEPS).must(200).object()["items"]
    return [item["trigger_id"] for item in items if item.get("trigger_id")]


def resolves(visit: Visit) -> None:
    """From a thread to its owner worker, from its report to the cited trigger: each id taken from the answer before."""
    cause_in = visit.thread("cause")
    cause = visit.trigger(cause_in, "cause")
    thread_id = visit.thread("answer")
    change = visit.trigger(thread_id, "change")
    report = f"It changed because of {cause}."
    worker = visit.worker(thread_id, "reporter", report=report, cites=[cause, change], state="done")
    visit.door.post(f"threads/{thread_id}/owners", {"worker_id": worker}).must(200, 201)
    owners = visit.door.get(f"threads/{thread_id}").must(200)
    if owners.object().get("owner_workers") != [worker]:
        raise owners.broken(f"owner_workers {short([worker])}", f"{short_of(owners.object(), 'owner_workers')}")
    told = visit.door.get(f"workers/{owners.object()['owner_workers'][0]}").must(200)
    told.must_hold("worker_id", worker).must_hold("report", report).must_hold("state", "done")
    if set(told.object().get("cites", ())) != {cause, change}:
        raise told.broken(f"cites {short([cause, change])}", short_of(told.object(), "cites"))
    for cited in told.object()["cites"]:
        found = visit.door.get(door_of(cited)).must(200, because=f"{worker} cites it").must_hold("trigger_id", cited)
        if worker not in found.object().get("cited_by", ()):
            raise found.broken(f"cited_by with {worker}", short_of(found.object(), "cited_by"))
        visit.door.get(f"threads/{found.object()['thread_id']}").must(200, because=f"{cited} is in it")


def existing(visit: Visit) -> None:
    """What the team has already: threads are the same twice, owners, triggers and citations resolve."""
    if visit.existing < 1:
        return
    seen = 0
    cursor: dict[str, str] = {}
    while True:
        page = visit.door.get("threads", limit=min(200, visit.existing - seen), **cursor).must(200).object()
        for row in page["items"]:
            seen += 1
            if row["thread_id"] not in visit.made:
                _one_thread(visit, row["thread_id"])
        cursor = {"cursor": page["next_cursor"]}
        if not page["has_more"] or seen >= visit.existing:
            break
    if page["has_more"]:
        visit.notes.append(
            f"existing: looked at the {seen} oldest threads and left out those after them; --existing takes more"
        )


def _one_thread(visit: Visit, thread_id: str) -> None:
    first = visit.door.get(f"threads/{thread_id}").must(200, 410, because="it is in the list of threads")
    if first.status == 410:
        return  # deleted since the list was read
    first.must_hold("thread_id", thread_id)
    second = visit.door.get(f"threads/{thread_id}").must(200, 410)
    if second.status == 410:
        return
    # A team at work changes its threads; only without a new event must all of it be the same.
    is_quiet = first.object().get("last_at") == second.object().get("last_at")
    same_fields(first, second, but=_MOVING, only=None if is_quiet else _FIXED)
    for worker_id in first.object().get("owner_workers", ()):
        answer = visit.door.get(f"workers/{encoded(worker_id)}").must(200, 410, because=f"it owns {thread_id}")
        if answer.status == 200:
            answer.must_hold("worker_id", worker_id)
            for cited in answer.object().get("cites", ()):
                resolve(visit.door, cited, because=f"{worker_id} cites it")
    steps = visit.door.get(f"threads/{thread_id}/events", limit=_STEPS)
    if steps.status == 410:
        return
    for place, item in enumerate(steps.must(200).object()["items"], start=1):
        if item.get("seq") != place:
            raise steps.broken(f"seq {place} next, none twice and none left out", f"seq {short(item.get('seq'))}")
        if item.get("trigger_id"):
            resolve(visit.door, item["trigger_id"], because=f"it is in {thread_id}")


def resolve(door: Door, public_id: str, *, because: str) -> Answer:
    """The record that an id leads to; one that was deleted is known too. Raises Broken."""
    found = _ID.match(public_id)
    if found is None:
        raise Broken(public_id, expected=f"an id ({because})", got=short(public_id))
    kind = found[1]
    # Any other kind's id is a start for a walk.
    answer = door.get(f"{DOORS.get(kind, 'recall')}/{encoded(public_id)}").must(200, 410, because=because)
    if answer.status == 200 and kind in VIEW_IDS:
        answer.must_hold(VIEW_IDS[kind], public_id)
    return answer


def both_slashes(visit: Visit) -> None:
    """`/x` and `/x/` are one address."""
    thread_id = visit.thread("slash")
    trigger = visit.trigger(thread_id, "slash")
    worker = visit.worker(thread_id, "slash")
    paths = [door_of(one) for one in (thread_id, trigger, worker)]
    for path in (*paths, f"threads/{thread_id}/events", f"triggers/{trigger}/payload", f"recall/{thread_id}"):
        plain, slashed = visit.door.get(path).must(200), visit.door.get(path + "/")
        if slashed.must(200, because=f"{path} answers 200").body != plain.body:
            raise slashed.broken(f"the bytes of {plain.request}")
    body = {"id": visit.own("trg", "posted"), "source": "contracts", "thread": {"id": thread_id}, "summary": "slash"}
    visit.door.post("triggers/", body).must(201, because="POST with a slash is stored, not sent elsewhere")
    visit.door.get(f"triggers/{body['id']}").must(200, because="it was accepted with 201")
