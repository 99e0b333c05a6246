"""A worker process that waits for too many bodies ends itself.

A client that sends half a body and sleeps holds a thread of the server for as long as its connection lives, and the
server has no timeout for bodies. Enough sleeping laptops would leave no thread. A worker whose threads mostly wait
ends, and the server starts another in half a second; what was in flight was not acknowledged, and is sent again.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

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
        environ["wsgi.input"] = _Body(environ["wsgi.input"], self)
        return self.application(environ, start_response)

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

    def read(self, *args: Any) -> bytes:
        return self._patient.read(self._body.read, *args)

    def readline(self, *args: Any) -> bytes:
        return self._patient.read(self._body.readline, *args)

    def readlines(self, *args: Any) -> list[bytes]:
        return list(self._body.readlines(*args))

    def __iter__(self) -> Any:
        return iter(self._body)


def end_worker() -> None:
    """End this process at once; its supervisor starts another."""
    logging.shutdown()
    os._exit(3)
