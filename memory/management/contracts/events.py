"""Contracts of the pages: every event once, in order, no gaps, while new ones arrive; cursors resume or are refused."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from memory.management.contracts.client import Answer, Broken, Door, encoded, short
from memory.management.contracts.unknown import is_problem
from memory.management.contracts.visit import Visit

_WRITERS: Final = 2
_LIMITS: Final = (1, 7, 50, 200)
_PATIENCE: Final = 60.0
_BREATH: Final = 0.05


@dataclass
class Pager:
    """One reader of a list that grows: what it has seen, and the cursor it goes on with."""

    door: Door
    path: str
    limit: int
    seen: list[dict[str, Any]] = field(default_factory=list)
    cursor: str | None = None
    pages: list[tuple[str | None, Answer]] = field(default_factory=list)

    def turn(self) -> bool:
        """Read one page; True where more is waiting. Raises Broken at the first event out of place."""
        before = self.cursor
        query = {"limit": self.limit} | ({"cursor": before} if before is not None else {})
        answer = self.door.get(self.path, **query).must(200)
        page = answer.object()
        items, more, cursor = page.get("items"), page.get("has_more"), page.get("next_cursor")
        if not isinstance(items, list) or not isinstance(more, bool) or not isinstance(cursor, str) or not cursor:
            raise answer.broken('{"items": […], "next_cursor": "…", "has_more": …}')
        if len(items) > self.limit:
            raise answer.broken(f"at most {self.limit} items", f"{len(items)}")
        if more and not items:
            raise answer.broken("items where has_more is true", "an empty page")
        for item in items:
            self._take(answer, item)
        self.cursor = cursor
        self.pages.append((before, answer))
        return more

    def _take(self, answer: Answer, item: Any) -> None:
        place = len(self.seen) + 1
        seq = item.get("seq") if isinstance(item, dict) else None
        if seq == place:
            self.seen.append(item)
            return
        known = isinstance(seq, int) and 0 < seq < place
        what = "again" if known else f"and {place} is missing"
        raise answer.broken(f"seq {place} next: every event once, in order, no gaps", f"seq {short(seq)} {what}")

    def to_the_end(self) -> None:
        """Read until nothing more is waiting. Raises Broken."""
        while self.turn():
            pass


@dataclass
class Crew:
    """Threads of this check; the first that breaks is told, and the others are called off."""

    stop: threading.Event = field(default_factory=threading.Event)
    broken: list[Exception] = field(default_factory=list)
    hands: list[threading.Thread] = field(default_factory=list)

    def send(self, work: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except Exception as why:
                self.broken.append(why)
                self.stop.set()

        hand = threading.Thread(target=run, daemon=True)
        self.hands.append(hand)
        hand.start()
        return hand

    def _come_home(self) -> None:
        for hand in self.hands:
            hand.join(_PATIENCE * 2)

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.stop.set()
        try:
            self._come_home()
        except BaseException:  # Ctrl-C: nobody may write any more when the tidying begins
            self.stop.set()
            self._come_home()
            raise
        if kind is None and self.broken:
            raise self.broken[0]


def once_in_order(visit: Visit) -> None:
    """Pagers with several page sizes read a thread while writers add to it: each event once, in order, no gaps."""
    thread_id = visit.thread("pages")
    path = f"threads/{thread_id}/events"
    written: list[str] = []
    with Crew() as crew:
        writers = [crew.send(writer) for writer in _writers(visit, thread_id, written, crew.stop)]
        pagers = [Pager(visit.door.another(), path, limit) for limit in _LIMITS]
        for pager in pagers:
            crew.send(_following(pager, visit.events, writers, crew.stop))
    whole = Pager(visit.door, path, 200)
    whole.to_the_end()
    found = [item["trigger_id"] for item in whole.seen if item.get("trigger_id")]
    if sorted(found) != sorted(written):
        missed, extra = sorted(set(written) - set(found)), sorted(set(found) - set(written))
        raise whole.pages[-1][1].broken(f"each of the {len(written)} triggers once", f"missed {missed}, extra {extra}")
    for pager in pagers:
        _agree(pager, whole)


def _writers(visit: Visit, thread_id: str, written: list[str], stop: threading.Event) -> Iterator[Callable[[], None]]:
    for number in range(_WRITERS):
        door = visit.door.another()

        def write(first: int = number, door: Door = door) -> None:
            for at in range(first, visit.events, _WRITERS):
                if stop.is_set():
                    return
                written.append(visit.trigger(thread_id, f"event-{at}", door=door))

        yield write


def _following(pager: Pager, wanted: int, writers: list[threading.Thread], stop: threading.Event) -> Callable[[], None]:
    def follow() -> None:
        until = time.monotonic() + _PATIENCE
        while not stop.is_set():
            # Looked at first: what was written before it is on the page that is read after it.
            is_written = not any(writer.is_alive() for writer in writers)
            more = pager.turn()
            if not more and is_written:
                return
            if time.monotonic() > until:
                raise pager.pages[-1][1].broken(f"the {wanted} events that are written, within {_PATIENCE:.0f} s")
            if not more:
                time.sleep(_BREATH)

    return follow


def _agree(pager: Pager, whole: Pager) -> None:
    for mine, theirs in zip(pager.seen, whole.seen, strict=False):
        if mine != theirs:
            raise whole.pages[0][1].broken(
                f"the event as a pager of {pager.limit} saw it, {short(mine)}", short(theirs)
            )
    if len(pager.seen) != len(whole.seen):
        answer = pager.pages[-1][1]
        raise answer.broken(f"{len(whole.seen)} events with limit={pager.limit}", f"{len(pager.seen)}")


def inbox_in_order(visit: Visit) -> None:
    """What is passed straight through to an owner is in its inbox: each trigger once, in order, no gaps."""
    thread_id = visit.thread("inbox")
    worker = visit.worker(thread_id, "owner")
    said = {"worker_id": worker, "pass_through": True}
    visit.door.post(f"threads/{thread_id}/owners", said).must(200, 201)
    pager = Pager(visit.door, f"workers/{worker}/inbox", 2)
    wanted = [visit.trigger(thread_id, f"passed-{at}") for at in range(3)]
    pager.to_the_end()
    wanted += [visit.trigger(thread_id, f"passed-{at}") for at in range(3, 5)]
    pager.to_the_end()
    got = [item.get("trigger_id") for item in pager.seen]
    if got != wanted:
        raise pager.pages[-1][1].broken(f"the triggers {short(wanted)}", short(got))


def tail_resumes(visit: Visit) -> None:
    """The cursor at the tail is there, gives nothing twice, and resumes with exactly what arrives later."""
    thread_id = visit.thread("tail")
    pager = Pager(visit.door, f"threads/{thread_id}/events", 3)
    for at in range(5):
        visit.trigger(thread_id, f"tail-{at}")
    pager.to_the_end()
    for _ in range(2):
        count = len(pager.seen)
        pager.to_the_end()
        if len(pager.seen) != count:
            raise pager.pages[-1][1].broken("an empty page: nothing is new")
        late = visit.trigger(thread_id, f"late-{count}")
        pager.to_the_end()
        if [item.get("trigger_id") for item in pager.seen[count:]] != [late]:
            raise pager.pages[-1][1].broken(f"exactly the new event, of {late}")
    for cursor, before in pager.pages[:2]:  # full pages: what is after them does not touch them
        if cursor is None:
            continue
        again = visit.door.get(pager.path, limit=pager.limit, cursor=cursor).must(200)
        if again.object()["items"] != before.object()["items"]:
            raise again.broken(f"the items of the first call, {short(before.object()['items'])}")


def wrong_cursors(visit: Visit) -> None:
    """An edited cursor, another list's cursor and no cursor at all are 400 invalid_cursor, never the first page."""
    threads = [visit.thread(f"cursor-{at}") for at in range(2)]
    for thread_id in threads:
        for at in range(3):
            visit.trigger(thread_id, f"cursor-{at}")
    path = f"threads/{threads[0]}/events"
    good = visit.door.get(path, limit=1).must(200).object()["next_cursor"]
    theirs = visit.door.get(f"threads/{threads[1]}/events", limit=1).must(200).object()["next_cursor"]
    other_list = visit.door.get("threads", limit=1).must(200).object()["next_cursor"]
    wrong = [
        "",
        "zzzz",
        "cD0lMDA=",
        "0",
        "1",
        "null",
        "🙂",
        good[:-4],
        good + good,
        good[4:],
        theirs,
        other_list,
    ]
    for cursor in (*wrong, *_edited(good)):
        _refused(visit.door.get(f"{path}?limit=1&cursor={encoded(cursor)}"))
    is_problem(visit.door.get(f"{path}?limit=1&cursor={encoded(good + chr(0))}"), 400)
    visit.door.get(path, limit=1, cursor=good).must(200, because="the cursor as it was given")


def _edited(cursor: str) -> list[str]:
    """The cursor with one character changed; not the last, whose lowest bits may say nothing."""
    places = sorted({0, len(cursor) // 3, len(cursor) // 2, max(0, len(cursor) - 6)})
    return [cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :] for at in places]


def _refused(answer: Answer) -> None:
    if answer.status != 400:
        raise answer.broken("400 invalid_cursor")
    try:
        said = is_problem(answer, 400)
    except Broken:
        raise answer.broken("a problem body with invalid_cursor") from None
    if said["code"] != "invalid_cursor":
        raise answer.broken("code invalid_cursor")
