"""manage.py import_sessions: a team's existing history, from hook logs, transcripts and rollouts."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError

from memory.events import working
from memory.hooks import history
from memory.tenants.models import Member, Tenant
from memory.tenants.people import tenant_by_slug
from memory.tenants.rls import tenant_scope


class Command(BaseCommand):
    help = "Take in hook logs, transcripts (~/.claude/projects), rollouts (~/.codex/sessions). Safe to run twice."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files or folders")
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--as", dest="handle", metavar="HANDLE", help="the member whose sessions these are")

    def handle(self, *, paths: list[Path], tenant: str, handle: str | None, **_: Any) -> None:
        missing = [str(path) for path in paths if not path.exists()]
        if missing:
            raise CommandError(f"There is no {', '.join(missing)}.")
        found = tenant_by_slug(tenant)
        if found is None:
            raise CommandError(f"There is no team {tenant!r}.")
        team = Tenant(pk=found, slug=tenant)
        report = history.import_paths(team, paths, member=self.member(team, handle), step=self.step)
        self.show(report)
        made = working.catch_up(str(team.pk))
        why = "" if made else ": no session names a thread that is here and has no worker yet"
        self.stdout.write(f"{made} workers made of sessions, of the threads they worked on{why}")
        self.next(team, has_new=bool(report.new_sessions))

    def next(self, team: Tenant, *, has_new: bool) -> None:
        """Where what came in can be seen, and how it becomes notes."""
        pages = f"{settings.PUBLIC_URL}/t/{team.slug}"
        self.stdout.write(f"Look at them: {pages}/sessions/")
        if has_new:
            self.stdout.write(
                f"Next: uv run manage.py dream --tenant {team.slug}, or “Dream now” on {pages}/dreams/. A dream reads"
                f" them and proposes notes; decide on those in the inbox: {pages}/"
            )

    def member(self, team: Tenant, handle: str | None) -> Member | None:
        if handle is None:
            return None
        with tenant_scope(str(team.pk)):
            found = team.members.filter(handle=handle, removed_at__isnull=True).first()
        if found is None:
            raise CommandError(f"{team.slug} has no member {handle!r}.")
        return found

    def step(self, done: int, total: int) -> None:
        """A bar on a terminal; nothing in a log."""
        if sys.stderr.isatty():
            filled = 30 * done // total
            end = "\n" if done == total else ""
            self.stderr.write(f"\r[{'#' * filled}{'.' * (30 - filled)}] {done}/{total} files", ending=end)
            self.stderr.flush()

    def show(self, report: history.Report) -> None:
        for kind, taken in report.taken.items():
            if taken.files:
                self.stdout.write(
                    f"{kind}s: {taken.files} files, {taken.sessions} sessions ({taken.attached} attached), "
                    f"{taken.new} new events, {taken.repeated} there before, {taken.known} told by the other source"
                )
        for skipped in report.skipped:
            self.stdout.write(f"skipped {skipped.path}: {skipped.why}")
        self.stdout.write(f"{report.new_sessions} new sessions")
