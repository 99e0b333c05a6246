"""Retention: what goes, what stays, what an id says afterwards; and months of bodies."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from memory.events.models import Event
from memory.graph.models import Body, Part
from memory.notes.models import Source
from memory.ops import retention
from memory.tenants import choices, due
from memory.tenants.access import member_actor
from memory.tenants.rls import tenant_scope
from tests import database
from tests.pages import made

LARGE = '{"prompt": "' + "x" * 20_000 + '"}'


@pytest.fixture
def past(acme: Any, alice: Any, globex: Any, agent: Any, globex_agent: Any, api: Any) -> dict[str, Any]:
    """In each team a large event and a small one, one of them cited, and triggers; all of them 40 days old."""
    for one in (agent, globex_agent):
        for number, words in enumerate((LARGE, '{"prompt": "small"}', '{"prompt": "cited"}')):
            body = f'{{"session_id": "s1", "hook_event_name": "UserPromptSubmit", "turn": {number}, {words[1:]}'
            answer = api(one).post("hooks/claude-code", body)
            assert answer.status_code == 200
        for name, payload in (("kept", "cited words"), ("lost", "y" * 20_000)):
            sent = {
                "id": f"trg_{name}",
                "source": "ci",
                "thread": {"key": "github:acme/shop#1"},
                "payload": payload,
                "summary": f"{name} summary",
            }
            assert api(one).post("triggers", sent).status_code == 201
    with tenant_scope(str(acme.pk)):
        events = list(acme.events.order_by("seq"))
        note = made.note(acme, alice)
        Source.objects.create(tenant=acme, revision=note.current, event=events[2], line="x", position=0, tier=1)
    done = {"state": "done", "report": "It failed.", "cites": ["trg_kept"], "task": "look"}
    assert api(agent).post("workers", done).status_code == 201
    then = timezone.now() - timedelta(days=40)
    with database.migrator() as owner:
        owner.execute("UPDATE events_event SET received_at = %s", [then])
        owner.execute("UPDATE graph_part SET stored_at = %s", [then])
    return {"events": events}


def choose(acme: Any, alice: Any, **days: int) -> None:
    with tenant_scope(str(acme.pk)):
        for name, value in days.items():
            choices.choose(acme, f"retention_{name}", str(value), by=member_actor(alice))


def perform(acme: Any) -> dict[str, int]:
    with tenant_scope(str(acme.pk)):
        pk = due.put(str(acme.pk), "retention")
    claim = due.claim(str(acme.pk), pk)
    assert claim is not None
    return retention.perform(claim)


def test_payloads_go_and_ids_and_summaries_stay(
    past: Any, acme: Any, globex: Any, alice: Any, agent: Any, globex_agent: Any, api: Any, logged_in: Any
) -> None:
    assert perform(acme)["marks"] == 0, "with nothing chosen, everything is kept"
    choose(acme, alice, cited=0, events=30, triggers=30)
    gone = perform(acme)
    assert (gone["events"], gone["triggers"]) == (2, 1)
    large, small, cited = past["events"]
    on = f"{timezone.now():%Y-%m-%d}"
    for one in (large, small):
        told = api(agent).get(f"events/{one.public_id}/payload")
        assert told.status_code == 410
        assert told.json()["code"] == "payload_gone" and told.json()["reason"] == "retention"
        assert told.json()["removed_at"].startswith(on) and on in told.json()["detail"]
        kept = api(agent).get(f"events/{one.public_id}").json()
        assert kept["payload_removed_at"].startswith(on) and kept["seq"] == one.seq
        assert (kept["head"], kept["tail"], kept["sha256"]) == ("", "", bytes(one.sha256).hex())
        page = logged_in(alice).get(f"/t/acme/events/{one.public_id}/")
        assert page.status_code == 200 and "removed on" in page.content.decode()
    assert api(agent).get(f"events/{cited.public_id}/payload").status_code == 200
    told = api(agent).get("triggers/trg_lost/payload")
    assert told.status_code == 410 and told.json()["removed_at"].startswith(on)
    view = api(agent).get("triggers/trg_lost").json()
    assert view["summary"] == "lost summary" and f"removed on {on} by retention" in view["spilled"]["payload"]
    assert api(agent).get("triggers/trg_kept/payload").content == b"cited words"
    assert logged_in(alice).get("/t/acme/triggers/trg_lost/").status_code == 200
    with tenant_scope(str(acme.pk)):
        assert not Body.objects.filter(tenant=acme).exists()
    with tenant_scope(str(globex.pk)):
        assert Body.objects.filter(tenant=globex).count() == 2
        assert not Event.objects.filter(dropped_at__isnull=False).exists()
    assert api(globex_agent).get("triggers/trg_lost/payload").status_code == 200
    again = perform(acme)
    assert (again["events"], again["triggers"]) == (0, 0)


def test_what_is_cited_goes_last_and_a_shared_body_stays_as_long_as_one_holds_it(
    past: Any, acme: Any, alice: Any, agent: Any, api: Any
) -> None:
    large = past["events"][0]
    body = api(agent).get(f"events/{large.public_id}/payload").content
    sent = {"id": "trg_same", "source": "ci", "thread": {"key": "k"}, "payload": body.decode(), "summary": "s"}
    assert api(agent).post("triggers", sent).status_code == 201
    choose(acme, alice, events=30)
    assert perform(acme)["events"] == 2
    assert api(agent).get("triggers/trg_same/payload").content == body
    with pytest.raises(choices.Invalid, match="at least 30 days"):
        choose(acme, alice, cited=10)
    choose(acme, alice, cited=35)
    assert perform(acme)["cited_events"] == 1
    assert api(agent).get(f"events/{past['events'][2].public_id}/payload").status_code == 410
    with tenant_scope(str(acme.pk)):
        assert Part.objects.filter(dropped_at__isnull=False).count() == 0
    answer = api(agent).post("triggers", {**sent, "id": "trg_again", "payload": body.decode()})
    assert answer.status_code == 201


def test_it_is_due_once_a_day_for_each_team(teams: Any, acme: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT retention_due('23 hours')")
        assert cursor.fetchone()[0] == 2
        cursor.execute("SELECT retention_due('23 hours')")
        assert cursor.fetchone()[0] == 0
    perform(acme)
    with connection.cursor() as cursor:
        cursor.execute("SELECT retention_due('23 hours')")
        assert cursor.fetchone()[0] == 0


def test_months_are_made_ahead_and_empty_ones_are_dropped(past: Any) -> None:
    def months() -> set[str]:
        with database.migrator() as owner:
            rows = owner.execute(
                "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'graph_body'::regclass"
            )
            return {str(row[0]) for row in rows}

    next_month = (timezone.now().replace(day=1) + timedelta(days=32)).strftime("graph_body_%Y_%m")
    with database.migrator() as owner:
        owner.execute(
            "CREATE TABLE graph_body_2020_01 PARTITION OF graph_body FOR VALUES FROM ('2020-01-01') TO ('2020-02-01')"
        )
        owner.execute(
            "CREATE TABLE graph_body_2020_02 PARTITION OF graph_body FOR VALUES FROM ('2020-02-01') TO ('2020-03-01')"
        )
        owner.execute("REVOKE ALL ON graph_body_2020_01, graph_body_2020_02 FROM tm_runtime")
        owner.execute(
            "INSERT INTO graph_body SELECT tenant_id, sha256, '2020-02-01', size, codec, content"
            " FROM graph_body LIMIT 1"
        )
    before = months()
    with connection.cursor() as cursor:
        cursor.execute("SELECT dropped FROM body_months()")
        # The database may have been made in a month that is over by now.
        assert cursor.fetchone()[0] == len(before - months())
    assert {next_month, "graph_body_2020_02", "graph_body_rest"} <= months() and "graph_body_2020_01" not in months()
    with database.migrator() as owner:
        owner.execute("DROP TABLE graph_body_2020_02")
