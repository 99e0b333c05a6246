"""Room on the disk: what is written when there is almost none is refused while refusing is still clean.

PostgreSQL that finds no room for its log ends itself, and nothing can be read then either. So agents' writes are
refused while a reserve is left, and people's when a quarter of that is. What is there stays readable, and nothing that
was acknowledged is lost: clients keep what was refused and send it again.
"""

import os
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from django.conf import settings

from memory import problems

LOOKED_AT: Final = 2.0
WRITES: Final = frozenset({"POST", "PUT", "PATCH"})
# What asks by POST and keeps nothing, and what frees room or lets somebody in to free it.
READS: Final = ("/api/v1/cache/tools/lookup", "/api/v1/cache/analyses/lookup", "/api/v1/cache/semantic/lookup")
Application = Callable[[dict[str, Any], Any], Iterable[bytes]]
_seen: list[Any] = [-1e9, None]


def free_bytes() -> int | None:
    """Free bytes where the embedded database lies; None where the database is elsewhere."""
    if settings.EMBEDDED is None and not settings.WATCHED_FOLDER:
        return None
    now = time.monotonic()
    if now - _seen[0] > LOOKED_AT:
        try:
            told = os.statvfs(settings.WATCHED_FOLDER or settings.DATA_HOME)
            _seen[1] = told.f_bavail * told.f_frsize
        except OSError:
            _seen[1] = None
        _seen[0] = now
    free: int | None = _seen[1]
    return free


def refusal(method: str, path: str) -> problems.Problem | None:
    """The problem a write meets while there is no room for it."""
    if method not in WRITES:
        return None
    free = free_bytes()
    if free is None or free >= settings.RESERVE_BYTES or path.startswith(READS):
        return None
    if not path.startswith(("/api/", "/mcp")) and free >= settings.RESERVE_BYTES // 4:
        return None
    return problems.disk_full()


class Roomy:
    """A WSGI application that refuses writes while there is no room, before anything of them is read."""

    def __init__(self, application: Application) -> None:
        self.application = application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        problem = refusal(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        if problem is None:
            return self.application(environ, start_response)
        return problems.answered(start_response, problem)
