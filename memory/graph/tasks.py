"""What workers do for the id graph. Only the sweeper sends `due.graph_links`; running it twice does no harm."""

import time
from datetime import timedelta
from typing import Final

from celery import shared_task

from memory.graph import linking
from memory.tenants import due
from memory.tenants.rls import tenant_scope

# One task makes the links of many triggers, or the sweeper would send each of a large batch by itself.
_AT_IT: Final = 30.0
_LONGEST_WAIT: Final = 3600


@shared_task(name="due.graph_links")
def make_links(*, tenant_id: str, due_id: str) -> None:
    """Make the links of a trigger, then of the others of the team that wait."""
    until = time.monotonic() + _AT_IT
    claim = due.claim(tenant_id, due_id)
    while claim is not None:
        _make(claim)
        claim = due.next_of(tenant_id, linking.TASK) if time.monotonic() < until else None


def _make(claim: due.Claim) -> None:
    is_linked = linking.is_linked(claim.tenant_pk, claim.argument)
    with tenant_scope(claim.tenant_pk):
        if is_linked:
            due.done(claim)
        else:
            due.postpone(claim, timedelta(seconds=min(2**claim.attempts, _LONGEST_WAIT)))
