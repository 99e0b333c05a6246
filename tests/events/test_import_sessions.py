"""manage.py import_sessions."""

import json
import shutil
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Count, Max, Min

from memory.events.models import Event, Session
from memory.events.projects import likely_same
from memory.tenants.models import Member, Tenant

DATA = Path(__file__).parents[1] / "data"
LOGS = DATA / "sessions"
GOLDEN = json.loads((Path(__file__).parent / "golden_counts.json").read_text())


def take(tenant: Tenant, *paths: Path, **options: Any) -> str:
    out = StringIO()
    call_command("import_sessions", *map(str, paths), tenant=tenant.slug, stdout=out, **options)
    return out.getvalue()


def counts(project: str) -> dict[str, Any]:
    return {key: wanted for key, wanted in GOLDEN["sessions"].items() if wanted["project"] == project}


def test_real_logs_are_taken_whole_in_order_and_once(acme: Tenant, bound: Any, alice: Member) -> None:
    wanted = counts("attio-mcp-server")
    take(acme, LOGS / "attio-mcp-server", handle="alice")
    again = take(acme, LOGS / "attio-mcp-server")
    assert f"0 new events, {sum(one['events'] for one in wanted.values())} there before" in again
    with bound(acme):
        sessions = Session.objects.annotate(n=Count("events"), low=Min("events__seq"), high=Max("events__seq"))
        assert {one.key: (one.n, one.low, one.high, one.last_seq) for one in sessions} == {
            key: (one["events"], 1, one["events"], one["events"]) for key, one in wanted.items()
        }
        assert {one.member.handle for one in sessions if one.member} == {"alice"}
        # One of the sessions ran in a second checkout, and no remote tells that it is the same.
        assert {one.project.slug for one in sessions if one.project} == {"attio-mcp-server", "attio-mcp-server-2"}
        assert [likeness.other.slug for likeness in likely_same(acme.projects.all())] == ["attio-mcp-server-2"]
        assert (
            Event.objects.filter(occurred_at__isnull=False).count() == GOLDEN["projects"]["attio-mcp-server"]["with_ts"]
        )


@pytest.mark.slow
def test_all_real_logs_give_the_golden_counts(acme: Tenant, bound: Any) -> None:
    for _ in range(2):
        take(acme, LOGS / "attio-mcp-server", LOGS / "templar")
    with bound(acme):
        assert (Session.objects.count(), Event.objects.count()) == (
            GOLDEN["total"]["sessions"],
            GOLDEN["total"]["events"],
        )
        names = dict(Event.objects.values_list("name").annotate(Count("pk")))
        assert names == GOLDEN["total"]["by_event"]
        assert Session.objects.filter(last_stop_seq=0).count() == GOLDEN["total"]["sessions_without_stop"]


SESSION = "3f1c2a90-7b64-4a1e-9d53-0c8b5e7a1f22"


def log_of_transcript(folder: Path) -> Path:
    """What the hooks of the sample transcript's session would have logged, and an event only hooks tell."""
    base = {"session_id": SESSION, "cwd": "/home/dev/shop"}
    tool = {"tool_name": "Read", "tool_input": {"file_path": "/home/dev/shop/totals.py"}}
    payloads = [
        {**base, "hook_event_name": "SessionStart", "source": "startup"},
        {**base, "hook_event_name": "UserPromptSubmit", "prompt": "Round the order total"},
        {**base, "hook_event_name": "PreToolUse", **tool},
        {**base, "hook_event_name": "PostToolUse", **tool, "tool_response": "x"},
        {**base, "hook_event_name": "Stop", "stop_hook_active": False},
    ]
    lines = [
        {"seq": n, "ts": None, "tool_use_id": None, "log_i": n, "payload": payload}
        for n, payload in enumerate(payloads)
    ]
    path = folder / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def told() -> dict[str, int]:
    return dict(Event.objects.values_list("kind").annotate(Count("pk")))


@pytest.mark.parametrize("is_transcript_first", [False, True])
def test_a_transcript_joins_the_session_of_its_hooks_in_any_order(
    acme: Tenant, bound: Any, tmp_path: Path, is_transcript_first: bool
) -> None:
    paths = [log_of_transcript(tmp_path), DATA / "harness" / "transcript.jsonl"]
    for path in reversed(paths) if is_transcript_first else paths:
        take(acme, path)
    with bound(acme):
        session = Session.objects.get()
        first = told()
        assert first == {"start": 1, "prompt": 1, "tool_before": 1, "tool_after": 1, "stop": 1, "other": first["other"]}
        assert Event.objects.filter(name="AssistantMessage", occurred_at__isnull=False).count() == first["other"] >= 1
        assert list(session.events.order_by("seq").values_list("seq", flat=True)) == list(
            range(1, session.last_seq + 1)
        )
    assert "0 new events" in take(acme, *paths) and "0 new sessions" in take(acme, *paths)
    with bound(acme):
        assert told() == first


def test_usage_is_kept_once_a_message_with_its_last_count(acme: Tenant, bound: Any) -> None:
    take(acme, DATA / "harness" / "transcript.jsonl")
    lines = [json.loads(line) for line in (DATA / "harness" / "transcript.jsonl").read_text().splitlines()]
    usage = {line["message"]["id"]: line["message"]["usage"] for line in lines if line["type"] == "assistant"}
    with bound(acme):
        kept = [json.loads(event.body or "") for event in Event.objects.filter(name="AssistantMessage")]
    assert {message["message_id"]: message["usage"] for message in kept} == usage


def test_a_codex_rollout_becomes_a_session(acme: Tenant, bound: Any, tmp_path: Path) -> None:
    items: list[tuple[str, dict[str, Any]]] = [
        (
            "session_meta",
            {"id": "019d", "cwd": "/home/dev/shop", "git": {"repository_url": "git@github.com:a/shop.git"}},
        ),
        ("turn_context", {"model": "gpt-x", "cwd": "/home/dev/shop"}),
        ("event_msg", {"type": "user_message", "message": "Round the total"}),
        (
            "response_item",
            {
                "type": "function_call",
                "name": "shell",
                "arguments": '{"command":["bash","-lc","pytest -q"]}',
                "call_id": "c1",
            },
        ),
        ("response_item", {"type": "function_call_output", "call_id": "c1", "output": "4 passed"}),
        ("event_msg", {"type": "token_count", "info": {"last_token_usage": {"input_tokens": 5}}}),
        ("event_msg", {"type": "agent_message", "message": "Done."}),
    ]
    path = tmp_path / "rollout-2026-11-29T10-00-00-019d.jsonl"
    path.write_text(
        "\n".join(
            json.dumps({"timestamp": "2026-11-29T10:00:00Z", "type": kind, "payload": item}) for kind, item in items
        )
    )
    for _ in range(2):
        take(acme, path)
    with bound(acme):
        session = Session.objects.select_related("project").get()
        assert (session.client, session.key, session.state, session.last_prompt) == (
            "codex",
            "019d",
            "stopped",
            "Round the total",
        )
        assert session.project is not None and session.project.slug == "shop"
        kept = list(session.events.order_by("seq").values_list("name", "tool", "summary"))
    assert kept == [
        ("UserPromptSubmit", "", "Round the total"),
        ("PreToolUse", "Bash", "pytest -q"),
        ("PostToolUse", "Bash", "pytest -q"),
        ("AssistantMessage", "", "Done."),
        ("Stop", "", "Done."),
    ]


def test_it_says_what_it_skipped_and_why(acme: Tenant, tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text('{"a": 1}\n')
    (tmp_path / "broken.jsonl.gz").write_bytes(b"not gzip")
    shutil.copy(DATA / "harness" / "transcript.jsonl", tmp_path / "cut.jsonl")
    with (tmp_path / "cut.jsonl").open("a") as lines:
        lines.write('{"sessionId": "3f1c')
    said = take(acme, tmp_path)
    assert "notes.jsonl: is no hook log" in said
    assert "broken.jsonl.gz" in said
    assert "cut.jsonl: 1 lines are not events" in said
    assert "1 new sessions" in said


def test_it_refuses_what_is_not_there(acme: Tenant, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no team"):
        call_command("import_sessions", str(tmp_path), tenant="nobody")
    with pytest.raises(CommandError, match="There is no"):
        take(acme, tmp_path / "missing")
    with pytest.raises(CommandError, match="no member"):
        take(acme, tmp_path, handle="nobody")
