"""Work that is due: put down once, sent by one sweeper, held by one worker."""

import re
import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from memory.tenants import due
from memory.tenants.models import Due
from memory.tenants.rls import tenant_scope
from tests.database import ROOT


@pytest.fixture
def row(acme: Any) -> str:
    with tenant_scope(str(acme.pk)):
        return due.put(str(acme.pk), "dream", "drm_x")


def only(tenant: Any) -> Due:
    with tenant_scope(str(tenant.pk)):
        return Due.objects.get()


def swept() -> list[due.Swept]:
    with transaction.atomic():
        return due.sweep()


def test_the_same_work_is_due_once_at_the_earlier_time(acme: Any, row: str) -> None:
    earlier = timezone.now() - timedelta(hours=1)
    with tenant_scope(str(acme.pk)):
        assert due.put(str(acme.pk), "dream", "drm_x", at=earlier) == row
        assert due.put(str(acme.pk), "dream", "drm_x") == row
    assert only(acme).due_at == earlier


def test_the_sweeper_sends_it_once_a_lease(acme: Any, row: str) -> None:
    assert swept() == [due.Swept(str(acme.pk), row, "dream")]
    assert swept() == []
    with tenant_scope(str(acme.pk)):
        Due.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    assert len(swept()) == 1


def test_what_could_not_be_sent_is_sent_by_the_next_sweep(row: str) -> None:
    with pytest.raises(ConnectionError), transaction.atomic():
        due.sweep()
        raise ConnectionError
    assert len(swept()) == 1


def test_it_waits_until_it_is_due(acme: Any) -> None:
    with tenant_scope(str(acme.pk)):
        later = due.put(str(acme.pk), "dream", at=timezone.now() + timedelta(minutes=1))
    assert swept() == []
    assert due.claim(str(acme.pk), later) is None


def test_of_many_claims_one_succeeds(acme: Any, row: str, django_db_blocker: Any) -> None:
    swept()
    won: list[due.Claim] = []

    def take() -> None:
        with django_db_blocker.unblock():
            try:
                if found := due.claim(str(acme.pk), row):
                    won.append(found)
            finally:
                connection.close()

    threads = [threading.Thread(target=take) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1


def test_a_sweep_takes_it_from_a_worker_whose_lease_ran_out(acme: Any, row: str) -> None:
    held = due.claim(str(acme.pk), row)
    assert held is not None and swept() == []
    with tenant_scope(str(acme.pk)):
        Due.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    assert len(swept()) == 1
    assert not due.renew(held)
    with pytest.raises(due.LeaseLost), tenant_scope(str(acme.pk)):
        due.hold(held)
    with pytest.raises(due.LeaseLost), tenant_scope(str(acme.pk)):
        due.done(held)


def test_another_team_cannot_take_it(globex: Any, row: str) -> None:
    assert due.claim(str(globex.pk), row) is None


def test_the_heartbeat_keeps_the_lease(acme: Any, row: str, settings: Any) -> None:
    settings.LEASE_SECONDS, settings.HEARTBEAT_SECONDS = 30, 0.05
    held = due.claim(str(acme.pk), row)
    assert held is not None
    first = only(acme).leased_until
    with due.heartbeat(held):
        for _ in range(100):
            time.sleep(0.05)
            if only(acme).leased_until != first:
                break
    assert only(acme).leased_until != first


def test_a_row_given_back_is_sent_at_once(acme: Any, row: str) -> None:
    held = due.claim(str(acme.pk), row)
    assert held is not None
    due.release(held)
    assert len(swept()) == 1


def test_a_worker_knows_every_task_that_is_put_down_or_on_the_clock() -> None:
    """A worker drops what it does not know, and says so only in its log."""
    from memory.celery import app

    app.loader.import_default_modules()
    put = re.compile(r"^TASK(?:: Final)? = \"(\w+)\"", re.M)
    sources = [path.read_text() for top in ("memory", "dream", "cache_admin") for path in (ROOT / top).rglob("*.py")]
    wanted = {f"due.{name}" for source in sources for name in put.findall(source)}
    wanted |= {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert len(wanted) > 12 and wanted <= set(app.tasks)
