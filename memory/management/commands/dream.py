"""`manage.py dream`: a team's dream, in this process."""

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dream import run as dreams
from dream.models import Run
from memory.tenants.access import command_actor
from memory.tenants.models import Tenant
from memory.tenants.people import tenant_by_slug
from memory.tenants.rls import tenant_scope


class Command(BaseCommand):
    help = "Read what a team's agents did since the last dream, up to now, and propose notes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="the team's slug")

    def handle(self, *args: Any, tenant: str, **options: Any) -> None:
        pk = tenant_by_slug(tenant)
        if pk is None:
            raise CommandError(f"There is no team {tenant!r}.")
        began = time.monotonic()
        try:
            claim = dreams.start_and_claim(Tenant(pk=pk), by=command_actor(Tenant(pk=pk), "manage.py dream"))
        except dreams.AlreadyRunning as running:
            raise CommandError(f"A dream of this team waits or runs: {running}.") from None
        done = dreams.perform(claim)
        if done is None:
            raise CommandError("Another process took the dream over.")
        self._report(done, time.monotonic() - began)
        if done.state == "failed":
            raise CommandError(f"{done.public_id} failed: {done.error}")

    def _report(self, run: Run, seconds: float) -> None:
        mind = f"{run.mind} ({run.model})" if run.model else f"{run.mind} (rules, no model)"
        self.stdout.write(
            f"{run.public_id}: {run.state}. Read {_counted(run.events_read, 'event')}"
            f" of {_counted(run.sessions_read, 'session')}"
            f" by {mind} in {seconds:.1f} s."
        )
        if run.tokens_in:
            self.stdout.write(f"Tokens: {run.tokens_in} in ({run.tokens_cached} cached), {run.tokens_out} out.")
        with tenant_scope(str(run.tenant_id)):
            made = run.changes.select_related("proposal__note__member").order_by("proposal__note__path_key", "id")
            for proposal in (change.proposal for change in made if change.proposal):
                note = proposal.note
                self.stdout.write(f"  {proposal.public_id}  {proposal.operation:<6} {note.space}/{note.path}")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
