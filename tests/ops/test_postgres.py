"""The embedded server: what it sets up, what it survives, and what it refuses."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from kombu import Connection

from memory.management import postgres, roles
from memory.management.borrowed import running
from memory.management.home import Home, Refused, account, data_home
from memory.management.postgres import Embedded, broker_options, broker_url


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    # Not tmp_path: as root the database's user must be able to reach it, and pytest's folders are closed.
    folder = Path(tempfile.mkdtemp(prefix="tm-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def made(place: Path) -> Iterator[Embedded]:
    """A server, made once; it may have been stopped or killed by the test before."""
    server = Embedded(place / "home", settings={"fsync": "off"})
    assert server.start().kind == "first boot"
    yield server
    server.stop()


@pytest.fixture
def server(made: Embedded) -> Embedded:
    if not made.is_running():
        made.start()
    return made


def kill(server: Embedded) -> None:
    assert server.process is not None
    server.process.kill()
    server.process.wait()


def test_it_gives_each_role_its_rights_and_no_more(server):
    with psycopg.connect(**server.dsn("migrator"), autocommit=True) as migrator:
        migrator.execute("CREATE TABLE IF NOT EXISTS thing (id int GENERATED ALWAYS AS IDENTITY, name text)")
        migrator.execute("TRUNCATE thing")
    with psycopg.connect(**server.dsn("runtime"), autocommit=True) as runtime:
        runtime.execute("INSERT INTO thing (name) VALUES ('a')")
        for forbidden in ("TRUNCATE thing", "CREATE TABLE mine ()", "DROP TABLE thing", "SELECT * FROM pgmq.meta"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                runtime.execute(forbidden)
    with psycopg.connect(**server.dsn("backup"), autocommit=True) as backup:
        assert backup.execute("SELECT name FROM thing").fetchall() == [("a",)]
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            backup.execute("DELETE FROM thing")
        backup.execute("SET default_transaction_read_only = off")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            backup.execute("DELETE FROM thing")
    with psycopg.connect(**server.dsn("broker"), autocommit=True) as broker:
        for forbidden in ("SELECT * FROM public.thing", "CREATE SCHEMA mine"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                broker.execute(forbidden)


def test_only_migrator_and_backup_pass_row_level_security(server):
    with server.superuser() as connection:
        found = connection.execute("SELECT rolname, rolbypassrls, rolsuper FROM pg_roles WHERE rolname ~ '^tm_'")
        assert sorted(found) == [
            ("tm_backup", True, False),
            ("tm_broker", False, False),
            ("tm_migrator", True, False),
            ("tm_runtime", False, False),
        ]


def test_a_function_of_the_migrator_is_the_runtimes_and_nobody_elses(server):
    with psycopg.connect(**server.dsn("migrator")) as migrator:
        migrator.execute("CREATE OR REPLACE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    with psycopg.connect(**server.dsn("runtime")) as runtime:
        assert runtime.execute("SELECT one()").fetchone() == (1,)
    with psycopg.connect(**server.dsn("broker")) as broker, pytest.raises(psycopg.errors.InsufficientPrivilege):
        broker.execute("SELECT public.one()")


def test_it_knows_letters_of_every_script(server):
    with server.superuser("team_memory") as connection:
        row = connection.execute("SELECT lower('Ä'), cardinality(show_trgm('日本語')) > 0, '[1,2]'::vector IS NOT NULL")
        assert row.fetchone() == ("ä", True, True)


def test_the_queue_carries_a_message_as_the_broker_role(server, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgres://nobody:wrong@127.0.0.1:1/none")  # pgmq would prefer it
    with Connection(broker_url(server), transport_options=broker_options(server)) as connection:
        queue = connection.SimpleQueue("greetings")
        queue.put({"hello": "world"})
        message = queue.get(timeout=5)
        assert message.payload == {"hello": "world"}
        message.ack()
        queue.close()


def test_its_files_are_closed_to_others(server):
    home = server.home.path
    assert stat.S_IMODE((home / "secrets.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((home / "socket").stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "pg").stat().st_mode) == 0o700
    assert stat.S_IMODE(home.parent.stat().st_mode) == 0o755  # as it was


def test_it_starts_warm_after_a_stop(server):
    server.stop()
    assert not server.is_running()
    report = server.start()
    assert (report.kind, report.notes) == ("warm", [])


def test_it_recovers_what_was_committed_before_a_kill(server):
    with psycopg.connect(**server.dsn("migrator")) as connection:
        connection.execute("DROP TABLE IF EXISTS kept")
        connection.execute("CREATE TABLE kept AS SELECT generate_series(1, 1000)")
    kill(server)
    assert server.start().kind == "recovered"
    with psycopg.connect(**server.dsn("migrator")) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (1000,)


def test_it_is_not_fooled_by_another_program_under_the_old_process_id(server):
    kill(server)
    left = server.home.path / "pg" / "postmaster.pid"
    # As after a reboot of a container: the id is ours now, and we run as the same user.
    lines = left.read_text().splitlines()
    with subprocess.Popen(["sleep", "60"], **account(server.home.path).spawn) as other:
        left.write_text("\n".join([str(other.pid), *lines[1:]]) + "\n")
        assert server.start().kind == "recovered"
        other.kill()


def test_a_second_server_on_the_folder_is_refused(server, monkeypatch):
    monkeypatch.setattr(Home, "hold", lambda *args, **options: None)
    with pytest.raises(Refused, match="Another command is using the database"):
        Embedded(server.home.path).start()
    assert server.is_running()


def test_a_folder_of_a_newer_format_is_refused(tmp_path):
    (tmp_path / "version.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(Refused, match="written by a newer Team Memory"):
        Embedded(tmp_path).start()


@pytest.mark.parametrize(("version", "words"), [("99", "newer than"), ("15", "With the version you had")])
def test_a_folder_of_another_postgresql_is_refused(server, version, words):
    server.stop()
    file = server.home.path / "pg" / "PG_VERSION"
    before = file.read_text()
    file.write_text(version)
    try:
        with pytest.raises(Refused, match=words):
            server.start()
    finally:
        file.write_text(before)


def test_a_missing_extension_is_named(server, monkeypatch):
    monkeypatch.setattr(roles, "EXTENSIONS", ("telepathy",))
    with server.superuser("team_memory") as connection, pytest.raises(Refused, match="no extension 'telepathy'"):
        postgres.prepare_database(connection, "team_memory")


def test_lost_passwords_are_told_and_not_made_anew(server):
    server.stop()
    file = server.home.path / "secrets.json"
    before = file.read_text()
    file.unlink()
    try:
        with pytest.raises(Refused, match=r"secrets\.json is missing"):
            server.start()
    finally:
        file.touch(mode=0o600)
        file.write_text(before)


def test_commands_share_one_server_and_the_last_stops_it(server):
    server.stop()
    first, second = Embedded(server.home.path), Embedded(server.home.path)
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with running(second, migrated=False):
            inside.set()
            leave.wait()

    with running(first, migrated=False):
        thread = threading.Thread(target=other)
        thread.start()
        inside.wait()
        assert second.process is None  # it found the first one's
        threading.Timer(0.3, leave.set).start()
    assert leave.is_set()
    thread.join()
    assert not server.is_running()


def test_a_dba_may_run_the_printed_script_twice(server, place):
    script = place / "roles.sql"
    script.write_text(roles.psql_script("elsewhere"))
    passwords = server.home.passwords()
    command = [str(server.binaries() / "psql"), "-X", "-q", "-d", "postgres", "-f", str(script)]
    for name in roles.ROLES:
        command += ["-v", f"{name}_password={passwords[name]}"]
    env = {"PGHOST": str(server.home.socket_folder), "PGUSER": "postgres", "PGPASSWORD": passwords["superuser"]}
    for _ in range(2):
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    with psycopg.connect(**server.dsn("broker", "elsewhere")) as broker:
        assert broker.execute("SELECT pgmq.create('some')").fetchone() is not None


def test_the_data_folder_is_the_argument_then_the_environment_then_the_project():
    env = {"TEAM_MEMORY_DATA": "/tmp/from-environment"}
    assert data_home(env, "/tmp/argument") == (Path("/tmp/argument"), None)
    assert data_home(env, None) == (Path("/tmp/from-environment"), None)
    path, aloud = data_home({}, None)
    assert path.name == ".team-memory" or aloud


def test_as_root_a_closed_folder_moves_the_data_and_says_so(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    path, aloud = data_home({}, str(closed / "data"))
    if os.geteuid() == 0:
        assert path.parent == Path("/var/lib/team-memory")
        assert aloud and str(path) in aloud
        assert data_home({"TEAM_MEMORY_DATA": str(path)}, None) == (path, None)
    else:
        assert (path, aloud) == (closed / "data", None)
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def test_a_long_or_odd_path_gets_a_short_socket_folder(place):
    for odd in (place / ("x" * 90), place / "with space"):
        folder = Home(odd).socket_folder
        assert folder.parent == Path("/tmp")
        assert len(str(folder)) < 80
    server = Embedded(place / "with space", settings={"fsync": "off"})
    server.start()
    try:
        with psycopg.connect(**server.dsn("runtime")) as runtime:
            assert runtime.execute("SELECT current_user").fetchone() == ("tm_runtime",)
    finally:
        server.stop()
        shutil.rmtree(server.home.socket_folder)


def test_a_program_out_of_reach_is_copied(place, tmp_path):
    tree, libraries = tmp_path / "site" / "package" / "pginstall", tmp_path / "site" / "package.libs"
    (tree / "bin").mkdir(parents=True)
    libraries.mkdir()
    (tree / "bin" / "postgres").write_text("#!/bin/sh\n")
    (tree / "bin" / "postgres").chmod(0o755)
    (libraries / "lib.so").write_text("")
    tmp_path.chmod(0o700)
    home = Home(place / "copies")
    home.prepare()
    found = home.reachable_copy(tree, beside=(libraries,), name="postgresql-0")
    assert account(home.path).reaches(found / "bin" / "postgres")
    if os.geteuid() == 0:
        assert (found / ".." / ".." / "package.libs" / "lib.so").exists()
    else:
        assert found == tree


def test_nothing_of_it_outlives_a_killed_owner(server):
    server.stop()
    code = (
        "import sys; sys.path.insert(0, sys.argv[2]); from pathlib import Path;"
        "from memory.management.postgres import Embedded; e = Embedded(Path(sys.argv[1])); e.start();"
        "print('up', flush=True); input()"
    )
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", code, str(server.home.path), root], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        assert server.is_running()
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    # The lock is free only when the last process of that server is gone.
    assert server.start().kind in ("warm", "recovered")
