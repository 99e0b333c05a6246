"""One round trip to the database by psycopg's own cursor: the hot doors and the key check share it."""

from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from django.db import connection

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
