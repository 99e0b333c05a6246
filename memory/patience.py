"""Bodies that do not come, and bodies that nobody reads. A worker process that waits for too many ends itself.

A client that sends half a body and sleeps holds a thread of the server for as long as its connection lives, and the
server has no timeout for bodies. Enough sleeping laptops would leave no thread. A worker whose threads mostly wait
ends, and the server starts another in half a second; what was in flight was not acknowledged, and is sent again.

A refusal comes before the body is read. Many clients send all of it before they listen, and would hear a broken pipe in
the place of the reason: so the rest of a body is read and thrown away, up to a size.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

# What is thrown away of a body, and for how long at most: more than four times what any door takes is no mistake.
MOST_DRAINED: Final = 128 * 1024 * 1024
DRAINED_FOR: Final = 10.0
_PIECE: Final = 256 * 1024

log = logging.getLogger(__name__)
Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


class Patient:
    """A WSGI application that watches how long its requests wait for their bodies."""

    def __init__(self, application: Application, *, most: int, seconds: float, end: Callable[[], Any]) -> None:
        self.application = application
        self.most = most
        self.seconds = seconds
        self.end = end
        self._waiting: dict[int, float] = {}
        self._numbers = iter(range(1 << 62))
        threading.Thread(target=self._watch, daemon=True, name="patience").start()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        body = environ["wsgi.input"] = _Body(environ["wsgi.input"], self)
        answer = self.application(environ, start_response)
        # One in chunks is refused, and has no length: its end shows.
        length = str(MOST_DRAINED) if "HTTP_TRANSFER_ENCODING" in environ else environ.get("CONTENT_LENGTH") or "0"
        # Who expects to be told to go on has not sent anything yet.
        is_coming = body.taken > 0 or "HTTP_EXPECT" not in environ
        if is_coming and length.isdecimal() and body.taken < int(length) <= MOST_DRAINED:
            body.drain(int(length))
        return answer

    def read(self, source: Callable[..., bytes], *args: Any) -> bytes:
        """What `source` reads, timed."""
        number = next(self._numbers)
        self._waiting[number] = time.monotonic()
        try:
            return source(*args)
        finally:
            self._waiting.pop(number, None)

    def stuck(self) -> int:
        """How many requests have waited longer than they may."""
        late = time.monotonic() - self.seconds
        return sum(since < late for since in list(self._waiting.values()))

    def _watch(self) -> None:
        while True:
            time.sleep(self.seconds / 10)
            if (stuck := self.stuck()) >= self.most:
                log.error("%d requests wait for bodies that do not come: this worker makes way for a new one", stuck)
                self.end()
                return


class _Body:
    """The request's body; each read is timed."""

    def __init__(self, body: Any, patient: Patient) -> None:
        self._body = body
        self._patient = patient
        self.taken = 0

    def read(self, *args: Any) -> bytes:
        piece = self._patient.read(self._body.read, *args)
        self.taken += len(piece)
        return piece

    def readline(self, *args: Any) -> bytes:
        line = self._patient.read(self._body.readline, *args)
        self.taken += len(line)
        return line

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


def end_worker() -> None:
    """End this process at once; its supervisor starts another."""
    logging.shutdown()
    os._exit(3)
