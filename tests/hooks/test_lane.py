"""The short lane of hook calls answers like the long way, and leaves to it whatever is not plain."""

import io
import json
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler

from memory.events.models import Event, ProjectRoot
from memory.hooks import lane, take
from memory.tenants import keys, rls
from tests.conftest import Agent

OWN = {"X-Request-Id", "X-Team-Memory-Event", "X-Team-Memory-Session"}


class Lane:
    """Drives the lane as a web server does, and counts what went the long way."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self.long = 0
        self._handler = WSGIHandler()
        self._lane = lane.HookLane(self._counted)

    def _counted(self, environ: dict[str, Any], start_response: Any) -> Any:
        self.long += 1
        return self._handler(environ, start_response)

    def post(
        self, body: bytes, path: str = "/api/v1/hooks/claude-code", **more: str
    ) -> tuple[int, dict[str, str], Any]:
        environ = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": path,
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": "80",
            "wsgi.input": io.BytesIO(body),
            "wsgi.url_scheme": "http",
            "CONTENT_LENGTH": str(len(body)),
            "CONTENT_TYPE": "application/json",
            "HTTP_AUTHORIZATION": f"Bearer {self.secret}",
            "HTTP_HOST": "127.0.0.1",
            "QUERY_STRING": "",
            **more,
        }
        started: list[Any] = []
        said = self._lane(environ, lambda status, headers, *_: started.append((status, headers)))
        text = b"".join(said)
        if hasattr(said, "close"):
            said.close()
        [(status, headers)] = started
        return int(status.split()[0]), dict(headers), json.loads(text)


@pytest.fixture
def door(committed: None, agent: Agent) -> Lane:
    take._known.clear()
    return Lane(agent.secret)


def body(name: str = "Stop", **more: Any) -> bytes:
    return json.dumps({"session_id": "s", "hook_event_name": name, "cwd": "/src/shop", **more}).encode()


def stored(tenant: Any) -> list[str]:
    with rls.tenant_scope(str(tenant.pk)):
        return list(Event.objects.order_by("session", "seq").values_list("name", flat=True))


def test_the_first_call_of_a_key_goes_the_long_way_and_the_next_do_not(door: Lane, acme: Any) -> None:
    first = door.post(body(), HTTP_IDEMPOTENCY_KEY="a")
    assert door.long == 1
    second = door.post(body(), HTTP_IDEMPOTENCY_KEY="b")
    assert door.long == 1 and stored(acme) == ["Stop", "Stop"]
    assert (first[0], first[2]) == (second[0], second[2]) == (200, {})
    told = [{name: value for name, value in answer[1].items() if name not in OWN} for answer in (first, second)]
    assert told[1] == {**told[0], "Content-Length": "2"} and second[1].keys() >= OWN


def test_a_repeat_is_one_event_by_either_way(door: Lane, acme: Any) -> None:
    first = door.post(body(), HTTP_IDEMPOTENCY_KEY="a")
    again = door.post(body(), HTTP_IDEMPOTENCY_KEY="a")
    assert door.long == 1 and stored(acme) == ["Stop"]
    assert again[1]["X-Team-Memory-Outcome"] == "repeat"
    assert again[1]["X-Team-Memory-Event"] == first[1]["X-Team-Memory-Event"]


def test_a_session_that_starts_is_told_the_same_by_either_way(door: Lane) -> None:
    door.post(body())
    start = body("SessionStart", source="startup", session_id="next")
    short = door.post(start, HTTP_IDEMPOTENCY_KEY="a")
    assert door.long == 1 and "additionalContext" in short[2]["hookSpecificOutput"]
    take._known.clear()
    assert door.post(start, HTTP_IDEMPOTENCY_KEY="a")[2] == short[2] and door.long == 2


@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"HTTP_AUTHORIZATION": "Bearer nonsense"}, 401, "unauthenticated"),
        ({"HTTP_AUTHORIZATION": ""}, 401, "unauthenticated"),
        ({"path": "/api/v1/hooks/unheard-of"}, 404, "unknown_client"),
        ({"raw": b"not json"}, 400, "invalid_json"),
        ({"raw": b""}, 400, "empty_body"),
        ({"raw": b"[1]"}, 400, "not_an_object"),
        ({"REQUEST_METHOD": "GET"}, 405, "method_not_allowed"),
    ],
)
def test_faults_are_answered_by_the_long_way(
    door: Lane, acme: Any, more: dict[str, Any], status: int, code: str
) -> None:
    door.post(body(), HTTP_IDEMPOTENCY_KEY="a")
    raw = more.pop("raw", body())
    found, headers, said = door.post(raw, **more)
    assert (found, said["code"], door.long) == (status, code, 2)
    assert headers["Content-Type"] == "application/problem+json" and stored(acme) == ["Stop"]


def test_another_payload_under_a_key_is_a_conflict(door: Lane, acme: Any) -> None:
    door.post(body(), HTTP_IDEMPOTENCY_KEY="a")
    found, _, said = door.post(body(reason="other"), HTTP_IDEMPOTENCY_KEY="a")
    assert (found, said["code"], stored(acme)) == (409, "idempotency_conflict", ["Stop"])


def test_a_revoked_key_ends_at_once(door: Lane, acme: Any, agent: Agent) -> None:
    door.post(body(), HTTP_IDEMPOTENCY_KEY="a")
    assert take.is_known(keys.digest(agent.secret))
    with rls.tenant_scope(str(acme.pk)):
        acme.keys.update(revoked_at="2026-01-01T00:00:00Z")
    found, _, said = door.post(body(), HTTP_IDEMPOTENCY_KEY="b")
    assert (found, said["code"], stored(acme)) == (401, "unauthenticated", ["Stop"])


def test_a_large_body_goes_the_long_way(door: Lane, acme: Any) -> None:
    door.post(body(), HTTP_IDEMPOTENCY_KEY="a")
    assert door.post(body(text="x " * take.ALONE_BYTES))[0] == 200
    assert door.long == 2 and stored(acme) == ["Stop", "Stop"]


def test_what_is_said_beside_the_payload_counts(door: Lane, acme: Any) -> None:
    door.post(body(), HTTP_IDEMPOTENCY_KEY="a")
    nameless = json.dumps({"session_id": "s", "cwd": "/src/shop"}).encode()
    remote = {"HTTP_X_TEAM_MEMORY_REMOTE": "git@example.test:acme/läden.git".encode().decode("latin-1")}
    door.post(nameless, QUERY_STRING="event=PreCompact", **remote)
    assert door.long == 1 and stored(acme) == ["Stop", "PreCompact"]
    with rls.tenant_scope(str(acme.pk)):
        assert "läden" in {root.place.rpartition("/")[2] for root in ProjectRoot.objects.filter(kind="remote")}
