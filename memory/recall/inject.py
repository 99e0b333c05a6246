"""What a session is told at its start and with a prompt, and the record of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from django.conf import settings
from django.db.models import Count, F, Max, Q
from django.db.models.functions import Left

from memory.events.models import Event, Project, Session
from memory.notes import risks
from memory.notes.lines import body_of
from memory.notes.models import Note, NoteQuerySet
from memory.notes.vouching import relayed
from memory.recall import envelope, scope
from memory.recall.compose import BUDGET, Answer, Beside, Candidate, at_prompt, at_start
from memory.recall.envelope import one_line, size
from memory.recall.models import Telling, ToldNote
from memory.recall.search import Hit, fitting
from memory.tenants import trip
from memory.tenants.models import Member

MOST_READ = 200  # notes whose text is looked at for one start; 7,500 characters hold far fewer
MOST_AT_PROMPT = 5
LAST_SESSIONS = 3
LAST_EVENTS = 100  # of a session, which tell when it was last seen
MOST_RESUMED = 20


@dataclass(frozen=True)
class Told:
    """The text to hand to the harness, the notes that are whole in it, and how many were left out."""

    text: str
    notes: list[Note]
    left_out: int


def start_answer(
    session: Session, event: Event, *, member: Member | None, files: Sequence[str] = (), by_client: bool = False
) -> Told | None:
    """What a session is told when it starts (or starts anew after a compaction); None where there is nothing.

    `files` are lines about what it read before it forgot. `by_client` says that the hook client asks.

    Runs in the bound transaction of the event and records what it tells. The same event gets the same bytes again.
    """
    if (before := _told_before(event)) is not None:
        return before
    answer, _, notes = _start(session, member, files, by_client=by_client)
    return _record(answer, session, event, member, kind="start", notes=notes)


def composed_start(session: Session, *, member: Member | None) -> tuple[Answer | None, list[Candidate]]:
    """What a start of such a session is told now, and all notes that it could be told, in order. Records nothing."""
    answer, candidates, _ = _start(session, member, (), by_client=True)
    return answer, candidates


def _start(
    session: Session, member: Member | None, files: Sequence[str], *, by_client: bool
) -> tuple[Answer | None, list[Candidate], list[Note]]:
    projects = scope.same_project(session.project)
    # The project where it stands after merges is the first of them.
    home = projects[0] if projects else None
    reach = scope.in_order(scope.within_reach(projects, str(member.pk) if member else None), home)
    notes = with_text(reach)
    candidates = [candidate(note, why=_why_at_start(note)) for note in notes]
    more = reach.count() - len(notes) if len(notes) == MOST_READ else 0
    beside = Beside(more, _last_sessions(session, projects, member), files, by_client)
    return at_start(candidates, beside, key=_key(session)), candidates, notes


def fitting_prompt(session: Session, prompt: str, *, member: Member | None) -> list[Hit]:
    """The notes that fit a prompt of a session best, as many as one answer tells, whatever it knows already."""
    return _fitting(session, prompt, member)[:MOST_AT_PROMPT]


def _fitting(session: Session, prompt: str, member: Member | None) -> list[Hit]:
    reach = scope.within_reach(scope.same_project(session.project), str(member.pk) if member else None)
    return fitting(envelope.without_blocks(prompt), reach, session.tenant, limit=4 * MOST_AT_PROMPT)


def prompt_answer(session: Session, event: Event, *, prompt: str, member: Member | None) -> Told | None:
    """Up to five notes that fit the prompt and that this session does not know yet; None where none fits."""
    if (before := _told_before(event)) is not None:
        return before
    hits = _fitting(session, prompt, member)
    known = _known(session)
    fresh = [hit for hit in hits if str(hit.revision.pk) not in known][:MOST_AT_PROMPT]
    why = {hit.note.pk: hit.why for hit in fresh}
    texts = {note.pk: note for note in with_text(Note.objects.filter(pk__in=why))}
    notes = [texts[hit.note.pk] for hit in fresh]
    answer = at_prompt([candidate(note, why=why[note.pk]) for note in notes], key=_key(session))
    return _record(answer, session, event, member, kind="prompt", notes=notes)


def has_notes(tenant_pk: str) -> bool:
    """Whether the team has a note that a session could be told at all. Outside of any transaction."""
    return bool(trip.apart("SELECT has_notes(%t::uuid)", (tenant_pk,))[0][0])


def with_text(notes: NoteQuerySet) -> list[Note]:
    """Notes with what an answer needs; of a text that can't fit, no more than shows that."""
    return list(
        notes.select_related("current", "member", "project")
        .defer("current__text")
        .annotate(head=Left("current__text", BUDGET + 4_097), source_count=Count("current__sources"))[:MOST_READ]
    )


def candidate(note: Note, *, why: str) -> Candidate:
    """A note of `with_text` as it may be told, and the reason to tell it."""
    revision = note.current
    assert revision is not None, "only approved notes are told"  # noqa: S101
    text = _body_of(note.head)  # type: ignore[attr-defined]
    return Candidate(
        note_id=note.public_id,
        revision_id=revision.public_id,
        number=revision.number,
        tier=revision.tier,
        source_count=note.source_count,  # type: ignore[attr-defined]
        path=note.path if note.member is None else f"{note.space}/{note.path}",
        title=revision.title,
        description=revision.description,
        text=text if size(text) <= BUDGET else None,
        why=why[:300],
        is_record=scope.is_record(note),
    )


@lru_cache(maxsize=1_000)
def _body_of(head: str) -> str:
    """Session after session is told the same notes; reading their frontmatter was a quarter of an answer's time."""
    return body_of(head)


def _why_at_start(note: Note) -> str:
    match note.priority:  # type: ignore[attr-defined]
        case scope.TEAM_PROFILE:
            return "The team's profile"
        case scope.OWN_PROFILE:
            return "The member's own profile"
        case scope.PROJECT:
            return f"Project {note.project.slug}" if note.project else "The session's project"
        case scope.TOOLS:
            return "About a tool"
    return "General note"


def _last_sessions(session: Session, projects: Sequence[Project], member: Member | None) -> list[str]:
    """One line for each of this member's last sessions in the project, whatever the harness."""
    if member is None or not projects:
        return []
    before = Session.objects.filter(member=member, project__in=projects, is_internal=False).exclude(pk=session.pk)
    latest = list(before.order_by("-last_received_at", "-pk")[:LAST_SESSIONS])
    # The ends of these few only: over all of a member's sessions it would read every event of the project.
    ends = Event.objects.filter(session__in=latest, seq__gt=F("session__last_seq") - LAST_EVENTS)
    seen = ends.order_by().values("session").annotate(at=Max("occurred_at"))
    seen_at = dict(seen.values_list("session", "at"))
    handed = relayed(one.public_id for one in latest) if latest else set()
    return [_session_line(one, seen_at.get(one.pk), is_relayed=one.public_id in handed) for one in latest]


def _session_line(session: Session, seen_at: datetime | None, *, is_relayed: bool) -> str:
    parts = [session.public_id, session.client.replace("_", " ")]
    if seen_at is not None:
        parts.append(f"{seen_at:%Y-%m-%d %H:%M} UTC")
    parts.append("started by an agent" if is_relayed else _asked(session))
    return f"- {' · '.join(parts)} · {_end_of(session)}"


def _asked(session: Session) -> str:
    """The first line of what was asked last: a record of this member's own words. Nobody approved it, so what a
    reviewer would have to look at twice (a command, an order to the agent) is not repeated, and no address is.
    """
    prompt = next((line for line in envelope.without_blocks(session.last_prompt).split("\n") if line.strip()), "")
    if not prompt:
        return "no prompt"
    said = risks.without_addresses(prompt)
    is_odd = any(risk.level != "low" for risk in risks.labels(risks.Change("", said, tier=1)))
    return f"last asked: {'not repeated here, open the session' if is_odd else one_line(said)[:120]}"


def _end_of(session: Session) -> str:
    if session.state in ("ended", "closed"):
        return "ended"
    if session.last_stop_seq and session.last_stop_seq >= session.last_seq:
        return "stopped after an answer"
    return "left in the middle of work"


def _known(session: Session) -> set[str]:
    """The revisions that stand in this session's context."""
    told = ToldNote.objects.filter(_in_context(session, "telling__"))
    return {str(pk) for pk in told.values_list("revision_id", flat=True)}


def has_heard_start(session: Session) -> bool:
    """Whether what a start tells stands in this session's context."""
    return Telling.objects.filter(_in_context(session, ""), kind="start").exists()


def _in_context(session: Session, prefix: str) -> Q:
    """What was told since it last forgot (a compaction or a clear). A resumed session has the context of the one that
    it goes on from, and that one's, as long as none of them has forgotten.
    """
    found = Q(pk__in=[])
    one: Session | None = session
    for _ in range(MOST_RESUMED):
        if one is None:
            break
        found |= Q(**{f"{prefix}session": one, f"{prefix}generation": one.generation})
        one = one.resumed_from if one.generation == 0 else None
    return found


def _told_before(event: Event) -> Told | None:
    telling = Telling.objects.filter(event=event).first()
    if telling is None:
        return None
    rows: Iterable[ToldNote] = telling.notes.select_related("note").order_by("position")
    return Told(telling.text, [row.note for row in rows], telling.left_out)


def _record(
    answer: Answer | None, session: Session, event: Event, member: Member | None, *, kind: str, notes: Sequence[Note]
) -> Told | None:
    if answer is None:
        return None
    telling = Telling.objects.create(
        tenant_id=session.tenant_id,
        session=session,
        event=event,
        member=member,
        kind=kind,
        generation=session.generation,
        text=answer.text,
        left_out=answer.left_out,
    )
    by_id = {note.public_id: note for note in notes}
    told = [(by_id[one.note_id], one.why) for one in answer.told]
    ToldNote.objects.bulk_create(
        ToldNote(
            tenant_id=session.tenant_id, telling=telling, note=note, revision=note.current, position=place, why=why
        )
        for place, (note, why) in enumerate(told)
    )
    return Told(answer.text, [note for note, _ in told], answer.left_out)


def _key(session: Session) -> bytes:
    return envelope.tenant_key(settings.SECRET_KEY, str(session.tenant_id))
