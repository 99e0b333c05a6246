"""GET /api/v1/recall/{id}: the walk in one answer, breadth first, the same every time, never over its budget."""

from collections.abc import Callable
from typing import Any

import pytest

from memory import tokens
from tests.conftest import Agent
from tests.graph.test_threads import opened, steps, trigger
from tests.graph.test_workers import started
from tests.pages import made


@pytest.fixture
def client(api: Callable[[Agent], Any], agent: Agent) -> Any:
    return api(agent)


@pytest.fixture
def chain(client: Any, acme: Any) -> dict[str, str]:
    """A ticket, the thread it led to, a worker that reports there, and what the report rests on."""
    cause = trigger(client, "ticket", 0, summary="Customers are charged twice")
    change = trigger(client, "pr", 0, summary="PR 412 makes retries idempotent")
    session = made.session(acme).public_id
    wkr = started(
        client,
        thread=change["thread_id"],
        session_id=session,
        report=f"Retries charged twice, as {cause['trigger_id']} says.",
    ).json()["worker_id"]
    return {
        "cause": cause["trigger_id"],
        "ticket": cause["thread_id"],
        "change": change["trigger_id"],
        "pr": change["thread_id"],
        "worker": wkr,
        "session": session,
    }


def test_it_walks_from_a_thread_to_the_cause(client: Any, chain: dict[str, str]) -> None:
    answer = client.get(f"recall/{chain['pr']}").json()
    shown = [(item["id"], item["hop"], item["via"]) for item in answer["items"]]
    assert shown == [
        (chain["pr"], 0, None),
        (chain["worker"], 1, chain["pr"]),
        # The report names a trigger of it, so the threads are linked.
        (chain["ticket"], 1, chain["pr"]),
        (chain["change"], 1, chain["pr"]),
        (chain["cause"], 2, chain["worker"]),
        (chain["session"], 2, chain["worker"]),
    ]
    assert "Retries charged twice" in answer["items"][1]["view"]["report"]
    assert answer["items"][4]["view"]["summary"] == "Customers are charged twice"
    assert (answer["pointers"], answer["left_out"], answer["is_cut"]) == ([], 0, False)


def test_it_walks_to_what_came_after(client: Any, chain: dict[str, str]) -> None:
    answer = client.get(f"recall/{chain['cause']}", direction="after").json()
    assert [item["id"] for item in answer["items"]][:3] == [chain["cause"], chain["worker"], chain["ticket"]]
    assert chain["pr"] in [item["id"] for item in answer["items"]]


@pytest.mark.parametrize("name", ["worker", "session", "change", "ticket", "step", "event"])
def test_it_starts_from_any_kind(client: Any, acme: Any, chain: dict[str, str], name: str) -> None:
    extra = {"step": steps(client, chain["pr"])[0]["id"], "event": made.event(made.session(acme, key="two")).public_id}
    start = (chain | extra)[name]
    assert client.get(f"recall/{start}").json()["items"][0]["id"] == start


def test_the_same_walk_is_the_same_bytes(client: Any, chain: dict[str, str]) -> None:
    assert client.get(f"recall/{chain['pr']}").content == client.get(f"recall/{chain['pr']}").content


@pytest.mark.parametrize("hops", [0, 1, 2])
def test_it_goes_no_further_than_asked(client: Any, chain: dict[str, str], hops: int) -> None:
    items = client.get(f"recall/{chain['pr']}", hops=hops).json()["items"]
    assert max(item["hop"] for item in items) == hops


@pytest.mark.parametrize("budget", [100, 250, 600, 1500, 4000])
def test_it_is_never_over_its_budget(client: Any, budget: int) -> None:
    cited = [
        trigger(client, "k", n, summary=f"Über message {n}: 東京 {n * 7919} {{}}")["trigger_id"] for n in range(30)
    ]
    long = "# Found\n" + "\n".join(f"- {one} is part of it" for one in cited) * 20
    wkr = started(client, report=long).json()["worker_id"]
    raw = client.get(f"recall/{wkr}", budget_tokens=budget).content.decode()
    answer = client.get(f"recall/{wkr}", budget_tokens=budget).json()
    assert tokens.count(raw) <= budget
    assert answer["left_out"] >= 0
    if budget >= 1500:
        assert answer["items"][0]["view"]["spilled"]["report"].startswith(f"GET /api/v1/workers/{wkr}/report (")
        assert answer["items"][1:] and (answer["pointers"] or answer["left_out"])
        assert all(one["get"].startswith("GET /api/v1/") for one in answer["pointers"])


def test_a_circle_ends(client: Any) -> None:
    for one in ("thr_a", "thr_b"):
        opened(client, id=one)
    for one, two in (("thr_a", "thr_b"), ("thr_b", "thr_a")):
        client.post(f"threads/{one}/links", {"thread_id": two, "kind": "related"})
    assert len(client.get("recall/thr_a", hops=8).json()["items"]) == 2


@pytest.mark.parametrize(
    "query", [{"hops": "9"}, {"hops": "x"}, {"budget_tokens": "10"}, {"direction": "up"}, {"hop": "1"}]
)
def test_it_refuses_what_it_can_not_do(client: Any, chain: dict[str, str], query: dict[str, str]) -> None:
    assert client.get(f"recall/{chain['pr']}", **query).status_code == 400


def test_an_unknown_or_foreign_id_is_not_found(
    client: Any, api: Any, globex_agent: Agent, chain: dict[str, str]
) -> None:
    assert client.get("recall/thr_none").status_code == client.get("recall/xyz").status_code == 404
    stranger = api(globex_agent)
    none = stranger.get("recall/thr_none").content
    for asked in chain.values():
        theirs = stranger.get(f"recall/{asked}")
        assert theirs.status_code == 404
        assert theirs.content.replace(asked.encode(), b"ID") == none.replace(b"thr_none", b"ID")
    assert stranger.post(f"recall/{chain['pr']}", {}).status_code == 405
