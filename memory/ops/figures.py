"""What `/metrics` says: requests, and what the database knows of lag, backlog, queue and caches. No team is named."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import connection
from django.utils.crypto import constant_time_compare
from prometheus_client import CollectorRegistry, generate_latest, multiprocess
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import REGISTRY

from memory.ops import room

# Several scrapers at once must not be several scans.
FRESH_SECONDS: Final = 5.0
# Name -> what it means, and the name of its label where it has one.
KNOWN: Final[dict[str, tuple[str, str]]] = {
    "ingest_lag_seconds": ("From an event's time to its arrival, last five minutes: middle and largest.", "of"),
    "spool_age_seconds": ("Oldest event that came out of a client's spool in the last five minutes.", ""),
    "readable_lag_seconds": ("From a write until search finds it, last hour's things: middle and largest.", "of"),
    "search_waiting": ("Changes that search has not read yet.", ""),
    "dream_backlog_events": ("Events that no dream has read.", ""),
    "dream_backlog_sessions": ("Sessions with events that no dream has read.", ""),
    "dreams": ("Dreams by state.", "state"),
    "due_rows": ("Work that waits for a worker, by task.", "task"),
    "due_held": ("Work that a worker holds, by task.", "task"),
    "due_wait_seconds": ("The longest that work which is due has waited.", ""),
    "cache_lookups": ("Questions to the caches in the last quarter of an hour, by outcome.", "status"),
    "cache_saved_tokens": ("Tokens that hits saved in the last quarter of an hour.", ""),
    "cache_bytes": ("Stored results.", ""),
    "payload_bytes": ("Payloads over 16 KB, as they lie on disk, by month.", "month"),
    "database_bytes": ("The whole database.", ""),
    "connections": ("Connections to the database, by role.", "role"),
    "proposals_waiting": ("Proposals that wait for a decision.", ""),
}
_lock = threading.Lock()
_kept: tuple[float, list[tuple[str, str, float]]] = (-1e9, [])


def measured() -> list[tuple[str, str, float]]:
    """Name, label and value of what the database knows; at most a few seconds old."""
    global _kept
    with _lock:
        at, rows = _kept
        if time.monotonic() - at > FRESH_SECONDS:
            with connection.cursor() as cursor:
                cursor.execute("SELECT name, label, value FROM service_figures()")
                rows = [(str(name), str(label), float(value)) for name, label, value in cursor.fetchall()]
            _kept = (time.monotonic(), rows)
        return rows


class _Database:
    """The measured figures, as prometheus_client asks for them."""

    def collect(self) -> Iterator[Any]:
        families: dict[str, GaugeMetricFamily] = {}
        for name, label, value in measured():
            told, kind = KNOWN[name]
            family = families.setdefault(
                name, GaugeMetricFamily(f"team_memory_{name}", told, labels=[kind] if kind else None)
            )
            family.add_metric([label] if kind else [], value)
        yield from families.values()
        free = room.free_bytes()
        if free is not None:
            yield GaugeMetricFamily("team_memory_disk_free_bytes", "Free space beside the data folder.", value=free)


def text() -> bytes:
    """The whole page in Prometheus' own form."""
    registry = CollectorRegistry()
    registry.register(_Database())
    own = generate_latest(registry)
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if folder and Path(folder).is_dir():
        shared = CollectorRegistry()
        multiprocess.MultiProcessCollector(shared, path=folder)  # type: ignore[no-untyped-call]
        return generate_latest(shared) + own
    return generate_latest(REGISTRY) + own


def may_read(meta: dict[str, Any]) -> int:
    """200 for who may read the figures, else the status to refuse with.

    With a token set, whoever presents it, from anywhere. Without one, only this machine itself: a request that a
    proxy passed on comes from elsewhere, although the proxy is here.
    """
    token = settings.METRICS_TOKEN
    if token:
        scheme, _, presented = str(meta.get("HTTP_AUTHORIZATION", "")).partition(" ")
        is_it = scheme.lower() == "bearer" and constant_time_compare(presented.strip(), token)
        return 200 if is_it else 401
    passed_on = any(meta.get(name) for name in ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP", "HTTP_VIA"))
    is_here = str(meta.get("REMOTE_ADDR", "")).removeprefix("::ffff:") in ("::1", "127.0.0.1")
    return 200 if is_here and not passed_on else 403
