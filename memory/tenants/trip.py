"""One round trip to the database: the hot doors and the key check share it.

A statement is prepared and asked by libpq's own calls, which release the GIL while they wait: psycopg's cursor asks for
the same rows by a generator and a poll, and takes 26 us of processor for it where this takes 10.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final
from weakref import WeakKeyDictionary

import psycopg
from django.db import connection
from psycopg import abc
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import DuplicatePreparedStatement, InvalidSqlStatementName, error_from_result
from psycopg.pq import DiagnosticField, ExecStatus, TransactionStatus

Asking = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class _Adapters:
    """How a connection's values are packed and unpacked, without the connection: what its asker holds on to would never
    be let go.
    """

    adapters: psycopg.adapt.AdaptersMap
    connection: None = None


@dataclass
class _Asker:
    """What one connection has prepared, and what packs and unpacks its values."""

    packing: abc.Transformer
    names: dict[tuple[bytes, tuple[int, ...]], bytes] = field(default_factory=dict)
    missed: int = 0


# What was prepared and is gone so often goes by a pooler whose sessions are not ours: nothing is prepared any more.
_MOST_MISSED: Final = 3
_MARKS: Final = re.compile("%([sbt])")
_FORMATS: Final = {"s": PyFormat.AUTO, "b": PyFormat.BINARY, "t": PyFormat.TEXT}
_askers: "WeakKeyDictionary[psycopg.Connection[Any], _Asker]" = WeakKeyDictionary()
_spelt: dict[str, tuple[bytes, list[PyFormat]]] = {}


def rows(sql: str, values: Sequence[Any]) -> Rows:
    """Rows of a statement; parameters go beside it, `%b` binary and `%t` as text.

    Outside a transaction the server keeps it prepared.
    """
    connection.ensure_connection()
    on = connection.connection
    if on.autocommit and on.pgconn.transaction_status == TransactionStatus.IDLE:
        return _asked(on, sql, values)
    # Inside a transaction a statement that is not there any more would end it, so none is prepared.
    with psycopg.Cursor(on) as cursor:
        cursor.execute(sql.encode(), values, prepare=False)
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
        asker = _askers[on] = _Asker(Transformer(_Adapters(on.adapters)))
    statement, formats = _spelling(sql)
    packing = asker.packing
    packed = packing.dump_sequence(values, formats)
    found = None
    if asker.missed < _MOST_MISSED:
        try:
            found = _by_name(on, asker, statement, packed)
        except InvalidSqlStatementName:
            # A pooler lent us another session of the server. Nothing was done yet.
            asker.missed += 1
            asker.names.clear()
    raw: Any = on.pgconn
    found = found or _result(on, raw.exec_params(statement, packed, packing.types, packing.formats))
    packing.set_pgresult(found)
    try:
        return packing.load_rows(0, found.ntuples, tuple)
    finally:
        # A kept result would hold its rows until the next call of this connection.
        packing.set_pgresult(None)


def _by_name(on: psycopg.Connection[Any], asker: _Asker, statement: bytes, packed: Sequence[Any]) -> Any:
    types, raw = asker.packing.types or (), on.pgconn
    name = asker.names.get((statement, types))
    if name is None:
        # Named by what it says: behind a pooler that lends a session to many clients, another's statement of the same
        # name is the same statement.
        name = b"trip_" + blake2b(b"%r %b" % (types, statement), digest_size=12).hexdigest().encode()
        with suppress(DuplicatePreparedStatement):
            _result(on, raw.prepare(name, statement, types), ExecStatus.COMMAND_OK)
        asker.names[statement, types] = name
    return _result(on, raw.exec_prepared(name, packed, asker.packing.formats))


def _spelling(sql: str) -> tuple[bytes, list[PyFormat]]:
    """The statement with the server's own marks, and how each value is to be packed."""
    known = _spelt.get(sql)
    if known is None:
        kinds = _MARKS.findall(sql)
        numbers = iter(range(1, len(kinds) + 1))
        spelt = _MARKS.sub(lambda _: f"${next(numbers)}", sql).replace("%%", "%").encode()
        known = _spelt[sql] = spelt, [_FORMATS[kind] for kind in kinds]
    return known


def _result(on: psycopg.Connection[Any], result: Any, wanted: ExecStatus = ExecStatus.TUPLES_OK) -> Any:
    if result.status == wanted:
        return result
    if not result.error_field(DiagnosticField.SQLSTATE):
        # libpq's own word: the connection is lost. Where the server said a farewell that was not read yet, it still
        # looks fine, and the pool would lend it again.
        on.close()
        raise psycopg.OperationalError(result.get_error_message())
    raise error_from_result(result, encoding=on.info.encoding)
