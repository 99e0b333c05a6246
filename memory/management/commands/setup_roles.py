"""`manage.py setup_roles`: the SQL a DBA runs once on a PostgreSQL server of their own."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from memory.management import roles
from memory.management.postgres import DATABASE


class Command(BaseCommand):
    help = "Print the SQL that makes roles, database, extensions and queue; a superuser runs it by psql."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--database", default=DATABASE, help=f"name of the database ({DATABASE})")

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(roles.psql_script(options["database"]))
