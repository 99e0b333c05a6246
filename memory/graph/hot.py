"""One round trip to the database by psycopg's own cursor: what the hot doors and their verbs share."""

from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from django.db import connection

from memory.tenants.access import MAY, SCOPES

Asking = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]


def rows(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Rows of a statement; parameters go binary and beside the statement, which the server keeps prepared."""
    connection.ensure_connection()
    with psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(sql.encode(), values, prepare=True)
        return cursor.fetchall()


def apart(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """As `rows`, on a connection of the pool that Django need not know of: its opening and closing cost as much."""
    pool = None if connection.connection is not None else connection.pool  # type: ignore[attr-defined]
    if pool is None:
        return rows(sql, values)
    if pool.closed:
        pool.open()
    lent = pool.getconn()
    try:
        # Django lends its connections with autocommit off or on, as the last one had it.
        if not lent.autocommit:
            lent.autocommit = True
        with psycopg.Cursor(lent) as cursor:
            cursor.execute(sql.encode(), values, prepare=True)
            return cursor.fetchall()
    finally:
        pool.putconn(lent)


def row(sql: str, values: Sequence[Any]) -> tuple[Any, ...]:
    """The one row of a statement."""
    return rows(sql, values)[0]


def roles(action: str) -> list[str]:
    """Whose key's owner may do the action."""
    return sorted(MAY[action] - {"agent", "dream"})


def literals(*lists: list[str]) -> str:
    """Lists of our own words as SQL: as parameters they would be packed anew for each call."""
    return ", ".join("'{" + ",".join(words) + "}'::text[]" for words in lists)


def scopes(action: str) -> list[str]:
    """The scopes that open the action."""
    return sorted(scope for scope, actions in SCOPES.items() if action in actions)
