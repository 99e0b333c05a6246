"""`manage.py doctor`: what is wrong with this installation, and how to mend it."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

SIGNS = {"ok": "ok  ", "warn": "warn", "bad": "BAD "}


class Command(BaseCommand):
    help = "Look at database, roles, schema, queue, workers, disk, clock, address, backup and logs. Changes nothing."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON array")

    def handle(self, *args: Any, **options: Any) -> None:
        from memory.management import doctor  # with it the queue's client, which other commands need not load

        found = doctor.checks()
        if options["json"]:
            self.stdout.write(json.dumps([asdict(one) for one in found]))
        else:
            for one in found:
                self.stdout.write(f"{SIGNS[one.state]} {one.name:<11}{one.told}")
                if one.fix and one.state != "ok":
                    self.stdout.write(f"     {'':<11}→ {one.fix}")
        bad = [one.name for one in found if one.state == "bad"]
        if bad:
            raise CommandError(f"To mend: {', '.join(bad)}.")
