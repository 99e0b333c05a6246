"""One run against one deployment: what it makes, under ids of its own, and how it takes all of it away again."""

import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Final

from memory import ids
from memory.management.contracts.client import Answer, Broken, Door

DOORS: Final = {"thr": "threads", "trg": "triggers", "wkr": "workers"}
VIEW_IDS: Final = {"thr": "thread_id", "trg": "trigger_id", "wkr": "worker_id"}
# A server that restarts while we clean up is waited for.
_TRIES: Final = 4


def door_of(public_id: str) -> str:
    """The path at which a thread, trigger or worker is fetched."""
    return f"{DOORS[public_id[:3]]}/{public_id}"


def minted(kind: str) -> str:
    """An id in the form of a minted one, which nobody has."""
    return ids.mint(kind)


@dataclass
class Visit:
    """The deployment, what may be made there, and what was."""

    door: Door
    events: int = 120
    existing: int = 50
    other: Door | None = None
    run: str = field(default_factory=lambda: f"{int(time.time()):x}{secrets.token_hex(3)}")
    made: dict[str, None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _names: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def own(self, prefix: str, name: str) -> str:
        """An id of our own, remembered before it is sent: whatever happens then, it is taken away."""
        with self._lock:
            self._names += 1
            public_id = f"{prefix}_contract-{self.run}-{self._names}-{name}"
            self.made[public_id] = None
        return public_id

    def keep(self, public_id: object) -> None:
        """Remember an id that the server gave, or took."""
        if isinstance(public_id, str) and public_id[:4] in ("thr_", "trg_", "wkr_"):
            with self._lock:
                self.made[public_id] = None

    def thread(self, name: str, **more: Any) -> str:
        """A new thread. Raises Broken."""
        public_id = self.own("thr", name)
        body = {"id": public_id, "title": f"Contract check: {name}", **more}
        self.door.post("threads", body).must(201).must_hold("thread_id", public_id)
        return public_id

    def trigger(self, thread_id: str, name: str, *, door: Door | None = None, **more: Any) -> str:
        """A new trigger in a thread. Raises Broken."""
        public_id = self.own("trg", name)
        body = {"id": public_id, "source": "contracts", "thread": {"id": thread_id}, "payload": {"name": name}}
        answer = (door or self.door).post("triggers", body | {"summary": f"{name} of a contract check"} | more)
        answer.must(201).must_hold("trigger_id", public_id)
        return public_id

    def worker(self, thread_id: str, name: str, **more: Any) -> str:
        """A new worker of a thread. Raises Broken."""
        public_id = self.own("wkr", name)
        body = {"id": public_id, "thread": {"id": thread_id}, "task": f"Contract check: {name}", **more}
        self.door.post("workers", body).must(201).must_hold("worker_id", public_id)
        return public_id

    def tidy(self) -> list[Broken]:
        """Delete all that was made, whatever it takes; what is left is told."""
        self.door.close()
        for thread_id in [one for one in self.made if one.startswith("thr_")]:
            self._find_given(thread_id)
        left = []
        # Threads first: they take their triggers along, which are then asked for one by one.
        for public_id in sorted(self.made, key=lambda one: ("thr_", "wkr_", "trg_").index(one[:4])):
            try:
                self._delete(public_id)
            except Broken as broken:
                left.append(broken)
        return left

    def _find_given(self, thread_id: str) -> None:
        """Remember what stands in our threads under ids that we never got to know: an answer may have been lost."""
        try:
            cursor: dict[str, str] = {}
            while True:
                answer = self._persistently("GET", f"threads/{thread_id}/events", limit=200, **cursor)
                if answer.status != 200:
                    break
                page = answer.object()
                for item in page["items"]:
                    self.keep(item.get("trigger_id"))
                    self.keep(item.get("worker_id"))
                    self.keep(item.get("id"))
                if not page["has_more"] or not page["items"]:
                    break
                cursor = {"cursor": page["next_cursor"]}
            answer = self._persistently("GET", f"threads/{thread_id}")
            if answer.status == 200:
                for worker_id in [*answer.object().get("workers", []), *answer.object().get("owner_workers", [])]:
                    self.keep(worker_id)
        except (Broken, KeyError, TypeError, AttributeError):
            return  # a server that lies about pages is told of by the contracts; here it must not stop the tidying

    def _is_ours(self, public_id: str) -> bool:
        """True for an id that we chose, or whose record shows that we made it: a server that mixes up ids must not
        make us delete a team's records."""
        if f"_contract-{self.run}-" in public_id:
            return True
        answer = self._persistently("GET", door_of(public_id))
        if answer.status != 200:
            return False
        said = answer.object()
        is_made_here = f"_contract-{self.run}-" in str(said.get("thread_id"))
        return is_made_here and said.get(VIEW_IDS[public_id[:3]]) == public_id

    def _delete(self, public_id: str) -> None:
        if not self._is_ours(public_id):
            return
        answer = self._persistently("DELETE", door_of(public_id))
        answer.must(200, 204, 404, 410, because="what a check made is deleted after it")
        if answer.status in (200, 204):
            self._persistently("GET", door_of(public_id)).must(410, because="deleted just before")

    def _persistently(self, method: str, path: str, **query: Any) -> Answer:
        for attempt in range(_TRIES - 1):
            try:
                answer = self.door.get(path, **query) if method == "GET" else self.door.call(method, path)
            except Broken:
                time.sleep(0.5 * 2**attempt)
                continue
            if answer.status < 500:
                return answer
            time.sleep(0.5 * 2**attempt)
        return self.door.get(path, **query) if method == "GET" else self.door.call(method, path)
