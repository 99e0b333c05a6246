"""Tokens in the team's money, and whether a cache is worth its time."""

from decimal import Decimal
from typing import Any

import pytest

from cache_admin import money
from memory.problems import Problem
from memory.tenants.access import Refused, member_actor
from tests.cache.asked import call, stored

PRICES = {"claude": {"input": 3.0, "cache_read": 0.3, "cache_write": 3.75, "output": 15.0}, "cheap": {"input": 0.1}}


def test_what_usage_cost() -> None:
    row = {"model": "claude", "fresh": 1_000_000, "read": 10_000_000, "written": 0, "output": 100_000}
    assert money.cost(row, PRICES) == Decimal("7.5")
    assert money.cost({**row, "model": "cheap"}, PRICES) is None, "a kind without a price is unknown, not free"
    assert money.cost({**row, "model": "other"}, PRICES) is None
    assert money.worth(42_000, PRICES, "claude") == Decimal("0.126") and money.worth(1, PRICES, "") is None
    assert money.usual_model([row, {"model": "cheap", "fresh": 5}]) == "claude" and money.usual_model([]) == ""


def test_a_cache_that_takes_as_long_as_its_tool_is_warned_of() -> None:
    figures = {
        "lookups": 10,
        "hits": 5,
        "time_saved_ms": 10,
        "tokens_saved": 7,
        "overhead_us": {"lookup": {"p50": 3000}},
    }
    found = money.net_gain(figures)
    assert (found["time_spent_ms"], found["net_time_ms"]) == (30, -20) and "gains no time" in found["warning"]
    assert money.net_gain({**figures, "time_saved_ms": 5000})["warning"] is None
    assert money.net_gain({**figures, "hits": 0, "time_saved_ms": 0})["warning"] is None


def test_the_metrics_say_it_in_the_teams_prices(
    agent: Any, api: Any, acme: Any, alice: Any, vera: Any, bound: Any
) -> None:
    desk = api(agent)
    with bound(acme):
        with pytest.raises(Refused):
            money.save_prices(acme, PRICES, by=member_actor(vera))
        for wrong in ({"m": {"input": -1}}, {"m": {"inptu": 1}}, {"m": {"input": True}}, {"": {}}):
            with pytest.raises(Problem, match="prices"):
                money.save_prices(acme, wrong, by=member_actor(alice))
        money.save_prices(acme, PRICES, by=member_actor(alice))
    desk.post("usage", {"message_id": "m", "model": "claude", "usage": {"input_tokens": 9, "output_tokens": 1}})
    body = call(context={"project": "shop", "session": "s"})
    stored(desk, body, "word " * 10_000, duration_ms=900, session="s")
    assert desk.post("cache/tools/lookup", body).json()["unchanged"] is True
    said = desk.get("cache/metrics").json()
    [item] = said["items"]
    assert said["priced_as"] == "claude" and item["tokens_saved"] > 9_000
    assert float(item["money_saved"]) == pytest.approx(item["tokens_saved"] * 3 / 1_000_000, abs=1e-6)
    assert item["net_gain"]["time_saved_ms"] == 900 and item["net_gain"]["warning"] is None
