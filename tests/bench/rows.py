"""What rows cost: `python tests/bench/rows.py EVENTS [MORE] [--sessions FOLDER] [--threads FOLDER] [--write FILE]`.

It makes a small team by the product itself and copies it by SQL until EVENTS are there (`rows_fill.py`), and prints for
each table that grows: bytes a row in the heap, in TOAST and in each index, bytes of WAL a row, seconds to insert a
million rows, seconds of VACUUM and ANALYZE; and p50 and p95 of the main reads, by the product's doors in this process,
once with nothing in any cache and once again. With MORE it then writes down what these figures foretell for so many
events, makes the team anew with them, and compares: what was foretold wrong by more than a fifth is named.

Without folders the sessions and threads of `manage.py demo` are copied. The disk must hold 4 KB an event.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.database import ROOT, database, percentile
from tests.bench.rows_fill import GROWING, Filled, Seed, copy, prepare, seed

DEMO = ROOT / "memory" / "ops" / "demo"
READS, WRONG = 60, 0.2
# Other than autovacuum's, as an operator would have them: it would run into the figures.
SETTINGS = {"fsync": "on", "shared_buffers": "2GB", "max_wal_size": "4GB", "autovacuum": "off"}


@dataclass
class Figures:
    """All that was measured, by what it is called. Sizes in bytes, reads in milliseconds."""

    events: int
    rows: dict[str, int] = field(default_factory=dict)
    # "table", "table: TOAST", "table: index": bytes.
    sizes: dict[str, int] = field(default_factory=dict)
    wal: dict[str, int] = field(default_factory=dict)
    inserting: dict[str, float] = field(default_factory=dict)
    vacuum: dict[str, float] = field(default_factory=dict)
    reads: dict[str, float] = field(default_factory=dict)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events", type=int, nargs="+")
    parser.add_argument("--sessions", type=Path, default=DEMO / "sessions")
    parser.add_argument("--threads", type=Path, default=DEMO / "threads")
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    with database(**SETTINGS) as server:
        known = seed(server, asked.sessions, asked.threads)
        print(f"the product made {known.events:,} events; they are copied")
        print(f"the hook door wrote {known.wal_by_the_door:,.0f} bytes of WAL an event", flush=True)
        prepare(server, max(asked.events) // known.events)
        measured: list[Figures] = []
        for events in asked.events:
            figures = Figures(events)
            _count(server, figures, copy(server, known, events, server.home.path))
            _vacuum(server, figures)
            _read(server, figures, known)
            _show(figures)
            measured.append(figures)
            if asked.write:
                asked.write.write_text(json.dumps([asdict(one) for one in measured], indent=1))
            if len(measured) < len(asked.events):
                _foretell(figures, asked.events[len(measured)])
    for before, now in pairwise(measured):
        _compare(before, now)


def _count(server: Any, figures: Figures, filled: dict[str, Filled]) -> None:
    with server.superuser("team_memory") as connection:
        for table in GROWING:
            figures.rows[table] = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for part in _partitions(connection, table):
                _measure(connection, figures, table, part)
    for what, one in filled.items():
        figures.wal[what], figures.inserting[what] = one.wal, one.seconds


def _partitions(connection: Any, table: str) -> list[str]:
    found = connection.execute("SELECT relid::regclass::text FROM pg_partition_tree(%s) WHERE isleaf", [table])
    return [one for (one,) in found.fetchall()] or [table]


def _measure(connection: Any, figures: Figures, table: str, part: str) -> None:
    def add(name: str, size: int) -> None:
        figures.sizes[name] = figures.sizes.get(name, 0) + size

    heap, toast = connection.execute(
        "SELECT pg_relation_size(oid), CASE reltoastrelid WHEN 0 THEN 0 ELSE pg_total_relation_size(reltoastrelid) END"
        " FROM pg_class WHERE oid = %s::regclass",
        [part],
    ).fetchone()
    add(table, heap)
    add(f"{table}: TOAST", toast)
    indexes = connection.execute(
        "SELECT indexrelid::regclass::text, pg_relation_size(indexrelid) FROM pg_index WHERE indrelid = %s::regclass",
        [part],
    ).fetchall()
    for name, size in indexes:
        add(f"{table}: {name if part == table else 'key'}", size)


def _vacuum(server: Any, figures: Figures) -> None:
    with server.superuser("team_memory") as connection:
        for table in GROWING:
            for what in ("VACUUM", "ANALYZE"):
                began = time.monotonic()
                connection.execute(f"{what} {table}")
                figures.vacuum[f"{what} {table}"] = time.monotonic() - began
        connection.execute("CHECKPOINT")


def _read(server: Any, figures: Figures, known: Seed) -> None:
    reads = _reads(server, known)
    for name, requests in reads.items():
        _make_cold(server)
        _ask_for_health()
        for state in ("cold", "warm"):
            took = [_timed(request) for request in requests]
            figures.reads[f"{name}, {state}, p50"] = percentile(took, 0.5)
            figures.reads[f"{name}, {state}, p95"] = percentile(took, 0.95)


def _make_cold(server: Any) -> None:
    """Nothing of the database is in its buffers or in the kernel's; other programs' files stay."""
    from django.db import connections

    for each in connections.all(initialized_only=True):
        each.close()
        each.close_pool()
    server.stop()
    subprocess.run(["sync", "-f", server.home.path], check=True)
    for path in (server.home.path / "pg").rglob("*"):
        if path.is_file():
            opened = os.open(path, os.O_RDONLY)
            os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(opened)
    server.start()


def _ask_for_health() -> None:
    """Connections and the catalogue are there before the clock runs."""
    from django.test import Client

    if Client(headers={"Host": "localhost"}).get("/readyz").status_code != 200:
        raise SystemExit("the product is not ready")


def _timed(request: Callable[[], Any]) -> float:
    began = time.perf_counter()
    answer = request()
    took = time.perf_counter() - began
    if answer.status_code != 200:
        raise SystemExit(f"{answer.status_code}: {answer.content[:300]!r}")
    return took


def _reads(server: Any, known: Seed) -> dict[str, list[Callable[[], Any]]]:
    from django.test import Client

    from memory import paging

    client = Client(headers={"Authorization": f"Bearer {known.secret}"})
    with server.superuser("team_memory") as connection:
        connection.execute("SELECT setseed(0.5)")

        def some(sql: str) -> list[Any]:
            return list(connection.execute(f"{sql} ORDER BY random() LIMIT {READS}").fetchall())

        sessions = some("SELECT public_id, id, last_seq FROM events_session WHERE last_seq > 60")
        events = some("SELECT public_id FROM events_event TABLESAMPLE SYSTEM (0.1)")
        threads = some("SELECT public_id FROM graph_thread")
        texts = some("SELECT folded FROM recall_entry WHERE kind IN ('event', 'trigger') AND size > 5")
        cwd = connection.execute("SELECT cwd FROM events_session WHERE project_id IS NOT NULL LIMIT 1").fetchone()[0]

    def get(path: str, **query: Any) -> Callable[[], Any]:
        return lambda: client.get(f"/api/v1/{path}", query_params=query)

    def page(public: str, pk: Any, last: int) -> Callable[[], Any]:
        cursor = paging.encode([last // 2], scope=f"{known.tenant}:events:{pk}")
        return get(f"sessions/{public}/events", limit=50, cursor=cursor)

    def start() -> Any:
        told = {"session_id": str(uuid.uuid4()), "cwd": cwd, "hook_event_name": "SessionStart", "source": "startup"}
        return client.post("/api/v1/hooks/claude-code", json.dumps(told), content_type="application/json")

    rng = random.Random(5)  # noqa: S311
    return {
        "a page of 50 events in the middle of a session": [page(*one) for one in sessions],
        "an event by id": [get(f"events/{one}") for (one,) in events],
        "a thread by id": [get(f"threads/{one}") for (one,) in threads],
        "search": [get("search", q=_question(text, rng)) for (text,) in texts],
        "a session's start, told": [start] * READS,
    }


def _question(text: str, rng: random.Random) -> str:
    words = text.split()
    at = rng.randrange(max(1, len(words) - 5))
    return " ".join(words[at : at + 5])


def _show(figures: Figures) -> None:
    print(f"\n{figures.events:,} events  [load average {os.getloadavg()[0]:.1f}]")
    print(f"{'':54}{'rows':>12}{'bytes/row':>11}{'bytes/event':>12}{'MB':>9}")
    for name, size in figures.sizes.items():
        rows = figures.rows[name.split(":")[0]]
        if size and rows:
            shown = "  " + name if ":" in name else name
            line = f"{shown[:54]:54}{rows if ':' not in name else 0:12,}{size / rows:11,.0f}"
            print(f"{line.replace('           0 ', '             ')}{size / figures.events:12,.1f}{size / 1e6:9,.0f}")
    whole = sum(figures.sizes.values())
    print(f"{'in all':77}{whole / figures.events:12,.1f}{whole / 1e6:9,.0f}")
    print(f"\n{'':54}{'WAL bytes/row':>14}{'WAL bytes/event':>16}{'s per M rows':>13}")
    for name, wal in figures.wal.items():
        rows = figures.rows.get(name, 0) or figures.rows["recall_vector"]
        seconds = figures.inserting[name] / rows * 1e6
        print(f"{name[:54]:54}{wal / rows:14,.0f}{wal / figures.events:16,.1f}{seconds:13,.1f}")
    print(f"{'in all':68}{sum(figures.wal.values()) / figures.events:16,.1f}")
    print("\nseconds of VACUUM and ANALYZE, of tables over 0.1 s")
    for name, took in figures.vacuum.items():
        if took > 0.1:
            print(f"{name:54}{took:9.1f}")
    print(f"\n{'reads, ms':68}{'p50':>9}{'p95':>9}")
    for name, took in figures.reads.items():
        if name.endswith("p50"):
            print(f"{name[:-5]:68}{took:9.1f}{figures.reads[name[:-3] + 'p95']:9.1f}")


def _flat(figures: Figures) -> dict[str, float]:
    """What is foretold: sizes, WAL and times of whole tables, and reads."""
    found: dict[str, float] = {}
    for name, size in figures.sizes.items():
        found[f"MB of {name}"] = size / 1e6
    for name, wal in figures.wal.items():
        found[f"MB of WAL of {name}"] = wal / 1e6
    for name, took in figures.inserting.items():
        found[f"s to insert {name}"] = took
    for name, took in figures.vacuum.items():
        found[f"s of {name}"] = took
    found["MB in all"] = sum(figures.sizes.values()) / 1e6
    found["MB of WAL in all"] = sum(figures.wal.values()) / 1e6
    found["s to insert all"] = sum(figures.inserting.values())
    return found | {f"ms of {name}": took for name, took in figures.reads.items()}


def _prediction(figures: Figures, times: float) -> dict[str, float]:
    """In proportion to the events; reads as long as before, for they go by indexes."""
    return {name: one if name.startswith("ms") else one * times for name, one in _flat(figures).items()}


def _tells(name: str, value: float) -> bool:
    """Small ones are noise: under 5 MB, under a second."""
    return value >= {"MB": 5.0, "s ": 1.0}.get(name[:2], 0.0)


def _foretell(figures: Figures, events: int) -> None:
    print(f"\nforetold for {events:,} events")
    for name, value in _prediction(figures, events / figures.events).items():
        if _tells(name, value):
            print(f"  {name:76}{value:12,.1f}", flush=True)


def _compare(before: Figures, now: Figures) -> None:
    print(f"\nforetold from {before.events:,} events, and measured with {now.events:,}")
    measured = _flat(now)
    wrong = []
    for name, value in _prediction(before, now.events / before.events).items():
        if name not in measured or not (_tells(name, value) or _tells(name, measured[name])):
            continue
        off = measured[name] / value - 1 if value else float("inf")
        mark = "  WRONG" if abs(off) > WRONG else ""
        print(f"  {name:72}{value:12,.1f}{measured[name]:12,.1f}{off:+8.0%}{mark}")
        wrong += [name] if mark else []
    print(f"\nwrong by more than {WRONG:.0%}: {len(wrong)}: {'; '.join(wrong) or 'none'}")


if __name__ == "__main__":
    main()
