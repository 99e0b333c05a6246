"""Alerts of the caches: by mail and webhook, once at the edge, and again only after recovery."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from cache_admin import alerts, policies, tasks
from cache_admin.alerts import Rate
from cache_admin.models import Alert, Incident, Lookup
from memory.tenants import choices, outbox
from memory.tenants import tasks as sending
from memory.tenants.access import command_actor, member_actor
from memory.tenants.models import Due
from tests.cache.asked import call, stored
from tests.hook_server import hook_server
from tests.mail_server import mail_server

TO = "ops@acme.test"


def come_due(tenant: Any, bound: Any, task: str, work: Any) -> int:
    """What a worker does with what is due of a task; gives how many rows."""
    with bound(tenant):
        Due.objects.filter(task=task).update(due_at=timezone.now() - timedelta(seconds=1), owner="", leased_until=None)
        rows = [str(pk) for pk in Due.objects.filter(task=task).values_list("pk", flat=True)]
    for pk in rows:
        work(tenant_id=str(tenant.pk), due_id=pk)
    return len(rows)


def watched(tenant: Any, bound: Any) -> None:
    assert come_due(tenant, bound, alerts.TASK, tasks.cache_watch) == 1
    come_due(tenant, bound, outbox.TASK, sending.send)


def lookups(tenant: Any, bound: Any, *, hits: int, misses: int, ago: timedelta = timedelta()) -> None:
    at = timezone.now() - ago
    with bound(tenant):
        for status, times in (("hit", hits), ("miss", misses)):
            Lookup.objects.create(tenant=tenant, at=at, tool="read_file", kind="tool", status=status, times=times)
        alerts.soon(str(tenant.pk))


@pytest.fixture
def told(acme: Any, alice: Any, bound: Any) -> Any:
    """acme wants alerts by mail."""
    with bound(acme):
        choices.choose(acme, "alert_mail", f"{TO}, {TO}", by=member_actor(alice))
    return acme


def test_a_stale_answer_is_told_once_and_again_after_it_was_quiet(
    told: Any, agent: Any, api: Any, bound: Any, globex: Any
) -> None:
    desk = api(agent)

    def report() -> None:
        key = stored(desk, call()).json()["key"]
        assert desk.post("cache/incidents", {"key": key, "detail": "secret words"}).status_code == 201

    with mail_server() as box:
        report()
        watched(told, bound)
        report()
        watched(told, bound)
        [mail] = box.mails
        assert mail["To"] == TO and "read_file served a stale answer" in mail["Subject"]
        assert "/t/acme/caches/incidents/" in mail.get_content() and "secret words" not in mail.get_content()
        with bound(told):
            Incident.objects.update(at=timezone.now() - timedelta(hours=25))
        watched(told, bound)
        with bound(told):
            assert Alert.objects.get().cleared_at is not None
        watched(told, bound)
        assert len(box.mails) == 1, "what is over is no news"
        report()
        watched(told, bound)
        assert len(box.mails) == 2
    with bound(globex):
        assert not Alert.objects.exists()


def test_a_collapsed_hit_rate_is_told_once_and_again_after_it_recovered(told: Any, bound: Any) -> None:
    with mail_server() as box:
        lookups(told, bound, hits=400, misses=100, ago=timedelta(hours=30))
        lookups(told, bound, hits=80, misses=20)
        watched(told, bound)
        assert not box.mails
        lookups(told, bound, hits=0, misses=200)
        for _ in range(3):
            with bound(told):
                alerts.soon(str(told.pk))
            watched(told, bound)
        [mail] = box.mails
        assert "27 %" in mail["Subject"] and "80 %" in mail.get_content()
        with bound(told):
            Lookup.objects.filter(at__gt=timezone.now() - timedelta(hours=1)).update(
                at=timezone.now() - timedelta(hours=3)
            )
        lookups(told, bound, hits=50, misses=50)
        watched(told, bound)
        with bound(told):
            assert Alert.objects.get().cleared_at is None, "half of the way back is at 60 %"
        lookups(told, bound, hits=80, misses=20)
        watched(told, bound)
        with bound(told):
            assert Alert.objects.get().cleared_at is not None
        lookups(told, bound, hits=0, misses=700)
        watched(told, bound)
        assert len(box.mails) == 2


@pytest.mark.parametrize(
    ("now", "before", "drop", "collapsed"),
    [
        (Rate(10, 100), Rate(800, 1000), 50, True),
        (Rate(41, 100), Rate(800, 1000), 50, False),
        (Rate(0, 49), Rate(800, 1000), 50, False),
        (Rate(0, 100), Rate(150, 199), 50, False),
        (Rate(0, 100), Rate(20, 1000), 50, False),
        (Rate(70, 100), Rate(800, 1000), 10, True),
        (Rate(0, 0), Rate(0, 0), 50, False),
    ],
)
def test_what_counts_as_a_collapse(now: Rate, before: Rate, drop: int, collapsed: bool) -> None:
    assert alerts.is_collapse(now, before, drop) is collapsed


def test_a_tool_that_was_switched_off_is_no_longer_open(told: Any, alice: Any, bound: Any) -> None:
    with bound(told):
        Alert.objects.create(tenant=told, kind="collapse", tool="read_file", rate=0.1, usual=0.8)
        assert alerts.watch(told), "nothing was asked, so nobody knows"
        policies.save(told, "read_file", by=command_actor(told, "t"), mode="off")
        assert not alerts.watch(told) and Alert.objects.get().cleared_at


def test_the_webhook_gets_signed_json_and_zero_silences(
    acme: Any, alice: Any, agent: Any, api: Any, bound: Any
) -> None:
    desk = api(agent)
    with hook_server() as receiver:
        with bound(acme):
            by = member_actor(alice)
            choices.choose(acme, "alert_webhook", receiver.address, by=by)
            choices.choose(acme, "alert_webhook_secret", "shared words", by=by)
            choices.choose(acme, "alert_stale_hours", "0", by=by)
        key = stored(desk, call()).json()["key"]
        desk.post("cache/incidents", {"key": key})
        watched(acme, bound)
        assert not receiver.bodies
        with bound(acme):
            choices.choose(acme, "alert_stale_hours", "24", by=by)
            alerts.soon(str(acme.pk))
        watched(acme, bound)
        [raw] = receiver.bodies
    said = json.loads(raw)
    assert (said["type"], said["data"]["tool"], said["data"]["team"]) == ("cache.stale_answer", "read_file", "acme")
    headers = {name.lower(): value for name, value in receiver.headers[0].items()}
    assert headers["webhook-id"].startswith("msg_") and headers["webhook-signature"].startswith("v1,")


def test_a_difference_found_by_a_second_run_makes_it_due(told: Any, agent: Any, api: Any, bound: Any) -> None:
    desk = api(agent)
    with bound(told):
        policies.save(told, "read_file", by=command_actor(told, "t"), mode="serve", shadow_percent=100)
    stored(desk, call(), "one")
    hit = desk.post("cache/tools/lookup", call()).json()
    assert hit["revalidate"]
    desk.put(f"cache/tools/{hit['key']}", {"lease": hit["lease"], "result": "two"})
    with mail_server() as box:
        watched(told, bound)
        assert len(box.mails) == 1


def test_settings_refuse_what_is_no_address_and_pages_say_who_is_told(
    logged_in: Any, acme: Any, alice: Any, bound: Any
) -> None:
    browser = logged_in(alice)
    settings = "/t/acme/settings/"
    assert "Nobody is told" in browser.get("/t/acme/caches/incidents/").content.decode()
    crowd = " ".join(f"a{number}@b.test" for number in range(21))
    wrong = (("alert_mail", f"{TO}, nobody"), ("alert_mail", crowd), ("alert_webhook", "http://127.0.0.1/x"),
             ("alert_hit_rate", "101"))  # fmt: skip
    for name, value in wrong:
        assert browser.post(settings, {"name": name, "value": value}).status_code == 422, value
    assert browser.post(settings, {"name": "alert_mail", "value": TO}).status_code == 302
    with bound(acme):
        Alert.objects.create(tenant=acme, kind="collapse", tool="read_file", rate=0.1, usual=0.8)
    said = browser.get("/t/acme/caches/incidents/").content.decode()
    assert TO in said and "Open" in said and "80 %" in said
    assert "collapsed to 10 %" in browser.get("/t/acme/caches/").content.decode()
