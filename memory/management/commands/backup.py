"""`manage.py backup FILE`: the whole database but the queue, by pg_dump as the backup role."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.management import dump
from memory.management.home import Refused


class Command(BaseCommand):
    help = "Write a backup of everything but the task queue to FILE, as one consistent moment."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--force", action="store_true", help="replace FILE if it exists")

    def handle(self, *args: Any, **options: Any) -> None:
        file: Path = options["file"]
        if file.exists() and not options["force"]:
            raise CommandError(f"{file} exists. Choose another name, or replace it with --force.")
        try:
            dump.backup(file)
        except Refused as why:
            raise CommandError(str(why)) from None
        self.stdout.write(f"{file}: {file.stat().st_size:,} bytes. Restore with: manage.py restore {file}")
