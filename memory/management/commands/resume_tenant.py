"""Resume a suspended team."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from memory.management.teams import changed
from memory.ops import teams


class Command(BaseCommand):
    help = "Resume a suspended team; one that is to be deleted is kept, too, by --keep."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the team's short name")
        parser.add_argument("--keep", action="store_true", help="take its deletion back first")

    def handle(self, *args: Any, slug: str, keep: bool, **options: Any) -> None:
        by = teams.command("resume_tenant")
        if keep:
            changed(slug, lambda team: teams.keep(team, by=by))
        changed(slug, lambda team: teams.resume(team, by=by))
        self.stdout.write(f"{slug} is open again.")
