"""The short lane of the graph's hot doors answers like the long way, and leaves to it whatever is not plain."""

import io
import json
from typing import Any
from urllib.parse import unquote_to_bytes

import psycopg
import pytest
from django.core.handlers.wsgi import WSGIHandler

from memory.graph import lane, linking
from memory.graph.models import Trigger
from memory.tenants import rls
from tests.conftest import Agent
from tests.graph.made import chain


class Ways:
    """Drives the lane and the long way as a web server does, and counts what the lane left to it."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self.left = 0
        self._handler = WSGIHandler()
        self._lane = lane.GraphLane(self._counted)

    def _counted(self, environ: dict[str, Any], start_response: Any) -> Any:
        self.left += 1
        return self._handler(environ, start_response)

    def short(self, path: str, **more: Any) -> tuple[int, dict[str, str], bytes]:
        return self._said(self._lane, path, **more)

    def long(self, path: str, **more: Any) -> tuple[int, dict[str, str], bytes]:
        return self._said(self._handler, path, **more)

    def _said(self, application: Any, path: str, *, method: str = "GET", body: bytes = b"", **more: str) -> Any:
        path, _, query = path.partition("?")
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": unquote_to_bytes(f"/api/v1/{path}").decode("latin-1"),
            "QUERY_STRING": query,
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": "80",
            "wsgi.input": io.BytesIO(body),
            "wsgi.url_scheme": "http",
            "CONTENT_LENGTH": str(len(body)) if body else "",
            "HTTP_AUTHORIZATION": f"Bearer {self.secret}",
            "HTTP_HOST": "127.0.0.1",
            **more,
        }
        started: list[Any] = []
        said = application(environ, lambda status, headers, *_: started.append((status, headers)))
        text = b"".join(said)
        if hasattr(said, "close"):
            said.close()
        [(status, headers)] = started
        kept = {name: value for name, value in headers if name not in ("X-Request-Id", "Content-Length")}
        assert "X-Request-Id" in dict(headers)
        return int(status.split()[0]), kept, text


@pytest.fixture
def ways(committed: None, agent: Agent) -> Ways:
    return Ways(agent.secret)


def body(**more: Any) -> bytes:
    said = {"source": "ci", "external_id": "run-1", "thread": {"key": "k"}, "payload": {"ok": True}}
    return json.dumps(said | more).encode()


def stored(tenant: Any) -> list[str]:
    with rls.tenant_scope(str(tenant.pk)):
        return list(Trigger.objects.order_by("thread", "seq").values_list("external_id", flat=True))


@pytest.mark.parametrize(
    "path",
    ["threads/{thread}", "threads/{thread}/", "triggers/{trigger}", "threads/{thread}/events",
     "threads/{thread}/events?limit=1", "threads/{thread}/events/?limit=200"],
)  # fmt: skip
def test_a_plain_read_is_the_same_by_either_way(ways: Ways, acme: Any, path: str) -> None:
    asked = path.format(**chain(acme))
    assert ways.short(asked) == ways.long(asked)
    assert ways.left == 0 and ways.short(asked)[0] == 200


def test_a_cursor_leads_on_by_either_way(ways: Ways, acme: Any) -> None:
    thread = chain(acme)["thread"]
    cursor = json.loads(ways.short(f"threads/{thread}/events?limit=1")[2])["next_cursor"]
    asked = f"threads/{thread}/events?limit=1&cursor={cursor}"
    assert ways.short(asked) == ways.long(asked) and ways.left == 0
    assert json.loads(ways.short(asked)[2])["items"][0]["seq"] == 2


@pytest.mark.parametrize(
    ("path", "more", "status"),
    [
        ("threads/thr_unknown", {}, 404),
        ("triggers/trg_unknown", {}, 404),
        ("threads/thr_%00", {}, 404),
        ("threads/thr_%C3%A4", {}, 404),
        ("threads/thr_unknown/events", {}, 404),
        ("threads/thr_unknown/nothing", {}, 404),
        ("threads/{thread}/events?limit=0", {}, 400),
        ("threads/{thread}/events?cursor=bad", {}, 400),
        ("threads/{thread}/events?x=1", {}, 400),
        ("threads/{thread}", {"HTTP_AUTHORIZATION": ""}, 401),
        ("threads/{thread}", {"HTTP_AUTHORIZATION": "Bearer nonsense"}, 401),
        ("threads/{thread}", {"method": "PATCH"}, 405),
        ("threads/{thread}", {"method": "HEAD"}, 200),
        ("threads", {}, 200),
        ("threads/index", {}, 200),
    ],
)
def test_what_is_not_plain_is_left_to_the_long_way(
    ways: Ways, acme: Any, path: str, more: dict[str, Any], status: int
) -> None:
    asked = path.format(**chain(acme))
    found = ways.short(asked, **more)
    assert (found[0], ways.left) == (status, 1) and found == ways.long(asked, **more)


def test_another_teams_thread_is_as_unknown_as_none(ways: Ways, globex: Any) -> None:
    thread = chain(globex)["thread"]
    foreign, unknown = ways.short(f"threads/{thread}"), ways.short("threads/thr_unknown")
    assert foreign[0] == 404 and foreign[2].replace(thread.encode(), b"thr_unknown") == unknown[2]


def test_a_deleted_thread_is_gone_by_either_way(ways: Ways, acme: Any) -> None:
    thread = chain(acme)["thread"]
    with rls.tenant_scope(str(acme.pk)):
        acme.threads.filter(public_id=thread).update(deleted_at="2026-01-01T00:00:00Z")
    assert ways.short(f"threads/{thread}") == ways.long(f"threads/{thread}")
    assert ways.left == 1


def test_a_revoked_key_ends_at_once(ways: Ways, acme: Any) -> None:
    thread = chain(acme)["thread"]
    assert ways.short(f"threads/{thread}")[0] == 200
    with rls.tenant_scope(str(acme.pk)):
        acme.keys.update(revoked_at="2026-01-01T00:00:00Z")
    assert ways.short(f"threads/{thread}")[0] == 401
    assert ways.short("triggers", method="POST", body=body())[0] == 401 and "run-1" not in stored(acme)


def test_a_trigger_is_stored_once_by_either_way(ways: Ways, acme: Any) -> None:
    first = ways.short("triggers", method="POST", body=body())
    assert first[0] == 201 and ways.left == 0
    again = ways.short("triggers/", method="POST", body=body())
    assert ways.left == 0 and again == ways.long("triggers", method="POST", body=body())
    assert again[0] == 200 and (again[1], again[2]) == (first[1], first[2])
    assert stored(acme) == ["run-1"]


def test_the_idempotency_key_counts(ways: Ways, acme: Any) -> None:
    for _ in range(2):
        ways.short("triggers", method="POST", body=body(external_id=None), HTTP_IDEMPOTENCY_KEY="a")
    assert ways.left == 0 and len(stored(acme)) == 1
    found = ways.short("triggers", method="POST", body=body(external_id="x"), HTTP_IDEMPOTENCY_KEY="a")
    assert (found[0], ways.left) == (409, 1)


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"", 400),
        (b"not json", 400),
        (b"[1]", 400),
        (body(source=""), 400),
        (body(summary="x\x00y"), 201),
        (body(payload="x" * lane.PLAIN_BYTES), 201),
        (body(thread={"id": "thr_01kbx5m8h4fqz9m7w3e2r1t0ya"}), 422),
    ],
)
def test_faults_and_large_bodies_of_triggers_are_answered_alike(ways: Ways, acme: Any, raw: bytes, status: int) -> None:
    assert ways.short("triggers", method="POST", body=raw)[0] == status
    assert len(stored(acme)) == (status == 201)
    assert ways.left == (status != 201 or len(raw) > lane.PLAIN_BYTES)


def test_links_are_made_by_the_lane_too(ways: Ways, acme: Any) -> None:
    thread = {"key": "github:acme/payments#412"}
    found = ways.short("triggers", method="POST", body=body(summary="see acme/payments#380", thread=thread))
    assert found[0] == 201 and ways.left == 0
    view = json.loads(ways.short(f"threads/{json.loads(found[2])['thread_id']}")[2])
    assert [link["key"] for link in view["links"]] == ["github:acme/payments#380"]


def test_what_is_stored_is_acknowledged_though_its_links_fail(
    ways: Ways, acme: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linking, "_link", lambda *_: 1 / 0)
    found = ways.short("triggers", method="POST", body=body(summary="see acme/payments#380"))
    assert found[0] == 201 and stored(acme) == ["run-1"]


def test_a_database_that_is_away_is_503_and_nothing_is_sent_twice(ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise psycopg.OperationalError("gone")

    monkeypatch.setattr(lane.trip, "apart", broken)
    found = ways.short("triggers", method="POST", body=body())
    assert (found[0], found[1]["Retry-After"], ways.left) == (503, "2", 0)
