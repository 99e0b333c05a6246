"""What a dream reads of the team's memory, and how what came of it is written: in one transaction, or not at all."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet

from dream.distill_shapes import PERSON, TOOL_OUTPUT
from dream.known import waiting_of
from dream.mind import Outcome
from dream.models import Change, Digest, Quarantined, Run, SessionGist, Watermark, Window
from dream.shapes import Cited, Gist, GistLine, Proposed
from dream.windows import Batch, Span, Subject, subject_of
from memory import redact
from memory.events.models import Event, Project
from memory.graph import workers
from memory.llm import Usage
from memory.notes import review
from memory.notes.models import Note, Proposal, Source
from memory.notes.paths import InvalidPath, path_key
from memory.notes.publish import supersede
from memory.notes.review import Draft, Evidence
from memory.notes.vouching import relayed
from memory.sentences import sentence
from memory.tenants import audit
from memory.tenants.access import Actor
from memory.tenants.models import Member, Tenant

# The rules' state is kept under this number; another one starts from nothing.
DIGEST_VERSION = 1


class Raced(Exception):
    """A watermark is not where it was when the events were read: somebody else dreamed them."""


class Cancelled(Exception):
    """Somebody cancelled the run while it ran."""


@dataclass(frozen=True)
class Written:
    """A batch that was dreamed, or an event that is put aside (`quarantine` says why)."""

    subject: Subject
    batch: Batch
    outcome: Outcome
    is_last: bool = False
    quarantine: str = ""


def write(run: Run, written: Written, *, by: Actor) -> None:
    """Move the watermarks and write what came of the events, inside the bound transaction. Raises Raced."""
    written = replace(written, outcome=inside(written.subject, written.outcome))
    for span in written.batch.spans:
        if span.is_loose:
            if not _asides(span).exists():
                raise Raced(span.session_id)  # its session was purged or deleted meanwhile
            _settle(span, written.quarantine)
        else:
            _advance(run, span)
        outcome = "quarantined" if written.quarantine else "read"
        set_window(run, span, outcome, written.quarantine or _detail(written, span))
    for event in written.batch.events if written.quarantine else ():
        span = written.batch.spans[0]
        reason = {"error": redact.brief(written.quarantine, 2000)}
        Quarantined.objects.get_or_create(
            tenant_id=run.tenant_id, session_id=span.session_pk, seq=event.seq, defaults=reason
        )
    _set_digest(run, written)
    for gist in written.outcome.gists:
        _tell_gist(run, written, gist)
    for proposed in written.outcome.proposed:
        _propose(run, written, proposed, by)
    count_sessions(run)


def inside(subject: Subject, outcome: Outcome) -> Outcome:
    """Of what came of a project that not all of the team sees, what stays in its own notes or is a member's own.

    A mind may write into any folder, and notes outside of the project's are read by, and told to, everybody.
    """
    if not subject.pk or not Project.objects.filter(pk=subject.pk, is_limited=True).exists():
        return outcome
    own = f"project/{path_key(subject.slug)}/"
    left = [one for one in outcome.proposed if one.member is None and not path_key(one.path).startswith(own)]
    if not left:
        return outcome
    why = [
        sentence("%(path)s: not everybody sees this project, so its notes stay below %(own)s.", path=one.path, own=own)
        for one in left
    ]
    kept = tuple(one for one in outcome.proposed if one not in left)
    return replace(outcome, proposed=kept, dropped=(*outcome.dropped, *why))


def count_sessions(run: Run) -> None:
    """Say on the run of how many sessions it has read."""
    sessions = run.windows.values("session").distinct().count()
    Run.objects.filter(pk=run.pk).update(sessions_read=sessions)


def count(run: Run, usage: Usage, *, events: int = 0) -> None:
    """Raise the run's counts, if it still runs: the same row tells that it was cancelled. Raises Cancelled."""
    counts: dict[str, Any] = {
        "events_read": F("events_read") + events,
        "tokens_in": F("tokens_in") + usage.sent,
        "tokens_out": F("tokens_out") + usage.received,
        "tokens_cached": F("tokens_cached") + usage.cached,
        "cost": F("cost") + usage.cost,
        "unpriced_calls": F("unpriced_calls") + usage.unpriced,
    }
    if not Run.objects.filter(pk=run.pk, state="running").update(**counts):
        raise Cancelled(run.public_id)


def _advance(run: Run, span: Span) -> None:
    """Compare and set: the watermark moves only from where it was read."""
    stands = Watermark.objects.filter(session_id=span.session_pk, seq=span.after)
    if stands.update(seq=span.upto, failures=0, retry_at=None, error=""):
        return
    if span.after or Watermark.objects.filter(session_id=span.session_pk).exists():
        raise Raced(span.session_id)
    try:
        with transaction.atomic():
            Watermark.objects.create(tenant_id=run.tenant_id, session_id=span.session_pk, seq=span.upto)
    except IntegrityError:
        raise Raced(span.session_id) from None


def _asides(span: Span) -> QuerySet[Quarantined]:
    return Quarantined.objects.filter(session_id=span.session_pk, seq__gt=span.after, seq__lte=span.upto)


def _settle(span: Span, quarantine: str) -> None:
    """An event that was tried again: it no longer stands aside, or does so for another reason."""
    rows = _asides(span)
    if quarantine:
        rows.update(is_again=False, error=redact.brief(quarantine, 2000))
    else:
        rows.delete()


def _tell_gist(run: Run, written: Written, gist: Gist) -> None:
    """Keep a session's summary; a worker that has not reported gets it as a draft of its report."""
    pk = next((span.session_pk for span in written.batch.spans if span.session_id == gist.session), None)
    if pk is None:
        return
    lines = [{"text": line.text, "events": list(line.events)} for line in gist.lines]
    values = {"run": run, "lines": lines, "mind": run.model or run.mind}
    SessionGist.objects.update_or_create(tenant_id=run.tenant_id, session_id=pk, defaults=values)
    text = "\n".join(f"- {line.text} [{', '.join(line.events)}]" for line in gist.lines)
    workers.draft(Tenant(pk=run.tenant_id), gist.session, text)


def gists_of(session_pks: Iterable[str]) -> tuple[Gist, ...]:
    """The summaries so far."""
    rows = SessionGist.objects.filter(session_id__in=list(session_pks)).select_related("session").order_by("pk")
    return tuple(
        Gist(row.session.public_id, tuple(GistLine(line["text"], tuple(line["events"])) for line in row.lines))
        for row in rows
        if row.lines
    )


def set_window(run: Run, span: Span, outcome: str, detail: str) -> None:
    """Say on the run what it read of a session, and what became of it."""
    Window.objects.update_or_create(
        tenant_id=run.tenant_id, run=run, session_id=span.session_pk, from_seq=span.after + 1,
        defaults={"to_seq": span.upto, "outcome": outcome, "detail": redact.brief(detail, 2000)},
    )  # fmt: skip


def _detail(written: Written, span: Span) -> str:
    """What of the span came to nothing, and why."""
    faults = written.batch.unreadable
    unreadable = [
        f"Event {event.seq} could not be read, only its summary was: {faults[event.id]}"
        for event in written.batch.events
        if event.session == span.session_id and event.id in faults
    ]
    return "\n".join((*unreadable, *written.outcome.dropped))


def note_failure(run: Run, batch: Batch, error: str, *, retry_at: datetime, blamed: bool) -> None:
    """The watermarks stay; the sessions are left alone until `retry_at`. Only what may be their fault is counted."""
    for span in batch.spans:
        if span.is_loose:
            _settle(span, error)
            set_window(run, span, "failed", error)
            continue
        mark, _ = Watermark.objects.get_or_create(tenant_id=run.tenant_id, session_id=span.session_pk)
        Watermark.objects.filter(pk=mark.pk).update(
            failures=F("failures") + int(blamed), retry_at=retry_at, error=redact.brief(error, 2000)
        )
        set_window(run, span, "failed", error)


def _digests(subject: Subject) -> QuerySet[Digest]:
    return Digest.objects.filter(project_id=subject.pk) if subject.pk else Digest.objects.filter(project__isnull=True)


def digest(subject: Subject) -> dict[str, Any]:
    """What the rules remember of the project."""
    row = _digests(subject).filter(version=DIGEST_VERSION).first()
    return row.state if row else {}


def has_news(subject: Subject) -> bool:
    """True where the rules know more of the project than they have proposed."""
    return _digests(subject).filter(has_news=True).exists()


def untold() -> list[Subject]:
    """Projects about which an earlier run ended before it proposed all that it had counted."""
    rows = Digest.objects.filter(has_news=True, project__isnull=False, project__merged_into__isnull=True)
    rows = rows.select_related("project")
    rows = rows.order_by("project__slug")
    return [subject_of(row.project, ()) for row in rows if row.project]


def follow_merges(*, recount: bool) -> None:
    """Let what dreams keep under a project follow it into the one it was merged into.

    Its open proposals end: the same is proposed anew under the other's path. With `recount`, for minds that count, all
    sessions of both are read again, once: two counts that were taken apart can't be put together.
    """
    counted_apart = set()
    for project in Project.objects.filter(merged_into__isnull=False).select_related("merged_into").order_by("pk"):
        home = project.merged_into
        assert home is not None, "asked for above"  # noqa: S101
        below = f"project/{path_key(project.slug)}/"
        for waiting in Proposal.objects.open().filter(author_kind="dream", note__path_key__startswith=below):
            supersede(
                waiting,
                reason=sentence(
                    "The project %(project)s was merged into %(home)s.", project=project.slug, home=home.slug
                ),
            )
        if recount and Digest.objects.filter(project=project).delete()[0]:
            counted_apart.add(home.pk)
    Digest.objects.filter(project__in=counted_apart).delete()
    Watermark.objects.filter(session__project__in=counted_apart).delete()


def _set_digest(run: Run, written: Written) -> None:
    state = written.outcome.state
    if state is None:
        return
    values = {"version": DIGEST_VERSION, "state": state, "has_news": not written.is_last}
    Digest.objects.update_or_create(tenant_id=run.tenant_id, project_id=written.subject.pk, defaults=values)


def _propose(run: Run, written: Written, proposed: Proposed, by: Actor) -> None:
    """Make the proposal, and list it under the run if it is new. A text that can't be a note is left out, and told."""
    member = Member.objects.current().filter(handle=proposed.member).first() if proposed.member else None
    if proposed.member and member is None:
        return
    evidence = (*_evidence(written, proposed.cited), *_kept(proposed, member))
    draft = Draft(proposed.path, proposed.text, evidence, proposed.reason, member, proposed.operation)
    old = _text_before(proposed, member)
    try:
        with transaction.atomic():
            made = review.propose(Tenant(pk=run.tenant_id), draft, by=by)
    except (InvalidPath, review.InvalidNote) as why:
        _tell(run, written, f"{proposed.path}: {why}")
        return
    if made is not None and made.author_id == by.id:
        Change.objects.get_or_create(
            tenant_id=run.tenant_id, run=run, proposal=made,
            defaults={
                "kind": _kind(proposed, old), "path": address(proposed), "text": made.text, "old_text": old,
                "reason": proposed.reason,
            },
        )  # fmt: skip


def address(proposed: Proposed) -> str:
    """Where a change is, as people write it."""
    return f"{f'members/{proposed.member}' if proposed.member else 'team'}/{proposed.path}"[:320]


def _kind(proposed: Proposed, old: str) -> str:
    return "create" if not old and proposed.operation == "write" else proposed.kind


def _text_before(proposed: Proposed, member: Member | None) -> str:
    """The approved text that a change is a change of."""
    note = Note.objects.live().filter(path_key=path_key(proposed.path), member=member).select_related("current").first()
    return note.current.text if note and note.current else ""


def _tell(run: Run, written: Written, detail: str) -> None:
    for span in written.batch.spans[:1]:
        window = Window.objects.get(run=run, session_id=span.session_pk, from_seq=span.after + 1)
        window.detail = redact.brief(f"{window.detail}\n{detail}".strip(), 2000)
        window.save(update_fields=["detail"])


def _evidence(written: Written, cited: Iterable[Cited]) -> list[Evidence]:
    """The citations by internal key. Rules also cite events of earlier runs, which are looked up; unknown ones go."""
    listed = list(cited)
    keys = dict(written.batch.keys)
    missing = {each.event for each in listed} - keys.keys()
    if missing:
        keys |= _keys(missing)
    from_outside = _relayed({keys[each.event] for each in listed if each.event in keys and each.tier <= PERSON})
    return [
        Evidence(each.line, pk, TOOL_OUTPUT if pk in from_outside else each.tier)
        for each in listed
        if (pk := keys.get(each.event))
    ]


def _relayed(event_pks: set[str]) -> set[str]:
    """Of these events those of sessions that an agent started: their prompts hold what a message or a webhook said."""
    if not event_pks:
        return set()
    of = dict(Event.objects.filter(pk__in=event_pks).values_list("pk", "session__public_id"))
    handed = relayed(of.values())
    return {str(pk) for pk, session in of.items() if session in handed}


def _keys(public_ids: set[str]) -> dict[str, str]:
    found = Event.objects.filter(public_id__in=public_ids).values_list("public_id", "pk")
    return {public_id: str(pk) for public_id, pk in found}


def _kept(proposed: Proposed, member: Member | None) -> list[Evidence]:
    """A line that stays as a dream wrote it keeps its sources, though this batch shows no event for it."""
    note = Note.objects.filter(path=proposed.path, member=member).first()
    waiting = waiting_of(note) if note else None
    if waiting is None:
        return []
    stays = {line.strip() for line in proposed.text.splitlines()} - {cited.line.strip() for cited in proposed.cited}
    rows = Source.objects.filter(proposal=waiting).order_by("position", "pk")
    return [Evidence(row.line, str(row.event_id), row.tier) for row in rows if row.line.strip() in stays]


def read_again(event: Event, *, by: Actor) -> bool:
    """Let the next dream read an event that was put aside; False where it was not."""
    aside = Quarantined.objects.filter(session_id=event.session_id, seq=event.seq)
    if not aside.update(is_again=True):
        return False
    audit.record(by, "dream.again", event.public_id)
    return True
