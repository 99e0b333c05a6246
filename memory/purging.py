"""Purge by source: everything that came from a key, a thread or a session, found, shown, and taken out.

A line is tainted where an event of the source backs it, or where a revision that the source wrote brought it. Notes
lose their tainted lines, or go. Tombstones stay, so that no dream brings a line back, and so does the record of which
sessions were told.
"""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import Max, Min, Q, QuerySet
from django.utils import timezone

from cache_admin.clean import unused_texts
from cache_admin.models import Analysis, Entry, Result
from dream import taint
from memory.events.models import Event, Session
from memory.graph.models import Thread, Worker
from memory.notes import blame, frontmatter, lines, reach
from memory.notes.burying import bury
from memory.notes.holding import by_person, locked
from memory.notes.models import Finding, Note, NoteReport, Proposal, Revision, Source
from memory.notes.publish import publish, sources_of, supersede
from memory.problems import not_found
from memory.recall.models import Telling
from memory.sentences import sentence
from memory.tenants import access, audit
from memory.tenants.access import Actor
from memory.tenants.models import AgentKey, Tenant

MODES: Final = ("quarantine", "purge")
MOST_LISTED: Final = 500
STORES_WITHIN: Final = timedelta(minutes=10)
_FIELD: Final = re.compile(r"(?:title|description)\s*:")
_NO_FIELDS: Final = re.compile(r"\A---\s*\n---\s*\n")
PURGED: Final = "[taken out: it came from a source that was purged]"


@dataclass(frozen=True)
class Tainted:
    """A note with lines from the source; `left` is what it says without them, None where nothing is left."""

    note: Note
    lines: tuple[str, ...]
    left: str | None


@dataclass(frozen=True)
class Trace:
    """All that came from a source."""

    source: str
    events: QuerySet[Event]
    notes: list[Tainted]
    revisions: list[Revision]
    proposals: list[Proposal]
    entries: QuerySet[Entry]
    results: QuerySet[Result]
    analyses: QuerySet[Analysis]
    tellings: list[Telling]
    reports: list[NoteReport]

    @property
    def counts(self) -> dict[str, int]:
        return {
            "events": self.events.count(),
            "notes": len(self.notes),
            "revisions": len(self.revisions),
            "proposals": len(self.proposals),
            "cache_entries": self.entries.count(),
            "results": self.results.count(),
            "analyses": self.analyses.count(),
            "tellings": len(self.tellings),
            "reports": len(self.reports),
            "sessions_told": len({telling.session_id for telling in self.tellings}),
        }


def trace(tenant: Tenant, source: str) -> Trace:
    """What came from `key_…`, `thr_…` or `ses_…`. Raises Problem 404."""
    events, written, key = _events(tenant, source.replace("\0", ""))
    own = Q(author_id=source) if key else Q(pk__in=[])
    cited = Source.objects.filter(event__in=events)
    revisions = Revision.objects.filter(own | Q(pk__in=cited.filter(revision__isnull=False).values("revision_id")))
    found = list(revisions.select_related("note").order_by("note_id", "number"))
    proposals = Proposal.objects.filter(own | Q(pk__in=cited.filter(proposal__isnull=False).values("proposal_id")))
    tainted = {str(revision.note_id) for revision in found}
    rows = Note.objects.present().filter(pk__in=tainted).select_related("current", "member").order_by("path_key", "pk")
    notes = [one for note in rows if (one := _tainted(note, source, cited)) is not None]
    return Trace(
        source,
        events,
        notes,
        found,
        list(proposals.select_related("note__member").order_by("-created_at", "-pk")),
        Entry.objects.filter(written, tenant=tenant),
        Result.objects.filter(written_as_result(written, key), tenant=tenant),
        Analysis.objects.filter(written, tenant=tenant),
        _tellings(found, notes),
        list(NoteReport.objects.filter(own).order_by("pk")),
    )


def _tellings(revisions: list[Revision], notes: list[Tainted]) -> list[Telling]:
    """The answers that held a revision, and those whose index named a note by words that are from the source."""
    told = Q(notes__revision__in=[revision.pk for revision in revisions])
    listed = {one.note.public_id for one in notes if any(_FIELD.match(line) for line in one.lines)}
    if listed:
        since = min(revision.created_at for revision in revisions)
        told |= Q(at__gte=since, text__regex="|".join(sorted(listed)))
    rows = Telling.objects.filter(told).distinct()
    return list(rows.select_related("session").defer("text").order_by("at", "pk"))


def written_as_result(written: Q, key: AgentKey | None) -> Q:
    """Results are kept by whoever stored them; for a session they are those of its keys in its time."""
    return Q(writer_key=key) if key else written


def _events(tenant: Tenant, source: str) -> tuple[QuerySet[Event], Q, AgentKey | None]:
    """The events of a source, which cache entries it wrote, and the key that it is."""
    events = Event.objects.filter(tenant=tenant)
    if key := AgentKey.objects.filter(tenant=tenant, public_id=source).first():
        return events.filter(agent_key=key), Q(writer_key=key), key
    if session := Session.objects.filter(tenant=tenant, public_id=source).first():
        return events.filter(session=session), _written_in(events, [session]), None
    if thread := Thread.objects.filter(tenant=tenant, public_id=source).first():
        workers = Worker.objects.filter(thread=thread)
        names = workers.exclude(session_public_id="").values("session_public_id")
        sessions = list(Session.objects.filter(Q(worker__in=workers) | Q(public_id__in=names), tenant=tenant))
        return events.filter(session__in=sessions), _written_in(events, sessions), None
    raise not_found(source)


def _written_in(events: QuerySet[Event], sessions: list[Session]) -> Q:
    """A cache entry knows its key, not its session: what a session's keys wrote in its time may be from it.

    Its time is that of its events (the row says it only now and then), and a while longer: an agent may store what its
    last event told. A cached answer that goes without need is asked for once more, and that is all.
    """
    written = Q(pk__in=[])
    for session in sessions:
        own = events.filter(session=session)
        keys = own.filter(agent_key__isnull=False).values("agent_key")
        times = own.aggregate(first=Min("received_at"), last=Max("received_at"))
        if times["first"] is not None:
            during = (times["first"] - STORES_WITHIN, times["last"] + STORES_WITHIN)
            written |= Q(writer_key__in=keys, created_at__range=during)
    return written


def _tainted(note: Note, source: str, cited: QuerySet[Source]) -> Tainted | None:
    backed = set(cited.filter(revision=note.current_id).values_list("line", flat=True))
    told = blame.lines_of(note)
    # A line that stood there before any revision rested on the source is not from it, though it may say the same.
    resting = set(cited.filter(revision__note=note).values_list("revision_id", flat=True))
    bad = {
        line.number
        for line in told
        if line.text and (line.revision.author_id == source or (line.text in backed and line.revision.pk in resting))
    }
    # What a dream wrote around such lines and cites nothing (a title, a heading, a remark) came from the same reading.
    poisoned = {line.revision.pk for line in told if line.number in bad and line.revision.author_kind != "member"}
    bad |= {
        line.number
        for line in told
        if line.revision.pk in poisoned and not line.sources and any(char.isalnum() for char in line.text)
    }
    if not bad:
        return None
    return Tainted(
        note,
        tuple(line.text for line in told if line.number in bad),
        _left("\n".join(line.text for line in told if line.number not in bad)),
    )


def _left(text: str) -> str | None:
    """The text, if it still is a note; a frontmatter without any field goes too."""
    try:
        text = _NO_FIELDS.sub("", text)
        document = frontmatter.split(text)
    except frontmatter.InvalidFrontmatter:
        return None
    is_note = lines.says_something(text) and not frontmatter.check(document, by_person=True)
    return text if is_note else None


def take_out(tenant: Tenant, source: str, *, mode: str, by: Actor) -> Trace:
    """Take out what came from the source. Both modes end what is told and served; `purge` also blanks the words.

    Raises Refused, Problem 404, ValueError for another mode.
    """
    access.require(by, "note.purge")
    if mode not in MODES:
        raise ValueError(mode)
    with transaction.atomic():
        found = trace(tenant, source)
        why = sentence("Quarantined: it came from %(source)s.", source=source)
        if mode == "purge":
            why = sentence("Purged: it came from %(source)s.", source=source)
        said = {name: str(count) for name, count in found.counts.items()}
        for tainted in found.notes:
            _clean(tainted, found.events, why, by)
        for proposal in found.proposals:
            supersede(proposal, reason=why)
        NoteReport.objects.filter(pk__in=[one.pk for one in found.reports], closed_at=None).update(
            closed_at=timezone.now(), answer=why
        )
        sessions = {str(pk) for pk in found.events.values_list("session", flat=True)}
        taint.stop(tenant, sessions)
        if mode == "purge":
            _blank(found)
            taint.blank(sessions, found.proposals)
        found.entries.delete()
        found.analyses.delete()
        found.results.delete() if mode == "purge" else found.results.update(expires_at=timezone.now())
        unused_texts()
        audit.record(by, "note.purge", source, after=" ".join(f"{name}={count}" for name, count in said.items()))
    return found


def _clean(tainted: Tainted, events: QuerySet[Event], why: str, by: Actor) -> None:
    note = locked(tainted.note)
    substance = {lines.substance(line) for line in tainted.lines if line.strip()}
    bury(note, substance, why)
    if tainted.left is not None:
        version = by_person(tainted.left, by)
        # Of what stays nothing rests on the source any more: else the next look would take it for its own.
        theirs = set(Source.objects.filter(revision=note.current, event__in=events).values_list("pk", flat=True))
        publish(note, version, sources=[one for one in sources_of(note) if one.pk not in theirs])
        return
    note.deleted_at = timezone.now()
    note.save(update_fields=["deleted_at"])
    bury(note, {None}, why)
    for waiting in note.proposals.open():
        supersede(waiting, reason=why)


def _blank(found: Trace) -> None:
    """The words go from history, proposals and tellings; ids, numbers, hashes and who was told stay."""
    bad = {str(one.note.pk): set(one.lines) for one in found.notes}
    # What notes say now was cleaned before, or holds no line of the source though an event of it backs one.
    rows = Revision.objects.filter(note__in={one.note_id for one in found.revisions}, blanked_at=None)
    for revision in rows.exclude(pk__in=Note.objects.present().values("current")):
        is_source = any(one.pk == revision.pk for one in found.revisions)
        if is_source or bad.get(str(revision.note_id), set()) & set(revision.text.split("\n")):
            blank(revision, PURGED)
    pks = [proposal.pk for proposal in found.proposals]
    Proposal.objects.filter(pk__in=pks).update(text=PURGED, reason="", risks=[])
    Source.objects.filter(event__in=found.events).update(line="")
    Telling.objects.filter(pk__in=[telling.pk for telling in found.tellings]).update(text=PURGED)
    NoteReport.objects.filter(pk__in=[one.pk for one in found.reports]).update(reason=PURGED)
    # What the gardener noticed quotes the lines; of the notes as they are now it finds it anew.
    about = Q(note__in={one.note_id for one in found.revisions}) | Q(proposal__in=pks)
    Finding.objects.filter(about).update(lines=[], words=PURGED, state="gone", closed_at=timezone.now())


def blank(revision: Revision, said: str) -> None:
    """Take the words out of a revision for ever; its id, number, hash and author stay."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT blank_revision(%s, %s)", [str(revision.pk), said])


def _cached(found: Trace) -> list[dict[str, Any]]:
    """What the caches hold from the source, the latest first; of very many the first, since `counts` has them all."""
    rows: list[dict[str, Any]] = [
        {"kind": "answer", "id": bytes(one.key).hex(), "tool": one.tool, "at": one.created_at.isoformat()}
        for one in found.entries.order_by("-created_at", "-pk")[:MOST_LISTED]
    ]
    rows += [
        {"kind": "analysis", "id": one.public_id, "tool": one.analysis_type, "at": one.created_at.isoformat()}
        for one in found.analyses.order_by("-created_at", "-pk")[:MOST_LISTED]
    ]
    alone = found.results.filter(entries__isnull=True).order_by("-created_at", "-pk")
    return rows + [
        {"kind": "result", "id": one.public_id, "tool": one.tool, "at": one.created_at.isoformat()}
        for one in alone[:MOST_LISTED]
    ]


def shown(found: Trace, *, by: Actor) -> dict[str, Any]:
    """A trace as JSON. Private notes of others are counted, not named."""
    mine = {str(pk) for pk in reach.notes(by.member_pk).values_list("pk", flat=True)}
    seen = [one for one in found.notes if str(one.note.pk) in mine]
    return {
        "source": found.source,
        "counts": found.counts,
        "notes": [
            {
                "id": one.note.public_id,
                "space": one.note.space,
                "path": one.note.path,
                "lines": list(one.lines),
                "outcome": "delete" if one.left is None else "cut",
            }
            for one in seen
        ],
        "proposals": [one.public_id for one in found.proposals if str(one.note_id) in mine],
        "cache": _cached(found),
        "tellings": [
            {"id": one.public_id, "session": one.session.public_id, "at": one.at.isoformat(), "kind": one.kind}
            for one in found.tellings[:MOST_LISTED]
        ],
        "reports": [one.public_id for one in found.reports],
        "sessions_told": sorted({one.session.public_id for one in found.tellings}),
    }
