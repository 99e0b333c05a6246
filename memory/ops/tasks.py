"""What workers do for retention. Only the sweeper sends `due.retention`; running any of it twice does no harm."""

from datetime import timedelta
from importlib import import_module
from typing import Final

from celery import shared_task
from django.conf import settings
from django.db import connection

from memory.ops import retention, teams
from memory.tenants import due

# A little under a day: a team's hour of the day does not wander.
EVERY: Final = timedelta(hours=23)


@shared_task(name="due.retention")
def retain(*, tenant_id: str, due_id: str) -> None:
    """Drop what a team's retention says, unless somebody is at it."""
    claim = due.claim(tenant_id, due_id)
    if claim is not None:
        retention.perform(claim)


@shared_task(name="ops.find_due")
def find_due() -> int:
    """Make it due for each team once a day, see to the months of bodies, and end logins that are over."""
    import_module(settings.SESSION_ENGINE).SessionStore.clear_expired()
    with connection.cursor() as cursor:
        cursor.execute("SELECT made, dropped FROM body_months()")
        cursor.execute("SELECT retention_due(make_interval(secs => %s))", [EVERY.total_seconds()])
        return int(cursor.fetchone()[0])


@shared_task(name="ops.remove_due")
def remove_due() -> list[str]:
    """Remove the teams whose days of grace are over; gives their slugs."""
    return teams.remove_due()
