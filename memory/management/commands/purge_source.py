"""`manage.py purge_source`: what came from a key, a thread or a session, seen or taken out."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory import purging
from memory.problems import Problem
from memory.tenants.access import command_actor
from memory.tenants.models import Tenant
from memory.tenants.people import tenant_by_slug
from memory.tenants.rls import tenant_scope


class Command(BaseCommand):
    help = "List every note, proposal, cache entry and telling that came from a source; with --mode take them out."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("source", help="key_…, thr_… or ses_…")
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--mode", choices=["preview", *purging.MODES], default="preview")

    def handle(self, *, source: str, tenant: str, mode: str, **_: Any) -> None:
        pk = tenant_by_slug(tenant)
        if pk is None:
            raise CommandError(f"There is no team {tenant!r}.")
        with tenant_scope(pk):
            found = Tenant.objects.get(pk=pk)
            by = command_actor(found, "manage.py purge_source")
            try:
                report = purging.shown(purging.trace(found, source), by=by)
            except Problem as problem:
                raise CommandError(problem.detail) from None
            if mode != "preview":
                purging.take_out(found, source, mode=mode, by=by)
        self.stdout.write(json.dumps({"mode": mode, **report}, indent=2, ensure_ascii=False))
