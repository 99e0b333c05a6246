"""What workers do for sessions. Only the sweeper sends `due.working`; running any of it twice does no harm."""

from celery import shared_task
from django.db import connection

from memory.events import working
from memory.tenants import due

# A session that has just spoken has more to say: its events are read together once it is quiet.
QUIET_SECONDS = 5


@shared_task(name="due.working")
def read_sessions(*, tenant_id: str, due_id: str) -> None:
    """Let a team's sessions be workers of what they work on, unless somebody is at it."""
    claim = due.claim(tenant_id, due_id)
    if claim is not None:
        working.perform(claim)


@shared_task(name="events.find_due")
def find_due() -> int:
    """Make it due for each team where a session has gone on, or what one waits for has come; gives how many."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT working_due(make_interval(secs => %s))", [QUIET_SECONDS])
        return int(cursor.fetchone()[0])
