"""Bodies that do not come, and bodies that nobody reads. Who lets too many wait is cut off.

A client that sends half a body and sleeps holds a thread of the server for as long as its connection lives, and the
server has no timeout for bodies. So a body is gathered before its request holds anything but that thread
(`Gathered`), of which there are many; and an address whose bodies do not come, enough of them or while threads are
scarce, loses its connections. What was in flight on them was not acknowledged, and is sent again. Where that does not
help (all come by one proxy) the worker process ends, and the server starts another in half a second.

A refusal comes before the body is read. Many clients send all of it before they listen, and would hear a broken pipe in
the place of the reason: so the rest of a body is read and thrown away, up to a size.
"""

import io
import logging
import os
import socket
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memory import problems

# What is thrown away of a body, and for how long at most: more than four times what any door takes is no mistake.
MOST_DRAINED: Final = 128 * 1024 * 1024
DRAINED_FOR: Final = 10.0
# Each such piece may take as long as a wait may: from 3 KB/s a client is slow, below it sleeps.
_PIECE: Final = 64 * 1024
_WHOLE_BODY: Final = 15

log = logging.getLogger(__name__)
Application = Callable[[dict[str, Any], Any], Iterable[bytes]]
# Who connected, and to which of our ports.
Peer = tuple[str, int]


@dataclass(frozen=True)
class _Wait:
    """One read that has not come back: of whom, since when, and since when of the body's first."""

    peer: Peer
    since: float
    body_since: float


class Patient:
    """A WSGI application that watches how long its requests wait for their bodies.

    After `seconds` a read is late, and `most` late ones of an address are too many. Where half of the `threads` wait,
    a quarter of that time is enough, and a single one too many.
    """

    def __init__(
        self,
        application: Application,
        *,
        most: int,
        seconds: float,
        threads: int,
        cut: Callable[[Peer], Any],
        end: Callable[[], Any],
    ) -> None:
        self.application = application
        self.most = most
        self.seconds = seconds
        self.threads = threads
        self.cut = cut
        self.end = end
        self._waiting: dict[int, _Wait] = {}
        self._numbers = iter(range(1 << 62))
        threading.Thread(target=self._watch, daemon=True, name="patience").start()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        peer = environ.get("REMOTE_ADDR", ""), int(environ.get("SERVER_PORT") or 0)
        body = environ["wsgi.input"] = _Body(environ["wsgi.input"], self, peer)
        answer = self.application(environ, start_response)
        # One in chunks is refused, and has no length: its end shows.
        length = str(MOST_DRAINED) if "HTTP_TRANSFER_ENCODING" in environ else environ.get("CONTENT_LENGTH") or "0"
        # Who expects to be told to go on has not sent anything yet.
        is_coming = body.taken > 0 or "HTTP_EXPECT" not in environ
        if is_coming and length.isdecimal() and body.taken < int(length) <= MOST_DRAINED:
            body.drain(int(length))
        return answer

    def read(self, source: Callable[..., bytes], args: tuple[Any, ...], peer: Peer, body_since: float) -> bytes:
        """What `source` reads, timed."""
        number = next(self._numbers)
        self._waiting[number] = _Wait(peer, time.monotonic(), body_since)
        try:
            return source(*args)
        finally:
            self._waiting.pop(number, None)

    def late(self) -> Counter[Peer]:
        """How many reads of whom have waited longer than they may."""
        now, waits = time.monotonic(), list(self._waiting.values())
        patience = self.seconds / 4 if self._is_tight(len(waits)) else self.seconds
        return Counter(
            one.peer for one in waits if now - one.since > patience or now - one.body_since > _WHOLE_BODY * self.seconds
        )

    def _is_tight(self, waiting: int) -> bool:
        return waiting * 2 >= self.threads

    def _watch(self) -> None:
        was_late = 0
        while True:
            time.sleep(self.seconds / 20)
            late = self.late()
            if was_late * 4 >= self.threads * 3 <= late.total() * 4:
                log.error("%d requests wait for bodies that do not come: this worker makes way for a new one", was_late)
                self.end()
                return
            most = 1 if self._is_tight(len(self._waiting)) else self.most
            gone = [peer for peer, count in late.items() if count >= most]
            for peer in gone:
                log.warning("%d bodies from %s do not come: its connections are cut", late[peer], peer[0])
                self.cut(peer)
            was_late = late.total() if gone else 0


class _Body:
    """The request's body; each read is timed."""

    def __init__(self, body: Any, patient: Patient, peer: Peer) -> None:
        self._body = body
        self._patient = patient
        self._peer = peer
        self._since = time.monotonic()
        self.taken = 0

    def read(self, *args: Any) -> bytes:
        return self._timed(self._body.read, args)

    def readline(self, *args: Any) -> bytes:
        return self._timed(self._body.readline, args)

    def _timed(self, source: Callable[..., bytes], args: tuple[Any, ...]) -> bytes:
        piece = self._patient.read(source, args, self._peer, self._since)
        self.taken += len(piece)
        return piece

    def drain(self, length: int) -> None:
        """Read what is left of a body and throw it away."""
        until = time.monotonic() + DRAINED_FOR
        while self.taken < length and time.monotonic() < until and self.read(_PIECE):
            pass

    def readlines(self, *args: Any) -> list[bytes]:
        lines = list(self._body.readlines(*args))
        self.taken += sum(map(len, lines))
        return lines

    def __iter__(self) -> Any:
        for line in self._body:
            self.taken += len(line)
            yield line


class Gathered:
    """A WSGI application that is asked only when the body is here, and by `running` threads at once.

    Its work holds a connection to the database, of which there are few: eight uploads over a bad line would keep
    everybody else waiting for as long as they take. A body over `largest` bytes is refused by whoever it is for, by its
    length. Large ones that wait may take `room` bytes together.
    """

    def __init__(self, application: Application, *, running: int, largest: int, room: int) -> None:
        self.application = application
        self.largest = largest
        self.room = room
        self._running = threading.BoundedSemaphore(running)
        self._held = 0
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        length = environ.get("CONTENT_LENGTH") or "0"
        size = int(length) if length.isdecimal() and "HTTP_TRANSFER_ENCODING" not in environ else 0
        if size == 0 or size > self.largest:
            return self._answered(environ, start_response)
        if size <= _PIECE:
            environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(size))
            return self._answered(environ, start_response)
        return self._large(environ, start_response, size)

    def _answered(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        with self._running:
            return self.application(environ, start_response)

    def _large(self, environ: dict[str, Any], start_response: Any, size: int) -> Iterable[bytes]:
        source, held, pieces = environ["wsgi.input"], 0, []
        try:
            while held < size and (piece := source.read(min(_PIECE, size - held))):
                if not self._hold(len(piece)):
                    return problems.answered(start_response, problems.too_busy())
                held += len(piece)
                pieces.append(piece)
            environ["wsgi.input"] = io.BytesIO(b"".join(pieces))
            pieces.clear()
            return self._answered(environ, start_response)
        finally:
            self._hold(-held)

    def _hold(self, size: int) -> bool:
        with self._lock:
            if size > 0 and self._held + size > self.room:
                return False
            self._held += size
            return True


def cut_off(peer: Peer) -> None:
    """Shut every connection of this process that an address has to one of our ports: who reads from it reads its end.

    The server tells nobody which connection is whose, so they are found among the open files.
    """
    for name in os.listdir(_OPEN_FILES):
        with suppress(OSError):
            # Of a number that was closed since and given to another file, the copy tells what it is now.
            copy = os.dup(int(name))
            try:
                _cut_where(copy, *peer)
            finally:
                os.close(copy)


def _cut_where(file: int, address: str, port: int) -> None:
    if not stat.S_ISSOCK(os.fstat(file).st_mode):
        return
    found = socket.socket(fileno=file)
    try:
        is_ours = found.family in (socket.AF_INET, socket.AF_INET6) and found.getsockname()[1] == port
        if is_ours and found.getpeername()[0] == address:
            found.shutdown(socket.SHUT_RDWR)
    finally:
        found.detach()


_OPEN_FILES: Final = Path("/proc/self/fd") if Path("/proc/self/fd").exists() else Path("/dev/fd")


def end_worker() -> None:
    """End this process at once; its supervisor starts another."""
    logging.shutdown()
    os._exit(3)
