"""`manage.py scan_secrets`: secrets in what a team has stored, found by today's rules, and taken out when asked to."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory import scrubbing
from memory.tenants.access import command_actor
from memory.tenants.models import Tenant
from memory.tenants.people import tenant_by_slug
from memory.tenants.rls import tenant_scope


class Command(BaseCommand):
    help = (
        "Look for secrets in notes, their history and proposals, in events, payloads, caches and dreams: what was"
        " stored before a rule knew it. With --redact current notes are written without them, the words of old"
        " revisions go, and stored payloads get stars; ids, hashes and sizes stay."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--redact", action="store_true")

    def handle(self, *, tenant: str, **options: Any) -> None:
        pk = tenant_by_slug(tenant)
        if pk is None:
            raise CommandError(f"There is no team {tenant!r}.")
        with tenant_scope(pk):
            team = Tenant.objects.get(pk=pk)
            by = command_actor(team, "manage.py scan_secrets")
            found = scrubbing.scan(team, by=by, is_redacted=options["redact"], say=self.stdout.write)
        verb = "taken out of" if options["redact"] else "found in"
        self.stdout.write(f"Secrets {verb} {', '.join(scrubbing.told(found))}")
