"""Workers over /api/v1: started, reporting, citing, owning threads, and their inboxes."""

from collections.abc import Callable
from typing import Any

import pytest

from memory.graph.models import Citation
from tests.conftest import Agent, new_agent
from tests.graph.test_threads import steps, trigger
from tests.pages import made

LONG = "# Report\n\n" + "\n".join(f"Finding {n}: nothing of note." for n in range(1000))


@pytest.fixture
def client(api: Callable[[Agent], Any], agent: Agent) -> Any:
    return api(agent)


def started(client: Any, **body: Any) -> Any:
    return client.post("workers", {"task": "Find why it failed"} | body)


def test_it_starts_a_worker_in_a_thread(client: Any) -> None:
    trg = trigger(client, "k")
    answer = started(client, thread=trg["thread_id"], id="wkr_deploy_7")
    assert answer.status_code == 201
    view = client.get("workers/wkr_deploy_7").json()
    assert answer.json() == view
    assert (view["thread_id"], view["task"], view["state"]) == (trg["thread_id"], "Find why it failed", "running")
    assert (view["report"], view["cites"], view["owns"], view["session_id"]) == (None, [], [], None)
    thread = client.get(f"threads/{trg['thread_id']}").json()
    assert thread["workers"] == ["wkr_deploy_7"] and thread["counts"]["workers"] == 1
    assert started(client, thread=trg["thread_id"], id="wkr_deploy_7").status_code == 200
    assert started(client, thread=trg["thread_id"], id="wkr_deploy_7", task="Other").status_code == 409


def test_it_reports_and_cites(client: Any) -> None:
    first, second = (trigger(client, "k", n) for n in range(2))
    wkr = started(client, thread=first["thread_id"]).json()["worker_id"]
    report = f"It broke in {second['trigger_id']}. See also trg_nobody-has-this."
    answer = client.client.patch(
        f"/api/v1/workers/{wkr}",
        {"state": "done", "report": report, "cites": [first["trigger_id"]]},
        content_type="application/json",
    )
    assert answer.status_code == 200
    view = client.get(f"workers/{wkr}").json()
    assert (view["state"], view["report"]) == ("done", report)
    assert view["cites"] == [first["trigger_id"], second["trigger_id"]]
    assert client.get(f"triggers/{second['trigger_id']}").json()["cited_by"] == [wkr]
    found = steps(client, first["thread_id"])
    assert [step["kind"] for step in found] == [
        "trigger",
        "trigger",
        "worker_started",
        "worker_reported",
        "worker_state",
    ]
    assert found[3]["summary"].startswith("It broke in") and found[3]["worker_id"] == wkr


def patch(client: Any, wkr: str, **body: Any) -> Any:
    return client.client.patch(f"/api/v1/workers/{wkr}", body, content_type="application/json")


@pytest.mark.parametrize("cited", ["trg_none", "wkr_none", "evt_01kb6v2m0sfx3ampvj3k8jyzra", "x", "nte_1"])
def test_what_is_cited_exists(client: Any, acme: Any, bound: Any, cited: str) -> None:
    wkr = started(client).json()["worker_id"]
    answer = patch(client, wkr, state="done", cites=[cited])
    assert (answer.status_code, answer.json()["code"], answer.json()["id"]) == (422, "unknown_citation", cited)
    assert client.get(f"workers/{wkr}").json()["state"] == "running"
    with bound(acme):
        assert not Citation.objects.exists()


def test_steps_workers_and_hook_events_can_be_cited(client: Any, acme: Any) -> None:
    event = made.event(made.session(acme)).public_id
    thread_id = trigger(client, "k")["thread_id"]
    step = steps(client, thread_id)[0]["id"]
    other = started(client).json()["worker_id"]
    wkr = started(client, cites=[event, step, other, thread_id]).json()
    assert wkr["cites"] == [event, step, other, thread_id]


def test_nothing_of_another_team_is_cited(client: Any, api: Any, globex_agent: Agent) -> None:
    theirs = trigger(api(globex_agent), "k")["trigger_id"]
    assert started(client, cites=[theirs]).status_code == 422
    assert started(client, report=f"see {theirs}").json()["cites"] == []


def test_a_long_report_is_spilled(client: Any) -> None:
    wkr = started(client, report=LONG).json()["worker_id"]
    view = client.get(f"workers/{wkr}").json()
    assert view["report"] is None and LONG.startswith(view["report_head"]) and LONG.endswith(view["report_tail"])
    assert view["spilled"] == {"report": f"GET /api/v1/workers/{wkr}/report (29 KB, truncated)"}
    whole = client.get(f"workers/{wkr}/report")
    assert whole.content.decode() == LONG and whole["Content-Type"].startswith("text/markdown")
    assert client.get(f"workers/{wkr}/report", lines="3-3").content == b"Finding 0: nothing of note.\n"
    assert client.get(f"workers/{wkr}/report", grep="Finding 77:").json()["hits"][0]["line"] == 80


def test_a_secret_in_a_report_is_taken_out(client: Any) -> None:
    secret = "AKIA" + "QYLPMN5HHHFPZAM2"
    view = started(client, report=f"aws_access_key_id={secret}", task=f"use {secret}").json()
    assert secret not in view["report"] and secret not in view["task"]


def test_without_a_report_there_is_none(client: Any) -> None:
    wkr = started(client).json()["worker_id"]
    assert client.get(f"workers/{wkr}/report").status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [({"id": "trg_1"}, 400), ({"id": "wkr_01kb6v2m0sfx3ampvj3k8jyzra"}, 400), ({"cites": "trg_1"}, 400),
     ({"cites": [1]}, 400), ({"state": "All Done"}, 400), ({"task": 5}, 400), ({"reprot": "x"}, 400),
     ({"session_id": "ses_none"}, 422), ({"thread": "thr_01kb6v2m0sfx3ampvj3k8jyzra"}, 422)],
)  # fmt: skip
def test_it_refuses_what_it_can_not_keep(client: Any, body: dict[str, Any], status: int) -> None:
    assert started(client, **body).status_code == status


def test_a_worker_is_a_session_and_both_say_so(client: Any, acme: Any, bound: Any) -> None:
    session = made.session(acme)
    wkr = started(client, session_id=session.public_id).json()
    assert wkr["session_id"] == session.public_id
    with bound(acme):
        session.refresh_from_db()
        assert session.worker.public_id == wkr["worker_id"]


def test_what_is_passed_through_lands_in_the_inbox(client: Any) -> None:
    thread_id = trigger(client, "k", 0)["thread_id"]
    wkr = started(client).json()["worker_id"]
    owned = client.post(f"threads/{thread_id}/owners", {"worker_id": wkr, "pass_through": True})
    assert owned.status_code == 201 and owned.json()["owner_workers"] == [wkr]
    assert client.get(f"workers/{wkr}").json()["owns"] == [thread_id]
    passed = [trigger(client, "k", n)["trigger_id"] for n in range(1, 6)]
    found, cursor = [], {}
    while True:
        page = client.get(f"workers/{wkr}/inbox", limit=2, **cursor).json()
        found += page["items"]
        cursor = {"cursor": page["next_cursor"]}
        if not page["has_more"]:
            break
    assert [entry["trigger_id"] for entry in found] == passed
    assert [entry["seq"] for entry in found] == [1, 2, 3, 4, 5] and found[0]["summary"] == "message 1"
    assert client.get(f"triggers/{passed[0]}").json()["owner_workers"] == [wkr]
    trigger(client, "k", 1)  # a repeat
    assert client.get(f"workers/{wkr}/inbox", **cursor).json()["items"] == []
    trigger(client, "k", 6)
    assert len(client.get(f"workers/{wkr}/inbox", **cursor).json()["items"]) == 1


def test_an_owner_without_pass_through_gets_nothing(client: Any) -> None:
    thread_id = trigger(client, "k", 0)["thread_id"]
    wkr = started(client).json()["worker_id"]
    for wanted, status in ((True, 201), (False, 200), (False, 200)):
        assert (
            client.post(f"threads/{thread_id}/owners", {"worker_id": wkr, "pass_through": wanted}).status_code == status
        )
    trigger(client, "k", 1)
    assert client.get(f"workers/{wkr}/inbox").json()["items"] == []
    assert client.delete(f"threads/{thread_id}/owners?worker_id={wkr}").json()["owner_workers"] == []
    assert client.delete(f"threads/{thread_id}/owners?worker_id={wkr}").status_code == 404
    kinds = [step["kind"] for step in steps(client, thread_id)]
    assert kinds == ["trigger", "owner_added", "owner_added", "trigger", "owner_removed"]


@pytest.mark.parametrize(("body", "status"), [({}, 400), ({"worker_id": "wkr_none"}, 422), ({"worker_id": 5}, 400),
                                              ({"worker_id": "wkr_a", "pass_through": "yes"}, 400)])  # fmt: skip
def test_an_owner_is_a_worker(client: Any, body: dict[str, Any], status: int) -> None:
    started(client, id="wkr_a")
    thread_id = trigger(client, "k")["thread_id"]
    assert client.post(f"threads/{thread_id}/owners", body).status_code == status


def test_the_answer_is_kept_under_its_key(client: Any) -> None:
    first, again = (client.post("workers", {"task": "x"}, headers={"Idempotency-Key": "w"}) for _ in range(2))
    assert first.json() == again.json()


def test_it_needs_the_scope_and_hides_others(api: Any, alice: Any, client: Any, globex_agent: Agent) -> None:
    wkr = started(client, report="x").json()["worker_id"]
    reader, writer = (api(new_agent(alice, scopes=[scope])) for scope in ("read", "ingest"))
    assert started(reader).status_code == patch(reader, wkr, state="done").status_code == 403
    stranger = api(globex_agent)
    for path in ("workers/{}", "workers/{}/report", "workers/{}/inbox"):
        assert writer.get(path.format(wkr)).status_code == 403
        theirs, none = stranger.get(path.format(wkr)), stranger.get(path.format("wkr_none"))
        assert theirs.status_code == none.status_code == 404
        assert theirs.content.replace(wkr.encode(), b"ID") == none.content.replace(b"wkr_none", b"ID")
    assert patch(stranger, wkr, state="done").status_code == 404
    assert client.get(f"workers/{trigger(client, 'k')['trigger_id']}").status_code == 404


def test_other_methods_are_refused(client: Any) -> None:
    wkr = started(client).json()["worker_id"]
    assert client.get("workers").status_code == client.put(f"workers/{wkr}", {}).status_code == 405
    assert client.post(f"workers/{wkr}/inbox", {}).status_code == 405
