"""POST /api/v1/hooks/{client}."""

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.db import connections
from django.test import Client

from memory.events import bodies
from memory.events.models import Event, Project, Session
from memory.tenants.models import AuditEntry, Member
from tests import database
from tests.conftest import Agent, new_agent

HARNESS = Path(__file__).parents[1] / "data" / "harness"
CALL = {
    "session_id": "s1",
    "cwd": "/home/dev/shop",
    "hook_event_name": "PostToolUse",
    "tool_name": "Bash",
    "tool_use_id": "toolu_1",
}


def post(agent: Agent, client: str, body: Any, **headers: str) -> Any:
    raw = body if isinstance(body, bytes | str) else json.dumps(body)
    browser = Client(headers=agent.headers)
    return browser.post(
        f"/api/v1/hooks/{client}", raw, content_type=headers.pop("content_type", "application/json"), headers=headers
    )


def seqs(session: Session) -> list[int]:
    return list(session.events.order_by("seq").values_list("seq", flat=True))


def test_it_stores_every_sample_and_answers_nothing_strange(agent: Agent, acme: Any, bound: Any) -> None:
    paths = sorted(HARNESS.glob("*/*.json"))
    for path in paths:
        answer = post(agent, f"{path.parent.name}?event={path.name.split('.')[0]}", path.read_text())
        assert answer.status_code == 200, (path, answer.content)
        assert answer["X-Team-Memory-Event"].startswith("evt_")
        assert isinstance(answer.json(), dict)
    with bound(acme):
        # Cursor's prompt comes twice, once through the settings of Claude Code.
        assert Event.objects.count() == len(paths) - 1
        for session in Session.objects.all():
            assert seqs(session) == list(range(1, session.last_seq + 1))


def test_a_byte_order_mark_is_no_part_of_the_call(agent: Agent, acme: Any, bound: Any) -> None:
    raw = json.dumps(CALL).encode()
    ids = {post(agent, "claude-code", mark + raw)["X-Team-Memory-Event"] for mark in (b"\xef\xbb\xbf", b"")}
    assert len(ids) == 1
    with bound(acme):
        assert bodies.stored(Event.objects.get()) == orjson.dumps(CALL)


def test_it_needs_a_key(agent: Agent) -> None:
    assert Client().post("/api/v1/hooks/codex", "{}", content_type="application/json").status_code == 401
    right = agent.headers["Authorization"]
    wrong = {"Authorization": right[:-1] + ("y" if right.endswith("x") else "x")}
    assert Client(headers=wrong).post("/api/v1/hooks/codex", CALL, content_type="application/json").status_code == 401


@pytest.mark.parametrize("scopes", [["read"], ["propose", "dream"]])
def test_it_needs_the_scope(alice: Member, acme: Any, bound: Any, scopes: list[str]) -> None:
    answer = post(new_agent(alice, scopes=scopes), "codex", CALL)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    with bound(acme):
        assert Event.objects.count() == 0
        assert AuditEntry.objects.filter(action="event.record", outcome="refused").count() == 1


def test_it_needs_the_role(alice: Member, acme: Any, bound: Any) -> None:
    agent = new_agent(alice)
    with bound(acme):
        Member.objects.filter(pk=alice.pk).update(role="viewer")
    assert post(agent, "codex", CALL).status_code == 403


def test_it_takes_only_post(agent: Agent) -> None:
    answer = Client(headers=agent.headers).get("/api/v1/hooks/codex")
    assert (answer.status_code, answer["Content-Type"]) == (405, "application/problem+json")


def test_it_lists_the_harnesses_it_knows(agent: Agent) -> None:
    answer = post(agent, "emacs", CALL)
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_client")
    assert "claude-code" in answer.json()["detail"]


def test_two_teams_keep_the_same_session_apart(
    agent: Agent, globex_agent: Agent, acme: Any, globex: Any, bound: Any
) -> None:
    first, second = post(agent, "codex", CALL), post(globex_agent, "codex", CALL)
    assert first["X-Team-Memory-Outcome"] == second["X-Team-Memory-Outcome"] == "new"
    assert first["X-Team-Memory-Event"] != second["X-Team-Memory-Event"]
    for tenant in (acme, globex):
        with bound(tenant):
            assert (Event.objects.count(), Session.objects.count(), Project.objects.count()) == (1, 1, 1)


@pytest.mark.parametrize(
    "body", ["", "  ", "null", '"text"', "[]", "{}", "{", "[" * 3000 + "]" * 3000, "[" * 900 + "]" * 900, '{"a": NaN}']
)
def test_it_refuses_what_it_could_not_store(agent: Agent, acme: Any, bound: Any, body: str) -> None:
    answer = post(agent, "claude-code", body)
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    with bound(acme):
        assert Event.objects.count() == 0


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data"])
@pytest.mark.parametrize("slash", ["", "/"])
def test_it_takes_any_content_type_and_both_spellings(
    agent: Agent, acme: Any, bound: Any, kind: str, slash: str
) -> None:
    assert (
        post(
            agent, f"claude-code{slash}", '{"hook_event_name":"Stop","session_id":"s1"}', content_type=kind
        ).status_code
        == 200
    )
    with bound(acme):
        assert Event.objects.get().kind == "stop"


def test_what_postgresql_refuses_becomes_a_mark(agent: Agent, acme: Any, bound: Any) -> None:
    outputs = [b"a\\u0000b", b"x\\ud83d", b"C:\\\\u0000dir", "😀".encode(), b"\\ud83d\\ude00"]
    for number, output in enumerate(outputs):
        start = (
            b'{"session_id":"s1","hook_event_name":"PostToolUse","tool_use_id":"u%d","tool_response":{"stdout":"'
            % number
        )
        assert post(agent, "claude-code", start + output + b'"}}').status_code == 200
    assert (
        post(
            agent, "claude-code", b'{"session_id":"s1","hook_event_name":"X","tool_response":{"\\u0000key":1}}'
        ).status_code
        == 200
    )
    with bound(acme):
        events = list(Event.objects.order_by("seq"))
        assert [event.sanitized for event in events] == [1, 1, 0, 0, 0, 1]
        said = [bodies.payload(event)["tool_response"].get("stdout") for event in events]
        assert said == ["a\ufffdb", "x\ufffd", "C:\\u0000dir", "😀", "😀", None]


def test_secrets_never_reach_a_row(agent: Agent, acme: Any, bound: Any) -> None:
    secret = "ghp_" + "A1b2C3d4E5" * 4
    payload = {
        **CALL,
        "tool_input": {"command": f"echo {secret}"},
        "cwd": f"/home/dev/{secret}",
        "tool_name": secret,
        secret: 1,
    }
    post(agent, "claude-code", payload, **{"Idempotency-Key": secret, "X-Team-Memory-Root": f"/x/{secret}"})
    with database.migrator() as everything:
        for table in ("events_event", "events_session", "events_project", "events_projectroot"):
            rows = everything.execute(b"SELECT t::text FROM %s t" % table.encode()).fetchall()
            assert rows and not any(secret in str(row) for row in rows), table
    with bound(acme):
        assert Event.objects.get().redactions >= 4


def test_a_secret_under_a_doubled_key_is_not_kept(agent: Agent, acme: Any, bound: Any) -> None:
    secret = "ghp_" + "A1b2C3d4E5" * 4
    post(agent, "codex", f'{{"session_id":"s","hook_event_name":"X","a":"{secret}","a":"fine"}}')
    with bound(acme):
        assert secret not in str(Event.objects.get().body)


def test_a_large_payload_leaves_the_row(agent: Agent, acme: Any, bound: Any) -> None:
    raw = orjson.dumps({**CALL, "tool_response": {"stdout": "total 4 passed " * 200_000}})
    event_id = post(agent, "claude-code", raw)["X-Team-Memory-Event"]
    with bound(acme):
        event = Event.objects.get(public_id=event_id)
        assert event.body is None and len(event.head) <= 2048 and len(event.tail) <= 2048
        assert (bytes(event.sha256), event.size) == (hashlib.sha256(raw).digest(), len(raw))
        assert bodies.stored(event) == raw


def test_a_body_over_the_limit_is_a_problem_with_the_limit(agent: Agent) -> None:
    answer = post(agent, "claude-code", b" " * (33 * 1024 * 1024))
    assert (answer.status_code, answer.json()["limit_bytes"]) == (413, 32 * 1024 * 1024)


def test_the_bytes_are_kept_as_they_came(agent: Agent, acme: Any, bound: Any) -> None:
    raw = json.dumps({**CALL, "n": 1.50, "é": "ü"}, indent=2).encode()
    post(agent, "claude-code", raw)
    with bound(acme):
        assert bodies.stored(Event.objects.get()) == raw


def in_parallel(agent: Agent, bodies_: list[Any], **headers: str) -> list[Any]:
    def send(body: Any) -> Any:
        try:
            return post(agent, "claude-code", body, **headers)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(send, bodies_))


def test_one_call_sent_eight_times_at_once_is_one_event(agent: Agent, acme: Any, bound: Any) -> None:
    answers = in_parallel(agent, [CALL] * 8)
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer["X-Team-Memory-Event"] for answer in answers}) == 1
    with bound(acme):
        assert seqs(Session.objects.get()) == [1]


def test_first_events_that_arrive_together_make_one_session(agent: Agent, acme: Any, bound: Any) -> None:
    names = ["SessionStart", "UserPromptSubmit", *["PreToolUse"] * 6]
    calls = [
        {"session_id": "s9", "cwd": "/home/dev/shop", "hook_event_name": name, "tool_name": "Bash", "n": n}
        for n, name in enumerate(names)
    ]
    assert {answer.status_code for answer in in_parallel(agent, calls)} == {200}
    assert post(agent, "claude-code", {**CALL, "session_id": "s9"}).status_code == 200
    with bound(acme):
        assert Project.objects.count() == 1
        assert seqs(Session.objects.get()) == list(range(1, 10))


def test_a_given_key_holds_one_payload(agent: Agent) -> None:
    key = {"Idempotency-Key": "k1"}
    first = post(agent, "codex", {"a": 1, "session_id": "s"}, **key)
    again = post(agent, "codex", '{ "session_id": "s",\n "a": 1 }', **key)
    other = post(agent, "codex", {"a": 2, "session_id": "s"}, **key)
    assert first["X-Team-Memory-Event"] == again["X-Team-Memory-Event"]
    assert again["X-Team-Memory-Outcome"] == "repeat"
    assert (other.status_code, other.json()["code"], other.json()["id"]) == (
        409,
        "idempotency_conflict",
        first["X-Team-Memory-Event"],
    )


def test_equal_prompts_without_an_id_are_two_events(agent: Agent, acme: Any, bound: Any) -> None:
    for _ in range(2):
        post(agent, "claude-code", {"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": "yes"})
    with bound(acme):
        assert seqs(Session.objects.get()) == [1, 2]


def test_cursor_through_two_settings_is_one_event(agent: Agent, acme: Any, bound: Any) -> None:
    first = post(agent, "cursor", (HARNESS / "cursor/beforeSubmitPrompt.json").read_text())
    second = post(agent, "claude-code", (HARNESS / "cursor_via_claude_settings/beforeSubmitPrompt.json").read_text())
    assert first["X-Team-Memory-Event"] == second["X-Team-Memory-Event"]


def test_sessions_know_what_they_go_on_from_and_who_acts(agent: Agent, acme: Any, bound: Any) -> None:
    start = {"session_id": "s1", "hook_event_name": "SessionStart", "source": "startup"}
    post(agent, "claude-code", start)
    post(
        agent,
        "claude-code",
        {**start, "session_id": "s2", "source": "resume", "transcript_path": "/home/dev/.claude/projects/x/s1.jsonl"},
    )
    post(agent, "claude-code", {**start, "source": "compact"})
    for helper in ("a1", "a2", "a99"):
        post(agent, "claude-code", {**CALL, "agent_id": helper})
    with bound(acme):
        one, two = Session.objects.order_by("key")
        assert two.resumed_from == one
        assert (one.generation, two.generation, one.state) == (1, 0, "open")
        assert list(one.events.order_by("seq").values_list("agent_id", flat=True)) == ["", "", "a1", "a2", "a99"]
    post(agent, "claude-code", {"session_id": "s1", "hook_event_name": "Stop"})
    with bound(acme):
        one.refresh_from_db()
        assert (one.state, one.last_stop_seq) == ("stopped", 6)


def test_the_memory_s_own_sessions_are_marked(agent: Agent, acme: Any, bound: Any) -> None:
    post(agent, "claude-code", CALL, **{"X-Team-Memory-Internal": "1"})
    with bound(acme):
        assert Session.objects.get().is_internal


def test_an_event_committed_late_is_never_passed(agent: Agent, acme: Any, bound: Any) -> None:
    """The session's lock makes the second writer wait, so a reader that has seen 2 has seen 1."""
    from memory.events.record import Arrival, Home, store

    def arrival(name: str) -> Arrival:
        return Arrival(Home("codex", "late"), name, "other", name, b"{}")

    with bound(acme):
        store(str(acme.pk), None, [arrival("opens")])
    with ThreadPoolExecutor(1) as pool, bound(acme):
        store(str(acme.pk), None, [arrival("a")])
        waiting = pool.submit(post, agent, "codex", {"session_id": "late", "hook_event_name": "b"})
        assert not waiting.done() or waiting.result().status_code != 200
        with database.migrator() as other:
            assert other.execute("SELECT max(seq) FROM events_event").fetchone() == (1,)
    assert waiting.result().status_code == 200
    with bound(acme):
        assert list(Event.objects.order_by("seq").values_list("name", flat=True)) == ["opens", "a", "b"]


def test_the_event_is_kept_though_nothing_can_be_told(agent: Agent, acme: Any, bound: Any, monkeypatch: Any) -> None:
    from memory.hooks import tell

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("no memory today")

    monkeypatch.setattr(tell.inject, "start_answer", broken)
    answer = post(agent, "claude-code", {"session_id": "s1", "hook_event_name": "SessionStart", "source": "startup"})
    assert (answer.status_code, answer.json()) == (200, {})
    with bound(acme):
        assert Event.objects.count() == 1
