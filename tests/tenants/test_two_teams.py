"""A team alone, and the same team beside one that does the same with the same names: it sees the very same.

And many teams over few connections: each answer names its own team, whatever the connection last carried.
"""

import hashlib
import json
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import connection

from tests.conftest import Api, new_agent, new_team, served
from tests.pages import made

_ID = re.compile(r"\b[a-z]{3}_[0-9a-z]{26}\b")
_AT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?(?:Z|\+00:00))?")
_OPAQUE = re.compile(r'"(next_cursor|request_id|lease|key|instance)":\s*"[^"]*"')
# The boundary of what is told: an HMAC over it, ids and all.
_BOUNDARY = re.compile(r"\b[0-9a-f]{16}\b")
_NUMBER = re.compile(r'"(age_s|expires_in|retry_after|elapsed_ms|active_s)":\s*[\d.]+')
WORDS = ("retries", "gateway", "totals", "rounding", "cursor", "webhook", "deploy", "lint")


class View:
    """What one team was answered: ids by the order of their first appearance, and no clock."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._said = hashlib.sha256()
        self.last: list[str] = []
        self.statuses: Counter[tuple[str, int]] = Counter()

    def take(self, name: str, answer: Any) -> Any:
        """Note the answer and give its JSON, or None."""
        text = _ID.sub(lambda found: self.named(found[0]), answer.content.decode())
        text = _BOUNDARY.sub("BOUNDARY", text)
        text = _NUMBER.sub(r'"\1":0', _OPAQUE.sub(r'"\1":"…"', _AT.sub("AT", text)))
        if name in ("hook", "sessions"):
            # Which session was the last is put down once in a few seconds: their order is the clock's.
            text = "\n".join(sorted(re.split(r"\\n|(?<=\}),(?=\{)", text.replace("[{", "[,{"))))
        line = f"{name} {answer.status_code} {text}"
        self._said.update(line.encode())
        self.last.append(line)
        self.statuses[name, answer.status_code] += 1
        return json.loads(answer.content) if answer.content.startswith((b"{", b"[")) else None

    def named(self, public_id: str) -> str:
        """The id by its kind and its place among all that came."""
        return self._names.setdefault(public_id, f"{public_id[:3]}#{len(self._names)}")

    @property
    def digest(self) -> str:
        return self._said.hexdigest()


class Life:
    """One team's days, the same for the same seed: sessions, threads, workers, caches, search, lists, deletions."""

    def __init__(self, agent: Any, *, foreign: Callable[[str], str]) -> None:
        self.desk, self.view, self.foreign = Api(agent), View(), foreign
        self.chance = random.Random(11)  # noqa: S311 - the same life each time
        self.ids: dict[str, list[str]] = {"thr": [], "trg": [], "wkr": [], "ses": [], "evt": [], "res": []}
        self.number = 0

    def step(self) -> None:
        """One operation."""
        self.number += 1
        act = self.chance.choice(self.ACTS)
        act(self)

    def _one(self, kind: str) -> str:
        known = self.ids[kind]
        return self.chance.choice(known) if known else f"{kind}_{'0' * 26}"

    def _said(self, name: str, answer: Any) -> Any:
        return self.view.take(name, answer) or {}

    def _keep(self, kind: str, public_id: str | None) -> None:
        if public_id:
            self.ids[kind].append(public_id)
            self.view.named(public_id)

    def hook(self) -> None:
        word, place = self.chance.choice(WORDS), self.chance.choice(["shop", "blog", "docs"])
        payload = {
            # A start tells of the last three of a place, and the clock says which those are: there are three.
            "session_id": f"{place}-{self.chance.randrange(3)}",
            "cwd": f"/home/dev/{place}",
            "hook_event_name": self.chance.choice(["UserPromptSubmit", "PostToolUse", "Stop", "SessionStart"]),
            "prompt": f"Mend the {word} of the {self.chance.choice(WORDS)}",
            "tool_name": "Read",
            "tool_use_id": f"toolu_{self.number}",
            "tool_input": {"file_path": f"src/{word}.py"},
        }
        answer = self.desk.post("hooks/claude-code", payload)
        self._said("hook", answer)
        self._keep("evt", answer.headers.get("X-Team-Memory-Event"))
        self._keep("ses", answer.headers.get("X-Team-Memory-Session"))

    def trigger(self) -> None:
        external = self.chance.randrange(2_000)
        # The same thing says the same each time it comes.
        number, word, other = external % 40, WORDS[external % 8], WORDS[external // 8 % 8]
        body = {
            "source": "github",
            "external_id": f"e{external}",
            "thread": {"key": f"github:acme/web#{number}", "title": f"{word} {number}"},
            "summary": f"{other} failed, see #{external % 37}",
            "payload": {"n": number, "text": word * 3},
        }
        said = self._said("trigger", self.desk.post("triggers", body))
        self._keep("trg", said.get("trigger_id"))
        self._keep("thr", said.get("thread_id"))

    def worker(self) -> None:
        body = {"thread_id": self._one("thr"), "task": f"Look at {self.chance.choice(WORDS)}"}
        self._keep("wkr", self._said("worker", self.desk.post("workers", body)).get("worker_id"))

    def report(self) -> None:
        # Without an id: its letters are words of other lengths each time, and weights go by lengths.
        report = f"# Found\nThe {self.chance.choice(WORDS)} was wrong."
        body = {"state": "done", "report": report, "cites": [self._one("trg")]}
        answer = self.desk.client.patch(
            f"/api/v1/workers/{self._one('wkr')}", json.dumps(body), content_type="application/json"
        )
        self._said("report", answer)

    def read(self) -> None:
        kind, path = self.chance.choice(
            [("thr", "threads"), ("trg", "triggers"), ("wkr", "workers"), ("ses", "sessions"), ("evt", "events")]
        )
        self._said("read", self.desk.get(f"{path}/{self._one(kind)}"))

    def page(self) -> None:
        path, cursor = (
            self.chance.choice(
                [
                    f"threads/{self._one('thr')}/events",
                    "threads",
                    "sessions",
                    "projects",
                    "notes",
                    "dreams",
                    "proposals",
                ]
            ),
            None,
        )
        for _ in range(3):
            query = {"limit": 7, **({"cursor": cursor} if cursor else {})}
            said = self._said("page", self.desk.get(path, **query))
            cursor = said.get("next_cursor")
            if not said.get("has_more"):
                return

    def sessions(self) -> None:
        self._said("sessions", self.desk.get("sessions", limit=100))

    # Ids have other letters each time, and so other tokens: what has room in full is not the same, what is reached is.
    def recall(self) -> None:
        answer = self.desk.get(f"recall/{self._one('thr')}", hops=1, budget_tokens=20_000)
        whole = json.loads(answer.content)
        reached = len(whole.get("items", ())) + len(whole.get("pointers", ())) + whole.get("left_out", 0)
        if reached > 5:
            answer.content = json.dumps({"first": whole["items"][:5], "reached": reached}).encode()
        self._said("recall", answer)

    def index(self) -> None:
        self._said("index", self.desk.get("threads/index", budget_tokens=20_000))

    def search(self) -> None:
        q = f"{self.chance.choice(WORDS)} {self.chance.choice([*WORDS, '#7', 'retires', ''])}".strip()
        self._said("search", self.desk.get("search", q=q))

    def cache(self) -> None:
        body = {
            "tool": "read_file",
            "arguments": {"path": f"src/{self.chance.choice(WORDS)}.py"},
            "context": {"project": "shop", "root": "/home/dev/shop", "scope": "team"},
            "content_hash": f"sha256:{self.chance.randrange(4)}",
        }
        said = self._said("cache", self.desk.post("cache/tools/lookup", body))
        if "lease" in said:
            stored = {"lease": said["lease"], "result": f"text of {body['arguments']} " * 20}
            kept = self._said("store", self.desk.put(f"cache/tools/{said['key']}", stored))
            self._keep("res", kept.get("result_id"))

    def analysis(self) -> None:
        item = {"content_hash": f"h{self.chance.randrange(30)}", "analysis_type": "deps", "version": "1"}
        self._said("analysis", self.desk.post("cache/analyses/lookup", {"items": [item]}))
        if self.chance.random() < 0.3:
            body = {"version": "1", "analysis": {"of": item["content_hash"]}}
            self._said("analyse", self.desk.put(f"cache/analyses/{item['content_hash']}/deps", body))

    def strange(self) -> None:
        """An id that is another team's where there is one, and nobody's where there is none."""
        kind, path = self.chance.choice(
            [("thr", "threads/{}"), ("trg", "triggers/{}"), ("wkr", "workers/{}"), ("ses", "sessions/{}"),
             ("evt", "events/{}"), ("res", "results/{}"), ("thr", "recall/{}"), ("thr", "threads/{}/events")]
        )  # fmt: skip
        asked = self.foreign(kind)
        answer = self.desk.get(path.format(asked))
        assert answer.status_code == 404
        answer.content = answer.content.replace(asked.encode(), b"ASKED")
        self._said("strange", answer)

    def drop(self) -> None:
        self._said("drop", self.desk.delete(f"triggers/{self._one('trg')}"))

    ACTS = (
        *[hook] * 5, *[trigger] * 5, worker, report, sessions, *[read] * 4, *[page] * 2, recall, index,
        *[search] * 2, *[cache] * 3, analysis, *[strange] * 2, drop,
    )  # fmt: skip


def lived(slug: str, *, beside: Life | None, count: int) -> Life:
    """A new team's life; `beside` lives a step for each of its own."""
    _, people = new_team(slug, ana="owner")
    chance = random.Random(5)  # noqa: S311

    def foreign(kind: str) -> str:
        nobody = f"{kind}_{chance.randrange(10**26):026d}"
        return chance.choice(beside.ids[kind]) if beside and beside.ids[kind] else nobody

    life = Life(new_agent(people["ana"], scopes=["ingest", "read", "propose", "cache", "admin"]), foreign=foreign)
    for _ in range(count):
        if beside:
            beside.step()
        life.step()
    return life


def differential(count: int) -> Life:
    alone = lived("alone", beside=None, count=count)
    _, people = new_team("other", ana="owner")
    made.note(people["ana"].tenant, people["ana"])
    other = Life(
        new_agent(people["ana"], scopes=["ingest", "read", "cache", "admin"]), foreign=lambda kind: f"{kind}_none"
    )
    beside = lived("beside", beside=other, count=count)
    for one, two in zip(alone.view.last, beside.view.last, strict=True):
        assert one == two
    assert alone.view.digest == beside.view.digest
    return beside


@pytest.mark.usefixtures("committed")
def test_a_team_sees_the_same_with_and_without_another() -> None:
    seen = differential(120).view.statuses
    assert {name for name, status in seen if status < 300} >= {"hook", "trigger", "read", "page", "search", "cache"}


@pytest.mark.slow
@pytest.mark.usefixtures("committed")
def test_a_team_sees_the_same_over_10_000_operations() -> None:
    life = differential(10_000)
    done = {name for name, status in life.view.statuses if status < 300}
    assert done == {name for name, _ in life.view.statuses} - {"strange"}, "each act did something"
    told = ", ".join(f"{name} {status}: {count}" for (name, status), count in sorted(life.view.statuses.items()))
    print(f"\n10,000 operations beside 10,000 of another team, the same view byte by byte ({told})")


def asked(address: str, teams: list[tuple[str, str, list[str]]], count: int) -> Counter[str]:
    """Requests of all teams at once, in no order; each answer must be of the team that asked."""
    seen: Counter[str] = Counter()
    lock, host = threading.Lock(), urlsplit(address).netloc

    def some(number: int) -> None:
        chance = random.Random(number)  # noqa: S311
        client = HTTPConnection(host, timeout=60)
        for _ in range(count // 16):
            slug, secret, threads = chance.choice(teams)
            _, _, theirs = chance.choice(teams)
            path, expected = chance.choice(
                [
                    (f"threads/{chance.choice(threads)}", 200),
                    ("threads?limit=5", 200),
                    ("search?q=word", 200),
                    ("sessions", 200),
                    (f"threads/{chance.choice(theirs)}", 200 if theirs is threads else 404),
                ]
            )
            client.request("GET", f"/api/v1/{path}", headers={"Authorization": f"Bearer {secret}"})
            answer = client.getresponse()
            text = answer.read().decode()
            assert answer.status == expected, (path, answer.status, text[:300])
            named = set(re.findall(r"team-\d+", text))
            assert named <= {slug}, f"{slug} asked {path} and was told of {named}"
            with lock:
                seen[f"{path.split('?')[0].split('/')[0]} {answer.status}"] += 1
        client.close()

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(some, range(16)))
    return seen


def teams_of(count: int) -> Iterator[tuple[str, str, list[str]]]:
    for number in range(count):
        slug = f"team-{number}"
        _, people = new_team(slug, ana="owner")
        agent = new_agent(people["ana"])
        desk = Api(agent)
        threads = []
        for place in range(3):
            body = {"source": "ci", "external_id": f"e{place}", "thread": {"key": f"ci:{place}", "title": slug}}
            threads.append(desk.post("triggers", {**body, "summary": f"word of {slug}"}).json()["thread_id"])
        desk.post("hooks/claude-code", {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": slug})
        yield slug, agent.secret, threads
    connection.close()


@pytest.mark.usefixtures("committed")
@pytest.mark.parametrize("count", [400, pytest.param(20_000, marks=pytest.mark.slow)])
def test_twenty_teams_over_five_connections_never_see_each_other(count: int) -> None:
    teams = list(teams_of(20))
    with served(TEAM_MEMORY_DB_POOL="5", TEAM_MEMORY_LOG_LEVEL="ERROR") as address:
        seen = asked(address, teams, count)
    assert sum(seen.values()) == count and seen["threads 404"], "others' threads were asked for too"
    print(f"\n{count:,} requests of 20 teams over 5 connections, 0 foreign rows: {dict(seen)}")
