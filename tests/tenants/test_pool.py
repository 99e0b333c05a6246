"""The pool of database connections: what came back last is lent first."""

from typing import Any

import pytest
from django.db import connection
from psycopg_pool import ConnectionPool

from memory.tenants.database.base import DatabaseWrapper, LatestFirst


@pytest.fixture
def pool(committed: None) -> Any:
    connection.ensure_connection()
    known = connection.connection.info
    with LatestFirst(known.dsn, kwargs={"password": known.password}, min_size=3, max_size=3) as pool:
        pool.wait()
        yield pool


def test_what_came_back_last_is_lent_first(pool: LatestFirst) -> None:
    lent = [pool.getconn() for _ in range(3)]
    for one in lent:
        pool.putconn(one)
    again = [pool.getconn() for _ in range(3)]
    for one in again:
        pool.putconn(one)
    assert again == lent[::-1]


def test_one_caller_meets_one_connection(pool: LatestFirst) -> None:
    met = set()
    for _ in range(5):
        with pool.connection() as one:
            met.add(one)
    assert len(met) == 1


def test_django_lends_from_such_a_pool() -> None:
    pooled = {**connection.settings_dict, "OPTIONS": {"pool": {"min_size": 1, "max_size": 2}}, "CONN_MAX_AGE": 0}
    own = DatabaseWrapper(pooled, alias="pooled")
    try:
        assert type(own.pool) is LatestFirst
        assert own.pool is own.pool and isinstance(own.pool, ConnectionPool)
    finally:
        own.close_pool()


def test_nothing_is_pooled_where_no_pool_is_set() -> None:
    bare = DatabaseWrapper({**connection.settings_dict, "OPTIONS": {}}, alias="bare")
    assert bare.pool is None
