"""Links that make themselves at the doors: of triggers, batches, payloads and reports."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from memory.graph import linking, mentions
from memory.graph.models import Link
from memory.graph.tasks import make_links
from memory.tenants.models import Due, Tenant
from tests.conftest import Agent
from tests.graph.test_threads import trigger

HERE = "github:acme/payments#7"
THERE = "github:acme/payments#412"


@pytest.fixture
def client(api: Callable[[Agent], Any], agent: Agent) -> Any:
    return api(agent)


def links(client: Any, thread_id: str) -> list[tuple[str, str, bool]]:
    """Kind, key and whether the thread is there, of what a thread links to."""
    found = client.get(f"threads/{thread_id}").json()["links"]
    return [(one["kind"], one["key"], "thread_id" in one) for one in found if one["direction"] == "to"]


def test_a_trigger_that_names_a_number_links_its_thread_at_once(client: Any) -> None:
    there = trigger(client, THERE)
    here = trigger(client, HERE, summary="As in #412 the retry is lost")
    assert links(client, here["thread_id"]) == [("mentions", THERE, True)]
    (link,) = client.get(f"threads/{here['thread_id']}").json()["links"]
    assert (link["thread_id"], link["made_by"], link["because_of"]) == (
        there["thread_id"],
        "rule:mention",
        here["trigger_id"],
    )


def test_a_payload_that_names_a_number_links_too(client: Any) -> None:
    here = trigger(client, HERE, payload={"comment": {"body": "Fixes #412, see PAY-9"}})
    assert sorted(links(client, here["thread_id"])) == [("mentions", THERE, False), ("mentions", "jira:PAY-9", False)]


def test_a_large_payload_links_by_its_words(client: Any) -> None:
    long = "nothing of note. " * 2000
    here = trigger(client, HERE, payload={"body": f"Fixes #412. {long}"})
    assert links(client, here["thread_id"]) == [("mentions", THERE, False)]
    text = trigger(client, HERE, 2, payload=f"See #413. {long}", media_type="text/plain")
    assert text["thread_id"] == here["thread_id"]
    assert ("mentions", "github:acme/payments#413", False) in links(client, here["thread_id"])


def test_a_bare_number_in_a_thread_named_by_its_id_is_of_that_threads_repository(client: Any) -> None:
    home = trigger(client, HERE)["thread_id"]
    client.post("triggers", {"source": "chat", "thread": {"id": home}, "summary": "and #412"})
    other = client.post("triggers", {"source": "chat", "thread": {"id": "thr_chat_1"}, "summary": "and #412"}).json()
    assert links(client, home) == [("mentions", THERE, False)]
    assert links(client, other["thread_id"]) == []


def test_a_key_that_waits_is_resolved_when_its_thread_comes(client: Any) -> None:
    here = trigger(client, HERE, summary="As in #412")
    assert links(client, here["thread_id"]) == [("mentions", THERE, False)]
    there = trigger(client, THERE)
    assert links(client, here["thread_id"]) == [("mentions", THERE, True)]
    back = client.get(f"threads/{there['thread_id']}").json()["links"]
    assert [(one["direction"], one["thread_id"]) for one in back] == [("from", here["thread_id"])]


def test_a_removed_link_is_not_made_again(client: Any) -> None:
    here = trigger(client, HERE, summary="As in #412")
    answer = client.client.delete(
        f"/api/v1/threads/{here['thread_id']}/links", {"key": THERE}, content_type="application/json"
    )
    assert answer.status_code == 200
    trigger(client, HERE, summary="As in #412")
    trigger(client, HERE, 2, summary="#412 again")
    assert links(client, here["thread_id"]) == []


def test_a_batch_links_line_by_line(client: Any) -> None:
    lines = [{"source": "ci", "external_id": str(n), "thread": {"key": HERE}, "summary": f"see #{n}"} for n in (41, 42)]
    lines.append({"source": "ci", "external_id": "3", "thread": {"key": HERE}, "summary": "names nothing"})
    answer = client.client.post(
        "/api/v1/triggers/batch", "\n".join(map(json.dumps, lines)), content_type="application/x-ndjson"
    )
    assert answer.json() == {"accepted": 3, "repeated": 0, "refused": []}
    (thread,) = client.get("threads", key=HERE).json()["items"]
    assert [key for _, key, _ in links(client, thread["thread_id"])] == [
        "github:acme/payments#41",
        "github:acme/payments#42",
    ]


def test_of_a_large_batch_the_links_beyond_the_first_are_made_behind_it(client: Any, acme: Tenant, bound: Any) -> None:
    lines = [
        {"source": "ci", "external_id": str(n), "thread": {"key": f"github:acme/payments#{n}"}, "summary": "see #412"}
        for n in range(50)
    ]
    answer = client.client.post(
        "/api/v1/triggers/batch", "\n".join(map(json.dumps, lines)), content_type="application/x-ndjson"
    )
    assert answer.json()["accepted"] == 50
    with bound(acme):
        waiting = [str(pk) for pk in Due.objects.filter(task=linking.TASK).values_list("pk", flat=True)]
        assert (len(waiting), Link.objects.count()) == (30, 20)
    make_links(tenant_id=str(acme.pk), due_id=waiting[0])
    make_links(tenant_id=str(acme.pk), due_id=waiting[0])
    with bound(acme):
        assert (Due.objects.filter(task=linking.TASK).count(), Link.objects.count()) == (0, 50)


def test_links_that_the_database_refused_are_made_later(
    client: Any, acme: Tenant, bound: Any, monkeypatch: Any
) -> None:
    def away(*_: Any) -> None:
        raise OperationalError("the database is away")

    monkeypatch.setattr(mentions, "link_trigger", away)
    here = trigger(client, HERE, summary="As in #412")
    with bound(acme):
        due = Due.objects.get(task=linking.TASK)
    make_links(tenant_id=str(acme.pk), due_id=str(due.pk))
    with bound(acme):
        due.refresh_from_db()
        assert (due.argument, due.owner, due.attempts) == (here["trigger_id"], "", 1)
        assert due.due_at > timezone.now()
        Due.objects.update(due_at=timezone.now())
    monkeypatch.undo()
    make_links(tenant_id=str(acme.pk), due_id=str(due.pk))
    assert links(client, here["thread_id"]) == [("mentions", THERE, False)]


def test_what_is_stored_is_acknowledged_though_nothing_of_its_links_can_be_kept(client: Any, monkeypatch: Any) -> None:
    def away(*_: Any) -> None:
        raise OperationalError("the database is away")

    monkeypatch.setattr(mentions, "link_trigger", away)
    monkeypatch.setattr(linking.due, "put_all", away)
    body = {"source": "test", "thread": {"key": HERE}, "summary": "As in #412"}
    answer = client.post("triggers", body)
    assert answer.status_code == 201, "whoever hears of a failure sends it again, and has it twice"
    assert client.get(f"triggers/{answer.json()['trigger_id']}").status_code == 200


def test_bytes_put_later_link_too(client: Any) -> None:
    here = trigger(client, HERE)
    address = f"/api/v1/triggers/{here['trigger_id']}/payload"
    assert client.client.put(f"{address}?part=diff", b"+ #413", content_type="text/plain").status_code == 201
    assert links(client, here["thread_id"]) == []
    assert client.client.put(address, b"Broken since #412", content_type="text/plain").status_code in (200, 201)
    assert links(client, here["thread_id"]) == [("mentions", THERE, False)]


def test_a_report_links_its_thread(client: Any) -> None:
    here = trigger(client, HERE)
    wkr = client.post("workers", {"thread": here["thread_id"], "task": "Look"}).json()["worker_id"]
    client.client.patch(
        f"/api/v1/workers/{wkr}", {"report": "The same fault as #412."}, content_type="application/json"
    )
    assert links(client, here["thread_id"]) == [("mentions", THERE, False)]
    client.post("workers", {"thread": here["thread_id"], "task": "Look", "report": "Not #413."})
    assert [key for _, key, _ in links(client, here["thread_id"])] == [THERE, "github:acme/payments#413"]


@pytest.mark.parametrize("summary", ["As in #412", "names nothing"])
def test_a_fault_in_linking_takes_nothing_along(client: Any, monkeypatch: Any, summary: str) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("no links today")

    monkeypatch.setattr(mentions, "link_trigger", broken)
    monkeypatch.setattr(mentions, "link_report", broken)
    body = {"source": "test", "external_id": "1", "thread": {"key": HERE}, "summary": summary}
    answer = client.post("triggers", body)
    assert answer.status_code == 201
    assert client.get(f"triggers/{answer.json()['trigger_id']}").status_code == 200
    worker = client.post("workers", {"thread": answer.json()["thread_id"], "task": "Look", "report": "#412"})
    assert worker.status_code == 201
    assert client.get(f"workers/{worker.json()['worker_id']}").json()["report"] == "#412"
    monkeypatch.undo()
    assert client.post("triggers", body).status_code == 200
    assert bool(links(client, answer.json()["thread_id"])) is (summary != "names nothing")


def test_a_trigger_that_names_nothing_opens_nothing_more(client: Any, monkeypatch: Any) -> None:
    asked: list[str] = []
    monkeypatch.setattr(mentions, "link_trigger", lambda one: asked.append(one.public_id))
    trigger(client, HERE, summary="a colour: #412", payload={"n": 412})
    assert asked == []
