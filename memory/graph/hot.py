"""One round trip to the database by psycopg's own cursor: what the hot doors and their verbs share."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import psycopg
from django.db import Error

from memory.tenants.access import MAY, SCOPES
from memory.tenants.door import is_race
from memory.tenants.trip import Asking as Asking
from memory.tenants.trip import apart as apart
from memory.tenants.trip import rows as rows

Answer = TypeVar("Answer")
_ATTEMPTS: Final = 5


def row(sql: str, values: Sequence[Any]) -> tuple[Any, ...]:
    """The one row of a statement."""
    return rows(sql, values)[0]


def persistently(attempt: Callable[[], Answer]) -> Answer:
    """Of two that give one identity to two things, or open the same threads crosswise, one has to come again."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return attempt()
        except (Error, psycopg.Error) as error:
            if not is_race(error):
                raise
    return attempt()


def roles(action: str) -> list[str]:
    """Whose key's owner may do the action."""
    return sorted(MAY[action] - {"agent", "dream"})


def literals(*lists: list[str]) -> str:
    """Lists of our own words as SQL: as parameters they would be packed anew for each call."""
    return ", ".join("'{" + ",".join(words) + "}'::text[]" for words in lists)


def scopes(action: str) -> list[str]:
    """The scopes that open the action."""
    return sorted(scope for scope, actions in SCOPES.items() if action in actions)
