"""A hook session becomes a worker of the threads it works on, a moment after its events, once each."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from memory.events import tasks, working
from memory.events.models import Claim, Reading, Session
from memory.graph.models import Worker
from memory.tenants import due
from memory.tenants.models import Tenant
from tests.conftest import Agent, new_agent
from tests.graph.test_threads import steps, trigger
from tests.graph.test_webhooks_github import pull
from tests.graph.webhook_calls import new_sender

PR = "https://github.com/acme/payments/pull/412"
KEY = "github:acme/payments#412"


@pytest.fixture
def client(api: Callable[[Agent], Any], agent: Agent) -> Any:
    return api(agent)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: Any) -> None:
    monkeypatch.setattr(tasks, "QUIET_SECONDS", 0)


def hook(client: Any, name: str, session: str = "s1", **more: Any) -> None:
    payload = {"session_id": session, "hook_event_name": name, "cwd": "/home/dev/payments", **more}
    assert client.post("hooks/claude-code", payload).status_code == 200


def bash(client: Any, command: str, said: str, use: str, session: str = "s1") -> None:
    more = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": use}
    hook(client, "PostToolUse", session, **more, tool_response={"stdout": said, "stderr": ""})


def made_a_pull_request(client: Any, session: str = "s1") -> None:
    hook(client, "UserPromptSubmit", session, prompt="Make retries idempotent\nand test them", prompt_id=f"{session}p1")
    bash(client, "gh pr create --fill", PR, f"{session}u1", session)
    hook(client, "Stop", session, last_assistant_message="I made the PR. Retries are idempotent now.", prompt_id="p1")


def pass_over() -> int:
    """What clock, sweeper and worker do, once; gives how many teams had something due."""
    found = tasks.find_due()
    with transaction.atomic():
        rows = due.sweep()
    for row in rows:
        if row.task == "working":
            tasks.read_sessions(tenant_id=row.tenant_pk, due_id=row.pk)
    return found


def workers_of(client: Any, thread_id: str) -> list[str]:
    found: list[str] = client.get(f"threads/{thread_id}").json()["workers"]
    return found


def test_it_becomes_a_worker_of_the_pull_request_it_made(client: Any) -> None:
    thread = trigger(client, KEY)["thread_id"]
    made_a_pull_request(client)
    assert pass_over() == 1
    (wkr,) = workers_of(client, thread)
    view = client.get(f"workers/{wkr}").json()
    assert (view["task"], view["state"]) == ("Make retries idempotent", "stopped")
    assert view["report"] == "I made the PR. Retries are idempotent now."
    assert view["cites"] == [client.get(f"threads/{thread}/events").json()["items"][0]["trigger_id"]]
    session = client.get(f"sessions/{view['session_id']}").json()
    assert session["workers"] == [wkr]
    found = client.get(f"recall/{view['session_id']}").json()["items"]
    assert {wkr, thread} <= {item["id"] for item in found}


def test_it_waits_for_its_thread_and_is_made_once(client: Any, acme: Tenant, bound: Any) -> None:
    made_a_pull_request(client)
    assert pass_over() == 1
    assert pass_over() == 0
    with bound(acme):
        assert not Worker.objects.exists()
        assert [claim.what for claim in Claim.objects.filter(is_settled=False)] == [KEY]
    thread = trigger(client, KEY)["thread_id"]
    assert pass_over() == 1
    assert len(workers_of(client, thread)) == 1
    before = steps(client, thread)
    assert pass_over() == 0
    assert steps(client, thread) == before


def test_only_new_events_are_read_and_only_what_changed_is_told(client: Any, acme: Tenant, bound: Any) -> None:
    thread = trigger(client, KEY)["thread_id"]
    made_a_pull_request(client)
    pass_over()
    with bound(acme):
        assert Reading.objects.get().seq == Session.objects.get().last_seq == 3
    hook(client, "UserPromptSubmit", prompt="Now rename it", prompt_id="p2")
    pass_over()
    hook(client, "Stop", last_assistant_message="Renamed.", prompt_id="p2")
    pass_over()
    hook(client, "SessionEnd", reason="exit")
    pass_over()
    (wkr,) = workers_of(client, thread)
    view = client.get(f"workers/{wkr}").json()
    assert (view["task"], view["report"], view["state"]) == ("Make retries idempotent", "Renamed.", "done")
    told = [step["summary"] for step in steps(client, thread) if step["kind"].startswith("worker_")]
    assert told == [
        "Make retries idempotent",
        "I made the PR. Retries are idempotent now.",
        "running → stopped",
        "Renamed.",
        "stopped → done",
    ]


def test_its_branch_leads_to_the_pull_request_that_people_open_later(client: Any, acme: Tenant) -> None:
    branch = pull()["pull_request"]["head"]["ref"]
    said = f"To https://github.com/acme/payments.git\n * [new branch]      {branch} -> {branch}"
    bash(client, f"git push -u origin {branch}", said, "u1")
    assert pass_over() == 1
    new_sender(acme, "github").github("pull_request", pull())
    assert pass_over() == 1
    (thread,) = client.get("threads", key=KEY).json()["items"]
    assert len(workers_of(client, thread["thread_id"])) == 1


def test_a_thread_named_in_a_prompt_is_worked_on(client: Any) -> None:
    client.post("threads", {"id": "thr_ticket_9", "title": "Charged twice"})
    hook(client, "UserPromptSubmit", prompt="Look into thr_ticket_9", prompt_id="p1")
    pass_over()
    assert len(workers_of(client, "thr_ticket_9")) == 1


def test_a_deleted_worker_is_not_made_again(client: Any, api: Any, alice: Any) -> None:
    thread = trigger(client, KEY)["thread_id"]
    made_a_pull_request(client)
    pass_over()
    (wkr,) = workers_of(client, thread)
    assert api(new_agent(alice, scopes=["read", "admin"])).delete(f"workers/{wkr}").status_code == 200
    hook(client, "Stop", last_assistant_message="More.", prompt_id="p3")
    pass_over()
    assert workers_of(client, thread) == []


def test_a_worker_made_by_hand_keeps_its_own_words(client: Any, acme: Tenant, bound: Any) -> None:
    thread = trigger(client, KEY)["thread_id"]
    made_a_pull_request(client)
    with bound(acme):
        session = Session.objects.get().public_id
    body = {"thread": thread, "session": session, "task": "Retries", "report": "By hand"}
    wkr = client.post("workers", body).json()["worker_id"]
    pass_over()
    assert workers_of(client, thread) == [wkr]
    assert client.get(f"workers/{wkr}").json()["report"] == "By hand"


def test_sessions_of_dreams_and_of_nothing_are_no_workers(client: Any, acme: Tenant, bound: Any) -> None:
    thread = trigger(client, KEY)["thread_id"]
    hook(client, "UserPromptSubmit", prompt=f"Fix {PR}", prompt_id="p1", team_memory_internal=True)
    hook(client, "UserPromptSubmit", "s2", prompt="Say hello", prompt_id="p1")
    bash(client, "gh pr view 412", PR, "u9", "s2")
    pass_over()
    assert workers_of(client, thread) == []
    with bound(acme):
        assert not Claim.objects.exists()


def test_another_teams_thread_is_not_joined(client: Any, api: Any, charlie: Any, globex: Tenant) -> None:
    theirs = api(new_agent(charlie))
    thread = trigger(theirs, KEY)["thread_id"]
    made_a_pull_request(client)
    assert pass_over() == 1
    assert theirs.get(f"threads/{thread}").json()["workers"] == []
    assert pass_over() == 0


def test_what_is_left_by_one_that_died_is_done_by_the_next(client: Any, acme: Tenant, monkeypatch: Any) -> None:
    thread = trigger(client, KEY)["thread_id"]
    made_a_pull_request(client)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(working, "_settle", killed)
        with pytest.raises(KeyboardInterrupt):
            working.catch_up(str(acme.pk))
    working.catch_up(str(acme.pk))
    assert len(workers_of(client, thread)) == 1


def test_a_step_is_found_by_the_events_door_too(client: Any) -> None:
    thread = trigger(client, KEY)["thread_id"]
    step = client.get(f"threads/{thread}/events").json()["items"][0]
    found = client.get(f"events/{step['id']}").json()
    assert (found["id"], found["thread_id"], found["kind"]) == (step["id"], thread, "trigger")
