"""Make a team and its owner."""

import json
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from memory.tenants.access import DEFAULT_SCOPES, SCOPES
from memory.tenants.people import InvalidTeam, found_team


class Command(BaseCommand):
    help = "Make a team and its owner. Prints a login link and an agent key, once; safe to run again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the team's short name in addresses, e.g. acme")
        parser.add_argument("--owner", required=True, help="the owner's e-mail address")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--new-link", action="store_true", help="make another login link for the owner")
        parser.add_argument("--new-key", action="store_true", help="make another agent key for the owner")
        parser.add_argument(
            "--scopes",
            default=",".join(DEFAULT_SCOPES),
            help="what the key opens, with commas; of " + ", ".join(SCOPES),
        )
        parser.add_argument(
            "--project",
            action="append",
            default=[],
            metavar="SLUG",
            help="the key works in this project only; give it once for each",
        )
        parser.add_argument("--migrate", action="store_true", help="bring the schema up to date first, as its owner")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["migrate"]:
            call_command("migrate", interactive=False, stdout=self.stderr)
        scopes = [scope.strip() for scope in options["scopes"].split(",")]
        if not set(scopes) <= set(SCOPES):
            raise CommandError(f"--scopes takes {', '.join(SCOPES)}, with commas.")
        try:
            founded = found_team(
                options["slug"],
                owner=options["owner"],
                new_link=options["new_link"],
                new_key=options["new_key"],
                scopes=scopes,
                projects=options["project"],
            )
        except InvalidTeam as exc:
            raise CommandError(str(exc)) from exc
        answer = {
            "tenant": founded.tenant.slug,
            "tenant_id": founded.tenant.public_id,
            "login_url": founded.login_url,
            "agent_key": founded.agent_key,
        }
        if options["json"]:
            self.stdout.write(json.dumps(answer))
            return
        self.stdout.write(f"Team {answer['tenant']} ({answer['tenant_id']})")
        self.stdout.write(f"Login link of the owner, once: {founded.login_url or 'unchanged; --new-link makes one'}")
        self.stdout.write(f"Agent key, shown once: {founded.agent_key or 'unchanged; --new-key makes one'}")
