"""Making a revision the note's current text: its number, its sources, and the open proposals that must follow."""

import hashlib
from dataclasses import dataclass
from itertools import chain

from django.db.models import Max

from memory import ids
from memory.events.models import Project
from memory.notes import lines, paths
from memory.notes.frontmatter import Document, InvalidFrontmatter, split
from memory.notes.models import Note, Proposal, Revision, Source
from memory.notes.risks import Risk, loaded, stored
from memory.sentences import sentence
from memory.tenants.models import Member


@dataclass(frozen=True)
class Author:
    """Who wrote a text: a member, an agent key, a dream run or a command."""

    kind: str
    id: str
    label: str


@dataclass(frozen=True)
class Version:
    """What a new revision says, by whom, and why."""

    text: str
    author: Author
    tier: int
    approved_by: Member | None
    reason: str = ""


def digest(text: str) -> bytes:
    """The SHA-256 of a text: what a reviewer's form sends back as `shown`."""
    return hashlib.sha256(text.encode()).digest()


def publish(note: Note, version: Version, *, sources: list[Source]) -> Revision:
    """Append a revision and make it current. The caller holds the note's row lock.

    `sources` are candidates: those whose line stands in the text are copied. Open proposals are put on top of it.
    """
    last = note.revisions.aggregate(last=Max("number"))["last"] or 0
    document = _document(version.text)
    revision = Revision.objects.create(
        tenant_id=note.tenant_id,
        note=note,
        number=last + 1,
        text=version.text,
        sha256=digest(version.text),
        title=title_of(document, note.path),
        description=document.field("description")[:300],
        kind=document.field("kind")[:40],
        tier=version.tier,
        reason=version.reason,
        author_kind=version.author.kind,
        author_id=version.author.id,
        author_label=version.author.label[:200],
        approved_by=version.approved_by,
    )
    if note.deleted_at:
        # Who writes to a deleted path opens it again, for dreams too.
        note.tombstones.filter(line__isnull=True).delete()
    note.current, note.deleted_at = revision, None
    note.project = project_of(note)
    note.save(update_fields=["current", "deleted_at", "project"])
    _copy_sources(revision, sources)
    for proposal in note.proposals.open().select_related("base"):
        _rebase(proposal, revision)
    return revision


def title_of(document: Document, path: str) -> str:
    """The frontmatter's title, else the first heading, else the file's name."""
    if document.field("title"):
        return document.field("title")[:300]
    for line in document.body.split("\n"):
        if lines.HEADING.match(line):
            return line.lstrip("#").strip()[:300]
    return path.rsplit("/", 1)[-1].removesuffix(".md")


def project_of(note: Note) -> Project | None:
    """The project that the note's path names, where it stands after merges; None for any other path."""
    slug = paths.project_slug(paths.NotePath(note.path, note.path_key))
    project = Project.objects.filter(slug=slug).select_related("merged_into").first() if slug else None
    while project is not None and project.merged_into is not None:
        project = project.merged_into
    return project


def sources_of(note: Note) -> list[Source]:
    """What the lines of the current revision rest on."""
    return list(note.current.sources.order_by("position", "pk")) if note.current else []


def positions(text: str) -> dict[str, int]:
    """Each line of a text and the number of its first appearance."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        found.setdefault(line, number)
    return found


def supersede(proposal: Proposal, *, reason: str) -> None:
    """Take an open proposal out of the queue; its row and text stay."""
    Proposal.objects.open().filter(pk=proposal.pk).update(state="superseded", decision_reason=reason)


def _document(text: str) -> Document:
    try:
        return split(text)
    except InvalidFrontmatter:
        return Document(None, "", text)


def _copy_sources(revision: Revision, candidates: list[Source]) -> None:
    place = positions(revision.text)
    copies: dict[tuple[str, str], Source] = {}
    for source in candidates:
        if source.line in place:
            copies.setdefault(
                (source.line, str(source.event_id)),
                Source(
                    id=ids.new_key(),
                    tenant_id=revision.tenant_id,
                    revision=revision,
                    event_id=source.event_id,
                    line=source.line,
                    position=place[source.line],
                    tier=source.tier,
                ),
            )
    Source.objects.bulk_create(copies.values())


def _rebase(proposal: Proposal, revision: Revision) -> None:
    """Put an open proposal on top of the new text, so that approving it never undoes what was just let in.

    Its hash changes with its text: a reviewer who still has the old one on the screen is told that it is stale.
    """
    if proposal.operation != "write":
        merged = lines.Merged(revision.text)
    else:
        merged = lines.merge(proposal.base.text if proposal.base else "", revision.text, proposal.text)
    if proposal.operation == "write" and merged.text == revision.text:
        supersede(proposal, reason=sentence("Revision %(number)s says it already.", number=revision.number))
        return
    kept = [risk for risk in loaded(proposal.risks) if risk.code != "gave_way"]
    if merged.gave_way:
        gone = "; ".join(merged.gave_way)[:300]
        kept.append(Risk("gave_way", "low", sentence("The note changed meanwhile; left out: %(lines)s", lines=gone)))
    Proposal.objects.open().filter(pk=proposal.pk).update(
        base=revision, text=merged.text, sha256=digest(merged.text), risks=stored(kept), seen_by=None
    )


def all_sources(*groups: list[Source]) -> list[Source]:
    """Several texts' sources as candidates for one."""
    return list(chain(*groups))
