"""What workers do for search. Only the sweeper sends `due.search`; running any of it twice does no harm."""

from celery import shared_task
from django.db import connection

from memory.embed import key_of
from memory.recall import vectors
from memory.tenants import due


@shared_task(name="due.search")
def read_and_embed(*, tenant_id: str, due_id: str) -> None:
    """Bring what search reads of a team up to date, unless somebody is at it."""
    claim = due.claim(tenant_id, due_id)
    if claim is not None:
        vectors.work(claim, vectors.maker())


@shared_task(name="recall.find_due")
def find_due() -> int:
    """Make it due for each team in which something changed, or whose vectors another model made; gives how many."""
    maker = vectors.maker()
    with connection.cursor() as cursor:
        cursor.execute("SELECT search_due(%s)", [key_of(maker) if maker else ""])
        return int(cursor.fetchone()[0])
