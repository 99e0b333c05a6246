"""What workers do for dreams and for the gardener. Only the sweeper sends `due.…`; running any of it twice does no
harm.
"""

from celery import shared_task
from django.conf import settings
from django.db import connection

from dream import garden, run
from memory.tenants import due


@shared_task(name="due.dream")
def dream(*, tenant_id: str, due_id: str) -> None:
    """Carry out the dream that is due, unless somebody has it."""
    claim = due.claim(tenant_id, due_id)
    if claim is not None:
        run.perform(claim)


@shared_task(name="dream.find_due")
def find_due() -> int:
    """Make a dream due for each team that has something to dream; gives how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT dream_due(make_interval(hours => %s), make_interval(hours => %s))",
            [settings.IDLE_HOURS, settings.DREAM_EVERY_HOURS],
        )
        return int(cursor.fetchone()[0])


@shared_task(name="due.garden")
def look(*, tenant_id: str, due_id: str) -> None:
    """Look through a team's notes, unless somebody is at it."""
    claim = due.claim(tenant_id, due_id)
    if claim is not None:
        garden.perform(claim)


@shared_task(name="garden.find_due")
def find_gardens() -> int:
    """Make a look due for each team that had none for so long; gives how many."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT garden_due(make_interval(hours => %s))", [settings.GARDEN_EVERY_HOURS])
        return int(cursor.fetchone()[0])
