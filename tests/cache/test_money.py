"""Tokens in the team's money, and whether a cache is worth its time."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from cache_admin import gain, money, policies, trends, usage
from memory.problems import Problem
from memory.tenants.access import Refused, member_actor
from memory.tenants.models import AuditEntry
from tests.cache.asked import call, stored

PAGE = "/t/acme/caches/settings/"
PRICES = {"claude": {"input": 3.0, "cache_read": 0.3, "cache_write": 3.75, "output": 15.0}, "cheap": {"input": 0.1}}


def test_what_usage_cost() -> None:
    row = {"model": "claude", "fresh": 1_000_000, "read": 10_000_000, "written": 0, "output": 100_000}
    assert money.cost(row, PRICES) == Decimal("7.5")
    assert money.cost({**row, "model": "cheap"}, PRICES) is None, "a kind without a price is unknown, not free"
    assert money.cost({**row, "model": "other"}, PRICES) is None
    assert money.worth(42_000, PRICES, "claude") == Decimal("0.126") and money.worth(1, PRICES, "") is None
    assert money.usual_model([row, {"model": "cheap", "fresh": 5}]) == "claude" and money.usual_model([]) == ""


def test_what_prompt_caches_spared_and_what_has_no_price() -> None:
    row = {"model": "claude", "fresh": 1_000_000, "read": 10_000_000, "written": 0, "output": 100_000}
    found = money.bill([row, {**row, "model": "other"}, {"model": "cheap", "fresh": 10_000_000}], PRICES)
    assert (found.cost, found.spared, found.unpriced) == (Decimal("8.5"), Decimal(27), ("other",))
    assert not money.bill([{**row, "model": "other"}], PRICES).is_known


def test_a_cache_that_takes_as_long_as_its_tool_is_warned_of() -> None:
    figures = {"lookups": 10, "hits": 5, "time_saved_ms": 10, "tokens_saved": 7}
    # An eighth of a doubling is a bucket: the 92nd lies around 3 ms.
    times = {"lookup_us": {"92": 10}}
    found = gain.of(figures, times)
    assert 28 < found.spent_ms < 32 and found.net_ms == 10 - found.spent_ms and "gains no time" in found.warning
    assert found.as_json()["time_spent_ms"] == round(found.spent_ms) and found.as_json()["tokens_saved"] == 7
    assert not gain.of({**figures, "time_saved_ms": 5000}, times).warning
    unhit = {**figures, "hits": 0, "time_saved_ms": 0}
    assert not gain.of(unhit, times).warning and not gain.of(unhit, times, mean_ms=40).warning
    assert gain.of(unhit, times, mean_ms=2).is_too_dear and gain.of(figures, {}).lookup_ms is None


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
        with pytest.raises(Problem, match="currency"):
            money.save_prices(acme, PRICES, currency="euro", by=member_actor(alice))
        money.save_prices(acme, PRICES, currency="EUR", by=member_actor(alice))
        said = AuditEntry.objects.get(action="cache.prices", outcome="done")
        assert (said.before, said.after) == ("", "EUR: cheap 0.1/-/-/-, claude 3/0.3/3.75/15")
    desk.post("usage", {"message_id": "m", "model": "claude", "usage": {"input_tokens": 9, "output_tokens": 1}})
    body = call(context={"project": "shop", "session": "s"})
    stored(desk, body, "word " * 10_000, duration_ms=900, session="s")
    assert desk.post("cache/tools/lookup", body).json()["unchanged"] is True
    said = desk.get("cache/metrics").json()
    [item] = said["items"]
    assert said["priced_as"] == "claude" and said["currency"] == "EUR" and item["tokens_saved"] > 9_000
    assert float(item["money_saved"]) == pytest.approx(item["tokens_saved"] * 3 / 1_000_000, abs=1e-6)
    assert item["net_gain"]["time_saved_ms"] == 900 and item["net_gain"]["warning"] is None
    assert said["storage"]["entries"] == 1 and said["storage"]["bytes"] > 10_000
    assert float(said["total"]["money_saved"]) == float(item["money_saved"])


def test_the_page_and_the_door_say_the_same_gain(agent: Any, api: Any, acme: Any, bound: Any) -> None:
    desk = api(agent)
    stored(desk, call(), "word " * 50, duration_ms=900)
    desk.post("cache/tools/lookup", call())
    today = timezone.now().date()
    [item] = desk.get("cache/metrics").json()["items"]
    with bound(acme):
        [line] = trends.seen(acme, since=today, until=today).tools
    assert line.gain.as_json() == item["net_gain"] and line.gain.saved_ms == 900


@pytest.mark.parametrize("role", ["vera", "alice"])
def test_prices_are_set_on_their_page(
    logged_in: Any, agent: Any, api: Any, acme: Any, bound: Any, role: str, request: Any
) -> None:
    usage_of(api(agent), "m1", "claude", timezone.now())
    browser = logged_in(request.getfixturevalue(role))
    page = browser.get(PAGE)
    assert ('name="price-0-input"' in page.content.decode()) == (role == "alice")
    answer = browser.post(PAGE, typed(3, started_on="2026-01-31"))
    if role == "vera":
        assert answer.status_code == 403
        return
    assert answer.status_code == 302
    with bound(acme):
        kept = policies.settings_of(acme)
        assert kept.prices == {"claude": {"input": 3.0, "output": 15.0}, "cheap": {"input": 0.0}}
        assert (kept.currency, kept.started_on) == ("VND", date(2026, 1, 31))
        assert (kept.analysis_days, kept.quota_bytes) == (14, 64 * 1024 * 1024)
        assert set(AuditEntry.objects.filter(outcome="done").values_list("action", flat=True)) >= {
            "cache.prices", "cache.start", "cache.room",
        }  # fmt: skip
    assert "VND" in browser.get("/t/acme/caches/prompts/").content.decode()


@pytest.mark.parametrize(
    "wrong",
    [
        {"currency": "dollars"}, {"price-0-input": "-1"}, {"price-0-input": "x"}, {"price-0-input": "nan"},
        {"price-1-model": ""}, {"price-1-model": "claude"}, {"started_on": "2999-01-01"}, {"started_on": "soon"},
        {"analysis_days": "6"}, {"analysis_days": "31"}, {"quota_mb": "0"},
    ],
)  # fmt: skip
def test_a_wrong_price_is_refused_at_its_field(
    logged_in: Any, alice: Any, acme: Any, bound: Any, wrong: dict[str, str]
) -> None:
    answer = logged_in(alice).post(PAGE, {**typed(3), **wrong})
    assert answer.status_code == 422 and "Not saved" in answer.content.decode()
    with bound(acme):
        assert policies.settings_of(acme).prices == {}


def test_input_is_compared_with_the_month_before_or_before_a_start(agent: Any, api: Any, acme: Any, bound: Any) -> None:
    desk, now = api(agent), timezone.now()
    for number, (days, tokens) in enumerate([(0, 300), (10, 300), (35, 600), (40, 600), (90, 9_000)]):
        usage_of(desk, f"m{number}", "claude", now - timedelta(days=days), tokens)
    with bound(acme):
        month = usage.compared(acme, today=now.date(), started_on=None)
        assert (month.now.tokens, month.before.tokens) == (600, 1_200)
        assert (month.per_day, month.per_message) == (-0.5, -0.5)
        start = usage.compared(acme, today=now.date(), started_on=now.date() - timedelta(days=20))
        assert (start.now.tokens, start.now.days, start.before.tokens) == (600, 21, 1_200)
        early = usage.compared(acme, today=now.date(), started_on=now.date() - timedelta(days=200))
        assert early.per_day is None and early.now.tokens == 10_800


def usage_of(desk: Any, message: str, model: str, at: datetime, tokens: int = 9) -> None:
    """A message's usage as a caller reports it."""
    body = {"message_id": message, "model": model, "usage": {"input_tokens": tokens, "output_tokens": 1}}
    answer = desk.post("usage", {**body, "at": at.isoformat()})
    assert answer.status_code == 201, answer.content


def typed(rows: int, **more: str) -> dict[str, str]:
    """The form of the prices' page, with two models and an empty row."""
    return {
        "price-TOTAL_FORMS": str(rows), "price-INITIAL_FORMS": "1", "price-MIN_NUM_FORMS": "0",
        "price-MAX_NUM_FORMS": "200", "currency": "vnd", "started_on": "",
        "analysis_days": "14", "quota_mb": "64",
        "price-0-model": "claude", "price-0-input": "3", "price-0-output": "15",
        "price-1-model": "cheap", "price-1-input": "0", "price-2-model": "", **more,
    }  # fmt: skip
