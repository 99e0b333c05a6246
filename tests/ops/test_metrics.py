"""`/metrics` and the disk's room, through the front door."""

import json
import urllib.error
import urllib.request
from contextlib import nullcontext
from typing import Any

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from memory.ops import figures, room, traffic


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture(autouse=True)
def unkept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "_kept", (-1e9, []))
    monkeypatch.setattr(room, "_seen", [-1e9, None])


def test_it_says_what_the_database_knows_and_names_no_team(committed: None, agent: Any, api: Any) -> None:
    body = {"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": "hello", "cwd": "/srv/acme-shop"}
    line = {"client": "claude-code", "occurred_at": "2020-01-01T00:00:00Z", "payload": body}
    answer = api(agent).post("events/batch", json.dumps(line), content_type="application/x-ndjson")
    assert answer.json()["accepted"] == 1
    told = Client().get("/metrics")
    assert told.status_code == 200 and told["Content-Type"].startswith("text/plain")
    text = told.content.decode()
    found = samples(text)
    assert found["team_memory_dream_backlog_events", ()] == 1
    assert found["team_memory_dream_backlog_sessions", ()] == 1
    assert found["team_memory_spool_age_seconds", ()] > 86_400
    assert found["team_memory_ingest_lag_seconds", (("of", "largest"),)] > 86_400
    assert found["team_memory_search_waiting", ()] >= 1
    assert found["team_memory_database_bytes", ()] > 1_000_000
    for name in ("acme", "globex", "shop", str(agent.key.tenant_id), "ten_"):
        assert name not in text


@pytest.mark.parametrize(
    ("token", "headers", "address", "status"),
    [
        ("", {}, "127.0.0.1", 200),
        ("", {}, "::1", 200),
        ("", {}, "192.0.2.7", 403),
        ("", {"X-Forwarded-For": "192.0.2.7"}, "127.0.0.1", 403),
        ("", {"Authorization": "Bearer "}, "192.0.2.7", 403),
        ("secret-token", {}, "127.0.0.1", 401),
        ("secret-token", {"Authorization": "Bearer secret-tokem"}, "127.0.0.1", 401),
        ("secret-token", {"Authorization": "Bearer secret-token"}, "192.0.2.7", 200),
    ],
)
def test_it_is_for_this_machine_or_by_the_token(
    committed: None, settings: Any, token: str, headers: dict[str, str], address: str, status: int
) -> None:
    settings.METRICS_TOKEN = token
    answer = Client(headers=headers, REMOTE_ADDR=address).get("/metrics")
    assert answer.status_code == status
    if status != 200:
        assert "TEAM_MEMORY_METRICS_TOKEN" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("environ", "route"),
    [
        ({"PATH_INFO": "/api/v1/hooks/codex/"}, "api/v1/hooks/<str:client>"),
        ({"PATH_INFO": "/api/v1/threads/thr_pr_412/events"}, "api/v1/threads/<str:thread_id>/events"),
        ({"PATH_INFO": "/static/app.css"}, "static"),
        ({"PATH_INFO": "/wp-admin/x.php"}, "none"),
        ({"PATH_INFO": "/", traffic.ROUTE: ""}, "/"),
        ({"PATH_INFO": "/t/acme/", traffic.ROUTE: "t/<slug:slug>/"}, "t/<slug:slug>/"),
    ],
)
def test_a_route_holds_no_id(environ: dict[str, str], route: str) -> None:
    assert traffic.route_of(environ) == route


def test_requests_are_counted_over_real_http(live: str) -> None:
    """By a real server: pages, lanes and addresses that do not exist."""
    for path in ("/login/", "/healthz", "/api/v1/threads/thr_x", "/no/such/thing/"):
        with pytest.raises(urllib.error.HTTPError) if path[1] in "an" else nullcontext():
            urllib.request.urlopen(live + path, timeout=20).close()
    text = urllib.request.urlopen(live + "/metrics", timeout=20).read().decode()
    found = samples(text)

    def requests(route: str, status: str) -> float:
        return found["team_memory_requests_total", (("method", "GET"), ("route", route), ("status", status))]

    assert requests("login/", "200") == 1 and requests("healthz", "200") >= 1
    assert requests("api/v1/threads/<str:thread_id>", "401") == 1 and requests("none", "404") == 1
    assert found["team_memory_request_seconds_count", (("method", "GET"), ("route", "login/"))] == 1


@pytest.mark.parametrize(
    ("method", "path", "free", "refused"),
    [
        ("POST", "/api/v1/hooks/codex", 50, True),
        ("PUT", "/api/v1/notes/by-path/team/a.md", 50, True),
        ("POST", "/mcp", 50, True),
        ("GET", "/api/v1/threads", 0, False),
        ("DELETE", "/api/v1/threads/thr_x", 0, False),
        ("POST", "/api/v1/cache/tools/lookup", 0, False),
        ("POST", "/t/acme/proposals/prp_x/approve/", 50, False),
        ("POST", "/t/acme/proposals/prp_x/approve/", 10, True),
        ("POST", "/api/v1/hooks/codex", 101, False),
        ("POST", "/api/v1/hooks/codex", None, False),
    ],
)
def test_writes_are_refused_while_there_is_a_reserve(
    monkeypatch: pytest.MonkeyPatch, settings: Any, method: str, path: str, free: int | None, refused: bool
) -> None:
    settings.RESERVE_BYTES = 100
    monkeypatch.setattr(room, "free_bytes", lambda: free)
    problem = room.refusal(method, path)
    assert (problem is not None) == refused
    if problem is not None:
        assert (problem.status, problem.code) == (507, "disk_full") and "send it again" in problem.detail
