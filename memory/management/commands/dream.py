"""`manage.py dream`: a team's dream, in this process."""

import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dream import run as dreams
from dream.models import Run
from dream.replay import differences
from memory.llm import UnknownModel
from memory.notes.diff import unified
from memory.tenants.access import command_actor
from memory.tenants.models import Tenant
from memory.tenants.people import tenant_by_slug
from memory.tenants.rls import tenant_scope


class Command(BaseCommand):
    help = (
        "Read what a team's agents did since the last dream, up to now, and propose notes. With --replay: read what"
        " another dream read by another model or prompt, and only show how that differs."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="the team's slug")
        parser.add_argument("--replay", default="", metavar="DREAM", help="the id of a dream that has ended: a dry run")
        parser.add_argument("--model", default="", help="of the dry run: a model, or distill")
        parser.add_argument("--prompt", type=Path, help="of the dry run: a file with the instructions")

    def handle(self, *args: Any, tenant: str, **options: Any) -> None:
        pk = tenant_by_slug(tenant)
        if pk is None:
            raise CommandError(f"There is no team {tenant!r}.")
        began = time.monotonic()
        dry = self._dry(str(pk), **options)
        try:
            by = command_actor(Tenant(pk=pk), "manage.py dream")
            claim = dreams.start_and_claim(Tenant(pk=pk), by=by, dry=dry)
        except UnknownModel as why:
            raise CommandError(str(why)) from None
        except dreams.AlreadyRunning as running:
            raise CommandError(f"A dream of this team waits or runs: {running}.") from None
        done = dreams.perform(claim)
        if done is None:
            raise CommandError("Another process took the dream over.")
        self._report(done, time.monotonic() - began)
        if dry is not None:
            self._compare(done)
        if done.state == "failed":
            raise CommandError(f"{done.public_id} failed: {done.error}")

    def _dry(self, pk: str, *, replay: str, model: str, prompt: Path | None, **options: Any) -> dreams.Dry | None:
        if not replay:
            if model or prompt:
                raise CommandError("--model and --prompt are of a dry run: name the dream with --replay.")
            return None
        try:
            instructions = prompt.read_text() if prompt else ""
        except OSError as why:
            raise CommandError(f"{prompt} can't be read: {why.strerror}.") from None
        with tenant_scope(pk):
            of = Run.objects.filter(public_id=replay, replays__isnull=True).first()
        if of is None or of.state in ("queued", "running"):
            raise CommandError(f"There is no dream {replay!r} of this team that has ended.")
        return dreams.Dry(of, model, instructions)

    def _compare(self, run: Run) -> None:
        with tenant_scope(str(run.tenant_id)):
            for row in differences(run):
                self.stdout.write(f"  {row.outcome:<10} {row.path}")
                self.stdout.write(unified(row.before, row.after, names=("dream", "dry run")), ending="")

    def _report(self, run: Run, seconds: float) -> None:
        mind = f"{run.mind} ({run.model})" if run.model else f"{run.mind} (rules, no model)"
        self.stdout.write(
            f"{run.public_id}: {run.state}. Read {_counted(run.events_read, 'event')}"
            f" of {_counted(run.sessions_read, 'session')}"
            f" by {mind} in {seconds:.1f} s."
        )
        if run.tokens_in:
            cost = f" ${run.cost:.4f}." if run.cost else ""
            self.stdout.write(f"Tokens: {run.tokens_in} in ({run.tokens_cached} cached), {run.tokens_out} out.{cost}")
        with tenant_scope(str(run.tenant_id)):
            made = run.changes.select_related("proposal__note__member").order_by("proposal__note__path_key", "id")
            for proposal in (change.proposal for change in made if change.proposal):
                note = proposal.note
                self.stdout.write(f"  {proposal.public_id}  {proposal.operation:<6} {note.space}/{note.path}")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
