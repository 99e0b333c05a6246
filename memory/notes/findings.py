"""What the gardener noticed about notes: kept once, shown as labels, answered by people."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_noop

from memory import redact
from memory.notes import reach
from memory.notes.holding import require_may
from memory.notes.models import Finding, FindingQuerySet, Note, Proposal
from memory.notes.publish import supersede
from memory.sentences import sentence
from memory.tenants import audit
from memory.tenants.access import Actor
from memory.tenants.models import Tenant

# Kind -> what a label says, and what the page says above the list.
LABELS: Final = {
    "contradiction": (gettext_noop("Contradiction"), gettext_noop("Two notes can't both be right")),
    "near_duplicate": (gettext_noop("Nearly the same"), gettext_noop("Two notes say the same")),
    "stale_file": (gettext_noop("File changed"), gettext_noop("The file that a note rests on reads otherwise now")),
    "too_long": (
        gettext_noop("Too long"),
        gettext_noop("A note is told whole or not at all: short ones fit more often"),
    ),
    "untold": (gettext_noop("Told to nobody"), gettext_noop("No session was told it for a long time")),
}
MOST_WORDS: Final = 500


@dataclass(frozen=True)
class Found:
    """One thing noticed. `key` tells it from all others of its kind about these notes: the texts it was seen in."""

    kind: str
    note: Note
    words: str
    key: str
    other: Note | None = None
    lines: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        whole = "\0".join((self.kind, str(self.note.pk), str(self.other.pk) if self.other else "", self.key))
        return hashlib.sha256(whole.encode()).hexdigest()


@dataclass(frozen=True)
class Kept:
    """What a look at the notes changed: new findings, and how many no longer hold."""

    new: list[Finding]
    gone: int


def keep(tenant: Tenant, found: Sequence[Found], *, kinds: Iterable[str], by: str) -> Kept:
    """Keep what was found; of the kinds that were looked for, what was not found again no longer holds.

    What a person dismissed stays dismissed, whatever is found. The tenant must be bound.
    """
    known = {(row.kind, str(row.note_id), row.fingerprint): row for row in Finding.objects.filter(tenant=tenant)}
    new, seen = [], set()
    for one in found:
        key = (one.kind, str(one.note.pk), one.fingerprint)
        row = known.get(key)
        if key in seen or (row is not None and row.state != "gone"):
            seen.add(key)
            continue
        seen.add(key)
        if row is not None:
            row.state, row.closed_at = "open", None
            row.save(update_fields=["state", "closed_at"])
            continue
        row = Finding(
            tenant=tenant,
            kind=one.kind,
            note=one.note,
            other=one.other,
            fingerprint=one.fingerprint,
            words=one.words[:MOST_WORDS],
            lines=list(one.lines),
            found_by=by,
        )
        row.save(force_insert=True)
        new.append(row)
    looked = set(kinds)
    over = [row.pk for key, row in known.items() if row.state == "open" and row.kind in looked and key not in seen]
    # What was proposed because of it would now be another proposal.
    for waiting in Proposal.objects.open().filter(findings__in=over):
        supersede(waiting, reason=sentence("What the gardener found no longer holds."))
    gone = Finding.objects.filter(pk__in=over).update(state="gone", closed_at=timezone.now())
    return Kept(new, gone)


def standing(by: Actor) -> FindingQuerySet:
    """What this person may see and somebody could answer, the gravest kind first, then the oldest."""
    visible = reach.notes(by.member_pk).present()
    rows = Finding.objects.standing().filter(Q(other__isnull=True) | Q(other__in=visible), note__in=visible)
    return rows.select_related("note__current", "note__member", "other__current", "proposal").order_by(
        "kind", "created_at", "pk"
    )


def seen(by: Actor) -> FindingQuerySet:
    """All findings on notes that this person may see, whatever became of them."""
    return Finding.objects.filter(note__in=reach.notes(by.member_pk)).select_related("note__member")


def labels(by: Actor, notes: Sequence[Note]) -> dict[str, list[Finding]]:
    """The findings of those of the notes that have any, by the note's internal key; a pair stands under both."""
    found: dict[str, list[Finding]] = {}
    keys = [note.pk for note in notes]
    for row in standing(by).filter(Q(note__in=keys) | Q(other__in=keys)):
        for pk in filter(None, (row.note_id, row.other_id)):
            found.setdefault(str(pk), []).append(row)
    return found


def about(note: Note, *, by: Actor) -> list[Finding]:
    """The findings of one note."""
    return list(standing(by).filter(Q(note=note) | Q(other=note)))


def dismiss(finding: Finding, *, answer: str, by: Actor) -> None:
    """Leave it as it is: the same is never found again. Raises Refused."""
    require_may(by, "note.approve", finding.note)
    said = redact.clean_text(answer.strip()).value[:2000]
    rows = Finding.objects.filter(pk=finding.pk, state="open")
    if rows.update(state="dismissed", closed_at=timezone.now(), closed_by_id=by.member_pk, answer=said):
        audit.record(by, "note.leave", finding.public_id, after=finding.note.public_id)
