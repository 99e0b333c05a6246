"""A way back in for who lost theirs."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memory.tenants import factors, keys
from memory.tenants.access import command_actor
from memory.tenants.people import address, membership_of, record_in_teams
from memory.tenants.rls import tenant_scope


class Command(BaseCommand):
    help = "Print a one-time login link for a member of a team, whatever their role."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", help="the person's e-mail address")
        parser.add_argument(
            "--without-codes",
            action="store_true",
            help="ask for no codes of an app any more: they are lost",
        )
        parser.add_argument("--tenant", help="the team's slug, where the person is in several")

    def handle(self, *args: Any, email: str, tenant: str | None, without_codes: bool, **options: Any) -> None:
        found = membership_of(address(email) or "", slug=tenant)
        if found is None:
            raise CommandError(f"{email} is in no team" + (f" called {tenant!r}." if tenant else "."))
        if without_codes and factors.turn_off(found.user):
            record_in_teams(found.user, "factor.codes_off", after="by manage.py login_link")
        with tenant_scope(str(found.tenant_id)):
            by = command_actor(found.tenant, "manage.py login_link")
            self.stdout.write(keys.make_login_link(found, by=by))
