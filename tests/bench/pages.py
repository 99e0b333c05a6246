"""What pages cost in a large team: `python tests/bench/pages.py [--notes N] [--events N] [--rounds N] [--only NAME …]`.

It fills a team with 100,000 notes, 1,000,000 events and the rest in proportion (`pages_fill.py`), starts the web server
as in production and prints for each page: the server's time from the request to the last byte, p50 and p95 over HTTP,
and what a first visit transfers: the page, its style, scripts, fonts and pictures, and the parts it loads by itself.
Beside them the processor time that a request takes of the web server and the database: where others work on the machine
too, the times say more of them. A page above a bar is marked. `--home FOLDER` keeps what was filled there and uses it
again, `--queries` prints the slowest statements of each page instead of its times.

Bars: p95 150 ms, 200 KB.
"""

import argparse
import html.parser
import http.client
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

SLOWEST_MS, HEAVIEST = 150, 200 * 1024
# More rounds of a page that is slow anyway tell nothing.
MOST_S = 12.0
ANSWERS = {"not-found": 404, "link-used": 410}
# Long work that a page shows progress of: it is asked by a button or by the page itself once it is there.
LONG_WORK = {"cache-repeats", "proposal-told"}


class Loads(html.parser.HTMLParser):
    """What a page makes the browser ask for: `files`, and `parts` that htmx puts into it at once."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.files: dict[str, None] = {}
        self.parts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attributes}
        if (tag == "link" and said.get("rel") in ("stylesheet", "icon")) or tag in ("script", "img", "source"):
            self.files |= dict.fromkeys(filter(None, [said.get("href") or said.get("src")]))
        if "load" in said.get("hx-trigger", "").split():
            self.parts.append(said["hx-get"])


class Work:
    """The processor time that the web server's and the database's processes have used, in milliseconds.

    Beside the times over HTTP: where others work on the machine too, those are more than a page costs.
    """

    def __init__(self, web: int, home: Path) -> None:
        self.web, self.database = web, int((home / "pg" / "postmaster.pid").read_text().split()[0])

    def so_far(self) -> float:
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == self.web or int(fields[1]) == self.database:
                ticks += int(fields[11]) + int(fields[12])
        return 1000 * ticks / os.sysconf("SC_CLK_TCK")


class Visitor:
    """A browser that keeps no cache: what it is given counts with its headers, as it is transferred."""

    def __init__(self, port: int, cookie: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.headers = {"Accept": "text/html", "Accept-Encoding": "br, gzip", "Cookie": cookie}
        self.weighed: dict[str, int] = {}

    def get(self, path: str, **headers: str) -> tuple[int, bytes, int, float]:
        """Status, the content unpacked, bytes transferred, seconds."""
        since = time.perf_counter()
        self.connection.request("GET", path, headers={**self.headers, **headers})
        answer = self.connection.getresponse()
        sent = answer.read()
        taken = time.perf_counter() - since
        size = len(sent) + sum(len(name) + len(value) + 4 for name, value in answer.getheaders()) + 19
        return answer.status, unpacked(sent, answer.getheader("Content-Encoding", "")), size, taken

    def weigh(self, path: str) -> tuple[int, int]:
        """Status and bytes of a first visit of a page."""
        status, content, total, _ = self.get(path)
        loads = Loads(content.decode())
        for part in loads.parts:
            _, more, size, _ = self.get(urljoin(path, part), **{"HX-Request": "true"})
            total += size
            loads.files |= Loads(more.decode()).files
        return status, total + sum(self.file(urljoin(path, name)) for name in loads.files)

    def file(self, path: str) -> int:
        """Bytes of a file, and of what a style sheet names."""
        if path.startswith("data:"):
            return 0
        if path not in self.weighed:
            status, content, size, _ = self.get(path)
            assert status == 200, (path, status)
            named = (
                re.findall(rb"url\(\s*['\"]?([^'\")#]+)", content) if path.partition("?")[0].endswith(".css") else []
            )
            self.weighed[path] = size + sum(self.file(urljoin(path, name.decode())) for name in dict.fromkeys(named))
        return self.weighed[path]


def unpacked(sent: bytes, encoding: str) -> bytes:
    import gzip

    if encoding == "br":
        import brotli

        return bytes(brotli.decompress(sent))
    return gzip.decompress(sent) if encoding == "gzip" else sent


def filled_team(home: Path, sizes: Any) -> dict[str, Any]:
    """The addresses of every page and the cookie of who opens them; filled once for each home."""
    from django.test.utils import setup_test_environment

    from tests import database
    from tests.bench import pages_fill
    from tests.browser import filled

    kept = home / "filled.json"
    environment = {**os.environ, "TEAM_MEMORY_DB_ROLE": "migrator", "DJANGO_SETTINGS_MODULE": "memory.settings"}
    command = [sys.executable, "-m", "django", "migrate", "-v0", "--skip-checks"]
    subprocess.run(command, check=True, env=environment, cwd=ROOT)
    setup_test_environment()
    if kept.exists():
        return {**json.loads(kept.read_text()), "cookie": cookie_of("alice@acme.test")}
    since = time.monotonic()
    team = filled.fill()
    pages = filled.addresses(team) | filled.operated(team)
    outside = filled.outside(team)
    with database.SERVER_OF_TESTS.superuser(database.NAME) as connection:
        named = pages_fill.fill(connection, team, sizes)
        one = "SELECT public_id FROM {} WHERE tenant_id = %s ORDER BY {} DESC, id LIMIT 1"
        for name, address, table, by in LARGE:
            [found] = connection.execute(one.format(table, by), [team["acme"].pk]).fetchall()
            pages[name] = f"/t/acme/{address.format(*found)}"
    told = {"pages": pages, "outside": outside, "rows": named}
    kept.write_text(json.dumps(told))
    print(f"filled in {time.monotonic() - since:.0f} s", flush=True)
    return {**told, "cookie": cookie_of("alice@acme.test")}


def cookie_of(email: str) -> str:
    """What a browser sends in which this person has just logged in."""
    from django.conf import settings
    from django.test import Client

    from memory.tenants.models import User

    entered = Client()
    entered.force_login(User.objects.get(email=email))
    return f"{settings.SESSION_COOKIE_NAME}={entered.cookies[settings.SESSION_COOKIE_NAME].value}"


# Beside the small real things that filled.py names: the largest of those that grow.
LARGE = (
    ("session-large", "sessions/{}/", "events_session", "last_seq"),
    ("thread-large", "threads/{}/", "graph_thread", "last_seq"),
    ("note-bulk", "notes/{}/", "notes_note", "is_pinned DESC, created_at"),
    ("note-bulk-told", "notes/{}/told/", "notes_note", "is_pinned DESC, created_at"),
    ("notes-search", "notes/?q=retr", "notes_note", "created_at"),
    ("notes-search-rare", "notes/?q=nothinglikethis", "notes_note", "created_at"),
    ("threads-search", "threads/?q=payment", "notes_note", "created_at"),
    ("threads-closed", "threads/?state=closed", "notes_note", "created_at"),
    ("sessions-search", "sessions/?q=nothinglikethis", "notes_note", "created_at"),
    ("sessions-waiting", "sessions/?state=waiting", "notes_note", "created_at"),
    ("sessions-failed", "sessions/?state=failed", "notes_note", "created_at"),
    ("audit-rare", "audit/?action=note.share", "notes_note", "created_at"),
    ("audit-who", "audit/?who=nobody", "notes_note", "created_at"),
    ("inbox-high", "?risk=high", "notes_note", "created_at"),
    ("find-words", "find/?q=what+is+known", "notes_note", "created_at"),
)


def measured(visitor: Visitor, work: Work, path: str, rounds: int) -> tuple[float, float, float]:
    """p50 and p95 of the server's time, and the processor time of a request, in milliseconds."""
    for _ in range(2):
        visitor.get(path)
    times: list[float] = []
    before = work.so_far()
    while len(times) < rounds and sum(times) < MOST_S * 1000:
        times.append(visitor.get(path)[3] * 1000)
    used = (work.so_far() - before) / len(times)
    times.sort()
    return times[len(times) // 2], times[min(int(len(times) * 0.95), len(times) - 1)], used


def report(port: int, work: Work, told: dict[str, Any], rounds: int, only: list[str]) -> int:
    """Print a line a page; gives how many are above a bar."""
    above = 0
    for kind, cookie in (("pages", told["cookie"]), ("outside", "")):
        visitor = Visitor(port, cookie)
        for name, path in told[kind].items():
            if only and name not in only:
                continue
            status, weight = visitor.weigh(path)
            if status != ANSWERS.get(name, 200):
                print(f"{name:20} answers {status}: {path}", flush=True)
                above += 1
                continue
            p50, p95, used = measured(visitor, work, path, rounds)
            marks = [" slow"] * (p95 > SLOWEST_MS and name not in LONG_WORK) + [" heavy"] * (weight > HEAVIEST)
            above += bool(marks)
            print(
                f"{name:20} p50 {p50:7.1f}  p95 {p95:7.1f} ms  processor {used:6.1f} ms"
                f"  {weight / 1024:6.1f} KB{''.join(marks)}",
                flush=True,
            )
    return above


def queries(told: dict[str, Any], only: list[str]) -> None:
    """The slowest statements of each page, by Django's own log of them."""
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    client = Client(raise_request_exception=False)
    name, _, value = told["cookie"].partition("=")
    client.cookies[name] = value
    for page, path in told["pages"].items():
        if only and page not in only:
            continue
        client.get(path)
        with CaptureQueriesContext(connection) as caught:
            since = time.perf_counter()
            client.get(path)
            taken = time.perf_counter() - since
        print(f"\n{page}: {taken * 1000:.0f} ms, {len(caught)} statements")
        for one in sorted(caught.captured_queries, key=lambda one: -float(one["time"]))[:4]:
            if float(one["time"]) >= 0.01:
                print(f"  {float(one['time']) * 1000:.0f} ms  {one['sql'][:3000]}")


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, default in (("notes", 100_000), ("events", 1_000_000), ("rounds", 40)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--queries", action="store_true")
    asked = parser.parse_args()
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    if asked.home:
        os.environ["TEAM_MEMORY_TEST_HOME"] = str(asked.home)
    import django

    from tests import database

    django.setup()
    from tests.bench.ingest import Web
    from tests.bench.pages_fill import Sizes

    above = 0
    try:
        told = filled_team(database.SERVER_OF_TESTS.home.path, Sizes(asked.notes, asked.events))
        print(", ".join(f"{count:,} {name}" for name, count in told["rows"].items()), flush=True)
        if asked.queries:
            queries(told, asked.only)
        else:
            web = Web(database.SERVER_OF_TESTS.home.path)
            try:
                web.await_ready()
                work = Work(web.process.pid, database.SERVER_OF_TESTS.home.path)
                above = report(web.port, work, told, asked.rounds, asked.only)
            finally:
                web.stop()
            print(f"{above} above a bar ({SLOWEST_MS} ms, {HEAVIEST // 1024} KB)")
    finally:
        database.end()
    sys.exit(1 if above else 0)


if __name__ == "__main__":
    main()
