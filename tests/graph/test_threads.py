"""Threads over /api/v1: opened, changed, listed, linked, and told in one line each."""

from collections.abc import Callable
from typing import Any

import pytest

from memory import tokens
from tests.conftest import Agent, new_agent


@pytest.fixture
def client(api: Callable[[Agent], Any], agent: Agent) -> Any:
    return api(agent)


def opened(client: Any, **body: Any) -> Any:
    return client.post("threads", body or {"title": "A thread"})


def trigger(client: Any, key: str, n: int = 0, **more: Any) -> Any:
    body = {"source": "test", "external_id": f"{key}-{n}", "thread": {"key": key}, "summary": f"message {n}"} | more
    return client.post("triggers", body).json()


def steps(client: Any, thread_id: str, limit: int = 50) -> list[dict[str, Any]]:
    """All steps, page by page."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = client.get(f"threads/{thread_id}/events", limit=limit, **cursor).json()
        found += page["items"]
        cursor = {"cursor": page["next_cursor"]}
        if not page["has_more"]:
            return found


def test_it_opens_a_thread_once(client: Any) -> None:
    first = opened(client, key="github:acme/payments#412", title="Retry", summary="About retries")
    again = opened(client, key="github:acme/payments#412", title="Retry", summary="About retries")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["thread_id"] == again.json()["thread_id"]
    view = client.get(f"threads/{first.json()['thread_id']}").json()
    assert (view["title"], view["state"], view["summary"]) == ("Retry", "open", "About retries")
    assert view["owner_workers"] == [] and view["links"] == []
    assert view["counts"] == {"triggers": 0, "workers": 0, "events": 1}


def test_the_same_answer_on_the_second_call(client: Any) -> None:
    thread_id = trigger(client, "k")["thread_id"]
    assert client.get(f"threads/{thread_id}").content == client.get(f"threads/{thread_id}/").content


def test_put_sets_what_is_said(client: Any) -> None:
    thread_id = opened(client, id="thr_pr_412", title="Old", summary="Stays").json()["thread_id"]
    answer = client.put(f"threads/{thread_id}", {"title": "New", "state": "merged"})
    assert answer.status_code == 200
    view = client.get("threads/thr_pr_412").json()
    assert (view["title"], view["state"], view["summary"]) == ("New", "merged", "Stays")
    assert [(s["kind"], s["summary"]) for s in steps(client, thread_id)][-1] == ("state", "open → merged")
    assert client.put("threads/thr_none", {"title": "x"}).status_code == 404


@pytest.mark.parametrize(
    "body",
    [{"state": "Two Words"}, {"title": 5}, {"titel": "x"}, [], {"title": "x" * 501}, {"id": "trg_1"}, {"key": " "}],
)
def test_it_refuses_what_it_can_not_keep(client: Any, body: Any) -> None:
    assert client.post("threads", body).status_code == 400


def test_steps_are_dense_and_paged_once(client: Any) -> None:
    thread_id = trigger(client, "k", 0)["thread_id"]
    for n in range(1, 10):
        trigger(client, "k", n)
    found = steps(client, thread_id, limit=3)
    assert [step["seq"] for step in found] == list(range(1, 11))
    assert [step["summary"] for step in found] == [f"message {n}" for n in range(10)]
    assert len({step["id"] for step in found}) == 10 and all(step["id"].startswith("evt_") for step in found)


def test_the_tail_has_a_cursor_that_resumes(client: Any) -> None:
    thread_id = trigger(client, "k", 0)["thread_id"]
    page = client.get(f"threads/{thread_id}/events").json()
    assert page["has_more"] is False
    for _ in range(2):
        page = client.get(f"threads/{thread_id}/events", cursor=page["next_cursor"]).json()
        assert page["items"] == []
    trigger(client, "k", 1)
    page = client.get(f"threads/{thread_id}/events", cursor=page["next_cursor"]).json()
    assert [step["summary"] for step in page["items"]] == ["message 1"]


@pytest.mark.parametrize("bad", ["zzzz", "", "cD0lMDA=", "WyJhIl0", "é"])
def test_a_wrong_cursor_is_refused(client: Any, bad: str) -> None:
    thread_id = trigger(client, "k")["thread_id"]
    answer = client.get(f"threads/{thread_id}/events", cursor=bad)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_cursor")


def test_a_cursor_has_one_spelling(client: Any) -> None:
    thread_id = trigger(client, "k")["thread_id"]
    cursor = client.get(f"threads/{thread_id}/events").json()["next_cursor"]
    for other in (cursor + "=", cursor + "====", cursor + " "):
        assert client.get(f"threads/{thread_id}/events", cursor=other).json()["code"] == "invalid_cursor"
    assert client.get(f"threads/{thread_id}/events", cursor=cursor).status_code == 200


def test_a_cursor_of_another_list_or_team_is_refused(client: Any, api: Any, globex_agent: Agent) -> None:
    one, two = (trigger(client, key)["thread_id"] for key in ("a", "b"))
    cursor = client.get(f"threads/{one}/events").json()["next_cursor"]
    assert client.get(f"threads/{two}/events", cursor=cursor).json()["code"] == "invalid_cursor"
    stranger = api(globex_agent)
    trigger(stranger, "a", thread={"id": "thr_same"})
    trigger(client, "c", thread={"id": "thr_same"})
    cursor = client.get("threads/thr_same/events").json()["next_cursor"]
    assert stranger.get("threads/thr_same/events", cursor=cursor).json()["code"] == "invalid_cursor"
    assert client.get(f"threads/{one}/events", offset=5).json()["code"] == "unknown_parameter"
    assert client.get(f"threads/{one}/events", limit=0).json()["code"] == "invalid_limit"


def test_the_list_filters_and_pages(client: Any) -> None:
    ids = [opened(client, key=f"k:{n}", title=f"Payments {n}").json()["thread_id"] for n in range(7)]
    client.put(f"threads/{ids[3]}", {"state": "closed"})
    found, cursor = [], {}
    while True:
        page = client.get("threads", limit=3, **cursor).json()
        found += [row["thread_id"] for row in page["items"]]
        cursor = {"cursor": page["next_cursor"]}
        if not page["has_more"]:
            break
    assert found == ids
    assert [row["thread_id"] for row in client.get("threads", key="k:2").json()["items"]] == [ids[2]]
    assert [row["thread_id"] for row in client.get("threads", state="closed").json()["items"]] == [ids[3]]
    assert [row["thread_id"] for row in client.get("threads", q="payments 5").json()["items"]] == [ids[5]]
    assert client.get("threads", q="nothing such").json()["items"] == []
    assert client.get("threads", cursor=cursor["cursor"], state="open").json()["code"] == "invalid_cursor"


def test_the_index_has_the_newest_activity_first(client: Any) -> None:
    ids = {key: trigger(client, key, thread={"key": key, "title": f"Title {key}"})["thread_id"] for key in "abc"}
    trigger(client, "a", 1)
    client.put(f"threads/{ids['b']}", {"state": "closed"})
    answer = client.get("threads/index").json()
    assert [line.split()[0] for line in answer["items"]] == [ids["a"], ids["c"]]
    assert "Title a" in answer["items"][0] and answer["left_out"] == 0


@pytest.mark.parametrize("budget", [100, 237, 500, 2000])
def test_the_index_is_never_over_its_budget(client: Any, budget: int) -> None:
    for n in range(40):
        trigger(client, f"k{n}", thread={"key": f"k{n}", "title": f'Über "{n}" 東京 {n * 7919}'})
    raw = client.get("threads/index", budget_tokens=budget).content.decode()
    answer = client.get("threads/index", budget_tokens=budget).json()
    assert tokens.count(raw) <= budget and len(answer["items"]) + answer["left_out"] == 40
    assert len(answer["items"]) >= budget // 110
    assert client.get("threads/index", budget_tokens="5").status_code == 400


def test_people_and_keys_link_threads(client: Any) -> None:
    one, two = (opened(client, id=f"thr_{n}").json()["thread_id"] for n in ("one", "two"))
    made = client.post(f"threads/{one}/links", {"thread_id": two, "kind": "ticket"})
    assert (
        made.status_code == 201
        and client.post(f"threads/{one}/links", {"thread_id": two, "kind": "ticket"}).status_code == 200
    )
    (out,) = client.get(f"threads/{one}").json()["links"]
    assert (out["kind"], out["direction"], out["thread_id"]) == ("ticket", "to", two) and out["made_by"].startswith(
        "key_"
    )
    (back,) = client.get(f"threads/{two}").json()["links"]
    assert (back["direction"], back["thread_id"]) == ("from", one)
    assert client.delete(f"threads/{one}/links?thread_id={two}").status_code == 200
    assert client.get(f"threads/{one}").json()["links"] == client.get(f"threads/{two}").json()["links"] == []
    assert client.delete(f"threads/{one}/links?thread_id={two}").status_code == 404
    assert [step["kind"] for step in steps(client, two)] == ["opened", "linked", "unlinked"]


def test_a_link_waits_for_its_thread(client: Any) -> None:
    opened(client, id="thr_one")
    client.post("threads/thr_one/links", {"key": "jira:PAY-7", "kind": "ticket"})
    assert client.get("threads/thr_one").json()["links"][0].get("thread_id") is None
    later = trigger(client, "jira:PAY-7")["thread_id"]
    assert client.get("threads/thr_one").json()["links"][0]["thread_id"] == later
    assert client.get(f"threads/{later}").json()["links"][0]["thread_id"] == "thr_one"
    assert [step["kind"] for step in steps(client, later)] == ["linked", "trigger"]


@pytest.mark.parametrize(
    ("body", "status"),
    [({"thread_id": "thr_none"}, 422), ({"thread_id": "thr_one"}, 409), ({"kind": "x"}, 400),
     ({"thread_id": "wkr_1"}, 400),
     ({"thread_id": "thr_one", "key": "k"}, 400), ({}, 400)],
)  # fmt: skip
def test_a_link_leads_somewhere(client: Any, body: dict[str, str], status: int) -> None:
    opened(client, id="thr_one")
    assert client.post("threads/thr_one/links", body).status_code == status


def test_the_answer_is_kept_under_its_key(client: Any) -> None:
    headers = {"Idempotency-Key": "once"}
    first, again = (client.post("threads", {"title": "x"}, headers=headers) for _ in range(2))
    assert first.json() == again.json() and again["Idempotent-Replay"] == "true" and again.status_code == 201
    assert client.post("threads", {"title": "y"}, headers=headers).json()["code"] == "idempotency_conflict"
    assert client.get("threads").json()["items"][1:] == []


def test_it_needs_the_scope_and_the_role(api: Any, alice: Any, vera: Any, client: Any) -> None:
    reader, writer = (api(new_agent(alice, scopes=[scope])) for scope in ("read", "ingest"))
    thread_id = opened(client).json()["thread_id"]
    assert opened(reader).status_code == 403
    assert reader.put(f"threads/{thread_id}", {"title": "x"}).status_code == 403
    assert opened(api(new_agent(vera))).status_code == 403
    assert api(new_agent(vera)).get(f"threads/{thread_id}").status_code == 200
    for path in (f"threads/{thread_id}", f"threads/{thread_id}/events", "threads", "threads/index"):
        assert writer.get(path).status_code == 403
    assert opened(writer).status_code == 201


def test_other_methods_are_refused(client: Any) -> None:
    thread_id = opened(client).json()["thread_id"]
    for path, method in ((f"threads/{thread_id}", client.post), (f"threads/{thread_id}/events", client.put)):
        answer = method(path, {})
        assert answer.status_code == 405 and "GET" in answer["Allow"]


def test_a_link_keeps_no_secret(client: Any) -> None:
    token = "ghp_1234567890abcdefghijABCDEFGHIJ123456"
    opened(client, id="thr_l")
    client.post("threads/thr_l/links", {"key": f"l {token}", "kind": token})
    assert token not in client.get("threads/thr_l").content.decode()
