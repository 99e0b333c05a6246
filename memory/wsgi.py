"""The WSGI application that granian serves. It refuses a database role that row level security does not bind."""

import logging
import os

import django
from django.conf import settings

from memory.management.child import tied_to_parent
from memory.management.processes import THREADS
from memory.patience import Gathered, Patient, cut_off, end_worker

# Where the supervisor and its guard are killed in one moment, this process must still not outlive them.
tied_to_parent()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory.settings")
django.setup(set_prefix=False)

from memory.graph.lane import GraphLane
from memory.hooks.lane import HookLane
from memory.ops.room import Roomy
from memory.ops.traffic import Counted
from memory.wire import Application, Forwarded, Handler, Whole

# Of a worker's threads so many work at once: each holds a connection to the database. The others wait for bodies.
lanes = Gathered(
    Whole(HookLane(GraphLane(Handler()))),
    running=24,
    largest=settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
    room=256 * 1024 * 1024,
)
application: Application = Counted(
    Patient(Roomy(lanes), most=12, seconds=20, threads=THREADS, cut=cut_off, end=end_worker)
)
if settings.TRUSTED_PROXIES:
    # Who asks, and whether by https, is what the proxy says: HSTS, the strict half of CSRF, the audit and the guard
    # against guessing go by it.
    application = Forwarded(application, settings.TRUSTED_PROXIES)

from django.db import OperationalError

from memory.tenants.rls import require_bound_role

try:
    require_bound_role()
except OperationalError as exc:
    # A database that is away for a moment must not keep the web server down: /readyz tells, and every request asks.
    logging.getLogger(__name__).warning("the database does not answer yet: %s", exc)

from memory import warm

warm.soon()
