"""`manage.py scan_secrets`: secrets in what notes say and said, found by today's rules, and blanked when asked to."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory import purging, redact
from memory.notes.holding import by_person, locked
from memory.notes.models import Note, Proposal, Revision
from memory.notes.publish import digest, publish, sources_of
from memory.tenants import audit
from memory.tenants.access import Actor, command_actor
from memory.tenants.models import Tenant
from memory.tenants.people import tenant_by_slug
from memory.tenants.rls import tenant_scope

TAKEN_OUT = "[taken out: it held a secret]"


class Command(BaseCommand):
    help = (
        "Look for secrets in notes, their history and proposals: what was stored before a rule knew it. With --redact"
        " current notes are written without them and the words of old revisions go; ids and hashes stay."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--redact", action="store_true")

    def handle(self, *, tenant: str, **options: Any) -> None:
        pk = tenant_by_slug(tenant)
        if pk is None:
            raise CommandError(f"There is no team {tenant!r}.")
        with tenant_scope(pk):
            by = command_actor(Tenant.objects.get(pk=pk), "manage.py scan_secrets")
            notes = self.notes(by, is_redacted=options["redact"])
            old = self.revisions(by, is_redacted=options["redact"])
            proposals = self.proposals(is_redacted=options["redact"])
        verb = "taken out of" if options["redact"] else "found in"
        self.stdout.write(f"Secrets {verb} {notes} notes, {old} revisions, {proposals} proposals")

    def notes(self, by: Actor, *, is_redacted: bool) -> int:
        found = 0
        for note in Note.objects.present().select_related("current").iterator():
            assert note.current is not None, "asked for above"  # noqa: S101
            clean = redact.clean_text(note.current.text)
            if not clean.redactions:
                continue
            found += 1
            self.stdout.write(f"{note.public_id} {note.space}/{note.path}: {clean.redactions}")
            if is_redacted:
                held = locked(note)
                publish(held, by_person(clean.value, by), sources=sources_of(held))
        return found

    def revisions(self, by: Actor, *, is_redacted: bool) -> int:
        found = 0
        for revision in Revision.objects.filter(blanked_at=None).iterator():
            said = "\n".join((revision.text, revision.title, revision.description, revision.reason))
            if redact.has_secret(said):
                found += 1
                self.stdout.write(f"{revision.public_id} revision {revision.number}")
                if is_redacted:
                    purging.blank(revision, TAKEN_OUT)
                    audit.record(by, "note.redact", revision.public_id, before=bytes(revision.sha256).hex())
        return found

    def proposals(self, *, is_redacted: bool) -> int:
        found = 0
        for proposal in Proposal.objects.all().iterator():
            clean = redact.clean_text(proposal.text)
            if clean.redactions:
                found += 1
                self.stdout.write(f"{proposal.public_id} {proposal.state}")
                if is_redacted:
                    proposal.text = clean.value
                    # A decided one keeps the hash of what was decided; an open one is shown, and decided, anew.
                    proposal.sha256 = digest(clean.value) if proposal.state == "open" else proposal.sha256
                    proposal.save(update_fields=["text", "sha256"])
        return found
