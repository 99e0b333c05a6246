"""The outer door: the database away, and addresses nobody has."""

from typing import Any

import psycopg
import pytest
from django.db import OperationalError
from django.test import Client

from memory.tenants import door
from tests.pages import made


@pytest.mark.parametrize("fault", [OperationalError("gone"), psycopg.OperationalError("gone")])
@pytest.mark.parametrize("path", ["/api/v1/projects", "/api/v1/hooks/claude-code"])
def test_it_says_503_while_the_database_is_away(
    agent: Any, monkeypatch: pytest.MonkeyPatch, fault: Exception, path: str
) -> None:
    def fails(*args: Any) -> None:
        raise fault

    monkeypatch.setattr(door, "key_actor", fails)
    monkeypatch.setattr("memory.hooks.api.key_actor", fails)
    monkeypatch.setattr("memory.hooks.take._known", {})
    client = Client(headers=agent.headers)
    body = '{"session_id": "s", "hook_event_name": "Stop"}'
    answer = client.post(path, body, content_type="application/json") if "hooks" in path else client.get(path)
    assert (answer.status_code, answer["Retry-After"], answer.json()["code"]) == (503, "2", "unavailable")


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/v1", "/api/v1/nothing", "/api/v1/nothing/"])
def test_a_program_gets_json_for_an_unknown_address(committed: None, path: str) -> None:
    answer = Client().get(path)
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")


def test_a_nul_is_refused_where_it_would_reach_the_database(acme: Any, alice: Any, logged_in: Any) -> None:
    address = f"/t/acme/projects/{made.project(acme, 'shop').public_id}/limit/"
    answer = logged_in(alice).post(address, {"for": "some", "members": "mem_\0"})
    assert answer.status_code == 400 and "NUL character" in answer.content.decode()


def test_a_lost_form_is_told_on_our_page(acme: Any, alice: Any) -> None:
    client = Client(enforce_csrf_checks=True)
    answer = client.post("/login/", {"email": "alice@acme.test", "password": "x"})
    assert answer.status_code == 403
    assert "load the page and try again" in answer.content.decode()


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_a_probe_may_know_the_host_by_its_address_alone(committed: None, settings: Any, path: str) -> None:
    settings.ALLOWED_HOSTS = ["memory.example.test"]
    answer = Client().get(path, headers={"Host": "10.0.0.7:8000"})
    assert answer.status_code == 200
    assert Client().get("/login", headers={"Host": "10.0.0.7:8000"}).status_code == 400
