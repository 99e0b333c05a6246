"""Calls that arrive while one is being written go in together: one transaction, one wait for the disk.

The events of a session are ordered under its row's lock, which is held until the commit is on disk. Written one by one,
parallel calls of a session would each wait for the one before; so the thread that writes leaves those that wait to the
next one, which takes them all. Nobody waits for company: a call that is alone is written at once.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from memory.events.record import Arrival, MayNotRecord, Recorded, UnknownKey

MOST: Final = 64
MOST_BYTES: Final = 4 * 1024 * 1024


@dataclass
class _Ticket:
    """One waiting call: woken with its outcome, or with the batch it has to write."""

    arrival: Arrival
    woken: threading.Event = field(default_factory=threading.Event)
    row: Recorded | None = None
    refusal: Exception | None = None
    batch: "list[_Ticket] | None" = None


class Gatherer:
    """Writes what its threads bring, a key holder's calls together, in the order in which they came."""

    def __init__(self, record: Callable[[bytes, Sequence[Arrival]], list[Recorded]]) -> None:
        self._record = record
        self._lock = threading.Lock()
        # A key stands here while a thread writes for it; its list holds those who came meanwhile.
        self._waiting: dict[bytes, list[_Ticket]] = {}

    def record(self, key_hash: bytes, arrival: Arrival) -> Recorded:
        """The stored event. Raises what `record` raises for it."""
        ticket = _Ticket(arrival)
        with self._lock:
            if key_hash in self._waiting:
                self._waiting[key_hash].append(ticket)
            else:
                self._waiting[key_hash] = []
                ticket.batch = [ticket]
                ticket.woken.set()
        ticket.woken.wait()
        if ticket.batch is not None:
            self._write(key_hash, ticket.batch)
        if ticket.refusal is not None:
            raise ticket.refusal
        if ticket.row is None:
            # The batch failed for one of them; each finds out alone whether it was the one.
            return self._record(key_hash, [arrival])[0]
        return ticket.row

    def _write(self, key_hash: bytes, batch: list[_Ticket]) -> None:
        try:
            rows = self._record(key_hash, [ticket.arrival for ticket in batch])
            for ticket, row in zip(batch, rows, strict=True):
                ticket.row = row
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
            size = len(queue[0].arrival.body)
            for ticket in queue[1:MOST]:
                size += len(ticket.arrival.body)
                if size > MOST_BYTES:
                    break
                batch.append(ticket)
            del queue[: len(batch)]
        batch[0].batch = batch
        batch[0].woken.set()
