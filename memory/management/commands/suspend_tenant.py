"""Suspend a team."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from memory.management.teams import changed
from memory.ops import teams


class Command(BaseCommand):
    help = "Suspend a team: its keys and pages are refused and nothing runs for it. Nothing is deleted."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the team's short name")
        parser.add_argument("--reason", default="", help="for the audit")

    def handle(self, *args: Any, slug: str, reason: str, **options: Any) -> None:
        changed(slug, lambda team: teams.suspend(team, by=teams.command("suspend_tenant"), reason=reason))
        self.stdout.write(f"{slug} is suspended. manage.py resume_tenant {slug} opens it again.")
