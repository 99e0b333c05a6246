"""`manage.py sync_notes`: a folder and a space, kept in step both ways."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.notes import folders
from memory.tenants.access import command_actor, member_actor
from memory.tenants.models import Member, Tenant
from memory.tenants.people import tenant_by_slug
from memory.tenants.rls import tenant_scope


class Command(BaseCommand):
    help = (
        "Keep a folder (a git checkout) and a team's notes in step: what changed on one side goes to the other, what"
        " changed on both is merged, and what can't be merged becomes a proposal. Safe to run twice and to stop."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, metavar="DIR")
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--space", default="team", help="team (the default) or members/HANDLE")

    def handle(self, *, folder: Path, tenant: str, space: str, **_: Any) -> None:
        pk = tenant_by_slug(tenant)
        if pk is None:
            raise CommandError(f"There is no team {tenant!r}.")
        with tenant_scope(pk):
            found = Tenant.objects.get(pk=pk)
            member = self.member(found, space)
        by = member_actor(member) if member else command_actor(found, "manage.py sync_notes")
        try:
            steps = folders.sync(folder, found, member, by=by)
        except folders.BadFolder as error:
            raise CommandError(str(error)) from None
        for step in steps:
            self.stdout.write(f"{step.outcome:<9} {step.path}{f'  {step.detail}' if step.detail else ''}")
        self.stdout.write(f"{len(steps)} change{'s' * (len(steps) != 1)}" if steps else "In step already")

    def member(self, tenant: Tenant, space: str) -> Member | None:
        if space == "team":
            return None
        handle = space.removeprefix("members/")
        found = Member.objects.current().filter(tenant=tenant, handle=handle).first()
        if found is None or handle == space:
            raise CommandError(f"There is no space {space!r}: use team or members/HANDLE.")
        return found
