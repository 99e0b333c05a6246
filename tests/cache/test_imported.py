"""Usage in imported transcripts: each message once, by the provider's own figures."""

import gzip
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from cache_admin import tasks, usage
from cache_admin.models import Usage
from memory.tenants.models import Due

TRANSCRIPTS = sorted((Path(__file__).parent.parent / "data" / "transcripts").rglob("*.jsonl*"))
TODAY = timezone.now().date()


def counted(path: Path) -> dict[str, tuple[int, ...]]:
    """By message, straight from the file: of a message's lines the last has the final count."""
    found: dict[str, tuple[int, ...]] = {}
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            said = json.loads(line)
            message = said.get("message") or {}
            took = message.get("usage") if said.get("type") == "assistant" else None
            if took:
                names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
                found[message["id"]] = tuple(took.get(name) or 0 for name in names)
    return {name: counts for name, counts in found.items() if any(counts)}


def taken(tenant: Any, bound: Any) -> int:
    """What clock, sweeper and worker do until nothing is due; gives how many times the worker came."""
    tasks.find_due()
    for times in range(20):
        with bound(tenant):
            row = Due.objects.filter(task="cache_usage").first()
            Due.objects.filter(task="cache_usage").update(due_at=timezone.now() - timedelta(seconds=1))
        if row is None:
            return times
        tasks.cache_usage(tenant_id=str(tenant.pk), due_id=str(row.pk))
    raise AssertionError("it comes again for ever")


def test_messages_of_a_transcript_count_once_whoever_reports_them_too(
    acme: Any, globex: Any, agent: Any, api: Any, bound: Any, logged_in: Any, alice: Any
) -> None:
    path = TRANSCRIPTS[0]
    expected = counted(path)
    assert len(expected) > 2
    first = next(iter(expected))
    told = {"message_id": first, "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}
    assert api(agent).post("usage", told).status_code == 201
    for _ in range(2):
        call_command("import_sessions", str(path), tenant="acme")
        taken(acme, bound)
    with bound(acme):
        rows = {row.message_id: row for row in Usage.objects.all()}
        assert rows.keys() == expected.keys() and rows.pop(first).input_tokens == 1
        assert {
            name: (row.input_tokens, row.cache_read_tokens, row.cache_write_tokens, row.output_tokens)
            for name, row in rows.items()
        } == {name: counts for name, counts in expected.items() if name != first}
        row = next(iter(rows.values()))
        assert row.model.startswith("claude") and (row.harness, row.provider) == ("claude_code", "anthropic")
        rates = usage.rates(acme, since=row.at.date() - timedelta(days=400), until=TODAY)
        assert {one["harness"] for one in rates} >= {"claude_code"} and all(one["hit_rate"] < 1 for one in rates)
    assert taken(acme, bound) == 0, "what was read is not due again"
    with bound(acme):
        Usage.objects.filter(message_id=first).delete()
    assert "The latest that is known is of" in logged_in(alice).get("/t/acme/caches/prompts/").content.decode()
    with bound(globex):
        assert not Usage.objects.exists()


def test_a_rollouts_calls_add_up_and_repeated_figures_count_once(acme: Any, bound: Any, tmp_path: Path) -> None:
    def count(whole: int, cached: int, output: int, total: int) -> tuple[str, dict[str, Any]]:
        last = {"input_tokens": whole, "cached_input_tokens": cached, "output_tokens": output}
        info = {"last_token_usage": last, "total_token_usage": {"total_tokens": total}}
        return "event_msg", {"type": "token_count", "info": info}

    items = [
        ("session_meta", {"id": "019e", "cwd": "/home/dev/shop"}),
        ("turn_context", {"model": "gpt-x", "cwd": "/home/dev/shop"}),
        ("event_msg", {"type": "user_message", "message": "Round it"}),
        count(100, 0, 10, 110),
        ("event_msg", {"type": "agent_message", "message": "I look."}),
        count(200, 150, 20, 330),
        count(200, 150, 20, 330),
        ("event_msg", {"type": "token_count", "info": None}),
        ("event_msg", {"type": "agent_message", "message": "Done."}),
        count(300, 280, 5, 635),
    ]
    path = tmp_path / "rollout-2026-11-29T10-00-00-019e.jsonl"
    path.write_text(
        "\n".join(
            json.dumps({"timestamp": "2026-11-29T10:00:00Z", "type": kind, "payload": one}) for kind, one in items
        )
    )
    call_command("import_sessions", str(path), tenant="acme")
    taken(acme, bound)
    with bound(acme):
        rows = Usage.objects.order_by("message_id")
        sums = sorted((row.input_tokens, row.cache_read_tokens, row.output_tokens) for row in rows)
        assert sums == [(20, 280, 5), (150, 150, 30)]
        assert {(row.model, row.harness, row.provider) for row in rows} == {("gpt-x", "codex", "openai")}


@pytest.mark.parametrize(
    ("given", "fresh", "read"),
    [
        ({"input_tokens": 100, "cached_input_tokens": 80, "output_tokens": 1}, 20, 80),
        ({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 30}, "output_tokens": 1}, 70, 30),
        ({"input_tokens": 100, "output_tokens": 1}, 100, 0),
    ],
)
def test_what_openai_counts_in_is_taken_out(given: dict[str, Any], fresh: int, read: int) -> None:
    found = usage.read(given)
    assert (found.provider, found.fresh, found.read) == ("openai", fresh, read)
