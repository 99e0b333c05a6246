"""One round trip: the same rows and errors as psycopg's cursor gives, however the connection was used before."""

import gc
import select
import socket
import struct
import threading
import weakref
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import connection, transaction
from psycopg.errors import DivisionByZero, InvalidTextRepresentation

from memory.tenants import trip

KEY = UUID("00000000-0000-7000-8000-000000000001")
ASKED: dict[str, tuple[str, tuple[Any, ...]]] = {
    "texts and bytes": ("SELECT %t, %b::bytea, octet_length(%b::bytea)", ("tiếng Việt", b"\0\xff", b"123")),
    "numbers of every size": ("SELECT %s::int, %s::bigint, %s::bigint", (1, 2**40, -1)),
    "nothing": ("SELECT %t::text, %b::bytea, %s::bigint", (None, None, None)),
    "lists": ("SELECT %b::bytea[], %t::text[]", ([b"a", None], ["x", "y"])),
    "what comes back typed": (f"SELECT '{KEY}'::uuid, true, now() IS NULL, NULL::text, '[1]'::jsonb", ()),
    "no row": ("SELECT 1 WHERE %t::text = 'no'", ("yes",)),
    "many rows": ("SELECT n, n::text FROM generate_series(1, %s::int) n", (50,)),
    "a percent sign": ("SELECT 5 %% 3, %t", ("50 %",)),
}


@pytest.fixture(autouse=True)
def forgetful(committed: None) -> None:
    """The pool lends one connection again and again: what a test before this one prepared on it is gone."""
    connection.ensure_connection()
    trip._askers.pop(connection.connection, None)
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")


def by_cursor(sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    connection.ensure_connection()
    with psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(sql.encode(), values)
        return cursor.fetchall()


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("ask", [trip.rows, trip.apart], ids=["rows", "apart"])
def test_gives_the_cursors_rows(committed: None, name: str, ask: trip.Asking) -> None:
    sql, values = ASKED[name]
    assert ask(sql, values) == by_cursor(sql, values or None) == ask(sql, values)  # type: ignore[arg-type]


def test_a_statement_is_prepared_anew_for_values_of_another_kind(committed: None) -> None:
    sql = "SELECT %s"
    assert [trip.rows(sql, (one,)) for one in (1, 2**40, 1.5, 1)] == [[(1,)], [(2**40,)], [(1.5,)], [(1,)]]


def test_what_is_prepared_no_more_is_asked_all_the_same(committed: None) -> None:
    """As behind a pooler that lends another session of the server each time; then nothing is prepared any more."""
    for place in range(6):
        assert trip.rows("SELECT %t", (str(place),)) == [(str(place),)]
        with connection.cursor() as cursor:
            cursor.execute("DEALLOCATE ALL")
    assert not trip._askers[connection.connection].names
    trip.rows("SELECT 1", ())
    assert trip.rows("SELECT name FROM pg_prepared_statements", ()) == []


def test_a_statement_of_the_same_name_is_the_same_statement(committed: None) -> None:
    """As behind a pooler that lends the session of the server to one client after another."""
    assert trip.rows("SELECT %t || '!'", ("mine",)) == [("mine!",)]
    asker = trip._askers[connection.connection]
    names = dict(asker.names)
    asker.names.clear()
    assert trip.rows("SELECT %t || '!'", ("again",)) == [("again!",)]
    assert asker.names.items() <= names.items()
    assert trip.rows("SELECT %t || '?'", ("other",)) == [("other?",)]
    assert len(set(asker.names.values())) == len(asker.names) == 2


def test_inside_a_transaction_it_belongs_to_the_transaction(committed: None) -> None:
    with transaction.atomic():
        trip.rows("SELECT set_config('app.tenant_id', %t, true)", (str(KEY),))
        assert trip.rows("SELECT current_setting('app.tenant_id', true)", ()) == [(str(KEY),)]
    assert trip.rows("SELECT current_setting('app.tenant_id', true)", ()) != [(str(KEY),)]


def test_the_databases_refusal_is_told_by_its_class_and_the_connection_stays(committed: None) -> None:
    with pytest.raises(DivisionByZero):
        trip.rows("SELECT 1 / %s::int", (0,))
    with pytest.raises(InvalidTextRepresentation, match='"x"'):
        trip.rows("SELECT %t::int", ("x",))
    assert trip.rows("SELECT 1 / %s::int", (1,)) == [(1,)]


def test_a_statement_that_can_not_be_prepared_is_refused_each_time(committed: None) -> None:
    for _ in range(2):
        with pytest.raises(psycopg.errors.UndefinedTable):
            trip.rows("SELECT * FROM no_such_table", ())


def test_a_lost_connection_is_told_as_one(committed: None) -> None:
    connection.ensure_connection()
    on = connection.connection
    [(pid,)] = trip.rows("SELECT pg_backend_pid()", ())
    with psycopg.connect(on.info.dsn, password=on.info.password, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [pid])
    with pytest.raises(psycopg.OperationalError):
        for _ in range(50):
            trip.rows("SELECT pg_sleep(0.1)", ())
    connection.close()
    assert trip.rows("SELECT 1", ()) == [(1,)]


def test_a_connection_that_is_let_go_is_forgotten(committed: None) -> None:
    connection.ensure_connection()
    with psycopg.connect(connection.connection.info.dsn, password=connection.connection.info.password) as own:
        own.autocommit = True
        trip._asked(own, "SELECT %t", ("x",))
        gone = weakref.ref(own)
    del own
    gc.collect()
    assert gone() is None


def test_a_server_that_takes_its_leave_is_told_as_lost(committed: None, tmp_path: Path) -> None:
    """libpq can't send, reads the server's farewell, and says of the connection that all is well."""
    connection.ensure_connection()
    own = connection.connection.info
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / f".s.PGSQL.{own.port}"))
    listening.listen(1)
    farewell = threading.Event()
    between = threading.Thread(target=pass_on, args=(listening, f"{own.host}/.s.PGSQL.{own.port}", farewell))
    between.start()
    with psycopg.connect(
        own.dsn, host=str(tmp_path), password=own.password, autocommit=True, sslmode="disable", gssencmode="disable"
    ) as lost:
        assert trip._asked(lost, "SELECT %t", ("x",)) == [("x",)]
        farewell.set()
        between.join()
        with pytest.raises(psycopg.OperationalError):
            trip._asked(lost, "SELECT %t", ("y",))
        assert lost.closed


def pass_on(listening: socket.socket, address: str, farewell: threading.Event) -> None:
    """A client of the database, passed on until it is time; then a warning for it, and the end."""
    with listening, listening.accept()[0] as client, socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        while not farewell.is_set():
            for one in select.select([client, server], [], [], 0.02)[0]:
                (server if one is client else client).sendall(one.recv(65536))
        said = b"SWARNING\0VWARNING\0C57P02\0Mterminating connection because of crash of another server process\0\0"
        client.sendall(b"N" + struct.pack("!i", len(said) + 4) + said)


def test_rows_are_not_kept_by_the_connection(committed: None) -> None:
    connection.ensure_connection()
    trip.rows("SELECT repeat('x', 1000000)", ())
    assert trip._askers[connection.connection].packing.pgresult is None
