"""What is told before its event came in: a client with a backlog asks at once, and sends the event after the others."""

import json
from typing import Any

import pytest
from django.test import Client

from memory.events.models import Event, Session
from memory.recall.models import Telling, ToldNote
from tests.conftest import Agent, new_agent
from tests.hooks.test_session_life import HOME, told
from tests.pages import made

START = {"session_id": "s1", "hook_event_name": "SessionStart", "source": "startup", "cwd": HOME}
PROMPT = {"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": "How do we round totals?", "cwd": HOME}
COMPACT = {**START, "source": "compact"}


@pytest.fixture
def client(api: Any, agent: Agent) -> Any:
    return api(agent)


@pytest.fixture(autouse=True)
def note(acme: Any, alice: Any) -> Any:
    return made.note(acme, alice, path="general/totals.md", text="# Totals\n\n- Round totals half-even\n")


def ask(client: Any, payload: dict[str, Any], key: str) -> str:
    headers = {"X-Team-Memory-Tell": "only", "Idempotency-Key": key}
    answer = client.post("hooks/claude-code", payload, headers=headers)
    assert answer.status_code == 200, answer.content
    return told(answer.json())


def send(client: Any, *events: tuple[dict[str, Any], str]) -> dict[str, Any]:
    lines = [json.dumps({"client": "claude-code", "key": key, "payload": payload}) for payload, key in events]
    said: dict[str, Any] = client.post("events/batch", "\n".join(lines), content_type="application/x-ndjson").json()
    return said


def test_it_is_kept_and_gets_its_event_when_that_comes(client: Any, acme: Any, bound: Any) -> None:
    text = ask(client, START, "k1")
    assert "half-even" in text and ask(client, START, "k1") == text
    with bound(acme):
        telling = Telling.objects.select_related("session").get()
        assert (telling.event, telling.awaits, telling.text, telling.session.key) == (None, "k1", text, "s1")
        assert ToldNote.objects.get().why == "General note"
        assert not Event.objects.exists()
    assert ask(client, PROMPT, "k2") == "", "it stands in the session's context already"
    assert send(client, (START, "k1"), (PROMPT, "k2"))["accepted"] == 2
    with bound(acme):
        assert (Telling.objects.get().event.key, Telling.objects.get().awaits) == ("k1", "")
        assert Session.objects.get().last_seq == 2
    again = client.post("hooks/claude-code", START, headers={"Idempotency-Key": "k1"})
    assert told(again.json()) == text
    assert send(client, (START, "k1"))["repeated"] == 1


def test_an_event_that_comes_alone_finds_it_too(client: Any, acme: Any, bound: Any) -> None:
    text = ask(client, START, "k1")
    assert told(client.post("hooks/claude-code", START, headers={"Idempotency-Key": "k1"}).json()) == text
    with bound(acme):
        assert Telling.objects.get().event.key == "k1"


def test_a_session_that_forgot_on_the_way_is_told_again_and_once(client: Any, acme: Any, bound: Any) -> None:
    ask(client, START, "k1")
    for number in (2, 3):
        assert "half-even" in ask(client, COMPACT, f"k{number}")
    assert ask(client, PROMPT, "k4") == ""
    send(client, (START, "k1"), (COMPACT, "k2"), (COMPACT, "k3"), (PROMPT, "k4"))
    with bound(acme):
        assert list(Telling.objects.order_by("event__seq").values_list("event__key", "generation")) == [
            ("k1", 0), ("k2", 1), ("k3", 2)
        ]  # fmt: skip
        assert Session.objects.get().generation == 2
    assert told(client.post("hooks/claude-code", {**PROMPT, "prompt_id": "p9"}).json()) == ""


def test_nobody_else_gets_it(client: Any, api: Any, bob: Any) -> None:
    assert "half-even" in ask(client, START, "k1")
    assert ask(api(new_agent(bob)), START, "k1") == ""


def test_the_page_of_the_session_shows_it_while_its_event_is_on_the_way(
    client: Any, acme: Any, alice: Any, bound: Any
) -> None:
    ask(client, START, "k1")
    with bound(acme):
        public_id = Session.objects.get().public_id
    browser = Client()
    browser.force_login(alice.user)
    page = browser.get(f"/t/acme/sessions/{public_id}/").content.decode()
    assert "its event is on the way" in page and "Round totals half-even" in page
    send(client, (START, "k1"))
    page = browser.get(f"/t/acme/sessions/{public_id}/").content.decode()
    assert "its event is on the way" not in page and "Round totals half-even" in page
