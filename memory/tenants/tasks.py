"""What workers do for messages that leave the server. Only the sweeper sends `due.outgoing`."""

from celery import shared_task

from memory.tenants import due, outbox


@shared_task(name="due.outgoing")
def send(*, tenant_id: str, due_id: str) -> None:
    """Send the message that is due, unless somebody is at it."""
    claim = due.claim(tenant_id, due_id)
    if claim is not None:
        outbox.perform(claim)
