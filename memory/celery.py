"""Celery: a clock that sweeps what is due, and workers that do it.

The broker may lose everything: what is due is rows (`tenants.Due`), and the clock has them sent again. No request
sends a task; it commits a row. Without CELERY_BROKER_URL the broker is the same PostgreSQL, by kombu's pgmq transport.
"""

import atexit
import logging
import os
import socket
import sys
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory.settings")
django.setup()  # before the models below: a worker starts here, not in manage.py

from celery import Celery, signals
from django.conf import settings
from django.db import transaction

from memory import logs
from memory.management import postgres
from memory.settings import EMBEDDED, LIVELY_CONNECTION, LIVELY_SESSION, database, text
from memory.tenants import due

# A sweep that waited this long is worthless: the next ones are in the queue behind it.
STALE_AFTER = 3
# A broker that is out of reach is found out as the database is (settings.LIVELY_CONNECTION), and not after hours.
LIVELY = {
    "socket_connect_timeout": 10,
    "socket_keepalive": True,
    "socket_keepalive_options": {
        getattr(socket, name): value
        for name, value in (
            ("TCP_KEEPIDLE", 10),
            ("TCP_KEEPINTVL", 5),
            ("TCP_KEEPCNT", 3),
            ("TCP_USER_TIMEOUT", 20_000),
        )
        if hasattr(socket, name)  # not all of them are everywhere
    },
}
# Redis sends a task again that was not acknowledged for this long; longer than the longest dream.
VISIBLE_AFTER = 3600


def broker() -> dict[str, Any]:
    """Celery's settings of the broker."""
    url = settings.CELERY_BROKER_URL
    if url and not url.startswith("pgmq:"):
        restore = {"visibility_timeout": VISIBLE_AFTER, "unacked_restore_interval": 10, "unacked_restore_throttle": 1}
        return {"broker_url": url, "broker_transport_options": {**restore, **LIVELY}}
    source = queue_database(url)
    return {
        "broker_url": postgres.broker_url(source),
        "broker_transport_options": postgres.broker_options(source),
    }


def queue_database(url: str) -> Any:
    """The embedded server or connection parameters of the queue in PostgreSQL."""
    if not urlsplit(url).netloc and EMBEDDED is not None:
        return EMBEDDED
    named = url.replace("pgmq:", "postgres:", 1) if urlsplit(url).netloc else text("BROKER_DATABASE_URL")
    return database(named or settings.DATABASE_URL) | LIVELY_CONNECTION | {"options": LIVELY_SESSION}


app = Celery("memory")
app.conf.update(
    **broker(),
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    timezone="UTC",
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    # Its queue's name is too long for pgmq, and polling it starves the tasks: measured.
    worker_enable_remote_control=False,
    task_serializer="json",
    accept_content=["json"],
    task_default_queue="memory",
    worker_hijack_root_logger=False,
    beat_max_loop_interval=1,
    beat_schedule={
        "sweep": {
            "task": "memory.sweep",
            "schedule": timedelta(seconds=settings.SWEEP_SECONDS),
            "options": {"expires": STALE_AFTER * settings.SWEEP_SECONDS},
        },
        "dream_due": {"task": "dream.find_due", "schedule": timedelta(minutes=1), "options": {"expires": 60}},
        "sessions_due": {"task": "events.find_due", "schedule": timedelta(seconds=5), "options": {"expires": 5}},
        "retention_due": {"task": "ops.find_due", "schedule": timedelta(hours=1), "options": {"expires": 600}},
        "removal_due": {"task": "ops.remove_due", "schedule": timedelta(minutes=10), "options": {"expires": 600}},
        "garden_due": {"task": "garden.find_due", "schedule": timedelta(minutes=10), "options": {"expires": 600}},
        "usage_due": {"task": "cache.find_due", "schedule": timedelta(minutes=1), "options": {"expires": 60}},
        "search_due": {"task": "recall.find_due", "schedule": timedelta(seconds=10), "options": {"expires": 10}},
    },
)
app.autodiscover_tasks(
    [
        "memory.tenants",
        "memory.graph",
        "memory.events",
        "memory.notes",
        "memory.recall",
        "cache_admin",
        "dream",
        "memory.ops",
    ]
)


def _leave(**_: object) -> None:
    """End this process now that celery has put everything away: to take the interpreter apart, which may be 3 s on a
    busy machine, nobody has a use for.
    """
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)


signals.task_prerun.connect(lambda task, task_id, **_: logs.task_begins(task.name, task_id), weak=False)
signals.task_postrun.connect(lambda **_: logs.task_begins("", ""), weak=False)
signals.worker_shutdown.connect(_leave, weak=False)
# Registered first, so it runs after all others.
signals.beat_init.connect(lambda **_: atexit.register(_leave), weak=False)


@app.task(name="memory.sweep")
def sweep() -> int:
    """Send what is due, all teams; gives how many. If the broker refuses, the rows are as they were."""
    with transaction.atomic():
        rows = due.sweep()
        for row in rows:
            app.send_task(f"due.{row.task}", kwargs={"tenant_id": row.tenant_pk, "due_id": row.pk})
    return len(rows)
