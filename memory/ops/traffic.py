"""Counts every request by its route, whichever lane answers it, for `/metrics`.

The counters of all web processes lie in small files that each process maps (PROMETHEUS_MULTIPROC_DIR), so that any of
them can answer for all. Without that folder a process knows its own requests only.
"""

import re
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from prometheus_client import Counter, Histogram

ROUTE: Final = "team_memory.route"
REQUESTS = Counter("team_memory_requests", "Requests by route, method and status.", ["route", "method", "status"])
SECONDS = Histogram(
    "team_memory_request_seconds",
    "Time from the request's head to the answer's, by route and method.",
    ["route", "method"],
    buckets=(0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)
METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
# What the short lanes answer before Django has a route for it.
_LANES: Final = (
    (re.compile(r"/api/v1/hooks/[^/]+/?$"), "api/v1/hooks/<str:client>"),
    (re.compile(r"/api/v1/triggers/?$"), "api/v1/triggers"),
    (re.compile(r"/api/v1/triggers/[^/]+/?$"), "api/v1/triggers/<str:trigger_id>"),
    (re.compile(r"/api/v1/threads/[^/]+/?$"), "api/v1/threads/<str:thread_id>"),
    (re.compile(r"/api/v1/threads/[^/]+/events/?$"), "api/v1/threads/<str:thread_id>/events"),
)
# A child of a metric costs a lock and a tuple to find; there are as many as routes.
_requests: dict[tuple[str, str, str], Counter] = {}
_seconds: dict[tuple[str, str], Histogram] = {}
Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


class Counted:
    """A WSGI application that counts and times what another answers."""

    def __init__(self, application: Application) -> None:
        self.application = application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        began = time.perf_counter()
        said = ["500"]

        def started(status: str, *rest: Any) -> Any:
            said[0] = status[:3]
            return start_response(status, *rest)

        try:
            return self.application(environ, started)
        finally:
            count(route_of(environ), environ["REQUEST_METHOD"], said[0], time.perf_counter() - began)


def route_of(environ: dict[str, Any]) -> str:
    """The pattern of the address, never the address: it holds ids and names."""
    route = environ.get(ROUTE)
    if route is not None:
        return str(route) or "/"
    path = environ["PATH_INFO"]
    if path.startswith("/static/"):
        return "static"
    return next((name for pattern, name in _LANES if pattern.match(path)), "none")


def count(route: str, method: str, status: str, seconds: float) -> None:
    """One answered request."""
    method = method if method in METHODS else "OTHER"
    counter = _requests.get((route, method, status))
    if counter is None:
        counter = _requests[route, method, status] = REQUESTS.labels(route, method, status)
    timer = _seconds.get((route, method))
    if timer is None:
        timer = _seconds[route, method] = SECONDS.labels(route, method)
    counter.inc()
    timer.observe(seconds)
