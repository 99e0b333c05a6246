"""Search in a large team: `python tests/bench/search.py [ROWS]` (500,000 without it).

The rows and their vectors are made up: words by a long-tailed law, vectors around 2,000 centres in 384 dimensions.
It prints p50 and p95 of each look and of the whole search, over all the team, over a project with 5 % and over one
with 0.2 % of its rows; and recall@10 of the look by meaning against the exact scan of the same rows. What a model
takes to make the question's vector is not in it.
"""

import random
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.database import database, percentile

LENGTH, CENTRES, VOCABULARY, ROUNDS, THREADS = 384, 2_000, 30_000, 200, 20_000
NIL = "00000000-0000-0000-0000-000000000000"
TENANT = "00000000-0000-7000-8000-000000000001"
SMALL, TINY = "00000000-0000-7000-8000-0000000000a5", "00000000-0000-7000-8000-0000000000a2"
MAKER = "synthetic@1"


class Synthetic:
    """Vectors around centres; the n-th question's vector is made with n."""

    model, version, floor, dimensions = "synthetic", "1", 0.0, LENGTH

    def __init__(self) -> None:
        import numpy

        self.numpy = numpy
        self.random = numpy.random.default_rng(7)
        self.centres = self.random.standard_normal((CENTRES, LENGTH)).astype("f4")

    def some(self, count: int) -> Any:
        chosen = self.random.integers(0, CENTRES, count)
        made = self.centres[chosen] + 1.0 * self.random.standard_normal((count, LENGTH)).astype("f4")
        return made / self.numpy.linalg.norm(made, axis=1, keepdims=True)

    def embed(self, texts: Sequence[str], *, kind: str) -> list[list[float]]:
        return [[float(value) for value in row] for row in self.some(len(texts))]


def word(rng: random.Random) -> str:
    """The n-th word is met as often as 1/n, as words are."""
    return f"word{letters(int(VOCABULARY ** rng.random()))}"


def letters(number: int) -> str:
    made = ""
    while number:
        number, rest = divmod(number, 26)
        made += chr(97 + rest)
    return made


def fill(server: Any, rows: int, by: Synthetic) -> None:
    """Straight into the tables, as the migrator; the rules that mark changes rest meanwhile."""
    from memory.recall.entries import word_number

    rng = random.Random(3)  # noqa: S311
    numbers: dict[str, int] = {}
    with server.superuser("team_memory") as connection:
        connection.execute("SET session_replication_role = replica; SET maintenance_work_mem = '3GB'")
        connection.execute("SET synchronous_commit = off")
        indexes = drop_indexes(connection)
        connection.execute(
            "INSERT INTO tenants_tenant (id, public_id, slug, name, created_at)"
            " VALUES (%s, 'ten_b', 'bench', 'B', now())",
            [TENANT],
        )
        connection.execute("CREATE TEMP TABLE made (n int, place uuid, text text, words bigint[], v halfvec)")
        places = [SMALL] * 50 + [TINY] * 2 + [f"00000000-0000-7000-8000-{n:012x}" for n in range(1000, 1948)]
        for start in range(0, rows, 10_000):
            vectors = by.some(min(10_000, rows - start)).astype(">f2")
            with connection.cursor().copy("COPY made FROM STDIN (FORMAT BINARY)") as copy:
                copy.write(b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0))
                for offset in range(len(vectors)):
                    n = start + offset
                    text = " ".join(dict.fromkeys(word(rng) for _ in range(12)))
                    asked = [numbers.setdefault(w, word_number(TENANT, w)) for w in text.split()]
                    copy.write(row(n, places[n % 1000], text, asked, vectors[offset].tobytes()))
                copy.write(struct.pack(">h", -1))
        for statement in LOADS:
            connection.execute(statement.format(tenant=TENANT, nil=NIL, maker=MAKER, length=LENGTH, threads=THREADS))
        for statement in indexes:
            since = time.monotonic()
            connection.execute(statement)
            if "hnsw" in statement and f"({LENGTH})" in statement:
                print(f"index of {rows:,} vectors built in {time.monotonic() - since:.0f} s", flush=True)
        connection.execute("VACUUM ANALYZE")


def drop_indexes(connection: Any) -> list[str]:
    """Leave out the slow indexes while rows are loaded; gives the statements that make them again."""
    rows = connection.execute(
        "SELECT indexname, indexdef FROM pg_indexes WHERE indexname = ANY (%s)",
        [[f"recall_vector_near_{LENGTH}", "recall_entry_words"]],
    ).fetchall()
    for name, _ in rows:
        connection.execute(f"DROP INDEX {name}")
    return [statement for _, statement in rows]


def row(n: int, place: str, text: str, words: list[int], vector: bytes) -> bytes:
    """One row of COPY's binary form."""
    raw = text.encode()
    array = struct.pack(">iiiii", 1, 0, 20, len(words), 1) + b"".join(struct.pack(">iq", 8, one) for one in words)
    half = struct.pack(">hh", LENGTH, 0) + vector
    fields = [struct.pack(">i", n), bytes.fromhex(place.replace("-", "")), raw, array, half]
    return struct.pack(">h", len(fields)) + b"".join(struct.pack(">i", len(one)) + one for one in fields)


PK = "('00000000-0000-7000-{what}-' || lpad(to_hex(n), 12, '0'))::uuid"
LOADS = (
    "INSERT INTO graph_thread (id, tenant_id, public_id, title, state, summary, last_seq, trigger_count, worker_count,"
    " created_at, last_at, active_at)"
    f" SELECT {PK.format(what='8001')}, '{{tenant}}', 'thr_b' || n, 'thread ' || n,"
    " 'open', '', 100, 0, 0, now(), now(), now()"
    " FROM generate_series(0, {threads} - 1) n",
    "INSERT INTO graph_trigger (id, tenant_id, public_id, thread_id, seq, source, fingerprint, received_at, summary,"
    " by)"
    f" SELECT {PK.format(what='8002')}, '{{tenant}}', 'trg_b' || n,"
    " ('00000000-0000-7000-8001-' || lpad(to_hex(n % {threads}), 12, '0'))::uuid, n / {threads} + 1, 'bench', '',"
    " now(), text, '' FROM made",
    "INSERT INTO recall_entry (id, tenant_id, kind, target, reader, place, thread, version, words, head, size, folded)"
    f" SELECT {PK.format(what='8003')}, '{{tenant}}', 'trigger', {PK.format(what='8002')}, '{{nil}}', place,"
    " NULL, 1, words, '{{}}', cardinality(words), text FROM made",
    "INSERT INTO recall_vector (id, tenant_id, entry_id, chunk, kind, reader, place, thread, sha256, made_with,"
    " dimensions, embedding)"
    f" SELECT {PK.format(what='8004')}, '{{tenant}}', {PK.format(what='8003')}, 0, 'trigger', '{{nil}}', place, NULL,"
    " '', '{maker}', {length}, v FROM made",
)


def measure(name: str, places: tuple[str, ...] | None, by: Synthetic) -> None:
    from django.db import connection

    from memory.recall import everywhere, looks, vectors
    from memory.recall.kinds import KINDS
    from memory.tenants.rls import tenant_scope

    rng = random.Random(11)  # noqa: S311
    reach = looks.Reach(TENANT, KINDS, (NIL,), places)
    words_s, meaning_s, whole_s, shares = [], [], [], []
    for number in range(ROUNDS):
        q = " ".join(word(rng) for _ in range(4))
        vector = vectors.literal(by.embed([q], kind="query")[0])
        with tenant_scope(TENANT):
            since = time.perf_counter()
            looks.by_words(reach, q.split(), is_all=False, most=everywhere.DEPTH)
            words_s.append(time.perf_counter() - since)
            since = time.perf_counter()
            found = looks.by_meaning(reach, MAKER, vector, LENGTH, most=everywhere.DEPTH)
            meaning_s.append(time.perf_counter() - since)
            since = time.perf_counter()
            everywhere.find(everywhere.Asked(q, reach), limit=10, by=by)
            whole_s.append(time.perf_counter() - since)
            if number < ROUNDS // 2:
                shares.append(share(connection, places, vector, [one.target for one in found[:10]]))
    print(
        f"{name:28} recall@10 {sum(shares) / len(shares):.3f} (worst {min(shares):.1f})   p50/p95 ms:"
        f" words {percentile(words_s, 0.5):.1f}/{percentile(words_s, 0.95):.1f}"
        f" meaning {percentile(meaning_s, 0.5):.1f}/{percentile(meaning_s, 0.95):.1f}"
        f" whole {percentile(whole_s, 0.5):.1f}/{percentile(whole_s, 0.95):.1f}",
        flush=True,
    )


def share(connection: Any, places: tuple[str, ...] | None, vector: str, found: list[str]) -> float:
    """How many of the ten nearest by the exact scan are among the ten found."""
    limit = "" if places is None else "AND v.place = ANY (%s::uuid[])"
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT e.target FROM recall_vector v JOIN recall_entry e ON e.id = v.entry_id"
            f" WHERE v.tenant_id = %s {limit}"
            f" ORDER BY (v.embedding::halfvec({LENGTH}) <#> %s::halfvec({LENGTH})) + 0 LIMIT 10",
            [TENANT, *([] if places is None else [list(places)]), vector],
        )
        exact = {str(target) for (target,) in cursor.fetchall()}
    return len(exact & set(found)) / len(exact)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    with database() as server:
        by = Synthetic()
        since = time.monotonic()
        fill(server, rows, by)
        print(
            f"{rows:,} triggers of one team, vectors are SYNTHETIC ({CENTRES:,} centres); filled in "
            f"{time.monotonic() - since:.0f} s"
        )
        measure("all of it", None, by)
        measure("a project with 5 % of it", (NIL, SMALL), by)
        measure("a project with 0.2 % of it", (NIL, TINY), by)


if __name__ == "__main__":
    main()
