"""POST /api/v1/triggers and GET /api/v1/triggers/{id}: recorded once, read back by id."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from memory.graph.models import Step, Trigger
from memory.tenants.models import KnownId
from tests.conftest import Agent, new_agent

BODY = {
    "source": "github",
    "external_id": "delivery-1",
    "thread": {"key": "github:acme/payments#412", "title": "Retry payments"},
    "occurred_at": "2026-01-02T03:04:05Z",
    "summary": "PR 412 opened by ada",
    "payload": {"action": "opened", "number": 412},
}


@pytest.fixture
def client(api: Callable[[Agent], Any], agent: Agent) -> Any:
    return api(agent)


def post(client: Any, **changes: Any) -> Any:
    """A trigger posted; a field set to None is left out."""
    body = {name: value for name, value in (BODY | changes).items() if value is not None}
    return client.post("triggers", body)


def test_it_records_a_trigger(client: Any, acme: Any, bound: Any) -> None:
    answer = post(client)
    assert answer.status_code == 201
    view = answer.json()
    assert view["trigger_id"].startswith("trg_") and view["thread_id"].startswith("thr_")
    assert (view["source"], view["summary"]) == ("github", "PR 412 opened by ada")
    assert view["neighbours"] == [] and view["owner_workers"] == [] and view["cited_by"] == []
    where = f"GET /api/v1/triggers/{view['trigger_id']}/payload?part=payload"
    assert view["spilled"] == {"payload": f"{where} (32 bytes)"}
    assert client.get(f"triggers/{view['trigger_id']}").json() == view
    with bound(acme):
        stored = Trigger.objects.select_related("thread").get()
        assert (stored.seq, stored.thread.key, stored.thread.title) == (1, "github:acme/payments#412", "Retry payments")
        step = Step.objects.get()
        assert (step.kind, step.seq, step.trigger_public_id) == ("trigger", 1, stored.public_id)


@pytest.mark.parametrize("identity", ["id", "external_id", "Idempotency-Key"])
def test_a_repeat_is_the_same_trigger(client: Any, acme: Any, bound: Any, identity: str) -> None:
    body = {**BODY, "id": "trg_first"} if identity == "id" else dict(BODY)
    if identity != "external_id":
        del body["external_id"]
    headers = {"Idempotency-Key": "k-1"} if identity == "Idempotency-Key" else {}
    first = client.post("triggers", body, headers=headers)
    again = client.post("triggers", json.dumps(body, indent=2), headers=headers)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    other = client.post("triggers", {**body, "payload": {"action": "closed"}}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (409, "conflict")
    assert other.json()["id"] == first.json()["trigger_id"]
    with bound(acme):
        assert Trigger.objects.count() == Step.objects.count() == 1


def test_one_external_id_of_two_sources_is_two_triggers(client: Any) -> None:
    ids = {post(client, source=source).json()["trigger_id"] for source in ("github", "gitlab")}
    assert len(ids) == 2


def test_without_key_and_id_the_same_again_is_a_new_event(client: Any) -> None:
    assert [post(client, external_id=None).status_code for _ in range(2)] == [201, 201]


def test_a_thread_is_made_from_source_and_external_id(client: Any) -> None:
    view = post(client, thread=None).json()
    thread = client.get(f"threads/{view['thread_id']}").json()
    assert thread["key"] == "github:delivery-1" and thread["counts"]["triggers"] == 1
    alone = post(client, thread=None, external_id=None).json()
    assert client.get(f"threads/{alone['thread_id']}").json()["key"] == f"github:{alone['trigger_id']}"


def test_it_takes_the_callers_own_ids(client: Any, acme: Any, bound: Any) -> None:
    view = post(client, id="trg_pr_412.opened", thread={"id": "thr_pr_412"}).json()
    assert (view["trigger_id"], view["thread_id"]) == ("trg_pr_412.opened", "thr_pr_412")
    assert client.get("threads/thr_pr_412").status_code == 200
    with bound(acme):
        given = KnownId.objects.filter(reason="given").values_list("public_id", flat=True)
        assert set(given) == {"trg_pr_412.opened", "thr_pr_412"}


def test_neighbours_are_the_messages_just_before(client: Any) -> None:
    posted = [post(client, external_id=f"d{n}", summary=f"message {n}").json() for n in range(6)]
    assert posted[5]["neighbours"] == [f"{posted[n]['trigger_id']}: message {n}" for n in (2, 3, 4)]


def test_it_makes_a_summary_where_none_is_given(client: Any) -> None:
    view = post(client, summary=None, payload="first line\nsecond line", source="notes").json()
    assert "first line" in view["summary"]


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"id": "trg_01kb6v2m0sfx3ampvj3k8jyzra"}, 400, "invalid_id"),
        ({"id": "trg_Upper"}, 400, "invalid_id"),
        ({"id": "wkr_1"}, 400, "invalid_id"),
        ({"id": 7}, 400, "invalid_id"),
        ({"id": "trg_" + "a" * 97}, 400, "invalid_id"),
        ({"thread": {"id": "thr_01kb6v2m0sfx3ampvj3k8jyzra"}}, 422, "unknown_thread"),
        ({"thread": {}}, 400, "not_an_object"),
        ({"thread": {"title": "x"}}, 400, "invalid_field"),
        ({"thread": 5}, 400, "not_an_object"),
        ({"source": None}, 400, "invalid_field"),
        ({"source": ""}, 400, "invalid_field"),
        ({"source": "x" * 101}, 400, "invalid_field"),
        ({"source": ["x"]}, 400, "invalid_field"),
        ({"external_id": ""}, 400, "invalid_field"),
        ({"external_id": "x" * 301}, 400, "invalid_field"),
        ({"occurred_at": "yesterday"}, 400, "invalid_field"),
        ({"occurred_at": 5}, 400, "invalid_field"),
        ({"media_type": "text/html\r\nX: y"}, 400, "invalid_field"),
        ({"media_type": "text/plain", "payload": {"a": 1}}, 400, "invalid_field"),
        ({"payload": None, "summary": None}, 400, "nothing_to_record"),
        ({"colour": "red"}, 400, "unknown_field"),
    ],
)
def test_it_refuses_what_it_can_not_keep(
    client: Any, acme: Any, bound: Any, changes: dict[str, Any], status: int, code: str
) -> None:
    answer = post(client, **changes)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer["Content-Type"] == "application/problem+json"
    with bound(acme):
        assert not Trigger.objects.exists() and not acme.threads.exists()


@pytest.mark.parametrize("raw", [b"", b"  ", b"null", b'"text"', b"[]", b"{}", b"{", b"\xff"])
def test_nothing_is_accepted_that_is_no_trigger(client: Any, raw: bytes) -> None:
    answer = client.post("triggers", raw, content_type="application/x-www-form-urlencoded")
    assert answer.status_code == 400 and answer.json()["detail"]


def test_json_is_read_whatever_content_type_was_sent(client: Any) -> None:
    raw = json.dumps(BODY)
    assert client.post("triggers/", raw, content_type="application/x-www-form-urlencoded").status_code == 201


def test_id_and_key_of_two_threads_are_refused(client: Any) -> None:
    post(client, external_id="1", thread={"id": "thr_a", "key": "k:a"})
    post(client, external_id="2", thread={"key": "k:b"})
    for thread in ({"id": "thr_a", "key": "k:b"}, {"id": "thr_new", "key": "k:a"}):
        answer = post(client, external_id="3", thread=thread)
        assert (answer.status_code, answer.json()["code"]) == (409, "thread_conflict")


def test_it_needs_a_key(committed: None) -> None:
    for headers in ({}, {"Authorization": "Bearer tm_live_x"}):
        answer = Client(headers=headers).post("/api/v1/triggers", BODY, content_type="application/json")
        assert answer.status_code == 401
    assert Client().get("/api/v1/triggers/trg_x").status_code == 401


def test_it_needs_the_scope(api: Any, alice: Any) -> None:
    reader, writer = (api(new_agent(alice, scopes=[scope])) for scope in ("read", "ingest"))
    refused = post(reader)
    assert (refused.status_code, refused.json()["action"]) == (403, "graph.record")
    trigger_id = post(writer).json()["trigger_id"]
    assert writer.get(f"triggers/{trigger_id}").status_code == 403
    assert reader.get(f"triggers/{trigger_id}").status_code == 200


def test_a_viewer_records_nothing(api: Any, vera: Any, alice: Any) -> None:
    from memory.tenants import audit  # noqa: F401 - the refusal below is written by it

    assert post(api(new_agent(vera))).status_code == 403


def test_it_hides_the_trigger_from_other_tenants(client: Any, api: Any, globex_agent: Agent) -> None:
    trigger_id = post(client).json()["trigger_id"]
    stranger = api(globex_agent)
    theirs, none = stranger.get(f"triggers/{trigger_id}"), stranger.get("triggers/trg_none")
    assert theirs.status_code == none.status_code == 404
    assert theirs.content.replace(trigger_id.encode(), b"ID") == none.content.replace(b"trg_none", b"ID")
    own = post(stranger, id=None).json()
    assert own["trigger_id"] != trigger_id


@pytest.mark.parametrize("asked", ["trg_01UNKNOWN", "abc%00def", "9" * 23, "wkr_01", "thr_pr_412", "x" * 5000])
def test_an_unknown_id_is_not_found(client: Any, asked: str) -> None:
    post(client, thread={"id": "thr_pr_412"})
    answer = client.get(f"triggers/{asked}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "trg_" in answer.json()["detail"]
    assert client.get(f"triggers/{asked}/payload").status_code == 404


def test_other_methods_are_refused(client: Any) -> None:
    trigger_id = post(client).json()["trigger_id"]
    answer = client.put(f"triggers/{trigger_id}", {})
    assert answer.status_code == 405 and set(answer["Allow"].split(", ")) == {"GET", "DELETE"}
    assert client.get("triggers").status_code == 405


def test_a_secret_is_taken_out_before_it_is_stored(client: Any, acme: Any, bound: Any) -> None:
    secret = "AKIA" + "QYLPMN5HHHFPZAM2"
    view = post(client, summary=f"key {secret}", payload={"log": f"aws_access_key_id={secret}"}).json()
    stored = client.get(f"triggers/{view['trigger_id']}/payload")
    assert secret not in view["summary"] and secret.encode() not in stored.content
    assert b"[secret:" in stored.content
    with bound(acme):
        assert Trigger.objects.get().parts.get().redactions == 2


def test_bad_characters_are_replaced_and_counted(client: Any, acme: Any, bound: Any) -> None:
    raw = '{"source":"x","summary":"a\\u0000b","payload":{"t":"\\ud800 \\u0000"}}'
    view = client.post("triggers", raw).json()
    assert view["summary"] == "a�b"
    assert client.get(f"triggers/{view['trigger_id']}/payload").json() == {"t": "� �"}
    with bound(acme):
        assert Trigger.objects.get().parts.get().sanitized == 3


def test_numbers_keep_their_digits(client: Any) -> None:
    raw = '{"source":"x","payload":{"n":123456789012345678901234567890,"f":1.5}}'
    view = client.post("triggers", raw).json()
    stored = client.get(f"triggers/{view['trigger_id']}/payload").content
    assert stored == b'{"n":123456789012345678901234567890,"f":1.5}'
