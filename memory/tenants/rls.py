"""Row level security: how a transaction is bound to a tenant, and what the migrations lay down.

The only ways across tenants are the functions in `CROSSINGS`; a test lists them.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
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
    "end_login_links",
    "end_links_of_member",
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
    "notes_holding",
    "redact_step",
    "look_as",
    "look_with",
    "place_of_thread",
    "place_threads",
    "keep_access",
    "key_is_suspended",
    "suspended_teams",
    "operator_tenants",
    "operator_log",
    "tenants_to_remove",
    "remove_tenant",
    # Triggers in the place of foreign keys; they see what those do.
    "events_event_tied",
    "events_event_moved",
    "events_event_session_id_untied",
    "events_event_agent_key_id_untied",
    "events_event_member_id_untied",
    "graph_trigger_tied",
    "graph_trigger_moved",
    "graph_trigger_thread_id_untied",
    "graph_step_tied",
    "graph_step_moved",
    "graph_step_thread_id_untied",
    "graph_part_tied",
    "graph_part_moved",
    "graph_part_trigger_id_untied",
    "recall_mark_ended",
)
# What the running transaction may not see: the ids of projects, and of the names that stand in notes' paths. One list
# of ids, empty for nearly everybody, made by `look_as` where the tenant is bound.
# The outer cast does nothing but make one value of the sub-select, which ANY would else take for rows.
HIDDEN: Final = "(SELECT nullif(current_setting('app.hidden', true), '')::uuid[])::uuid[]"
NOTHING_HIDDEN: Final = "(SELECT coalesce(nullif(current_setting('app.hidden', true), ''), '{}') = '{}')"


@dataclass(frozen=True)
class Sight:
    """Who looks: a member, one of their keys, or a key of which only the SHA-256 is known yet.

    `Sight()` is the server itself (tasks, dreams, commands): it sees every project.
    """

    member_pk: str | None = None
    key_pk: str | None = None
    key_hash: bytes | None = None


SERVER: Final = Sight()
_sight: ContextVar[Sight | None] = ContextVar("sight", default=SERVER)


class Unseen(RuntimeError):
    """A request binds a tenant before it is known who looks: nobody could say which projects are hidden."""


@contextmanager
def seeing(sight: Sight | None) -> Iterator[None]:
    """All that is bound inside is bound for this one to see. None: nobody knows yet, and binding raises Unseen."""
    token = _sight.set(sight)
    try:
        yield
    finally:
        _sight.reset(token)


def look_for_key(key_hash: bytes) -> None:
    """From here on the holder of this key looks, until the `seeing` around it ends."""
    _sight.set(Sight(key_hash=key_hash))


@contextmanager
def as_seen_by(sight: Sight, tenant_id: str) -> Iterator[None]:
    """Inside the server's own bound transaction: what one member sees of the team. Then the server looks again."""
    with transaction.atomic(), seeing(sight):
        before = bind(tenant_id)
        yield
        _hide(before or "{}")


@contextmanager
def unlimited() -> Iterator[None]:
    """The server's own work inside a bound transaction of somebody: it sees every project, and then they look again."""
    if sees_all():
        with seeing(SERVER):
            yield
        return
    # The savepoint: where something fails inside, the database takes the setting back with the rest.
    with transaction.atomic(), seeing(SERVER):
        before = _setting("app.hidden")
        _hide("{}")
        yield
        _hide(before)


def sees_all() -> bool:
    """Whether nothing is hidden from who looks in the bound transaction."""
    return _setting("app.hidden") in ("", "{}")


def _setting(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(current_setting(%s, true), '')", [name])
        return str(cursor.fetchone()[0])


def _hide(ids: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('app.hidden', %s, true)", [ids])


class AlreadyBound(RuntimeError):
    """A transaction belongs to one tenant; a second one needs its own transaction."""


def bind(tenant_id: str) -> str | None:
    """Bind the running transaction to a tenant, for who looks to see. Gives what was hidden in it before, None where it
    was not bound.

    Raises where there is no transaction, where another tenant is bound, and Unseen.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("bind() needs a transaction: outside one the setting would be gone at once.")
    sight = _sight.get()
    if sight is None:
        raise Unseen("say who looks (rls.seeing) before a tenant is bound")
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('app.tenant_id', true), current_setting('app.hidden', true)")
        bound, hidden = cursor.fetchone()
        # SET LOCAL inside a savepoint outlives the savepoint, so a nested scope of another tenant would leak.
        if bound not in (None, "", NIL, str(tenant_id)):
            raise AlreadyBound(f"this transaction is bound to {bound}")
        look, values = _look(str(tenant_id), sight)
        cursor.execute(f"SELECT set_config('app.tenant_id', %s, true), {look}", [str(tenant_id), *values])
    return (hidden or "{}") if bound == str(tenant_id) else None


def _look(tenant_id: str, sight: Sight) -> tuple[str, list[Any]]:
    if sight.key_hash is not None:
        return "look_with(%s)", [sight.key_hash]
    if sight.member_pk is not None:
        return "look_as(%s::uuid, %s::uuid, %s::uuid)", [tenant_id, sight.member_pk, sight.key_pk]
    return "set_config('app.hidden', '{}', true)", []


@contextmanager
def tenant_scope(tenant_id: str) -> Iterator[None]:
    """A transaction bound to a tenant; commits at the end, rolls back on an exception."""
    with transaction.atomic():
        before = bind(tenant_id)
        yield
        if before is not None:
            # Inside another's transaction: they go on seeing what they saw.
            _hide(before)


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


def limit(table: str, condition: str) -> RunSQL:
    """Migration step: of the tenant's rows, those of a project that is hidden from who looks are not there.

    RESTRICTIVE: it narrows `tenant_isolation` and can't widen it. `condition` begins with the cheap question wherever
    it asks another table, by a function of `opening`: a sub-select would be planned with every statement, for teams
    without limits too.
    """
    return RunSQL(
        f"CREATE POLICY project_limit ON {table} AS RESTRICTIVE FOR ALL TO tm_runtime USING ({condition})",
        f"DROP POLICY project_limit ON {table}",
    )


def of_project(column: str = "project_id") -> str:
    """Condition: the row's project is not hidden. A row without one is the team's."""
    return f"({column} = ANY ({HIDDEN})) IS NOT TRUE"


def follows(*conditions: str) -> str:
    """Condition: nothing is hidden, or the rows that this one belongs to are seen."""
    return f"{NOTHING_HIDDEN} OR ({' AND '.join(conditions)})"


def opening(name: str, table: str, *, column: str = "id", kind: str = "uuid") -> RunSQL:
    """Migration step: a function `name(value)`, true where who looks sees the row of `table`."""
    return function(
        f"""
        CREATE FUNCTION {name}(asked {kind}) RETURNS boolean LANGUAGE plpgsql STABLE SECURITY INVOKER AS $$
        BEGIN
          RETURN EXISTS (SELECT FROM public.{table} t WHERE t.{column} = asked);
        END $$;
        """,
        drop=f"{name}({kind})",
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


def tie_batches(table: str, ties: Mapping[str, tuple[str, str]]) -> list[RunSQL]:
    """Migration steps: ties as `tie` makes them, seen to once a statement and not once a row.

    For the tables that agents write thousands of rows a second to: three foreign keys were a third of what an event
    costs the database. `ties` gives for each column its target and what a target's deletion does, CASCADE or SET NULL.
    A statement's rows name few targets; each is looked for once, and locked as a foreign key would.
    """
    names = ", ".join(f"n.{column}" for column in ties)

    def lacks(column: str, row: str) -> str:
        found = f"SELECT FROM {ties[column][0]} t WHERE t.id = {row}.{column} AND t.tenant_id = {row}.tenant_id"
        return f"{row}.{column} IS NOT NULL AND NOT EXISTS ({found} FOR KEY SHARE)"

    refusal = (
        f"RAISE foreign_key_violation USING TABLE = '{table}',"
        f" MESSAGE = '{table} names a row that is not there, or is another tenant''s: one of {', '.join(ties)}'"
    )
    rows = f"(SELECT DISTINCT n.tenant_id, {names} FROM added n) AS one"  # noqa: S608 - names of this code
    lost = " OR ".join(lacks(column, "one") for column in ties)
    added = f"IF EXISTS (SELECT FROM {rows} WHERE {lost}) THEN {refusal}; END IF;"
    changes = [f"NEW.{column} IS DISTINCT FROM OLD.{column}" for column in ties]
    lost = " OR ".join(f"({change} AND {lacks(column, 'NEW')})" for change, column in zip(changes, ties, strict=True))
    changed = f"IF {lost} THEN {refusal}; END IF;"
    insert = f"AFTER INSERT ON {table} REFERENCING NEW TABLE AS added FOR EACH STATEMENT"
    update = f"AFTER UPDATE OF {', '.join(ties)} ON {table} FOR EACH ROW WHEN ({' OR '.join(changes)})"
    steps = [_watch(table, "tied", added, insert, ties), _watch(table, "moved", changed, update)]
    for column, (target, on_delete) in ties.items():
        belongs = f"e.tenant_id = g.tenant_id AND e.{column} = g.id"
        act = {
            "CASCADE": f"DELETE FROM {table} e USING gone g WHERE {belongs};",  # noqa: S608 - names of this code
            "SET NULL": f"UPDATE {table} e SET {column} = NULL FROM gone g WHERE {belongs};",  # noqa: S608
        }[on_delete]
        event = f"AFTER DELETE ON {target} REFERENCING OLD TABLE AS gone FOR EACH STATEMENT"
        steps.append(_watch(table, f"{column}_untied", act, event))
    return steps


def ends_with_tenant(table: str) -> RunSQL:
    """Migration step: a team's rows go when it goes. For rows that triggers make of rows that name a team by a key."""
    act = f"DELETE FROM {table} e USING gone g WHERE e.tenant_id = g.id;"  # noqa: S608 - names of this code
    return _watch(
        table, "ended", act, "AFTER DELETE ON tenants_tenant REFERENCING OLD TABLE AS gone FOR EACH STATEMENT"
    )


def _watch(table: str, name: str, body: str, event: str, told: Iterable[str] = ()) -> RunSQL:
    """A trigger with its function, which sees as foreign keys do: all rows, whoever asks."""
    name = f"{table}_{name}"
    arguments = ", ".join(f"'{one}'" for one in told)
    watched = event.split(" ON ", 1)[1].split()[0]
    return RunSQL(
        f"""
        CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
        SET search_path = pg_catalog, public SET enable_seqscan = off AS $$
        BEGIN
          {body}
          RETURN NULL;
        END $$;
        REVOKE ALL ON FUNCTION {name}() FROM PUBLIC;
        CREATE TRIGGER {name} {event} EXECUTE FUNCTION {name}({arguments});
        """,
        f"DROP TRIGGER {name} ON {watched}; DROP FUNCTION {name}()",
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
