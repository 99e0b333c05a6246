"""The weekly item of the inbox: how many pairs of questions wait for a person."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from cache_admin import pairs, tasks, weekly
from cache_admin.models import Pair, PairsWeek
from memory.tenants.access import member_actor
from memory.tenants.models import Due

INBOX = "/t/acme/"


def pair(tenant: Any, tool: str = "ask_docs") -> Pair:
    return Pair.objects.create(tenant=tenant, tool=tool, asked="how to stop?", matched="how to start?", score=0.9)


def sweep(tenant: Any, bound: Any) -> None:
    """What the sweeper does when Monday comes."""
    with bound(tenant):
        row = Due.objects.get(task=weekly.TASK)
        Due.objects.filter(pk=row.pk).update(due_at=timezone.now() - timedelta(seconds=1))
    tasks.cache_pairs(tenant_id=str(tenant.pk), due_id=str(row.pk))


@pytest.mark.parametrize(
    ("now", "monday"),
    [("2026-08-05T12:00", "2026-08-10T06:00"), ("2026-08-03T05:59", "2026-08-03T06:00"),
     ("2026-08-03T06:00", "2026-08-10T06:00"), ("2026-08-09T23:59", "2026-08-10T06:00")],
)  # fmt: skip
def test_it_comes_on_monday(now: str, monday: str) -> None:
    assert weekly.next_at(datetime.fromisoformat(now).replace(tzinfo=UTC)) == datetime.fromisoformat(monday).replace(
        tzinfo=UTC
    )


def test_the_inbox_counts_what_waits_once_a_week_and_stops_by_itself(
    logged_in: Any, acme: Any, alice: Any, vera: Any, bound: Any
) -> None:
    with bound(acme):
        first, second = pair(acme), pair(acme, "search_web")
        weekly.expect(str(acme.pk))
        weekly.expect(str(acme.pk))
        due_at = Due.objects.get(task=weekly.TASK).due_at
        assert due_at == weekly.next_at(timezone.now())
    browser = logged_in(alice)
    assert browser.get(INBOX).context["pairs"] is None, "not before Monday"
    for _ in range(2):
        sweep(acme, bound)
        with bound(acme):
            assert PairsWeek.objects.count() == 1, "the same week says it once"
            assert Due.objects.get(task=weekly.TASK).due_at > timezone.now()
    said = browser.get(INBOX)
    assert said.context["pairs"].count == 2
    assert "1 pair of questions to <bdi>ask_docs</bdi> waits" in said.content.decode()
    assert logged_in(vera).get(INBOX).context["pairs"] is None, "she may not decide"
    with bound(acme):
        pairs.decide(acme, str(first.pk), "same", by=member_actor(alice))
    assert browser.get(INBOX).context["pairs"].count == 1
    with bound(acme):
        pairs.decide(acme, str(second.pk), "different", by=member_actor(alice))
        assert not PairsWeek.objects.exists()
    assert browser.get(INBOX).context["pairs"] is None
    sweep(acme, bound)
    with bound(acme):
        assert not Due.objects.filter(task=weekly.TASK).exists()


def test_last_weeks_item_gives_way_to_this_weeks(acme: Any, bound: Any) -> None:
    with bound(acme):
        pair(acme)
        PairsWeek.objects.create(tenant=acme, week=timezone.now().date() - timedelta(days=21))
        assert weekly.tell(acme) and weekly.tell(acme)
        [row] = PairsWeek.objects.all()
        assert row.week.weekday() == 0 and timezone.now().date() - row.week < timedelta(days=7)
