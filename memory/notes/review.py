"""From a draft to the team's memory: agents and dreams propose, people approve, edit, reject, write, revert, delete.

Every change of a note happens under its row lock; a decision is one conditional update: of two reviewers one decides.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext

from memory import redact
from memory.notes import lines, moving, news, paths, risks, rules, texts
from memory.notes.burying import bury, take_out
from memory.notes.holding import (
    LostUpdate,
    as_proposed,
    by_person,
    id_of,
    live,
    locked,
    may,
    note_at,
    require_may,
    require_own,
)
from memory.notes.models import Note, Proposal, Revision, Rule
from memory.notes.publish import Author, Version, all_sources, digest, publish, sources_of, supersede
from memory.notes.texts import Clean, Evidence, InvalidNote, UnknownEvent
from memory.notes.vouching import is_vouched
from memory.sentences import sentence
from memory.tenants import access, audit
from memory.tenants.access import Actor
from memory.tenants.models import Member, Tenant

__all__ = ["Draft", "Evidence", "InvalidNote", "LostUpdate", "UnknownEvent"]

UNDO_FOR: Final = timedelta(seconds=60)
# Who works by itself: a closed path, and a deletion that was refused, are respected without a word.
MACHINES: Final = frozenset({"dream", "gardener"})


class AlreadyDecided(Exception):
    """The proposal was approved or rejected before."""


class StaleProposal(Exception):
    """The text on the screen is no longer what the proposal says; show it again."""


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
    # Where a move goes.
    target: str = ""


def propose(tenant: Tenant, draft: Draft, *, by: Actor) -> Proposal | None:
    """The proposal that now waits for a decision, or None where nothing would change.

    It takes the place of the open proposal of the same kind of author; the text of the old one stays readable. Raises
    Refused, InvalidPath, InvalidNote, UnknownEvent, LostUpdate (a `base` that never was), Locked. Where a rule lets it
    in by itself, the proposal that comes back is approved already.
    """
    access.require(by, "note.propose")
    require_own(draft.member, by)
    path = paths.clean_path(draft.path)
    clean = texts.clean(draft.text, by) if draft.operation == "write" else Clean("", 0)
    with transaction.atomic():
        note = locked(note_at(tenant, path, draft.member))
        verdict = rules.verdict(note)
        if by.kind in MACHINES and (verdict.mode == "locked" or _is_closed(note, draft, by)):
            return None
        rules.require_open(note)
        wanted = _wanted(note, draft, clean.text, by)
        if wanted is None:
            return None
        proposal = _queue(note, draft, wanted, by, redactions=clean.redactions)
        return _let_in(note, proposal, by) if verdict.mode == "auto" and _is_harmless(note, proposal) else proposal


def approve(proposal: Proposal, *, by: Actor, shown: str) -> Revision | None:
    """Let the proposal in as it stood on the screen (`shown`: hex SHA-256 of its text). The revision is T0.

    Approving a deletion gives the revision that was deleted. None: a rule asks for two people, and this was the first.
    Raises Refused, AlreadyDecided, StaleProposal, Locked.
    """
    return _accept(proposal, by=by, shown=shown, text=None)


def edit_and_approve(proposal: Proposal, *, text: str, by: Actor, shown: str) -> Revision | None:
    """Let the proposal in with a person's changes. Raises as `approve`, and InvalidNote."""
    return _accept(proposal, by=by, shown=shown, text=texts.clean(text, by).text)


def reject(proposal: Proposal, *, by: Actor, reason: str, close_path: bool = False) -> None:
    """Turn the proposal down; what it newly said will not be proposed by a dream again.

    `close_path` keeps dreams away from the whole note. Raises Refused, AlreadyDecided.
    """
    with transaction.atomic():
        note = locked(proposal.note)
        _require_decider(by, note, proposal.target)
        proposal = note.proposals.select_related("base").get(pk=proposal.pk)
        reason = redact.brief(reason, 2000)
        _decide(proposal, "rejected", by, reason=reason)
        unwanted = lines.new_statements(proposal.text, proposal.base.text if proposal.base else "")
        if proposal.operation == "write":
            bury(note, {lines.substance(line) for line in unwanted}, reason, proposal=proposal)
        if close_path:
            bury(note, {None}, reason, proposal=proposal)
        audit.record(by, "note.reject", proposal.public_id, before=proposal.sha256.hex(), after=note.public_id)


def write(
    tenant: Tenant, *, path: str, text: str, by: Actor, member: Member | None = None, base: int | None
) -> Revision:
    """A person's own edit, at once. `base` is the revision number that was edited, None for a new note.

    Raises Refused, InvalidPath, InvalidNote, LostUpdate, Locked, NeedsTwo.
    """
    clean_path = paths.clean_path(path)
    require_own(member, by)
    if member is None:
        access.require(by, "note.edit")
    clean = texts.clean(text, by)
    with transaction.atomic():
        note = locked(note_at(tenant, clean_path, member))
        require_may(by, "note.edit", note)
        rules.require_one(note, by)
        current = live(note)
        if base != (current.number if current else None):
            raise LostUpdate(current.number if current else None)
        if current is not None and current.text == clean.text:
            return current
        revision = publish(note, by_person(clean.text, by), sources=sources_of(note))
        take_out(note, clean.text, current)
        audit.record(by, "note.write", note.public_id, before=id_of(current), after=revision.public_id)
        return revision


def revert(note: Note, *, to: Revision, by: Actor) -> Revision:
    """A new revision with the bytes of an old one. A deleted note comes back. Raises Refused, ValueError."""
    if str(to.note_id) != str(note.pk):
        raise ValueError(gettext("The revision is of another note."))
    if to.blanked_at is not None:
        raise ValueError(gettext("The words of this revision were taken out."))
    with transaction.atomic():
        note = locked(note)
        require_may(by, "note.revert", note)
        rules.require_one(note, by)
        before = note.current
        if before is not None and before.text == to.text and note.deleted_at is None:
            return before
        version = replace(by_person(to.text, by), reason=sentence("Back to revision %(number)s.", number=to.number))
        was = live(note)
        revision = publish(note, version, sources=list(to.sources.order_by("position", "pk")))
        take_out(note, to.text, was)
        audit.record(by, "note.revert", note.public_id, before=id_of(before), after=revision.public_id)
        return revision


def delete(note: Note, *, by: Actor, reason: str) -> None:
    """Take the note out of memory; its history stays, and dreams leave the path alone. Raises Refused."""
    with transaction.atomic():
        note = locked(note)
        require_may(by, "note.delete", note)
        rules.require_one(note, by)
        _delete(note, reason=redact.brief(reason, 2000))
        audit.record(by, "note.delete", note.public_id, before=id_of(note.current))


def may_decide(by: Actor, note: Note, target: str = "") -> bool:
    """True where the actor may approve and reject what is proposed for this note; `target` is where it shall go."""
    return may(by, "note.approve", note) and rules.verdict(note, target).lets_decide(by)


def decides(by: Actor, tenant_pk: str) -> Callable[[Note], bool]:
    """`may_decide` for many notes of a team, whose rules are read once."""
    known = list(Rule.objects.filter(tenant_id=tenant_pk).order_by("position", "glob"))

    def asked(note: Note) -> bool:
        verdict = rules.first(known, note.path_key) if note.member_id is None else rules.DEFAULT
        return may(by, "note.approve", note) and verdict.lets_decide(by)

    return asked


def _require_decider(by: Actor, note: Note, target: str) -> rules.Verdict:
    require_may(by, "note.approve", note)
    verdict = rules.verdict(note, target)
    if not verdict.lets_decide(by):
        raise access.Refused("note.approve")
    return verdict


def _accept(proposal: Proposal, *, by: Actor, shown: str, text: str | None) -> Revision | None:
    with transaction.atomic():
        note = locked(proposal.note)
        verdict = _require_decider(by, note, proposal.target)
        rules.require_open(note, proposal.target)
        proposal = note.proposals.get(pk=proposal.pk)
        current = live(note)
        before = note.current
        if proposal.state == "open" and (
            shown != bytes(proposal.sha256).hex() or proposal.base_id != (current.pk if current else None)
        ):
            raise StaleProposal(proposal.public_id)
        if proposal.state == "open" and verdict.four_eyes and _is_first(proposal, by, text):
            return None
        _decide(proposal, "approved", by)
        if proposal.operation == "delete" and text is None:
            revision = _delete(note, reason=proposal.reason, proposal=proposal)
        elif proposal.operation == "move":
            assert current is not None, "only a note with a text is moved"  # noqa: S101
            revision = current
            moving.apply(note, paths.clean_path(proposal.target), by=by)
        else:
            version = by_person(text, by) if text is not None else as_proposed(proposal, by)
            sources = all_sources(list(proposal.sources.order_by("position", "pk")), sources_of(note))
            revision = publish(note, version, sources=sources)
            # A dream may drop a line and bring it back; what people leave out stays out.
            before_it = [] if proposal.author_kind == "dream" else [current]
            take_out(note, version.text, proposal, *before_it, proposal=proposal)
        audit.record(by, "note.approve", proposal.public_id, before=id_of(before), after=revision.public_id)
        return revision


def _is_first(proposal: Proposal, by: Actor, text: str | None) -> bool:
    """True where this person is the first of two. Raises Refused for the author and for the same person again."""
    if proposal.author_id == by.id or str(proposal.seen_by_id) == by.member_pk:
        raise access.Refused("note.approve")
    # Who changes the text has seen another one than the first person did.
    if proposal.seen_by_id is not None and text is None:
        return False
    if text is not None:
        raise rules.NeedsTwo(
            gettext("Two people decide here: propose your text as a change of its own, and another approves.")
        )
    Proposal.objects.open().filter(pk=proposal.pk).update(seen_by_id=by.member_pk)
    audit.record(by, "note.approve", proposal.public_id, after="first of two")
    return True


def _is_harmless(note: Note, proposal: Proposal) -> bool:
    """True for what a rule may let in by itself: without a label, and proposed by a person or said by two.

    Not what tools, the web or an agent said, however harmless it reads: detectors miss most poisoned notes. And never
    a profile, which every session is told, and never a deletion or a move.
    """
    if proposal.state != "open" or proposal.operation != "write" or proposal.risks:
        return False
    if proposal.tier > rules.WORST_AUTO_TIER or note.path_key.startswith("profile/"):
        return False
    if proposal.author_kind == "member":
        return True
    old = proposal.base.text if proposal.base else ""
    sources = proposal.sources.select_related("event__session")
    return proposal.author_kind == "dream" and is_vouched(proposal.text, old, path=note.path, sources=sources)


def _let_in(note: Note, proposal: Proposal, by: Actor) -> Proposal:
    _decide(proposal, "approved", replace(by, member_pk=None), reason=sentence("Let in by a rule."))
    author = Author(proposal.author_kind, proposal.author_id, proposal.author_label)
    before = note.current
    version = Version(proposal.text, author, proposal.tier, None, proposal.reason)
    revision = publish(note, version, sources=all_sources(list(proposal.sources.all()), sources_of(note)))
    audit.record(by, "note.let_in", proposal.public_id, before=id_of(before), after=revision.public_id)
    proposal.refresh_from_db()
    return proposal


def _queue(note: Note, draft: Draft, wanted: lines.Merged, by: Actor, *, redactions: int) -> Proposal:
    current = live(note)
    waiting = note.proposals.open().filter(author_kind=by.kind).first()
    is_same = waiting is not None and (waiting.text, waiting.operation, waiting.base_id, waiting.target) == (
        wanted.text,
        draft.operation,
        current.pk if current else None,
        draft.target,
    )
    if waiting is not None and is_same:
        texts.cite(waiting, draft.evidence)
        return waiting
    tier = max((evidence.tier for evidence in draft.evidence), default=texts.UNCITED.get(by.kind, 2))
    change = risks.Change(
        path=note.path,
        text=wanted.text,
        old=current.text if current else "",
        tier=tier,
        is_delete=draft.operation == "delete",
        target=draft.target,
        old_is_by_people=current is not None and current.author_kind == "member",
        redactions=redactions,
        gave_way=wanted.gave_way,
    )
    proposal = Proposal(
        tenant_id=note.tenant_id,
        note=note,
        operation=draft.operation,
        target=draft.target,
        base=current,
        text=wanted.text,
        sha256=digest(wanted.text),
        reason=redact.brief(draft.reason, 2000),
        tier=tier,
        risks=risks.stored(risks.labels(change)),
        author_kind=by.kind,
        author_id=by.id,
        author_label=by.label[:200],
    )
    if waiting is not None:
        supersede(waiting, reason=sentence("Replaced by %(public_id)s.", public_id=proposal.public_id))
        proposal.assigned_to_id, proposal.assigned_at = waiting.assigned_to_id, waiting.assigned_at
        proposal.assigned_by = waiting.assigned_by
    proposal.save(force_insert=True)
    news.tell(str(note.tenant_id), "review", str(proposal.pk))
    texts.cite(proposal, draft.evidence)
    audit.record(by, "note.propose", proposal.public_id, after=note.public_id)
    return proposal


def _is_closed(note: Note, draft: Draft, by: Actor) -> bool:
    """True where people told dreams to leave the path, or this deletion, alone."""
    if note.deleted_at or note.tombstones.filter(line__isnull=True).exists():
        return True
    refused = note.proposals.filter(author_kind=by.kind, operation="delete", state="rejected", base=note.current)
    return draft.operation == "delete" and refused.exists()


def _wanted(note: Note, draft: Draft, text: str, by: Actor) -> lines.Merged | None:
    """What the note would say, or None where that is what it says."""
    current = live(note)
    if draft.operation != "write":
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


def _delete(note: Note, *, reason: str, proposal: Proposal | None = None) -> Revision:
    note.deleted_at = timezone.now()
    note.save(update_fields=["deleted_at"])
    bury(note, {None}, reason, proposal=proposal)
    for waiting in note.proposals.open():
        supersede(waiting, reason=sentence("The note was deleted."))
    assert note.current is not None, "only a note with a text is deleted"  # noqa: S101
    return note.current
