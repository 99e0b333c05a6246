"""Approving what a run proposes, all at once, by somebody who has seen all of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db import transaction
from django.utils.translation import gettext

from dream import reading
from dream.models import Change, Run
from memory.notes import review, rules
from memory.tenants import access, audit
from memory.tenants.access import Actor, Refused


class NothingShown(ValueError):
    """No proposal was named."""


@dataclass(frozen=True)
class Left:
    """A proposal that was not approved, and why."""

    change: Change
    why: str


@dataclass(frozen=True)
class Decided:
    """What became of a run's proposals."""

    approved: int
    seconded: int
    left: list[Left]


def waiting(run: Run, *, by: Actor) -> list[Change]:
    """The changes of a run that wait and that this person may decide, each with its proposal."""
    return open_of(reading.changes(run, by=by), by=by)


def open_of(changes: Iterable[Change], *, by: Actor) -> list[Change]:
    """Of these changes the same."""
    rows = [change for change in changes if change.proposal and change.proposal.state == "open"]
    lets = review.decides(by, by.tenant_pk) if rows else None
    return [change for change in rows if lets and change.proposal and lets(change.proposal.note)]


def approve(run: Run, shown: Mapping[str, str], *, by: Actor) -> Decided:
    """Approve the proposals of a run that are named, each as it stood on the screen (id -> hex SHA-256 of its text).

    What changed meanwhile, or may not be decided by this person, is left and said. Raises NothingShown.
    """
    access.require(by, "note.propose")
    if not shown:
        raise NothingShown(gettext("Check at least one proposal."))
    approved = seconded = 0
    left: list[Left] = []
    for change in waiting(run, by=by):
        proposal = change.proposal
        if proposal is None or proposal.public_id not in shown:
            continue
        try:
            # Each by itself: one that is refused takes none of the others with it.
            with transaction.atomic():
                made = review.approve(proposal, by=by, shown=shown[proposal.public_id])
        except review.AlreadyDecided:
            left.append(Left(change, gettext("somebody decided it before you")))
        except review.StaleProposal:
            left.append(Left(change, gettext("its text changed since you saw it")))
        except rules.Locked:
            left.append(Left(change, gettext("its path is locked")))
        except Refused:
            left.append(Left(change, gettext("another person has to approve it")))
        else:
            approved += made is not None
            seconded += made is None
    audit.record(by, "dream.approve", run.public_id, after=f"{approved} approved, {len(left)} left")
    return Decided(approved, seconded, left)
