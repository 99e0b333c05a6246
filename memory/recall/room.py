"""Whether the profile still fits what a session is told at its start."""

from dataclasses import dataclass

from django.db.models import Sum
from django.db.models.functions import Length

from memory.notes.reach import below
from memory.recall.compose import BUDGET
from memory.recall.scope import within_reach


@dataclass(frozen=True)
class Room:
    """Characters of the profile notes a member's sessions are told, and how many there is room for."""

    used: int
    budget: int = BUDGET

    @property
    def is_over(self) -> bool:
        return self.used > self.budget


def profile_room(member_pk: str | None) -> Room:
    """The room that the team's profile and this member's own take. Past it, notes are listed instead of told."""
    profile = below(within_reach([], member_pk), "profile")
    return Room(profile.aggregate(size=Sum(Length("current__text")))["size"] or 0)
