"""Old secrets, stored before a rule knew them: found by today's rules in all that a team has, and taken out.

Ids, hashes, places and times stay. Words that people and pages read are written anew, with `[secret:…]` where it
was. Stored payloads are addressed by the hash of what came in, and read by line and byte: there, each byte of a secret
becomes a star, so that no offset and no size moves.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db import connection, models

from cache_admin.models import Analysis, AnalysisPath, Decision, EntryPath, Flight, Incident, Pair, Result
from cache_admin.models import Content as CachedText
from cache_admin.models import Entry as Cached
from dream.models import Change, Digest, Gardening, Quarantined, Run, SessionGist, Watermark, Window
from memory import purging, redact
from memory.events.models import Claim, Event, Project, ProjectRoot, Reading, Session
from memory.graph import bodies
from memory.graph.models import Answer, Body, Link, Part, Step, Thread, Trigger, Worker
from memory.graph.webhooks.models import Delivery, Endpoint
from memory.graph.webhooks.models import Mark as ThreadMark
from memory.notes.holding import by_person, locked
from memory.notes.models import Autosaved, Comment, Finding, Note, NoteReport, Proposal, Revision, Source, Tombstone
from memory.notes.publish import digest, publish, sources_of
from memory.recall import entries
from memory.recall.models import Entry as Searched
from memory.recall.models import NoteWords, Telling, ToldNote
from memory.redact import packed
from memory.tenants import audit
from memory.tenants.access import Actor
from memory.tenants.models import AuditEntry, Message, Setting, Tenant

TAKEN_OUT: Final = "[taken out: it held a secret]"
Say = Callable[[str], object]


@dataclass(frozen=True)
class Place:
    """Where words are kept: a table, its texts, and those of them that are addressed by their hash (`stored`)."""

    what: str
    model: type[models.Model]
    texts: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    # Who they are is said by these: changed, they would be something else. They are only told of.
    fixed: tuple[str, ...] = ()


PLACES: Final = (
    Place("sources", Source, ("line",)),
    Place("tombstones", Tombstone, ("line", "reason")),
    Place("reports", NoteReport, ("reason", "answer")),
    Place("comments", Comment, ("text",)),
    Place("findings", Finding, ("lines", "words", "answer")),
    Place("drafts", Autosaved, ("text", "path", "message")),
    Place("note paths", Note, fixed=("path",)),
    Place("sessions", Session, ("source", "cwd", "model", "transcript_path", "last_prompt")),
    Place("events", Event, ("summary", "tool", "agent_id", "tool_use_id"), ("body", "head", "tail"), ("key",)),
    Place("claims", Claim, fixed=("what", "key")),
    Place("readings", Reading, ("named", "home")),
    Place("projects", Project, ("name",)),
    Place("project roots", ProjectRoot, fixed=("place",)),
    Place("threads", Thread, ("title", "summary"), fixed=("key",)),
    Place("thread marks", ThreadMark, fixed=("mark", "key")),
    Place("links", Link, fixed=("to_key",)),
    Place("triggers", Trigger, ("summary",), fixed=("external_id", "idempotency_key")),
    Place("payloads", Part, stored=("content",)),
    Place("workers", Worker, ("task", "draft_report"), ("report", "report_head", "report_tail")),
    Place("webhooks", Endpoint, ("name",)),
    Place("deliveries", Delivery, ("detail", "delivery_id", "event")),
    Place("kept answers", Answer, ("body",)),
    Place("results", Result, ("summary",)),
    Place("cached texts", CachedText, stored=("content",)),
    Place("cache entries", Cached, ("document",)),
    Place("cached paths", EntryPath, ("path",)),
    Place("lookups under way", Flight, ("inputs", "document")),
    Place("analyses", Analysis, ("content", "made_by", "bound_path")),
    Place("analysed paths", AnalysisPath, ("path",)),
    Place("near pairs", Pair, ("asked", "matched")),
    Place("question decisions", Decision, ("asked", "matched")),
    Place("incidents", Incident, ("detail", "document")),
    Place("dreams", Run, ("error", "instructions")),
    Place("dream windows", Window, ("detail",)),
    Place("dream changes", Change, ("text", "old_text", "reason", "undo_detail")),
    Place("dream counts", Digest, ("state",)),
    Place("dream failures", Watermark, ("error",)),
    Place("quarantined events", Quarantined, ("error",)),
    Place("summaries of sessions", SessionGist, ("lines",)),
    Place("garden runs", Gardening, ("told",)),
    Place("tellings", Telling, ("text",)),
    Place("reasons to tell", ToldNote, ("why",)),
    Place("search texts", Searched, ("folded",)),
    Place("messages", Message, ("about", "error")),
    Place("settings", Setting, ("value",)),
    Place("audit entries", AuditEntry, fixed=("target", "before", "after", "actor_label")),
)


def scan(tenant: Tenant, *, by: Actor, is_redacted: bool, say: Say) -> dict[str, int]:
    """How many of each hold a secret, in the bound tenant; with `is_redacted` they are taken out. `say` gets a line for
    each. Running it again finds nothing but what only can be told of.
    """
    scrubber = _Scrubber(tenant, by, is_redacted, say)
    found = {
        "notes": scrubber.notes(),
        "revisions": scrubber.revisions(),
        "proposals": scrubber.proposals(),
        "steps": scrubber.steps(),
        "payload bodies": scrubber.bodies(),
        "note words": scrubber.note_words(),
        "questions": scrubber.questions(),
    }
    for place in PLACES:
        found[place.what] = scrubber.place(place)
    # What search keeps of a changed thing is made again: in lower case it is no secret to any rule.
    while is_redacted and entries.absorb(str(tenant.pk), entries.BATCH):
        pass
    return found


@dataclass(frozen=True)
class _Scrubber:
    tenant: Tenant
    by: Actor
    is_redacted: bool
    say: Say

    def place(self, place: Place) -> int:
        found = 0
        names = (*place.texts, *place.stored, *place.fixed)
        for row in place.model._base_manager.filter(tenant=self.tenant).iterator(500):
            changed: dict[str, Any] = {}
            for name in names:
                value = getattr(row, name)
                if value in (None, "", b"", [], {}):
                    continue
                clean = _masked(value, row) if name in place.stored else redact.clean(value).value
                if clean is not value and clean != value:
                    changed[name] = clean
                    self.say(
                        f"{_name(row)} {place.what}: {name}{' (it can only be told of)' if name in place.fixed else ''}"
                    )
            found += bool(changed)
            wanted = {name: _fit(row, name, value) for name, value in changed.items() if name not in place.fixed}
            if self.is_redacted and wanted:
                place.model._base_manager.filter(pk=row.pk, tenant=self.tenant).update(**wanted)
                audit.record(self.by, "secret.redact", _name(row), before=place.what, after=" ".join(sorted(wanted)))
        return found

    def notes(self) -> int:
        """What notes say now: a new revision without it."""
        found = 0
        for note in Note.objects.present().select_related("current").iterator():
            assert note.current is not None, "asked for above"  # noqa: S101
            clean = redact.clean_text(note.current.text)
            if not clean.redactions:
                continue
            found += 1
            self.say(f"{note.public_id} {note.space}/{note.path}: {clean.redactions}")
            if self.is_redacted:
                held = locked(note)
                publish(held, by_person(clean.value, self.by), sources=sources_of(held))
        return found

    def revisions(self) -> int:
        """What notes said: the whole text goes, since a revision's words are one thing."""
        found = 0
        for revision in Revision.objects.filter(blanked_at=None).iterator():
            if redact.has_secret("\n".join((revision.text, revision.title, revision.description, revision.reason))):
                found += 1
                self.say(f"{revision.public_id} revision {revision.number}")
                if self.is_redacted:
                    purging.blank(revision, TAKEN_OUT)
                    audit.record(self.by, "note.redact", revision.public_id, before=bytes(revision.sha256).hex())
        return found

    def proposals(self) -> int:
        found = 0
        for proposal in Proposal.objects.all().iterator():
            said = {name: getattr(proposal, name) for name in ("text", "reason", "decision_reason", "risks")}
            clean = redact.clean(said)
            if not clean.redactions:
                continue
            found += 1
            self.say(f"{proposal.public_id} {proposal.state}")
            if self.is_redacted:
                # A decided one keeps the hash of what was decided; an open one is shown, and decided, anew.
                text = clean.value["text"]
                sha = digest(text) if proposal.state == "open" else bytes(proposal.sha256)
                Proposal.objects.filter(pk=proposal.pk).update(**clean.value, sha256=sha)
                audit.record(self.by, "note.redact", proposal.public_id, before=bytes(proposal.sha256).hex())
        return found

    def steps(self) -> int:
        found = 0
        for step in Step.objects.filter(tenant=self.tenant).exclude(summary="").iterator():
            clean = redact.clean_text(step.summary)
            if clean.redactions:
                found += 1
                self.say(f"{step.public_id} steps: summary")
                if self.is_redacted:
                    with connection.cursor() as cursor:
                        cursor.execute("SELECT redact_step(%s, %s)", [step.public_id, clean.value])
        return found

    def bodies(self) -> int:
        """Payloads too large for their row, wherever they are kept."""
        found = 0
        keys = Body.objects.filter(tenant=self.tenant).values_list("sha256", "stored_on", "codec")
        for sha256, stored_on, codec in list(keys):
            raw = bodies.fetch(str(self.tenant.pk), bytes(sha256))
            masked = masked_bytes(raw) if raw else raw
            if raw is None or masked is None or masked == raw:
                continue
            found += 1
            self.say(f"{bytes(sha256).hex()} payload bodies: {len(raw)} bytes")
            if self.is_redacted:
                _replace(str(self.tenant.pk), bytes(sha256), stored_on, codec, masked)
                audit.record(self.by, "secret.redact", bytes(sha256).hex(), before="payload bodies")
        return found

    def questions(self) -> int:
        """What was asked of the semantic cache; a table without a model."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT id, asked FROM cache_admin_question WHERE tenant_id = %s", [str(self.tenant.pk)])
            found = [
                (pk, clean.value) for pk, asked in cursor.fetchall() if (clean := redact.clean_text(asked)).redactions
            ]
            for pk, asked in found if self.is_redacted else ():
                cursor.execute("UPDATE cache_admin_question SET asked = %s WHERE id = %s", [asked, pk])
        return len(found)

    def note_words(self) -> int:
        """What search reads of notes is made again from what they say."""
        found = 0
        for row in NoteWords.objects.all().iterator():
            if redact.has_secret("\n".join((row.folded, *row.words))):
                found += 1
                if self.is_redacted:
                    row.delete()
        return found


def masked_bytes(raw: bytes) -> bytes:
    """The bytes with stars for secrets, as many as it had."""
    masked, found = packed.masked_bytes(raw)
    if not found or len(masked) == len(raw):
        return masked
    # gzip, zlib and zip with stars inside are mostly shorter; NULs behind their end are read over.
    return masked.ljust(len(raw), b"\0") if len(masked) < len(raw) else b"*" * len(raw)


def _masked(value: Any, row: models.Model) -> Any:
    if isinstance(value, str):
        return redact.masked(value)
    raw = bytes(value)
    packed = getattr(row, "codec", "") == "zlib"
    content = zlib.decompress(raw) if packed else raw
    masked = masked_bytes(content)
    if masked == content:
        return value
    return zlib.compress(masked, 3) if packed else masked


def _fit(row: models.Model, name: str, value: Any) -> Any:
    """The value, no longer than its column."""
    longest = getattr(row._meta.get_field(name), "max_length", None)
    return value[:longest] if longest and isinstance(value, str) else value


def _name(row: models.Model) -> str:
    return str(getattr(row, "public_id", None) or getattr(row, "name", None) or row.pk)


def _replace(tenant_pk: str, sha256: bytes, stored_on: Any, codec: str, content: bytes) -> None:
    packed = zlib.compress(content, 3) if codec in ("zlib", "s3") else content
    if codec == "s3":
        storage, name = storages[bodies.STORAGE], bodies.name_of(tenant_pk, sha256)
        storage.delete(name)
        storage.save(name, ContentFile(packed))
        return
    Body.objects.filter(tenant_id=tenant_pk, sha256=sha256, stored_on=stored_on).update(content=packed)


def told(found: dict[str, int]) -> Iterator[str]:
    """`1 notes`, `2 revisions` …: notes, revisions and proposals always, others where there are some."""
    for what, count in found.items():
        if count or what in ("notes", "revisions", "proposals"):
            yield f"{count} {what}"
