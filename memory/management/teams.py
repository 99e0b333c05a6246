"""What the commands about one team share."""

from collections.abc import Callable
from typing import TypeVar

from django.core.management.base import CommandError

from memory.ops import teams

Outcome = TypeVar("Outcome")


def changed(slug: str, change: Callable[[teams.Team], Outcome]) -> Outcome:
    """What a change of the team gave. Raises CommandError where there is no such team, or it can't be."""
    found = teams.on_server(slug)
    if not found:
        raise CommandError(f"There is no team {slug!r}. manage.py tenants lists them.")
    try:
        return change(found[0])
    except teams.Refused as why:
        raise CommandError(str(why)) from why
