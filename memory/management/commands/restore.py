"""`manage.py restore FILE`: puts a backup in the place of the database's content, whole or not at all."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.management import dump
from memory.management.home import Refused


class Command(BaseCommand):
    help = (
        "Restore a backup into an empty database; --force replaces what is there. One transaction: if it fails, "
        "everything stays as it was. The roles must exist; the embedded database has them, setup_roles prints them."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--force", action="store_true", help="replace the data that is there")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            dump.restore(options["file"], force=options["force"])
        except Refused as why:
            raise CommandError(str(why)) from None
        self.stdout.write(f"{options['file']} is restored. `manage.py start` brings its schema up to date.")
