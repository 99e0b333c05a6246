"""manage.py import_threads: threads of a forge, kept as files, taken in as its webhooks would have told them."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError

from memory.events import working
from memory.graph.webhooks import archive
from memory.tenants.people import tenant_by_slug


class Command(BaseCommand):
    help = (
        "Take in files of GitHub's events, one JSON object a line: "
        '{"event": "pull_request", "ts": "2026-01-01T00:00:00Z", "payload": {…}}. Safe to run twice.'
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files or folders")
        parser.add_argument("--tenant", required=True, metavar="SLUG")

    def handle(self, *, paths: list[Path], tenant: str, **_: Any) -> None:
        missing = [str(path) for path in paths if not path.exists()]
        if missing:
            raise CommandError(f"There is no {', '.join(missing)}.")
        found = tenant_by_slug(tenant)
        if found is None:
            raise CommandError(f"There is no team {tenant!r}.")
        self.show(archive.take(found, paths, step=self.step))
        made = working.catch_up(found)
        why = "" if made else ": no session names a thread that is here and has no worker yet"
        self.stdout.write(f"{made} workers made of sessions, of the threads they worked on{why}")
        self.stdout.write(f"Look at them: {settings.PUBLIC_URL}/t/{tenant}/threads/?state=any")

    def step(self, done: int, total: int) -> None:
        """A bar on a terminal; nothing in a log."""
        if sys.stderr.isatty():
            filled = 30 * done // total
            end = "\n" if done == total else ""
            self.stderr.write(f"\r[{'#' * filled}{'.' * (30 - filled)}] {done}/{total} files", ending=end)
            self.stderr.flush()

    def show(self, report: archive.Report) -> None:
        self.stdout.write(
            f"{report.files} files: {report.new} new events in {len(report.threads)} threads, "
            f"{report.repeated} there before"
        )
        for skipped in report.skipped:
            self.stdout.write(f"skipped {skipped}")
