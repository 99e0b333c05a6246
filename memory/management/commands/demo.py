"""`manage.py demo`: a team with a small real history, so that every page has something true to show."""

import hashlib
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from dream import run as dreams
from memory.events import working
from memory.graph.webhooks import archive
from memory.hooks import history
from memory.notes import reading, review
from memory.ops import demo as demo_data
from memory.tenants.access import command_actor, member_actor
from memory.tenants.models import Member, Tenant
from memory.tenants.people import InvalidTeam, found_team
from memory.tenants.rls import tenant_scope

DATA: Final = Path(next(iter(demo_data.__path__)))
APPROVED: Final = 3


class Command(BaseCommand):
    help = "Make a team of real sessions and threads, dream once, approve a few notes. Safe to run again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", nargs="?", default="demo", help="the team (demo)")
        parser.add_argument("--owner", default="owner@localhost", help="its owner's e-mail address (owner@localhost)")

    def handle(self, *args: Any, slug: str, owner: str, **options: Any) -> None:
        try:
            founded = found_team(slug, owner=owner)
        except InvalidTeam as why:
            raise CommandError(str(why)) from None
        pk = str(founded.tenant.pk)
        with tenant_scope(pk):
            member = Member.objects.select_related("user", "tenant").get(tenant=founded.tenant, user__email=owner)
        taken = history.import_paths(founded.tenant, [DATA / "sessions"], member=member, step=_quiet)
        threads = archive.take(pk, [DATA / "threads"], step=_quiet)
        working.catch_up(pk)
        approved = _approve(member) if self._dream(founded.tenant) else 0
        self.stdout.write(
            f"Team {slug}: {taken.new_sessions} new sessions, {threads.new} new events in {len(threads.threads)}"
            f" threads, {approved} notes approved."
        )
        if founded.login_url:
            self.stdout.write(f"Login link of {owner}, once: {founded.login_url}")

    def _dream(self, tenant: Tenant) -> bool:
        """False where nothing is left to read."""
        with tenant_scope(str(tenant.pk)):
            if tenant.dreams.filter(state__in=("succeeded", "no_change")).exists():
                return False
        try:
            claim = dreams.start_and_claim(tenant, by=command_actor(tenant, "manage.py demo"))
        except dreams.AlreadyRunning:
            return False  # a worker has it; what it proposes waits in the inbox
        done = dreams.perform(claim)
        return done is not None and done.state == "succeeded"


def _approve(member: Member) -> int:
    """Let the harmless ones in, and leave the rest for a person to decide."""
    # In the owner's place, and the audit says by what.
    actor = replace(member_actor(member), label="manage.py demo")
    with tenant_scope(actor.tenant_pk):
        some = [proposal for group in reading.groups(actor, most=APPROVED) for proposal in group.proposals][-APPROVED:]
        for proposal in some:
            review.approve(proposal, by=actor, shown=hashlib.sha256(proposal.text.encode()).hexdigest())
    return len(some)


def _quiet(done: int, total: int) -> None:
    """Nobody waits long enough to want a bar."""
