"""One round trip to the database: the hot doors and the key check share it.

A statement is prepared and asked by libpq's own calls, which release the GIL while they wait: psycopg's cursor asks for
the same rows by a generator and a poll, and takes 26 us of processor for it where this takes 10.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

import psycopg
from django.db import connection
from psycopg import abc
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import InvalidSqlStatementName, error_from_result
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus

Asking = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
Rows = list[tuple[Any, ...]]


@dataclass
class _Asker:
    """What one connection has prepared, and what packs and unpacks its values."""

    packing: abc.Transformer
    names: dict[tuple[str, tuple[int, ...]], bytes] = field(default_factory=dict)


_MARKS: Final = re.compile("%([sbt])")
_FORMATS: Final = {"s": PyFormat.AUTO, "b": PyFormat.BINARY, "t": PyFormat.TEXT}
_askers: "WeakKeyDictionary[psycopg.Connection[Any], _Asker]" = WeakKeyDictionary()
_spelt: dict[str, tuple[bytes, list[PyFormat]]] = {}


def rows(sql: str, values: Sequence[Any]) -> Rows:
    """Rows of a statement; parameters go beside it, `%b` binary and `%t` as text, and the server keeps it prepared."""
    connection.ensure_connection()
    on = connection.connection
    if on.autocommit and on.pgconn.transaction_status == TransactionStatus.IDLE:
        return _asked(on, sql, values)
    # Inside a transaction psycopg has to begin it, and keeps account of what a rollback takes away.
    with psycopg.Cursor(on) as cursor:
        cursor.execute(sql.encode(), values, prepare=True)
        return cursor.fetchall()


def apart(sql: str, values: Sequence[Any]) -> Rows:
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
        return _asked(lent, sql, values)
    finally:
        pool.putconn(lent)


def _asked(on: psycopg.Connection[Any], sql: str, values: Sequence[Any]) -> Rows:
    """The rows, asked outside a transaction. Raises psycopg.Error."""
    asker = _askers.get(on)
    if asker is None:
        asker = _askers[on] = _Asker(Transformer(on))
    try:
        return _once(on, asker, sql, values)
    except InvalidSqlStatementName:
        # psycopg forgets all that is prepared after a rollback, ours with it. Nothing was done yet.
        asker.names.clear()
        return _once(on, asker, sql, values)


def _once(on: psycopg.Connection[Any], asker: _Asker, sql: str, values: Sequence[Any]) -> Rows:
    statement, formats = _spelling(sql)
    packing = asker.packing
    raw: Any = on.pgconn  # a value may be None, which the protocol of psycopg leaves out
    packed = packing.dump_sequence(values, formats)
    types = packing.types or ()
    name = asker.names.get((sql, types))
    if name is None:
        name = f"trip_{len(asker.names)}".encode()
        _result(on, raw.prepare(name, statement, types), ExecStatus.COMMAND_OK)
        asker.names[sql, types] = name
    found = _result(on, raw.exec_prepared(name, packed, packing.formats), ExecStatus.TUPLES_OK)
    packing.set_pgresult(found)
    try:
        return packing.load_rows(0, found.ntuples, tuple)
    finally:
        # A kept result would hold its rows until the next call of this connection.
        packing.set_pgresult(None)


def _spelling(sql: str) -> tuple[bytes, list[PyFormat]]:
    """The statement with the server's own marks, and how each value is to be packed."""
    known = _spelt.get(sql)
    if known is None:
        kinds = _MARKS.findall(sql)
        numbers = iter(range(1, len(kinds) + 1))
        spelt = _MARKS.sub(lambda _: f"${next(numbers)}", sql).replace("%%", "%").encode()
        known = _spelt[sql] = spelt, [_FORMATS[kind] for kind in kinds]
    return known


def _result(on: psycopg.Connection[Any], result: Any, wanted: ExecStatus) -> Any:
    if result.status == wanted:
        return result
    if on.pgconn.status == ConnStatus.BAD:
        raise psycopg.OperationalError(result.get_error_message())
    raise error_from_result(result, encoding=on.info.encoding)
