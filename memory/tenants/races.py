"""Requests that met at one row or lock: the database refuses one of them, and it comes again."""

from collections.abc import Callable
from typing import Final, TypeVar

import psycopg
from django.db import Error
from psycopg.errors import DeadlockDetected, SerializationFailure, UniqueViolation

Answer = TypeVar("Answer")
RACES: Final = (DeadlockDetected, SerializationFailure, UniqueViolation)
ATTEMPTS: Final = 5


def is_race(exc: BaseException) -> bool:
    """Whether the database refused it only because another transaction was there first.

    Django wraps what psycopg raises; the hot doors meet psycopg's own.
    """
    return isinstance(exc, RACES) or isinstance(exc.__cause__, RACES)


def persistently(attempt: Callable[[], Answer]) -> Answer:
    """The attempt's answer. Of two that give one identity to two things, or lock crosswise, one has to come again."""
    for _ in range(ATTEMPTS - 1):
        try:
            return attempt()
        except (Error, psycopg.Error) as error:
            if not is_race(error):
                raise
    return attempt()
