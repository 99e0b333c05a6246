"""The real logs, posted line by line by eight at once."""

import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.db.models import Count, F, Max
from django.test import Client

from memory.events.models import Event, Session
from tests.conftest import Agent

LOGS = sorted((Path(__file__).parents[1] / "data" / "sessions").glob("*/*.jsonl.gz"))


def replay(agent: Agent) -> dict[str, int]:
    """Every line once, dealt out in turn, so that each session is posted to by all eight."""
    lines = [json.loads(line) for path in LOGS for line in gzip.decompress(path.read_bytes()).splitlines()]
    browser = Client(headers=agent.headers)

    def post(part: int) -> list[str]:
        outcomes = []
        for line in lines[part::8]:
            key = f"{line['payload']['session_id']}:{line['seq']}"
            answer = browser.post(
                "/api/v1/hooks/claude-code",
                json.dumps(line["payload"]),
                content_type="application/json",
                headers={"Idempotency-Key": key},
            )
            assert answer.status_code == 200, answer.content
            outcomes.append(answer["X-Team-Memory-Outcome"])
        connections.close_all()
        return outcomes

    # The pool holds eight connections, and the eight need one each.
    connections.close_all()
    with ThreadPoolExecutor(8) as pool:
        outcomes = [outcome for part in pool.map(post, range(8)) for outcome in part]
    return {outcome: outcomes.count(outcome) for outcome in set(outcomes)}


@pytest.mark.slow
def test_eight_at_once_lose_nothing_and_double_nothing(agent: Agent, acme: Any, bound: Any) -> None:
    assert replay(agent) == {"new": 5463}
    with bound(acme):
        keys = set(Event.objects.values_list("key", flat=True))
        assert (len(keys), Session.objects.count()) == (5463, 62)
        dense = Session.objects.annotate(n=Count("events"), high=Max("events__seq")).exclude(n=F("high"))
        assert not dense.exists()
    assert replay(agent) == {"repeat": 5463}
    with bound(acme):
        assert set(Event.objects.values_list("key", flat=True)) == keys
