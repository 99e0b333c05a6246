"""record_trigger: what every other way in calls, inside its own bound transaction."""

from typing import Any

import pytest
from django.db import connection

from memory.graph import content
from memory.graph.models import Answer, Trigger
from memory.graph.record import Incoming, record_trigger
from memory.graph.refusals import Conflict, Invalid, UnknownThread
from tests.conftest import Agent, Api

HOOK = Incoming(source="github", external_id="d-1", thread_key="github:acme/shop#1", payload=b'{"action": "opened"}')


def test_it_records_and_tells_a_repeat(acme: Any, agent: Agent, bound: Any) -> None:
    with bound(acme):
        first = record_trigger(acme, HOOK, by=agent.key)
        again = record_trigger(acme, HOOK, by=agent.key)
    assert (first.is_new, again.is_new) == (True, False) and first.trigger == again.trigger
    assert first.trigger.by == agent.key.public_id and first.trigger.thread.key == "github:acme/shop#1"
    assert first.trigger.summary
    stored = Api(agent).get(f"triggers/{first.trigger.public_id}/payload")
    assert stored.content == b'{"action": "opened"}' and stored["Content-Type"] == "application/json"


def test_a_refusal_leaves_the_transaction_usable(acme: Any, bound: Any) -> None:
    with bound(acme):
        record_trigger(acme, HOOK)
        for other, refusal in (
            (Incoming(source="github", external_id="d-1", payload=b"{}"), Conflict),
            (Incoming(source=""), Invalid),
            (Incoming(source="x", thread_id="thr_01kb6v2m0sfx3ampvj3k8jyzra"), UnknownThread),
        ):
            with pytest.raises(refusal):
                record_trigger(acme, other)
        record_trigger(acme, Incoming(source="github", external_id="d-2", payload=b"{}"))
    with bound(acme):
        assert Trigger.objects.count() == 2


@pytest.mark.parametrize(
    ("raw", "kind"),
    [(b"\xff\xfe\x00binary", "application/octet-stream"), (b"caf\xe9", "text/plain"),
     ("h\u00e9".encode("utf-16"), "text/plain"),
     (b"\x00\x01\x02", "application/x-thing"), (b"{not json", "application/json"), (b"[1, 2,  3]", "application/json")],
)  # fmt: skip
def test_bytes_without_a_secret_stay_as_they_are(raw: bytes, kind: str) -> None:
    assert content.cleaned(raw, kind).raw == raw


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_a_secret_is_found_in_any_encoding(encoding: str) -> None:
    secret = "AKIA" + "QYLPMN5HHHFPZAM2"
    found = content.cleaned(f"é aws_access_key_id={secret}\n".encode(encoding), "text/plain")
    assert found.redactions == 1 and secret not in found.raw.decode(encoding)


def test_an_answer_is_kept_for_a_day(acme: Any, agent: Agent, bound: Any) -> None:
    client = Api(agent)
    headers = {"Idempotency-Key": "k"}
    first = client.post("threads", {"title": "x"}, headers=headers).json()
    with bound(acme), connection.cursor() as cursor:
        cursor.execute("UPDATE graph_answer SET at = now() - interval '25 hours'")
    assert client.post("threads", {"title": "y"}, headers=headers).json()["thread_id"] != first["thread_id"]
    with bound(acme):
        assert Answer.objects.count() == 1
