"""Rows for `rows.py`: a small team made by the product itself, then copied by SQL until it is large.

Sessions are imported, dreamed and posted, threads taken in, notes approved and told, and search reads it all, so that
every table has the rows, the sizes and the proportions that the product gives. Each copy has ids of its own, in the
order of time as the product's are, keys and hashes of its own, and vectors a little beside the original's.
"""

import gzip
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The time of an id is 48 bits of milliseconds; 2^20 of them (17 minutes) are whole digits in base 16 and in base 32.
STEP = 1 << 20
# A team that runs longer rewrites its notes rather than adding as many again: of ten copies one has notes.
NOTES_EVERY = 10
LEAST_FREE = 6 * 1024**3
NEAR = "recall_vector_near_384"
GROWING = (
    *("events_session", "events_event", "graph_body", "events_reading", "events_claim"),
    *("graph_thread", "graph_trigger", "graph_part", "graph_step", "graph_link", "graph_worker", "graph_owner"),
    *("graph_citation", "notes_note", "notes_revision", "notes_proposal", "notes_source", "recall_notewords"),
    *("dream_run", "dream_window", "dream_watermark", "dream_sessiongist", "dream_change"),
    *("recall_telling", "recall_toldnote", "recall_entry", "recall_vector", "tenants_auditentry"),
)
OF_NOTES = {"notes_note", "notes_revision", "notes_proposal", "notes_source", "recall_notewords", "dream_change"}
NOTE_KEYS = {"note_id", "revision_id", "current_id", "base_id", "proposal_id"}
SHARED_KEYS = {"tenant_id", "member_id", "agent_key_id", "project_id", "place", "reader", "approved_by_id"}
SHARED_KEYS |= {"decided_by_id", "seen_by_id", "assigned_to_id"}
PUBLIC_IDS = {"public_id", "trigger_public_id", "worker_public_id", "other_public_id", "session_public_id", "cited"}
PUBLIC_IDS |= {"because_of"}
GIVEN_KEYS = {"key", "external_id", "idempotency_key", "awaits"}

FUNCTIONS = """
CREATE SCHEMA bench;
-- A uuid of version 7 of another time, and of another chance; NIL stays.
CREATE FUNCTION bench.u(of uuid, k int) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN of = '00000000-0000-0000-0000-000000000000' THEN of ELSE
    (lpad(to_hex(('x' || substr(of::text, 1, 8) || substr(of::text, 10, 4))::bit(48)::bigint + k * 1048576::bigint),
          12, '0')
    || overlay(overlay(right(md5(of::text || k), 20) PLACING '7' FROM 1) PLACING '8' FROM 5))::uuid END $$;
-- The same for a public id: `six` are the digits of its time above the step.
CREATE FUNCTION bench.t(of text, k int, six text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN length(of) = 30 THEN left(of, 4) || six || substr(of, 11, 4) || left(md5(of || k), 16)
    ELSE of END $$;
-- A key keeps its form and length where an id stands in it.
CREATE FUNCTION bench.x(of text, k int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN length(of) IN (32, 36) THEN left(md5(of || k)::uuid::text, length(of))
    WHEN left(of, 4) = 'log:' THEN 'log:' || md5(split_part(of, ':', 2) || k)::uuid || ':' || split_part(of, ':', 3)
    WHEN left(of, 2) = 'r:' THEN 'r:' || md5(of || k)
    WHEN of = '' THEN of ELSE of || '.' || -k END $$;
CREATE TABLE bench.copies (k int PRIMARY KEY, six text, note_k int, number int, noise halfvec);
"""
COPIES = """
INSERT INTO bench.copies
  SELECT k, (SELECT string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + ((slot >> (5 * p)) & 31)::int, 1), ''
                               ORDER BY p DESC) FROM generate_series(0, 5) p),
    -(-k / {every}) * {every}, -k,
    (SELECT array_agg(n.one)::vector::halfvec
     FROM (SELECT (random() - 0.5) * 0.05 + 0 * c.k AS one FROM generate_series(1, 384)) n)
  FROM (SELECT k, (extract(epoch FROM now()) * 1000)::bigint / {step} + k AS slot FROM generate_series(-{last}, 0) k) c
"""
# Words of one thing alone: in a copy they are other words, as new things bring new words.
RARE = """
WITH often AS (SELECT word, count(*) FROM bench.recall_entry, unnest(words) word GROUP BY word)
UPDATE bench.recall_entry e SET
  rare = ARRAY(SELECT word FROM unnest(e.words) word JOIN often o USING (word) WHERE o.count = 1),
  words = ARRAY(SELECT word FROM unnest(e.words) word JOIN often o USING (word) WHERE o.count > 1)
"""


@dataclass
class Seed:
    """The small team: its key in the tables, an agent's secret, how many events it has, and the bytes of WAL an event
    that the hook door took, one by one.
    """

    tenant: str
    secret: str
    events: int
    wal_by_the_door: float


@dataclass
class Filled:
    """What filling one table took."""

    seconds: float
    wal: int


def seed(server: Any, sessions: Path, threads: Path) -> Seed:
    """The small team, by the product's own doors; half of the sessions come as history, half by the hook door."""
    from memory.events import working
    from memory.graph.webhooks import archive
    from memory.hooks import history
    from memory.recall import tasks, vectors
    from memory.tenants import due, keys
    from memory.tenants.access import command_actor
    from memory.tenants.models import Member
    from memory.tenants.people import found_team
    from memory.tenants.rls import tenant_scope

    founded = found_team("bench", owner="bench@example.test")
    team, pk = founded.tenant, str(founded.tenant.pk)
    with tenant_scope(pk):
        member = Member.objects.select_related("user", "tenant").get(tenant=team)
        _, secret = keys.make_key(member, name="bench", by=command_actor(team, "bench"))
    logs = sorted(sessions.rglob("*.jsonl.gz"))
    history.import_paths(team, logs[::2], member=member, step=_quiet)
    archive.take(pk, [threads], step=_quiet)
    working.catch_up(pk)
    _dream_and_approve(team, member)
    with server.superuser("team_memory") as connection:
        before = _wal(connection)
        posted = _post(logs[1::2], secret)
        by_the_door = (_wal(connection) - before) / max(posted, 1)
    tasks.find_due()
    while claim := due.next_of(pk, "search"):
        vectors.work(claim, vectors.maker())
    with server.superuser("team_memory") as connection:
        return Seed(pk, secret, connection.execute("SELECT count(*) FROM events_event").fetchone()[0], by_the_door)


def _quiet(done: int, total: int) -> None:
    """No bar."""


def _dream_and_approve(team: Any, member: Any) -> None:
    from dream import run as dreams
    from memory.notes import review
    from memory.tenants.access import command_actor, member_actor
    from memory.tenants.rls import tenant_scope

    dreams.perform(dreams.start_and_claim(team, by=command_actor(team, "bench")))
    with tenant_scope(str(team.pk)):
        for proposal in team.proposals.filter(state="open"):
            review.approve(proposal, by=member_actor(member), shown=hashlib.sha256(proposal.text.encode()).hexdigest())


def _post(logs: list[Path], secret: str) -> int:
    from django.test import Client

    count = 0
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    for path in logs:
        for line in gzip.decompress(path.read_bytes()).splitlines():
            body = json.dumps(json.loads(line)["payload"])
            answer = client.post("/api/v1/hooks/claude-code", body, content_type="application/json")
            if answer.status_code != 200:
                raise SystemExit(f"a hook was answered {answer.status_code}: {answer.content[:300]!r}")
            count += 1
    return count


def prepare(server: Any, most: int) -> None:
    """Put the small team aside, to be copied up to `most` times."""
    with server.superuser("team_memory") as connection:
        connection.execute(FUNCTIONS)
        connection.execute(COPIES.format(every=NOTES_EVERY, step=STEP, last=most - 1))
        connection.execute("ALTER TABLE bench.copies ALTER noise SET STORAGE PLAIN; ANALYZE bench.copies")
        for table in GROWING:
            connection.execute(f"CREATE TABLE bench.{table} AS TABLE {table}")
        connection.execute("ALTER TABLE bench.recall_entry ADD rare bigint[]")
        connection.execute(RARE)
        for table in GROWING:
            connection.execute(f"VACUUM ANALYZE bench.{table}")


def copy(server: Any, of: Seed, events: int, folder: Path) -> dict[str, Filled]:
    """Make the team anew of so many events; gives what each table took. Raises SystemExit where the disk fills."""
    filled = {}
    copies = max(1, events // of.events)
    with server.superuser("team_memory") as connection:
        # Rules that mark what changed, and foreign keys, rest meanwhile.
        connection.execute("SET session_replication_role = replica; SET synchronous_commit = off")
        connection.execute("SET work_mem = '512MB'; SET maintenance_work_mem = '3GB'")
        connection.execute(f"TRUNCATE {', '.join(GROWING)}, recall_mark CASCADE")
        near = connection.execute("SELECT indexdef FROM pg_indexes WHERE indexname = %s", [NEAR]).fetchone()[0]
        connection.execute(f"DROP INDEX {NEAR}")
        for table in GROWING:
            filled[table] = _fill(connection, table, copies, folder)
            print(f"  {table}: {filled[table].seconds:.0f} s", file=sys.stderr, flush=True)
        began, wal = time.monotonic(), _wal(connection)
        connection.execute(near)
        filled[f"{NEAR} (built at once)"] = Filled(time.monotonic() - began, _wal(connection) - wal)
    return filled


def _fill(connection: Any, table: str, copies: int, folder: Path) -> Filled:
    columns = connection.execute(
        "SELECT attname, atttypid::regtype::text FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum",
        [table],
    ).fetchall()
    names = [name for name, _ in columns]
    count = connection.execute(f"SELECT count(*) FROM bench.{table}").fetchone()[0]
    values = [_value(table, name, kind, count, copies) for name, kind in columns]
    where = "c.k BETWEEN %s AND %s"
    if table in OF_NOTES:
        where += " AND c.k = c.note_k"
    if table in ("recall_entry", "recall_vector"):
        where += " AND (s.kind <> 'note' OR c.k = c.note_k)"
    order = "c.k, s.ctid"
    statement = (
        f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)}"
        f" FROM bench.copies c CROSS JOIN bench.{table} s WHERE {where} ORDER BY {order}"
    )
    connection.execute(f"ANALYZE bench.{table}")
    began, wal = time.monotonic(), _wal(connection)
    for first, last in _chunks(copies, count):
        if shutil.disk_usage(folder).free < LEAST_FREE:
            raise SystemExit(f"less than {LEAST_FREE >> 30} GB of the disk are free: stopped in {table}")
        connection.execute(statement, [first, last])
    return Filled(time.monotonic() - began, _wal(connection) - wal)


def _chunks(copies: int, rows: int) -> Iterator[tuple[int, int]]:
    at_once = max(1, 50_000 // max(rows, 1))
    for first in range(1 - copies, 1, at_once):
        yield first, min(first + at_once - 1, 0)


def _value(table: str, name: str, kind: str, count: int, copies: int) -> str:
    """The SQL of one column of a copy `c` of the row `s`."""
    column = f"s.{name}"
    if kind == "uuid" and name not in SHARED_KEYS:
        note = table in OF_NOTES or name in NOTE_KEYS
        return f"bench.u({column}, {'c.note_k' if note else 'c.k'})"
    if kind.startswith("timestamp"):
        return f"{column} + c.k * interval '{STEP} milliseconds'"
    if name in PUBLIC_IDS:
        return f"bench.t({column}, c.k, c.six)"
    if name in GIVEN_KEYS:
        return f"bench.x({column}, c.k)"
    if name in ("path", "path_key") and table in OF_NOTES:
        return f"replace({column}, '.md', '-' || c.number || '.md')"
    if name == "sha256" and table in ("events_event", "graph_body", "graph_part"):
        return f"sha256({column} || int4send(c.k))"
    if name == "seq" and table == "tenants_auditentry":
        return f"{column} + (c.k + {copies - 1})::bigint * {count}"
    if name == "words" and table == "recall_entry":
        return f"{column} || ARRAY(SELECT hashint8extended(w, c.k) FROM unnest(s.rare) w)"
    if name == "embedding":
        return f"{column} + c.noise"
    return column


def _wal(connection: Any) -> int:
    return int(connection.execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')").fetchone()[0])
