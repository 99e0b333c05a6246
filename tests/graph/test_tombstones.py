"""DELETE of triggers, threads and workers: gone with their words, known for ever, 410 to their own team."""

from collections.abc import Callable
from typing import Any

import pytest

from memory.graph.models import Part, Step, Trigger
from memory.tenants.access import DEFAULT_SCOPES
from memory.tenants.models import AuditEntry
from tests.conftest import Agent, new_agent
from tests.graph.test_threads import opened, steps, trigger
from tests.graph.test_workers import started


@pytest.fixture
def client(api: Callable[[Agent], Any], alice: Any) -> Any:
    return api(new_agent(alice, scopes=[*DEFAULT_SCOPES, "admin"]))


def test_a_deleted_trigger_is_gone_and_said_to_be(client: Any, acme: Any, bound: Any) -> None:
    trg = trigger(client, "k", 0, id="trg_mine", payload={"words": "forget me"}, summary="forget me")
    assert client.delete("triggers/trg_mine").status_code == 200
    for path in ("triggers/trg_mine", "triggers/trg_mine/payload", "recall/trg_mine"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["code"], answer.json()["id"]) == (410, "gone", "trg_mine")
        assert answer.json()["deleted_at"][:2] == "20"
    assert client.delete("triggers/trg_mine").status_code == 410
    with bound(acme):
        assert not Part.objects.exists() and Trigger.objects.get().summary == ""
        assert not Step.objects.filter(summary__contains="forget").exists()
        assert AuditEntry.objects.filter(action="graph.delete", target="trg_mine").count() == 1
    assert [step["kind"] for step in steps(client, trg["thread_id"])] == ["trigger", "deleted"]
    assert client.get(f"threads/{trg['thread_id']}").json()["counts"]["triggers"] == 0


def test_a_deleted_id_is_never_used_again(client: Any) -> None:
    trigger(client, "k", 0, id="trg_mine")
    opened(client, id="thr_mine")
    started(client, id="wkr_mine")
    for path in ("triggers/trg_mine", "threads/thr_mine", "workers/wkr_mine"):
        assert client.delete(path).status_code == 200
        assert client.get(path).status_code == 410
    assert opened(client, id="thr_mine").status_code == started(client, id="wkr_mine").status_code == 409
    body = {"source": "s", "summary": "x"}
    assert client.post("triggers", body | {"id": "trg_mine"}).json()["code"] == "deleted"
    assert client.post("triggers", body | {"thread": {"id": "thr_mine"}}).json()["code"] == "thread_deleted"
    again = client.post(
        "triggers", {"source": "test", "external_id": "k-0", "thread": {"key": "k"}, "summary": "message 0"}
    )
    assert again.status_code == 409


def test_other_tenants_see_the_404_of_an_unknown_id(client: Any, api: Any, globex_agent: Agent) -> None:
    trigger(client, "k", 0, id="trg_mine")
    client.delete("triggers/trg_mine")
    answer = api(globex_agent).get("triggers/trg_mine")
    none = api(globex_agent).get("triggers/trg_none")
    assert answer.status_code == 404
    assert answer.content.replace(b"trg_mine", b"ID") == none.content.replace(b"trg_none", b"ID")
    assert trigger(api(globex_agent), "k", 0, id="trg_mine")["trigger_id"] == "trg_mine"


def test_a_deleted_thread_takes_its_triggers_along(client: Any) -> None:
    trg = trigger(client, "k", 0)
    wkr = started(client, thread=trg["thread_id"]).json()["worker_id"]
    opened(client, id="thr_other")
    client.post("threads/thr_other/links", {"key": "k", "kind": "pr"})
    assert client.delete(f"threads/{trg['thread_id']}").status_code == 200
    for path in (f"triggers/{trg['trigger_id']}", f"threads/{trg['thread_id']}", f"threads/{trg['thread_id']}/events"):
        assert client.get(path).status_code == 410
    assert client.get(f"workers/{wkr}").json()["thread_id"] is None
    assert client.get("threads").json()["items"][0]["thread_id"] == "thr_other"
    later = trigger(client, "k", 1)["thread_id"]
    assert later != trg["thread_id"]
    assert client.get("threads/thr_other").json()["links"][0]["thread_id"] == later


def test_what_was_passed_keeps_its_place(client: Any) -> None:
    thread_id = trigger(client, "k", 0)["thread_id"]
    wkr = started(client).json()["worker_id"]
    client.post(f"threads/{thread_id}/owners", {"worker_id": wkr, "pass_through": True})
    trg = trigger(client, "k", 1)["trigger_id"]
    trigger(client, "k", 2)
    client.delete(f"triggers/{trg}")
    entries = client.get(f"workers/{wkr}/inbox").json()["items"]
    assert [(entry["seq"], entry["is_deleted"]) for entry in entries] == [(1, True), (2, False)]


def test_a_deleted_worker_cites_and_owns_nothing(client: Any) -> None:
    trg = trigger(client, "k", 0)
    wkr = started(client, thread=trg["thread_id"], report=f"see {trg['trigger_id']}").json()["worker_id"]
    client.post(f"threads/{trg['thread_id']}/owners", {"worker_id": wkr})
    assert client.delete(f"workers/{wkr}").status_code == 200
    view = client.get(f"triggers/{trg['trigger_id']}").json()
    assert view["cited_by"] == view["owner_workers"] == []
    assert client.get(f"workers/{wkr}/report").status_code == 410


def test_it_needs_the_admin_scope_and_role(api: Any, agent: Agent, mia: Any, client: Any) -> None:
    trg = trigger(client, "k", 0)
    for other in (agent, new_agent(mia, scopes=["read", "admin"])):
        for path in (f"triggers/{trg['trigger_id']}", f"threads/{trg['thread_id']}"):
            answer = api(other).delete(path)
            assert (answer.status_code, answer.json()["action"]) == (403, "graph.delete")
    assert client.get(f"triggers/{trg['trigger_id']}").status_code == 200


def test_whoever_records_may_take_back_its_own_alone(api: Any, agent: Agent, mia: Any) -> None:
    own, other = api(agent), api(new_agent(mia))
    trg = trigger(own, "k", 0)
    wkr = started(own, thread=trg["thread_id"]).json()["worker_id"]
    second = trigger(other, "k", 1)
    for path in (f"triggers/{trg['trigger_id']}", f"workers/{wkr}", f"threads/{trg['thread_id']}"):
        assert other.delete(path).status_code == 403
    assert own.delete(f"threads/{trg['thread_id']}").status_code == 403
    assert other.delete(f"triggers/{second['trigger_id']}").status_code == 200
    for path in (f"triggers/{trg['trigger_id']}", f"workers/{wkr}", f"threads/{trg['thread_id']}"):
        assert own.delete(path).status_code == 200


@pytest.mark.parametrize("path", ["triggers/trg_none", "threads/thr_none", "workers/wkr_none"])
def test_an_unknown_id_is_not_found(client: Any, path: str) -> None:
    assert client.delete(path).status_code == 404
