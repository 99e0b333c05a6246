"""Row level security: how a transaction is bound to a tenant, and what the migrations lay down.

The only ways across tenants are the functions in `CROSSINGS`; a test lists them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Self

from django.db import connection, transaction
from django.db.migrations.operations.special import RunSQL

NIL: Final = "00000000-0000-0000-0000-000000000000"
# The policy has no OR and no CASE: with either one the planner reads every tenant's rows (measured: 77 to 160 ms
# against 0.45 ms on a million rows). The sub-select is evaluated once a statement.
BOUND: Final = "(SELECT current_setting('app.tenant_id', true))::uuid"
CROSSINGS: Final = (
    "key_login",
    "spend_key",
    "peek_invitation",
    "enter_door",
    "claim_login_link",
    "peek_login_link",
    "user_tenants",
    "tenant_by_slug",
    "claim_due",
    "dream_due",
    "garden_due",
    "webhook_endpoint",
    "working_due",
    "search_words",
    "search_text",
    "search_meaning",
    "search_spelling",
    "search_due",
    "usage_due",
    "service_figures",
    "body_months",
    "retention_due",
    "blank_revision",
    "redact_step",
)


class AlreadyBound(RuntimeError):
    """A transaction belongs to one tenant; a second one needs its own transaction."""


def bind(tenant_id: str) -> None:
    """Bind the running transaction to a tenant. Raises where there is no transaction, or another tenant is bound."""
    if not connection.in_atomic_block:
        raise RuntimeError("bind() needs a transaction: outside one the setting would be gone at once.")
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('app.tenant_id', true)")
        bound = cursor.fetchone()[0]
        # SET LOCAL inside a savepoint outlives the savepoint, so a nested scope of another tenant would leak.
        if bound not in (None, "", NIL, str(tenant_id)):
            raise AlreadyBound(f"this transaction is bound to {bound}")
        cursor.execute("SELECT set_config('app.tenant_id', %s, true)", [str(tenant_id)])


@contextmanager
def tenant_scope(tenant_id: str) -> Iterator[None]:
    """A transaction bound to a tenant; commits at the end, rolls back on an exception."""
    with transaction.atomic():
        bind(tenant_id)
        yield


class Work:
    """A request's transaction, bound to a tenant, which a long request commits by parts. A context manager."""

    def __init__(self, tenant_id: str) -> None:
        self._tenant_id = tenant_id
        self._atomic = transaction.atomic()

    def __enter__(self) -> Self:
        self._begin()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._atomic.__exit__(kind, error, trace)

    @contextmanager
    def part(self) -> Iterator[None]:
        """A piece that is committed by itself, after all that came before. An exception undoes this piece alone."""
        self._renew(None)
        try:
            yield
        except BaseException as error:
            self._renew(error)
            raise
        self._renew(None)

    def _begin(self) -> None:
        self._atomic = transaction.atomic()
        self._atomic.__enter__()
        bind(self._tenant_id)

    def _renew(self, error: BaseException | None) -> None:
        try:
            self._atomic.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)
        finally:
            self._begin()


def protect(table: str, *, column: str = "tenant_id") -> RunSQL:
    """Migration step: only rows of the bound tenant exist for the runtime role."""
    return RunSQL(
        f"""
        ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
        ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
        CREATE POLICY tenant_isolation ON {table} FOR ALL TO tm_runtime
          USING ({column} = {BOUND}) WITH CHECK ({column} = {BOUND});
        """,
        f"""
        DROP POLICY tenant_isolation ON {table};
        ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY;
        ALTER TABLE {table} DISABLE ROW LEVEL SECURITY;
        """,
    )


def whole(table: str) -> RunSQL:
    """Migration step: the key that composite foreign keys point at.

    The id stands first. An index that begins with the tenant tempts the planner, before it has statistics, to read all
    of a tenant's rows for one of them (seen: 2 ms an event at 3,000 events).
    """
    name = f"{table}_tenant_whole"
    return RunSQL(
        f"ALTER TABLE {table} ADD CONSTRAINT {name} UNIQUE (id, tenant_id)",
        f"ALTER TABLE {table} DROP CONSTRAINT {name}",
    )


def tie(table: str, column: str, target: str, *, on_delete: str = "CASCADE") -> RunSQL:
    """Migration step: a foreign key that can't cross tenants. A plain one is checked past row level security."""
    name = f"{table}_{column}_same_tenant"
    action = f"SET NULL ({column})" if on_delete == "SET NULL" else on_delete
    return RunSQL(
        f"""
        ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY (tenant_id, {column})
          REFERENCES {target} (tenant_id, id) ON DELETE {action} DEFERRABLE INITIALLY DEFERRED
        """,
        f"ALTER TABLE {table} DROP CONSTRAINT {name}",
    )


def owned(table: str) -> list[RunSQL]:
    """Migration steps for a tenant's table: isolation, and a key to point at."""
    return [protect(table), whole(table), _owner(table)]


def _owner(table: str) -> RunSQL:
    name = f"{table}_tenant"
    references = "FOREIGN KEY (tenant_id) REFERENCES tenants_tenant (id) ON DELETE CASCADE"
    return RunSQL(
        f"ALTER TABLE {table} ADD CONSTRAINT {name} {references}",
        f"ALTER TABLE {table} DROP CONSTRAINT {name}",
    )


def append_only(table: str) -> RunSQL:
    """Migration step: the runtime role may add rows and never change or remove them."""
    return RunSQL(
        f"REVOKE UPDATE, DELETE, TRUNCATE ON {table} FROM tm_runtime",
        f"GRANT UPDATE, DELETE ON {table} TO tm_runtime",
    )


def function(sql: str, *, drop: str) -> RunSQL:
    """Migration step: a function that only the runtime role (and its owner) may run."""
    return RunSQL(
        f"{sql}\nREVOKE ALL ON FUNCTION {drop} FROM PUBLIC;\nGRANT EXECUTE ON FUNCTION {drop} TO tm_runtime;",
        f"DROP FUNCTION {drop}",
    )


class UnboundRole(RuntimeError):
    """The app was started as a role that row level security does not bind."""


def require_bound_role() -> None:
    """Raises UnboundRole where this connection's role is a superuser, bypasses policies or owns the tables."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT current_user, rolsuper OR rolbypassrls OR pg_has_role(oid,
                 (SELECT relowner FROM pg_class WHERE oid = to_regclass('public.tenants_tenant')), 'MEMBER')
               FROM pg_roles WHERE rolname = current_user"""
        )
        name, is_unbound = cursor.fetchone()
    if is_unbound:
        raise UnboundRole(
            f"The app must not run as {name}: it would see every team's rows. Give DATABASE_URL the role tm_runtime "
            "(`manage.py setup_roles` prints the roles)."
        )
