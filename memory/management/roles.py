"""The database's four roles, as SQL: the embedded server runs it, `manage.py setup_roles` prints it for a DBA."""

from collections.abc import Mapping

from psycopg import sql

# A reader of pg_stat_activity sees at a glance which door a connection came through.
ROLES = {"migrator": "tm_migrator", "runtime": "tm_runtime", "backup": "tm_backup", "broker": "tm_broker"}
EXTENSIONS = ("vector", "pg_trgm", "unaccent", "btree_gin")

_ROLE = """
DO $$ BEGIN CREATE ROLE {role}; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
ALTER ROLE {role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE {bypass} PASSWORD :'{name}_password';
"""

# CREATE ROLE knows no IF NOT EXISTS, and psql fills no variable inside $$, hence two statements a role.
# Connections of the app say themselves that they belong to no tenant yet; a pooler's may not pass that on.
CLUSTER_SQL = (
    "".join(
        _ROLE.format(role=role, name=name, bypass="BYPASSRLS" if name in ("migrator", "backup") else "NOBYPASSRLS")
        for name, role in ROLES.items()
    )
    + """
ALTER ROLE tm_runtime SET app.tenant_id = '00000000-0000-0000-0000-000000000000';
ALTER ROLE tm_backup SET default_transaction_read_only = on;
ALTER ROLE tm_broker SET search_path = pgmq;
"""
)

# What the migrator makes later is the runtime's to use and the backup's to read. TRUNCATE is nobody's: it
# ignores row level security.
DEFAULTS_SQL = """
ALTER DEFAULT PRIVILEGES FOR ROLE tm_migrator GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO tm_runtime;
ALTER DEFAULT PRIVILEGES FOR ROLE tm_migrator GRANT USAGE ON SEQUENCES TO tm_runtime;
ALTER DEFAULT PRIVILEGES FOR ROLE tm_migrator REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE tm_migrator GRANT EXECUTE ON FUNCTIONS TO tm_runtime;
ALTER DEFAULT PRIVILEGES FOR ROLE tm_migrator GRANT SELECT ON TABLES TO tm_backup;
ALTER DEFAULT PRIVILEGES FOR ROLE tm_migrator GRANT SELECT ON SEQUENCES TO tm_backup;
"""

# Schema public stays with pg_database_owner, which is tm_migrator by owning the database: so DROP OWNED, with
# which a restore empties the database, leaves the schema and the extensions in it.
DATABASE_SQL = (
    """
REVOKE ALL ON DATABASE {database} FROM PUBLIC;
GRANT CONNECT ON DATABASE {database} TO tm_runtime, tm_backup, tm_broker;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO tm_runtime, tm_backup;
"""
    + DEFAULTS_SQL
)

# The queue's own SQL is installed as the role that owns it and nothing else. CREATE SCHEMA asks for CREATE on the
# database even under IF NOT EXISTS, so that right lasts as long as the transaction.
_QUEUE_BEGIN = """
GRANT CREATE ON DATABASE {database} TO tm_broker;
SET LOCAL ROLE tm_broker;
"""
_QUEUE_END = """
RESET ROLE;
REVOKE CREATE ON DATABASE {database} FROM tm_broker;
"""


def cluster_sql(passwords: Mapping[str, str]) -> str:
    """The roles' SQL with the passwords filled in."""
    script = CLUSTER_SQL
    for name in ROLES:
        script = script.replace(f":'{name}_password'", sql.Literal(passwords[name]).as_string(None))
    return script


def database_sql(database: str) -> str:
    """Rights inside the database, to run in it as a superuser; the extensions come before."""
    return DATABASE_SQL.format(database=sql.Identifier(database).as_string(None))


def queue_sql(database: str) -> str:
    """The pgmq queue in its own schema, to run once, in one transaction, as a superuser."""
    from pgmq.install import get_embedded_install_sql

    name = sql.Identifier(database).as_string(None)
    return _QUEUE_BEGIN.format(database=name) + get_embedded_install_sql() + _QUEUE_END.format(database=name)


def psql_script(database: str) -> str:
    """All of it as one psql script for a DBA; passwords are psql variables."""
    name = sql.Identifier(database).as_string(None)
    variables = " ".join(f"-v {role}_password=..." for role in ROLES)
    extensions = "".join(f"CREATE EXTENSION IF NOT EXISTS {extension};\n" for extension in EXTENSIONS)
    create = sql.Literal(f"CREATE DATABASE {name} OWNER tm_migrator TEMPLATE template0 ENCODING 'UTF8'").as_string(None)
    literal = sql.Literal(database).as_string(None)
    # Names are quoted by psycopg, and it is a person who runs it.
    return f"""\
-- Roles, database and rights of Team Memory. Run as a superuser of PostgreSQL 16 or newer with pgvector:
--   psql -d postgres {variables} -f this-file.sql
-- Safe to run again: it changes passwords and rights, never data.
\\set ON_ERROR_STOP on
{CLUSTER_SQL}
SELECT {create}
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = {literal}) \\gexec
\\connect {name}
{extensions}{database_sql(database)}
-- The queue of the background tasks, for CELERY_BROKER_URL=pgmq://tm_broker:...@host:5432/{database}.
SELECT to_regclass('pgmq.meta') IS NULL AS no_queue_yet \\gset
\\if :no_queue_yet
BEGIN;
{queue_sql(database)}
COMMIT;
\\endif
"""  # noqa: S608
