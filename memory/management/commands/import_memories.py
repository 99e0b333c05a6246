"""`manage.py import_memories`: what other tools remember, as proposals that wait for a person."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.notes import foreign, review, rules
from memory.notes.holding import LostUpdate
from memory.notes.paths import InvalidPath
from memory.notes.review import Draft, InvalidNote
from memory.tenants.access import command_actor
from memory.tenants.models import Tenant
from memory.tenants.people import tenant_by_slug
from memory.tenants.rls import tenant_scope


class Command(BaseCommand):
    help = (
        "Propose CLAUDE.md, AGENTS.md, Cursor rules and folders of markdown as notes. Nothing is told before a person"
        " approved it. The same again proposes nothing new."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files or folders")
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--project", default="", metavar="SLUG", help="put the notes below project/SLUG/")

    def handle(self, *, paths: list[Path], tenant: str, project: str, **_: Any) -> None:
        missing = [str(path) for path in paths if not path.exists()]
        if missing:
            raise CommandError(f"There is no {', '.join(missing)}.")
        pk = tenant_by_slug(tenant)
        if pk is None:
            raise CommandError(f"There is no team {tenant!r}.")
        made = sum(self.propose(pk, file, root, project) for root in paths for file in foreign.files_in(root))
        self.stdout.write(f"{made} proposals wait for a person")

    def propose(self, tenant_pk: str, file: Path, root: Path, project: str) -> bool:
        base = root if root.is_dir() else root.parent
        try:
            found = foreign.read(file, root=base, project=project)
            with tenant_scope(tenant_pk):
                tenant = Tenant.objects.get(pk=tenant_pk)
                by = command_actor(tenant, "manage.py import_memories")
                if tenant.proposals.filter(note__path_key=found.path, text=found.text).exists():
                    return False
                draft = Draft(found.path, found.text, reason=f"Imported from {file.name}.")
                proposal = review.propose(tenant, draft, by=by)
        except (foreign.Unreadable, InvalidNote, InvalidPath, rules.Locked, LostUpdate, OSError) as error:
            self.stdout.write(f"left out {file}: {error}")
            return False
        if proposal is not None:
            self.stdout.write(f"{proposal.public_id} {found.path}")
        return proposal is not None
