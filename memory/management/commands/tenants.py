"""The teams of the server."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from memory.ops import teams


class Command(BaseCommand):
    help = "List the teams: members, events, notes, last activity, and whether they are suspended or to be deleted."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object a line")

    def handle(self, *args: Any, **options: Any) -> None:
        for team in teams.on_server():
            row = {
                "slug": team.slug,
                "name": team.name,
                "tenant_id": team.public_id,
                "state": team.state,
                "members": team.members,
                "events": team.events,
                "notes": team.notes,
                "active_at": team.active_at and team.active_at.isoformat(timespec="seconds"),
                "delete_at": team.delete_at and team.delete_at.isoformat(timespec="seconds"),
            }
            if options["json"]:
                self.stdout.write(json.dumps(row))
                continue
            goes = f", goes at {row['delete_at']}" if team.delete_at else ""
            self.stdout.write(
                f"{team.slug}: {team.state}{goes}; {team.members} members, {team.events} events, {team.notes} notes,"
                f" last active {row['active_at'] or 'never'}"
            )
