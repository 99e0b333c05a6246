"""Delete a team and all that is its."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memory.management.teams import changed
from memory.ops import teams


class Command(BaseCommand):
    help = "Suspend a team and delete all of it after TEAM_MEMORY_DELETE_GRACE_DAYS, in which it can be kept."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the team's short name")
        parser.add_argument("--yes", action="store_true", help="it is meant")
        parser.add_argument("--now", action="store_true", help="no days of grace: it is gone when this ends")

    def handle(self, *args: Any, slug: str, yes: bool, now: bool, **options: Any) -> None:
        if not yes:
            raise CommandError("This deletes the team and everything in it. Add --yes; --now leaves no way back.")
        at = changed(slug, lambda team: teams.mark(team, by=teams.command("delete_tenant"), at_once=now))
        if now:
            if slug not in teams.remove_due():
                raise CommandError(f"{slug} is marked, and another process is removing it: see manage.py tenants.")
            self.stdout.write(f"{slug} is gone. Backups made before still hold it.")
            return
        self.stdout.write(f"{slug} is suspended and goes at {at:%Y-%m-%d %H:%M} UTC.")
        self.stdout.write(f"Until then it can be kept: manage.py resume_tenant {slug} --keep")
