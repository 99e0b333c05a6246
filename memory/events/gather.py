"""Calls that arrive while one is being written go in together: one transaction, one wait for the disk.

The events of a session are ordered under its row's lock, which is held until the commit is on disk. Written one by one,
parallel calls of a session would each wait for the one before; so the thread that writes leaves those that wait to the
next one, which takes them all. Nobody waits for company: a call that is alone is written at once.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from django.db import connection

from memory.events.record import MayNotRecord, UnknownKey

Call = TypeVar("Call")
Outcome = TypeVar("Outcome")

MOST: Final = 64
MOST_BYTES: Final = 4 * 1024 * 1024


def _lend_back() -> None:
    """Give this thread's connection back to the pool before it waits for another thread, which may need one.

    Where all connections were held by threads that wait so, the one that writes for them would never get one.
    """
    if connection.connection is not None and not connection.in_atomic_block:
        connection.close()


@dataclass
class _Ticket(Generic[Call, Outcome]):
    """One waiting call: woken with its outcome, or with the batch it has to write."""

    call: Call
    woken: threading.Event = field(default_factory=threading.Event)
    outcome: Outcome | None = None
    refusal: Exception | None = None
    batch: "list[_Ticket[Call, Outcome]] | None" = None


class Gatherer(Generic[Call, Outcome]):
    """Writes what its threads bring, a key holder's calls together, in the order in which they came.

    `record` takes a key's digest and calls and returns an outcome for each; `size` says how many bytes a call has.
    """

    def __init__(
        self, record: Callable[[bytes, Sequence[Call]], Sequence[Outcome]], *, size: Callable[[Call], int]
    ) -> None:
        self._record = record
        self._size = size
        self._lock = threading.Lock()
        # A key stands here while a thread writes for it; its list holds those who came meanwhile.
        self._waiting: dict[bytes, list[_Ticket[Call, Outcome]]] = {}

    def record(self, key_hash: bytes, call: Call) -> Outcome:
        """What became of the call. Raises what `record` raises for it."""
        ticket: _Ticket[Call, Outcome] = _Ticket(call)
        with self._lock:
            if key_hash in self._waiting:
                self._waiting[key_hash].append(ticket)
            else:
                self._waiting[key_hash] = []
                ticket.batch = [ticket]
                ticket.woken.set()
        if not ticket.woken.is_set():
            _lend_back()
        ticket.woken.wait()
        if ticket.batch is not None:
            self._write(key_hash, ticket.batch)
        if ticket.refusal is not None:
            raise ticket.refusal
        if ticket.outcome is None:
            # The batch failed for one of them; each finds out alone whether it was the one.
            return self._record(key_hash, [call])[0]
        return ticket.outcome

    def _write(self, key_hash: bytes, batch: list[_Ticket[Call, Outcome]]) -> None:
        try:
            outcomes = self._record(key_hash, [ticket.call for ticket in batch])
            for ticket, outcome in zip(batch, outcomes, strict=True):
                ticket.outcome = outcome
        except (UnknownKey, MayNotRecord) as refusal:
            for ticket in batch:
                ticket.refusal = refusal
        except Exception:
            if len(batch) == 1:
                raise
        finally:
            self._hand_over(key_hash)
            for ticket in batch[1:]:
                ticket.woken.set()

    def _hand_over(self, key_hash: bytes) -> None:
        """The first of those who came meanwhile writes for all of them."""
        with self._lock:
            queue = self._waiting[key_hash]
            if not queue:
                del self._waiting[key_hash]
                return
            batch = [queue[0]]
            size = self._size(queue[0].call)
            for ticket in queue[1:MOST]:
                size += self._size(ticket.call)
                if size > MOST_BYTES:
                    break
                batch.append(ticket)
            del queue[: len(batch)]
        batch[0].batch = batch
        batch[0].woken.set()
