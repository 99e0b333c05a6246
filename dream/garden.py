"""The gardener: looks through a team's notes once a day and says what a person should look at. It edits nothing.

Rules find what is nearly the same, too long, told to nobody, or rests on a file that changed; a model, where there is
one, finds what contradicts. Findings are kept once and become labels; where a note stands whole in another one, its
deletion is proposed. Whoever takes over from a worker that died looks again, and finds nothing twice.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.db.models import F
from django.utils import timezone

from dream import budget, garden_files, garden_mind, garden_rules
from dream.mind import MindFailed, ModelMind, chosen
from dream.models import Folder, Gardening
from memory import tokens
from memory.llm import UnknownModel, Usage
from memory.notes import findings, review, rules
from memory.notes.findings import Found
from memory.notes.models import Finding, Note
from memory.sentences import sentence
from memory.tenants import access, audit, choices, due
from memory.tenants.access import Actor, gardener_actor
from memory.tenants.due import Claim, LeaseLost
from memory.tenants.models import Due, Tenant
from memory.tenants.rls import tenant_scope

log = logging.getLogger(__name__)
TASK: Final = "garden"
BY_RULE: Final = ("near_duplicate", "too_long", "untold", "stale_file")
MOST_ATTEMPTS: Final = 5
KEPT: Final = 50
# Vectors are made behind the notes: one that came without is looked at once more.
VECTORS_LATER: Final = timedelta(days=1)


class AlreadyRunning(Exception):
    """Somebody is at it."""


def start(tenant: Tenant, *, by: Actor) -> None:
    """Have a worker look through the notes now. Raises Refused. The tenant must be bound."""
    access.require(by, "dream.start")
    due.put(str(tenant.pk), TASK)
    audit.record(by, "garden.start")


def is_running(tenant_pk: str) -> bool:
    """Whether a look is due or somebody is at it."""
    return Due.objects.filter(tenant_id=tenant_pk, task=TASK).exists()


def start_and_claim(tenant: Tenant, *, by: Actor) -> Claim:
    """The same for this process, outside any transaction. Raises Refused, AlreadyRunning."""
    with tenant_scope(str(tenant.pk)):
        start(tenant, by=by)
        pk = str(Due.objects.get(tenant=tenant, task=TASK).pk)
    claim = due.claim(str(tenant.pk), pk)
    if claim is None:
        raise AlreadyRunning
    return claim


def perform(claim: Claim, *, asked_by: str = "schedule") -> Gardening | None:
    """Look through the notes that the claim is about; None where another worker has it."""
    try:
        with due.heartbeat(claim):
            return _Gardener(claim, _begin(claim, asked_by)).look()
    except LeaseLost:
        log.warning("another worker took the gardener's look over")
        return None


def _begin(claim: Claim, asked_by: str) -> Gardening:
    with tenant_scope(claim.tenant_pk):
        run = Gardening.objects.filter(finished_at__isnull=True).order_by("-started_at").first()
        if run is None:
            run = Gardening.objects.create(
                tenant_id=claim.tenant_pk, asked_by=asked_by[:200], started_at=timezone.now()
            )
        beyond = Gardening.objects.order_by("-started_at").values_list("pk", flat=True)[KEPT:]
        Gardening.objects.filter(pk__in=list(beyond)).delete()
    return run


@dataclass
class _Gardener:
    """One look, with what was left out of it."""

    claim: Claim
    run: Gardening
    told: list[str] = field(default_factory=list)

    @property
    def by(self) -> Actor:
        return gardener_actor(Tenant(pk=self.claim.tenant_pk), self.run.public_id)

    def look(self) -> Gardening:
        if self.claim.attempts > MOST_ATTEMPTS:
            self.told.append(
                sentence(
                    "%(many)s workers ended while they were at it. The rest waits for tomorrow.",
                    many=self.claim.attempts - 1,
                )
            )
            return self._end()
        notes = self._by_rule()
        try:
            mind = chosen(tenant_pk=self.claim.tenant_pk)
        except UnknownModel as why:
            self.told.append(sentence("No contradictions: %(why)s", why=why))
        else:
            if isinstance(mind, ModelMind):
                self._by_model(notes, mind.with_instructions(garden_mind.INSTRUCTIONS))
            else:
                self.told.append(sentence("Contradictions are found by a model, and none is set."))
        return self._end()

    def _by_rule(self) -> list[Note]:
        with tenant_scope(self.claim.tenant_pk):
            due.hold(self.claim)
            tenant = Tenant.objects.get(pk=self.claim.tenant_pk)
            rows = Note.objects.live().filter(tenant=tenant).select_related("current", "project")
            notes = list(rows.order_by("path_key", "pk"))
            found = [*self._duplicates(notes), *garden_rules.too_long(notes), *garden_files.stale(notes)]
            days = choices.number(tenant, "garden_untold_days")
            found += garden_rules.untold(notes, days=days, now=timezone.now())
            self._keep([*found, *_still(notes)], (*BY_RULE, "contradiction"))
            Gardening.objects.filter(pk=self.run.pk).update(notes_read=len(notes))
        return notes

    def _duplicates(self, notes: Sequence[Note]) -> list[Found]:
        """Pairs with a note that changed since the last look; what was found before and reads as it did is kept."""
        before = Gardening.objects.filter(finished_at__isnull=False).order_by("-started_at").first()
        texts = [garden_rules.Text.of(note) for note in notes]
        fresh = [note for note in notes if before is None or _written(note) > before.started_at]
        late = [note for note in notes if before is None or _written(note) > before.started_at - VECTORS_LATER]
        alike = garden_rules.alike([str(note.pk) for note in late])
        return garden_rules.near_duplicates(texts, {str(note.pk) for note in fresh}, alike)

    def _keep(self, found: Sequence[Found], kinds: Sequence[str]) -> None:
        tenant = Tenant(pk=self.claim.tenant_pk)
        kept = findings.keep(tenant, found, kinds=kinds, by=self.run.public_id)
        by_print = {one.fingerprint: one for one in found}
        proposed = sum(self._propose(row, by_print[row.fingerprint]) for row in kept.new)
        Gardening.objects.filter(pk=self.run.pk).update(
            found=F("found") + len(kept.new), gone=F("gone") + kept.gone, proposed=F("proposed") + proposed
        )

    def _propose(self, row: Finding, found: Found) -> bool:
        """Propose that a note goes whose every line stands in another one. Others keep their label."""
        note = found.note
        is_theirs = note.member_id is not None or note.is_pinned or note.path_key.startswith("profile/")
        if found.kind != "near_duplicate" or is_theirs or not garden_rules.says_all(found):
            return False
        draft = review.Draft(note.path, "", reason=f"{found.words} {sentence('So it can go.')}", operation="delete")
        try:
            made = review.propose(Tenant(pk=self.claim.tenant_pk), draft, by=self.by)
        except rules.Locked:
            return False
        if made is None or made.author_id != self.run.public_id:
            return False
        Finding.objects.filter(pk=row.pk).update(proposal=made)
        return True

    def _by_model(self, notes: Sequence[Note], mind: ModelMind) -> None:
        """Ask about each folder that reads otherwise than when it was last asked about, those never asked first."""
        with tenant_scope(self.claim.tenant_pk):
            most = choices.number(Tenant(pk=self.claim.tenant_pk), "garden_tokens")
            asked = {row.path: row for row in Folder.objects.all()}
            Gardening.objects.filter(pk=self.run.pk).update(model=mind.model[:120])
        wanted = [one for one in garden_mind.folders(notes) if _is_news(one, asked.get(one.path))]
        wanted.sort(
            key=lambda one: (one.path in asked, asked[one.path].read_at.timestamp() if one.path in asked else 0.0)
        )
        used = 0
        for number, folder in enumerate(wanted):
            sent = sum(tokens.counts([mind.instructions, folder.question]))
            if used + sent > most:
                self.told.append(_unread(len(wanted) - number, most))
                return
            try:
                found, usage = mind.talk(folder.question, garden_mind.reader(folder), self._meter())
            except MindFailed as why:
                self._spend(why.usage)
                self.told.append(sentence("Contradictions in %(path)s: %(why)s", path=folder.path, why=why))
                if not why.blames:
                    return
                continue
            used += usage.sent + usage.received
            self._read(folder, found, usage)

    def _meter(self) -> budget.TeamMeter:
        return budget.TeamMeter(self.claim.tenant_pk)

    def _read(self, folder: garden_mind.Folder, found: Sequence[Found], usage: Usage) -> None:
        with tenant_scope(self.claim.tenant_pk):
            due.hold(self.claim)
            self._keep(found, ())
            Folder.objects.update_or_create(
                tenant_id=self.claim.tenant_pk, path=folder.path[:300], defaults={"fingerprint": folder.fingerprint}
            )
            self._count(usage)

    def _spend(self, usage: Usage) -> None:
        with tenant_scope(self.claim.tenant_pk):
            due.hold(self.claim)
            self._count(usage)

    def _count(self, usage: Usage) -> None:
        Gardening.objects.filter(pk=self.run.pk).update(
            tokens_in=F("tokens_in") + usage.sent,
            tokens_out=F("tokens_out") + usage.received,
            tokens_cached=F("tokens_cached") + usage.cached,
            cost=F("cost") + usage.cost,
        )

    def _end(self) -> Gardening:
        with tenant_scope(self.claim.tenant_pk):
            due.hold(self.claim)
            Gardening.objects.filter(pk=self.run.pk).update(
                finished_at=timezone.now(), told="\n".join(self.told)[:4000]
            )
            due.done(self.claim)
            self.run.refresh_from_db()
        return self.run


def _written(note: Note) -> datetime:
    assert note.current is not None, "only live notes are looked at"  # noqa: S101
    return note.current.created_at


def _is_news(folder: garden_mind.Folder, before: Folder | None) -> bool:
    return before is None or before.fingerprint != folder.fingerprint


def _still(notes: Sequence[Note]) -> list[Found]:
    """What was found before and still holds, though nobody looked for it again: both texts, or both lines, stand."""
    by_pk = {str(note.pk): note for note in notes}
    held = []
    for row in Finding.objects.filter(state="open", kind__in=("near_duplicate", "contradiction")):
        note, other = by_pk.get(str(row.note_id)), by_pk.get(str(row.other_id))
        if note is None or (row.other_id and other is None):
            continue
        if row.kind == "contradiction":
            ends = zip((note, other or note), row.lines, strict=True)
            if all(garden_mind.standing(one, line) for one, line in ends):
                held.append(Found(row.kind, note, row.words, garden_mind.key_of(row.lines), other))
        elif row.kind == "near_duplicate" and other is not None:
            key = garden_rules.key_of(note, other)
            if (one := Found(row.kind, note, row.words, key, other)).fingerprint == row.fingerprint:
                held.append(one)
    return held


def _unread(folders: int, most: int) -> str:
    allowed = f"{most:,}"
    if folders == 1:
        return sentence("1 folder was not read for contradictions: %(most)s tokens a look are allowed.", most=allowed)
    return sentence(
        "%(many)s folders were not read for contradictions: %(most)s tokens a look are allowed.",
        many=folders,
        most=allowed,
    )
