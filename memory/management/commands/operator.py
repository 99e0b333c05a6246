"""Who runs the server."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from memory.ops import teams


class Command(BaseCommand):
    help = "Make a person an operator: the pages under /operator/ open to them. Without an address, say who is one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", nargs="?", help="the e-mail address of somebody who has an account")
        parser.add_argument("--remove", action="store_true", help="they are one no longer")

    def handle(self, *args: Any, email: str | None, remove: bool, **options: Any) -> None:
        if email is None:
            for user in teams.operators():
                self.stdout.write(user.email)
            return
        try:
            changed = teams.appoint(email, by=teams.command("operator"), is_operator=not remove)
        except teams.Refused as why:
            raise CommandError(str(why)) from why
        said = "is no operator" if remove else "is an operator"
        self.stdout.write(
            f"{email} {said}{' now' if changed and not remove else ' any more' if changed else ' already'}."
        )
        if not remove:
            self.stdout.write(f"Their pages: {settings.PUBLIC_URL}{reverse('operator')}")
