"""Whether the audit is as it was written."""

from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError, CommandParser

from memory.settings import connection
from memory.tenants import audit
from memory.tenants.models import Tenant
from memory.tenants.people import tenant_by_slug
from memory.tenants.rls import tenant_scope


class Command(BaseCommand):
    help = "Check each team's audit chain for entries that were changed, removed or put in; ends with 1 if so."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", help="one team's slug; without it all teams are checked")

    def handle(self, *args: Any, tenant: str | None, **options: Any) -> None:
        teams = [self._one(tenant)] if tenant else _all()
        broken = 0
        for slug, pk in teams:
            with tenant_scope(pk):
                verified = audit.verify(Tenant(pk=pk))
            for one in verified.breaks:
                self.stdout.write(f"{slug}: entry {one.seq}: {one.why}")
            broken += bool(verified.breaks)
            said = f"broken at {len(verified.breaks)}" if verified.breaks else "whole"
            self.stdout.write(f"{slug}: {verified.entries} entries, {said}")
        if broken:
            raise CommandError(f"The audit of {broken} of {len(teams)} teams is not as it was written.", returncode=1)

    def _one(self, slug: str) -> tuple[str, str]:
        pk = tenant_by_slug(slug)
        if pk is None:
            raise CommandError(f"There is no team {slug!r}.")
        return slug, pk


def _all() -> list[tuple[str, str]]:
    """Every team, suspended ones too: as the backup role, since the app's own sees one team at a time."""
    with psycopg.connect(**connection("backup")) as backup:
        rows = backup.execute("SELECT slug, id FROM tenants_tenant ORDER BY slug").fetchall()
    return [(slug, str(pk)) for slug, pk in rows]
