"""What workers do for notes. Only the sweeper sends `due.news`; running any of it twice does no harm."""

import time
from typing import Final

from celery import shared_task

from memory.notes import news
from memory.tenants import due

# One task does many pieces: an import proposes hundreds of notes at once, and each is one.
_AT_IT: Final = 20.0


@shared_task(name="due.news")
def tell(*, tenant_id: str, due_id: str) -> None:
    """Spread or tell the news that is due, then the rest of the team's."""
    until = time.monotonic() + _AT_IT
    claim = due.claim(tenant_id, due_id)
    while claim is not None:
        news.perform(claim)
        claim = due.next_of(tenant_id, news.TASK) if time.monotonic() < until else None
