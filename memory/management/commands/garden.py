"""`manage.py garden`: the gardener's look through a team's notes, in this process."""

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dream import garden
from dream.models import Gardening
from memory.notes.findings import LABELS
from memory.notes.models import Finding
from memory.tenants.access import command_actor
from memory.tenants.models import Tenant
from memory.tenants.people import tenant_by_slug
from memory.tenants.rls import tenant_scope


class Command(BaseCommand):
    help = (
        "Look through a team's notes: which say the same, contradict each other, are too long, were told to nobody, or"
        " rest on a file that changed. Labels them, and proposes to delete what stands whole elsewhere; edits nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="the team's slug")

    def handle(self, *args: Any, tenant: str, **options: Any) -> None:
        pk = tenant_by_slug(tenant)
        if pk is None:
            raise CommandError(f"There is no team {tenant!r}.")
        began = time.monotonic()
        by = command_actor(Tenant(pk=pk), "manage.py garden")
        try:
            done = garden.perform(garden.start_and_claim(Tenant(pk=pk), by=by), asked_by=by.label)
        except garden.AlreadyRunning:
            done = None
        if done is None:
            raise CommandError("A worker is at it already.")
        self._report(done, time.monotonic() - began)

    def _report(self, run: Gardening, seconds: float) -> None:
        self.stdout.write(
            f"{run.public_id}: read {run.notes_read} notes in {seconds:.1f} s; {run.found} new findings,"
            f" {run.proposed} of them proposals, {run.gone} no longer hold."
        )
        if run.tokens_in:
            cost = f" ${run.cost:.4f}." if run.cost else ""
            self.stdout.write(f"Tokens: {run.tokens_in} in ({run.tokens_cached} cached), {run.tokens_out} out.{cost}")
        for line in filter(None, run.told.split("\n")):
            self.stdout.write(line)
        with tenant_scope(str(run.tenant_id)):
            rows = Finding.objects.standing().select_related("note__member").order_by("kind", "note__path_key", "pk")
            for row in rows:
                self.stdout.write(f"  {LABELS[row.kind][0]:<16} {row.note.space}/{row.note.path}: {row.words}")
