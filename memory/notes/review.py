"""From a draft to the team's memory: agents and dreams propose, people approve, edit, reject, write, revert, delete.

Every change of a note happens under its row lock; a decision is one conditional update: of two reviewers one decides.
"""

from dataclasses import dataclass, replace
from typing import Final, NoReturn

from django.db import transaction
from django.utils import timezone

from memory import redact
from memory.events.models import Event
from memory.notes import frontmatter, lines, paths, risks
from memory.notes.models import Note, Proposal, Revision, Source, Tombstone
from memory.notes.publish import (
    Author,
    Version,
    all_sources,
    digest,
    positions,
    project_of,
    publish,
    sources_of,
    supersede,
)
from memory.tenants import access, audit
from memory.tenants.access import Actor
from memory.tenants.models import Member, Tenant

APPROVED: Final = 0
# What a text counts as where it cites nothing: a person's own words, or an agent's.
UNCITED: Final = {"member": 1, "command": 1}


class AlreadyDecided(Exception):
    """The proposal was approved or rejected before."""


class StaleProposal(Exception):
    """The text on the screen is no longer what the proposal says; show it again."""


class LostUpdate(Exception):
    """The note changed since it was read. `current` is its number now, None where there is no note."""

    def __init__(self, current: int | None) -> None:
        super().__init__(f"The note is at revision {current} now." if current else "There is no such note now.")
        self.current = current


class InvalidNote(ValueError):
    """The text can't be a note; `problems` say what to mend."""

    def __init__(self, problems: list[frontmatter.Problem]) -> None:
        super().__init__(" ".join(problem.detail for problem in problems))
        self.problems = problems


class UnknownEvent(ValueError):
    """A line cites an event that this team does not have."""


@dataclass(frozen=True)
class Evidence:
    """The event that one line of a draft rests on, and how far it can be trusted (0 best, 3 least)."""

    line: str
    event_pk: str
    tier: int


@dataclass(frozen=True)
class Draft:
    """A change somebody wants. `base` is the revision number the writer had before them, where they know it."""

    path: str
    text: str
    evidence: tuple[Evidence, ...] = ()
    reason: str = ""
    member: Member | None = None
    operation: str = "write"
    base: int | None = None


@dataclass(frozen=True)
class Clean:
    """A text fit to be stored, and how many secrets were taken out of it."""

    text: str
    redactions: int


def propose(tenant: Tenant, draft: Draft, *, by: Actor) -> Proposal | None:
    """The proposal that now waits for a decision, or None where nothing would change.

    It takes the place of the open proposal of the same kind of author; the text of the old one stays readable. Raises
    Refused, InvalidPath, InvalidNote, UnknownEvent, LostUpdate (a `base` that never was).
    """
    access.require(by, "note.propose")
    _require_own(draft.member, by)
    path = paths.clean_path(draft.path)
    clean = _clean(draft.text, by) if draft.operation == "write" else Clean("", 0)
    with transaction.atomic():
        note = _locked(_note_at(tenant, path, draft.member))
        if by.kind == "dream" and _is_closed(note, draft):
            return None
        wanted = _wanted(note, draft, clean.text, by)
        if wanted is None:
            return None
        return _queue(note, draft, wanted, by, redactions=clean.redactions)


def approve(proposal: Proposal, *, by: Actor, shown: str) -> Revision:
    """Let the proposal in as it stood on the screen (`shown`: hex SHA-256 of its text). The revision is T0.

    Approving a deletion gives the revision that was deleted. Raises Refused, AlreadyDecided, StaleProposal.
    """
    return _accept(proposal, by=by, shown=shown, text=None)


def edit_and_approve(proposal: Proposal, *, text: str, by: Actor, shown: str) -> Revision:
    """Let the proposal in with a person's changes. Raises as `approve`, and InvalidNote."""
    return _accept(proposal, by=by, shown=shown, text=_clean(text, by).text)


def reject(proposal: Proposal, *, by: Actor, reason: str, close_path: bool = False) -> None:
    """Turn the proposal down; what it newly said will not be proposed by a dream again.

    `close_path` keeps dreams away from the whole note. Raises Refused, AlreadyDecided.
    """
    with transaction.atomic():
        note = _locked(proposal.note)
        _require_may(by, "note.approve", note)
        proposal = note.proposals.select_related("base").get(pk=proposal.pk)
        reason = redact.clean_text(reason).value[:2000]
        _decide(proposal, "rejected", by, reason=reason)
        unwanted = lines.new_statements(proposal.text, proposal.base.text if proposal.base else "")
        if proposal.operation == "write":
            _bury(note, {lines.substance(line) for line in unwanted}, reason)
        if close_path:
            _bury(note, {None}, reason)
        audit.record(by, "note.reject", proposal.public_id, before=proposal.sha256.hex(), after=note.public_id)


def write(
    tenant: Tenant, *, path: str, text: str, by: Actor, member: Member | None = None, base: int | None
) -> Revision:
    """A person's own edit, at once. `base` is the revision number that was edited, None for a new note.

    Raises Refused, InvalidPath, InvalidNote, LostUpdate.
    """
    clean_path = paths.clean_path(path)
    _require_own(member, by)
    if member is None:
        access.require(by, "note.edit")
    clean = _clean(text, by)
    with transaction.atomic():
        note = _locked(_note_at(tenant, clean_path, member))
        _require_may(by, "note.edit", note)
        current = _live(note)
        if base != (current.number if current else None):
            raise LostUpdate(current.number if current else None)
        if current is not None and current.text == clean.text:
            return current
        revision = publish(note, _by_person(clean.text, by), sources=sources_of(note))
        _take_out(note, clean.text, current)
        audit.record(by, "note.write", note.public_id, before=_id(current), after=revision.public_id)
        return revision


def revert(note: Note, *, to: Revision, by: Actor) -> Revision:
    """A new revision with the bytes of an old one. A deleted note comes back. Raises Refused, ValueError."""
    if str(to.note_id) != str(note.pk):
        raise ValueError("The revision is of another note.")
    with transaction.atomic():
        note = _locked(note)
        _require_may(by, "note.revert", note)
        before = note.current
        if before is not None and before.text == to.text and note.deleted_at is None:
            return before
        version = replace(_by_person(to.text, by), reason=f"Back to revision {to.number}.")
        was = _live(note)
        revision = publish(note, version, sources=list(to.sources.order_by("position", "pk")))
        _take_out(note, to.text, was)
        audit.record(by, "note.revert", note.public_id, before=_id(before), after=revision.public_id)
        return revision


def delete(note: Note, *, by: Actor, reason: str) -> None:
    """Take the note out of memory; its history stays, and dreams leave the path alone. Raises Refused."""
    with transaction.atomic():
        note = _locked(note)
        _require_may(by, "note.delete", note)
        _delete(note, reason=redact.clean_text(reason).value[:2000])
        audit.record(by, "note.delete", note.public_id, before=_id(note.current))


def may_decide(by: Actor, note: Note) -> bool:
    """True where the actor may approve and reject what is proposed for this note."""
    return _may(by, "note.approve", note)


def _accept(proposal: Proposal, *, by: Actor, shown: str, text: str | None) -> Revision:
    with transaction.atomic():
        note = _locked(proposal.note)
        _require_may(by, "note.approve", note)
        proposal = note.proposals.get(pk=proposal.pk)
        current = _live(note)
        before = note.current
        if proposal.state == "open" and (
            shown != bytes(proposal.sha256).hex() or proposal.base_id != (current.pk if current else None)
        ):
            raise StaleProposal(proposal.public_id)
        _decide(proposal, "approved", by)
        if proposal.operation == "delete" and text is None:
            revision = _delete(note, reason=proposal.reason)
        else:
            version = _by_person(text, by) if text is not None else _as_proposed(proposal, by)
            sources = all_sources(list(proposal.sources.order_by("position", "pk")), sources_of(note))
            revision = publish(note, version, sources=sources)
            # A dream may drop a line and bring it back; what people leave out stays out.
            _take_out(note, version.text, proposal, *([] if proposal.author_kind == "dream" else [current]))
        audit.record(by, "note.approve", proposal.public_id, before=_id(before), after=revision.public_id)
        return revision


def _queue(note: Note, draft: Draft, wanted: lines.Merged, by: Actor, *, redactions: int) -> Proposal:
    current = _live(note)
    waiting = note.proposals.open().filter(author_kind=by.kind).first()
    is_same = waiting is not None and (waiting.text, waiting.operation, waiting.base_id) == (
        wanted.text,
        draft.operation,
        current.pk if current else None,
    )
    if waiting is not None and is_same:
        _cite(waiting, draft.evidence)
        return waiting
    tier = max((evidence.tier for evidence in draft.evidence), default=UNCITED.get(by.kind, 2))
    change = risks.Change(
        path=note.path,
        text=wanted.text,
        old=current.text if current else "",
        tier=tier,
        is_delete=draft.operation == "delete",
        old_is_by_people=current is not None and current.author_kind == "member",
        redactions=redactions,
        gave_way=wanted.gave_way,
    )
    proposal = Proposal(
        tenant_id=note.tenant_id,
        note=note,
        operation=draft.operation,
        base=current,
        text=wanted.text,
        sha256=digest(wanted.text),
        reason=redact.clean_text(draft.reason).value[:2000],
        tier=tier,
        risks=risks.stored(risks.labels(change)),
        author_kind=by.kind,
        author_id=by.id,
        author_label=by.label[:200],
    )
    if waiting is not None:
        supersede(waiting, reason=f"Replaced by {proposal.public_id}.")
    proposal.save(force_insert=True)
    _cite(proposal, draft.evidence)
    audit.record(by, "note.propose", proposal.public_id, after=note.public_id)
    return proposal


def _is_closed(note: Note, draft: Draft) -> bool:
    """True where people told dreams to leave the path, or this deletion, alone."""
    if note.deleted_at or note.tombstones.filter(line__isnull=True).exists():
        return True
    refused = note.proposals.filter(author_kind="dream", operation="delete", state="rejected", base=note.current)
    return draft.operation == "delete" and refused.exists()


def _wanted(note: Note, draft: Draft, text: str, by: Actor) -> lines.Merged | None:
    """What the note would say, or None where that is what it says."""
    current = _live(note)
    if draft.operation == "delete":
        return lines.Merged(current.text) if current else None
    old = current.text if current else ""
    merged = lines.merge(_ancestor(note, draft, by, old), old, text) if current else lines.Merged(text)
    if by.kind == "dream":
        rejected = set(note.tombstones.filter(line__isnull=False).values_list("line", flat=True))
        left = lines.without(merged.text, {line for line in rejected if line}, keep=old)
        if not lines.says_something(left):
            return None
        if left != merged.text and not lines.new_statements(left, old) and not lines.lost_statements(left, old):
            return None
        merged = replace(merged, text=left)
    return None if merged.text == old else merged


def _ancestor(note: Note, draft: Draft, by: Actor, current: str) -> str:
    """The text that the draft is a change of: what its writer saw, else what this kind of author last brought in."""
    if draft.base is not None:
        seen = note.revisions.filter(number=draft.base).first()
        if seen is None:
            raise LostUpdate(note.current.number if note.current else None)
        return seen.text
    if by.kind != "dream":
        return current
    brought = note.proposals.filter(author_kind=by.kind, state="approved", operation="write")
    last = brought.order_by("-decided_at", "-pk").first()
    return last.text if last else current


def _clean(text: str, by: Actor) -> Clean:
    is_person = by.kind in UNCITED
    most = frontmatter.PERSON_NOTE_BYTES if is_person else frontmatter.MACHINE_NOTE_BYTES
    size = len(text.encode("utf-8", "surrogatepass"))
    # A huge text is refused before anything reads it; check() says the same of what is left after redaction.
    if size > 2 * most:
        _too_long(size, most)
    cleaned = redact.clean_text(frontmatter.clean(text))
    try:
        document = frontmatter.split(cleaned.value)
    except frontmatter.InvalidFrontmatter as error:
        raise InvalidNote([frontmatter.Problem("invalid_frontmatter", "", str(error))]) from None
    if problems := frontmatter.check(document, by_person=is_person):
        raise InvalidNote(problems)
    return Clean(cleaned.value, cleaned.redactions)


def _too_long(size: int, most: int) -> NoReturn:
    advice = f"The note has {size} bytes; split it, or shorten it to {most // 1024} KB."
    raise InvalidNote([frontmatter.Problem("note_too_long", "", advice)])


def _cite(proposal: Proposal, evidence: tuple[Evidence, ...]) -> None:
    """One row a line and event. A line that merging took away keeps its event under the line's own text."""
    asked = {str(one.event_pk) for one in evidence}
    known = {str(pk) for pk in Event.objects.filter(pk__in=asked).values_list("pk", flat=True)}
    if missing := asked - known:
        raise UnknownEvent(f"{len(missing)} cited events are not this team's.")
    place = positions(proposal.text)
    cited = set(proposal.sources.values_list("line", "event_id"))
    fresh: dict[tuple[str, str], Source] = {}
    for one in evidence:
        line = redact.clean_text(one.line).value
        if not any(line == old and str(one.event_pk) == str(event) for old, event in cited):
            fresh[line, str(one.event_pk)] = Source(
                tenant_id=proposal.tenant_id,
                proposal=proposal,
                event_id=one.event_pk,
                line=line,
                position=place.get(line, 0),
                tier=one.tier,
            )
    Source.objects.bulk_create(fresh.values())


def _decide(proposal: Proposal, state: str, by: Actor, *, reason: str = "") -> None:
    changed = (
        Proposal.objects.open()
        .filter(pk=proposal.pk)
        .update(state=state, decided_at=timezone.now(), decided_by_id=by.member_pk, decision_reason=reason)
    )
    if changed:
        return
    if proposal.state == "superseded":
        raise StaleProposal(proposal.public_id)
    raise AlreadyDecided(proposal.public_id)


def _delete(note: Note, *, reason: str) -> Revision:
    note.deleted_at = timezone.now()
    note.save(update_fields=["deleted_at"])
    _bury(note, {None}, reason)
    for waiting in note.proposals.open():
        supersede(waiting, reason="The note was deleted.")
    assert note.current is not None, "only a note with a text is deleted"  # noqa: S101
    return note.current


def _bury(note: Note, unwanted: set[str] | set[None], reason: str) -> None:
    known = set(note.tombstones.values_list("line", flat=True))
    Tombstone.objects.bulk_create(
        Tombstone(tenant_id=note.tenant_id, note=note, line=line, reason=reason)
        for line in sorted(unwanted - known, key=str)
    )


def _take_out(note: Note, text: str, *before: Proposal | Revision | None) -> None:
    """Remember which lines of these texts a person did not let stand in the new one."""
    gone = {lines.substance(line) for one in before if one for line in lines.taken_out(text, one.text)}
    _bury(note, gone, "Taken out by a person.")


def _note_at(tenant: Tenant, path: paths.NotePath, member: Member | None) -> Note:
    note, is_new = Note.objects.get_or_create(
        tenant=tenant, member=member, path_key=path.key, defaults={"path": path.shown}
    )
    if is_new:
        note.project = project_of(note)
        note.save(update_fields=["project"])
    return note


def _locked(note: Note) -> Note:
    return Note.objects.select_for_update(of=("self",)).select_related("current").get(pk=note.pk)


def _id(revision: Revision | None) -> str:
    return revision.public_id if revision else ""


def _live(note: Note) -> Revision | None:
    """The approved text; a deleted note has none."""
    return note.current if note.deleted_at is None else None


def _as_proposed(proposal: Proposal, by: Actor) -> Version:
    author = Author(proposal.author_kind, proposal.author_id, proposal.author_label)
    return Version(proposal.text, author, APPROVED, _approver(by), proposal.reason)


def _by_person(text: str, by: Actor) -> Version:
    return Version(text, Author(by.kind, by.id, by.label), APPROVED, _approver(by))


def _approver(by: Actor) -> Member | None:
    return Member.objects.filter(pk=by.member_pk).first() if by.member_pk else None


def _require_own(member: Member | None, by: Actor) -> None:
    """Into a private space only its member and their agents write, and the team's dreams."""
    if member is not None and by.kind != "dream" and by.member_pk != str(member.pk):
        raise access.Refused("note.propose")


def _may(by: Actor, action: str, note: Note) -> bool:
    """In their own space members decide, whatever their role; nobody else sees it."""
    if note.member_id is None:
        return by.may(action)
    return by.kind == "member" and by.member_pk == str(note.member_id) and by.may("note.propose")


def _require_may(by: Actor, action: str, note: Note) -> None:
    if not _may(by, action, note):
        raise access.Refused(action)
