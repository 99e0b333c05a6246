"""What the short lanes share: a plain call is answered before Django makes a request of it.

Request, signals, resolver and response cost as much as the row itself. Whatever is not plain goes the long way, where
the views have the answers.
"""

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Final

from django.db import connection

from memory import ids, logs
from memory.tenants.door import PAGE_POLICY, DatabaseAway, away
from memory.tenants.rls import seeing

Environment = dict[str, Any]
Application = Callable[[Environment, Any], Iterable[bytes]]
Headers = Iterable[tuple[str, str]]
# Status line, body, headers of its own.
Answer = tuple[str, bytes, Headers]

JSON: Final = (("Content-Type", "application/json"),)


class Lane(ABC):
    """A WSGI application that takes plain calls of its doors itself and hands everything else on."""

    def __init__(self, application: Application) -> None:
        self.application = application

    def __call__(self, environ: Environment, start_response: Any) -> Iterable[bytes]:
        with seeing(None):
            return self.answered(environ, start_response)

    @abstractmethod
    def answered(self, environ: Environment, start_response: Any) -> Iterable[bytes]:
        """The answer, of this lane or of what stands behind it."""

    def written(
        self, environ: Environment, start_response: Any, *, size: int, taken: Callable[[bytes], Answer | None]
    ) -> Iterable[bytes]:
        """Read a body of `size` bytes and answer as `taken(body)` says; None sends it the long way."""
        body = environ["wsgi.input"].read(size)
        request_id = ids.new_key()
        try:
            with logs.of_request(request_id):
                answer = taken(body)
        except DatabaseAway as exc:
            # Not the long way: whether it was stored is not known, and what has no key would be stored again.
            said = away(exc)
            answer = f"{said.status_code} {said.reason_phrase}", said.content, said.items()
        finally:
            # Some of it is done on Django's own connection.
            if connection.connection is not None and not connection.in_atomic_block:
                connection.close()
        if answer is None:
            environ["wsgi.input"] = io.BytesIO(body)
            return self.application(environ, start_response)
        return sent(start_response, answer, request_id)


def plain_size(environ: Environment, *, most: int) -> int | None:
    """How many bytes a plain body has; None for one that must go the long way."""
    size = environ.get("CONTENT_LENGTH") or ""
    if not size.isdecimal() or "HTTP_TRANSFER_ENCODING" in environ:
        return None
    return int(size) if int(size) <= most else None


def sent(start_response: Any, answer: Answer, request_id: str) -> Iterable[bytes]:
    """Send an answer with the headers that every answer carries."""
    status, text, said = answer
    headers = [
        *said,
        ("X-Request-Id", request_id),
        ("Content-Security-Policy", PAGE_POLICY),
        ("Cache-Control", "no-store"),
        ("Content-Length", str(len(text))),
    ]
    start_response(status, headers)
    return [text]
