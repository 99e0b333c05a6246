"""What the caches cost: `python tests/bench/cache.py [ENTRIES] [VECTORS]` (1,000,000 and 100,000 where left out).

It starts its own database on loopback and prints, each in turn with a bare SELECT by primary key: the lookup
hit at 1,000 entries and at ENTRIES, a batch of 1,000 analyses, and the nearest question among VECTORS with its recall
against the exact scan. Vectors are made up: clusters, as questions are.
"""

import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"

import django  # noqa: E402

from tests import database  # noqa: E402

django.setup()

import numpy  # noqa: E402
import orjson  # noqa: E402
from django.db import connection  # noqa: E402

from cache_admin import analyses, semantic  # noqa: E402
from cache_admin.analyses import Wanted  # noqa: E402
from cache_admin.keys import Call  # noqa: E402
from cache_admin.lookup import Asked, look  # noqa: E402
from memory.tenants import keys, rls  # noqa: E402
from memory.tenants.access import member_actor  # noqa: E402
from tests.conftest import Api, new_agent, new_team  # noqa: E402

SAMPLES = 400
DIMENSIONS = 384
NOBODY = "00000000-0000-4000-8000-000000000000"


def bare(_: int) -> None:
    """What any question to the database costs at this moment."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM tenants_tenant WHERE id = %s", [NOBODY])
        cursor.fetchone()


def measured(name: str, work: Callable[[int], Any], count: int = SAMPLES) -> tuple[float, float]:
    """Print what each call takes, and give how many times a bare SELECT p50 and p95 are.

    Both are asked in turn: what else the machine does in a minute hits both alike.
    """
    taken: dict[Callable[[int], Any], list[float]] = {work: [], bare: []}
    for number in range(-20, count):
        for each, times in taken.items():
            began = time.perf_counter()
            each(abs(number))
            if number >= 0:
                times.append((time.perf_counter() - began) * 1000)
    (p50, p95), (floor, top) = ((statistics.median(one), statistics.quantiles(one, n=20)[18]) for one in taken.values())
    ratio = p50 / floor
    print(
        f"{name:45} p50 {p50:7.2f} ms  p95 {p95:7.2f} ms  {ratio:6.1f} times a bare SELECT"
        f" (p50 {floor:.2f}, p95 {top:.2f} ms)",
        flush=True,
    )
    return ratio, p95 / top


def settle(*tables: str) -> None:
    """What a fill leaves to be done is not what is measured."""
    with database.migrator() as server:
        for table in tables:
            server.execute(f"VACUUM ANALYZE {table}".encode())
    with database.SERVER_OF_TESTS.superuser() as server:
        server.execute("CHECKPOINT")


def steadily(of: str, one: Callable[[int], None]) -> tuple[float, float]:
    """The ratios once each entry was asked for: a checkpoint makes the first write to each page cost a page of log."""
    measured(f"first lookups of {of} behind a checkpoint", one)
    for number in range(SAMPLES):
        one(number)
    return measured(f"lookup hit at {of}", one)


def fill_entries(tenant: str, count: int) -> None:
    """Entries with keys of their own, as the migrator: a million lookups and writes would take an hour."""
    with database.migrator() as server:
        server.execute(
            "INSERT INTO cache_admin_result (id, tenant_id, public_id, tool, sha256, is_json, summary, summariser,"
            " chars, tokens, summary_tokens, redactions, is_private, expansions,"
            " created_at) SELECT gen_random_uuid(), %s,"
            " 'res_' || md5(n::text), 'read_file', sha256(n::text::bytea), false, '', 'whole', 100, 25, 25, 0, false,"
            " 0, now() FROM generate_series(1, %s) AS n",
            [tenant, count],
        )
        server.execute(
            "INSERT INTO cache_admin_entry (id, tenant_id, key, identity, document, tool, scope, content_hash,"
            " result_id, created_at, last_hit_at) SELECT gen_random_uuid(), tenant_id, sha256(id::text::bytea),"
            " sha256(public_id::bytea), repeat('x', 300), 'read_file', 'team', public_id, id, now(), now()"
            " FROM cache_admin_result WHERE tenant_id = %s AND public_id NOT LIKE 'res_0%%'",
            [tenant],
        )
    settle("cache_admin_entry", "cache_admin_result")


def hits(desk: Api, secret: str, count: int) -> Callable[[int], None]:
    """Look up calls that are stored; a session that has it would get less."""
    calls = [{"tool": "read_file", "arguments": {"path": f"f{n}.py"}, "context": {"project": "p", "root": "/r"},
              "content_hash": f"h{n}"} for n in range(count)]  # fmt: skip
    for body in calls:
        missed = desk.post("cache/tools/lookup", body).json()
        if missed["status"] == "miss":
            desk.put(f"cache/tools/{missed['key']}", {"lease": missed["lease"], "result": "text " * 100})
    asked = [
        Asked(Call("read_file", body["arguments"], root="/r", content_hash=str(body["content_hash"])), project="p")
        for body in calls
    ]
    key_hash = keys.digest(secret)

    def one(number: int) -> None:
        assert look(key_hash, asked[number % count]).status == "hit"

    return one


def fill_vectors(tenant: str, count: int, space: bytes) -> numpy.ndarray[Any, Any]:
    """Unit vectors in clusters, each beside an entry."""
    maker = numpy.random.default_rng(7)
    centres = maker.normal(size=(max(1, count // 200), DIMENSIONS))
    made = centres[maker.integers(len(centres), size=count)] + 0.6 * maker.normal(size=(count, DIMENSIONS))
    made = (made / numpy.linalg.norm(made, axis=1, keepdims=True)).astype("float32")
    with database.migrator() as server:
        entries = [
            row[0]
            for row in server.execute("SELECT id FROM cache_admin_entry WHERE tenant_id = %s LIMIT %s", [tenant, count])
        ]
        # Built once over all of them: row by row it takes five times as long.
        name = "cache_questions_nearest"
        [made_by] = server.execute("SELECT indexdef FROM pg_indexes WHERE indexname = %s", [name]).fetchone() or [""]
        server.execute(f"DROP INDEX {name}")
        server.execute("SET maintenance_work_mem = '1GB'")
        with (
            server.cursor() as cursor,
            cursor.copy(
                "COPY cache_admin_question (id, tenant_id, space, tool, asked, entry_id, embedding) FROM STDIN"
            ) as copy,
        ):
            for number, (entry, vector) in enumerate(zip(entries, made, strict=True)):
                text = "[" + ",".join(f"{value:.5f}" for value in vector) + "]"
                row = (str(entry), tenant, "\\x" + space.hex(), "ask", f"q{number}", str(entry), text)
                copy.write_row(row)
        server.execute(made_by)
    settle("cache_admin_question")
    return made


def semantic_bench(tenant: str, count: int) -> None:
    space = bytes(range(32))
    began = time.perf_counter()
    made = fill_vectors(tenant, count, space)
    print(f"{count:,} vectors in {time.perf_counter() - began:.0f} s")
    maker = numpy.random.default_rng(9)
    asked = made[maker.integers(count, size=SAMPLES)] + 0.02 * maker.normal(size=(SAMPLES, DIMENSIONS))
    asked = asked / numpy.linalg.norm(asked, axis=1, keepdims=True)
    found: dict[int, set[str]] = {}

    def one(number: int) -> None:
        with rls.tenant_scope(tenant):
            near = semantic.nearest(space.hex(), asked[number].tolist(), most=10)
            found[number] = {item.asked for item in near}

    measured(f"nearest of {count:,} questions, without embedding", one)
    right = 0.0
    for number in range(SAMPLES):
        exact = {f"q{place}" for place in numpy.argsort(-(made @ asked[number].astype("float32")))[:10]}
        right += len(found[number] & exact) / 10
    print(f"recall@10 against the exact scan {right / SAMPLES:.3f}")


def analyses_bench(tenant: Any, actor: Any) -> None:
    with database.migrator() as server:
        server.execute(
            "INSERT INTO cache_admin_analysis (id, tenant_id, public_id, is_limited, content_hash, analysis_type,"
            " version, parameters, bound_path, content, made_by, tokens, created_at,"
            " last_used_at) SELECT gen_random_uuid(), %s,"
            " 'ana_' || n, false, 'h' || n, 'deps', '1', '', '', jsonb_build_object('text', repeat('word ', 100)),"
            " '{}', 100, now(), now() FROM generate_series(1, 100000) AS n",
            [str(tenant.pk)],
        )
    settle("cache_admin_analysis")
    chance = random.Random(3)  # noqa: S311

    def one(_: int) -> None:
        wanted = [Wanted(f"h{chance.randrange(1, 110_000)}", "deps", "1", path=f"f{n}.py") for n in range(1000)]
        with rls.tenant_scope(str(tenant.pk)):
            orjson.dumps(analyses.look(tenant, wanted, by=actor, project_pk=None)[0])

    measured("batch of 1,000 analyses of 100,000", one, 40)


def main(entries: int, vectors: int) -> None:
    team, people = new_team("bench", alice="owner")
    agent = new_agent(people["alice"])
    one = hits(Api(agent), agent.secret, 1_000)
    settle("cache_admin_entry", "cache_admin_result")
    small = steadily("1,000 entries", one)
    fill_entries(str(team.pk), entries)
    large = steadily(f"{entries:,} entries", one)
    growth = [after / before - 1 for before, after in zip(small, large, strict=True)]
    print(f"growth of the ratios p50 {growth[0]:+.0%}, p95 {growth[1]:+.0%}")
    analyses_bench(team, member_actor(people["alice"]))
    semantic_bench(str(team.pk), min(vectors, entries * 15 // 16))


if __name__ == "__main__":
    try:
        main(*(int(argument) for argument in [*sys.argv[1:], "1000000", "100000"][:2]))
    finally:
        connection.close()
        database.end()
