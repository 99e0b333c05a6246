"""A run from its start to its end: what it reads, what it leaves, and that nothing is lost or said twice."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from dream import run as dreams
from dream import tasks
from dream.answer import Cited, Proposed
from dream.mind import DistillMind, Material, MindFailed, Outcome
from dream.models import Change, Digest, Quarantined, Run, Watermark, Window
from memory import purging
from memory.events.models import Event, Session
from memory.llm import Usage
from memory.notes.models import Proposal, Source
from memory.tenants import due
from memory.tenants.access import Refused, command_actor, member_actor
from memory.tenants.models import AuditEntry, Due
from memory.tenants.rls import tenant_scope
from tests.dream.told import prompt, ran, stop, tell


class Scribe:
    """A mind that writes one line a prompt, and fails as it is told to."""

    name, model, version, budget = "scribe", "", "", 1_000_000

    def __init__(self, *, failing: Any = None) -> None:
        self.failing = failing
        self.batches: list[list[str]] = []

    def weigh(self, event: Any) -> int:
        return 1

    def dream(self, material: Material) -> Outcome:
        self.batches.append([event.payload.get("prompt", event.name) for event in material.events])
        if self.failing:
            self.failing(material)
        known = dict(material.state)
        for event in material.events:
            if event.name == "prompt":
                known[event.id] = event.payload["prompt"]
        text = "# Asked\n\n" + "".join(f"- {said}\n" for said in known.values())
        cited = tuple(Cited(f"- {said}", event, 1) for event, said in known.items())
        made = (Proposed(f"project/{material.slug}/asked.md", text, cited),) if known else ()
        return Outcome(made if material.is_last else (), known, Usage(10, 2, 1))


def dreamt(tenant: Any, mind: Any) -> Run:
    claim = dreams.start_and_claim(tenant, by=command_actor(tenant, "tests"))
    run = dreams.perform(claim, mind=mind)
    assert run is not None
    return run


def scheduled(tenant: Any, mind: Any) -> Run | None:
    with tenant_scope(str(tenant.pk)):
        pk = due.put(str(tenant.pk), "dream")
    claim = due.claim(str(tenant.pk), pk)
    assert claim is not None
    return dreams.perform(claim, mind=mind)


def text_of_the_note(tenant: Any) -> str:
    with tenant_scope(str(tenant.pk)):
        return str(Proposal.objects.open().get().text)


def watermarks(tenant: Any) -> list[int]:
    with tenant_scope(str(tenant.pk)):
        return list(Watermark.objects.order_by("session__key").values_list("seq", flat=True))


@pytest.fixture
def ten(alice: Any) -> Any:
    """A session of ten prompts, e1 to e10."""
    tell(alice, "s1", *[prompt(f"e{n}") for n in range(1, 11)], stop())
    return alice


def test_it_proposes_notes_and_moves_the_watermarks(acme: Any, alice: Any) -> None:
    tell(alice, "s1", prompt("use tabs"), *ran("make test"), stop())
    tell(alice, "s2", prompt("use black"), stop())
    run = dreamt(acme, Scribe())
    assert (run.state, run.events_read, run.sessions_read, run.tokens_in) == ("succeeded", 6, 2, 10)
    assert watermarks(acme) == [4, 2]
    assert "- use tabs\n- use black\n" in text_of_the_note(acme)
    with tenant_scope(str(acme.pk)):
        assert Change.objects.get().run_id == run.pk
        assert Source.objects.count() == 2
        assert [(row.from_seq, row.to_seq, row.outcome) for row in Window.objects.order_by("session__key")] == [
            (1, 4, "read"),
            (1, 2, "read"),
        ]
        assert not Due.objects.exists()


def test_it_changes_nothing_without_new_events(acme: Any, ten: Any) -> None:
    dreamt(acme, DistillMind())
    with tenant_scope(str(acme.pk)):
        before = list(Proposal.objects.order_by("pk").values())
    again = dreamt(acme, DistillMind())
    assert (again.state, again.events_read) == ("no_change", 0)
    with tenant_scope(str(acme.pk)):
        assert list(Proposal.objects.order_by("pk").values()) == before


def test_it_merges_new_events_into_the_same_paths(acme: Any, alice: Any) -> None:
    tell(alice, "s1", prompt("use tabs"), stop())
    dreamt(acme, Scribe())
    tell(alice, "s1", prompt("use spaces"), stop())
    run = dreamt(acme, Scribe())
    assert (run.events_read, run.state) == (2, "succeeded")
    assert "- use tabs\n- use spaces\n" in text_of_the_note(acme)


def test_the_clock_reads_up_to_the_last_stop_and_a_person_everything(acme: Any, alice: Any) -> None:
    tell(alice, "s1", prompt("done"), stop(), prompt("half"))
    run = scheduled(acme, Scribe())
    assert run is not None and (run.events_read, run.asked_by) == (2, "schedule")
    assert watermarks(acme) == [2]
    assert dreamt(acme, Scribe()).events_read == 1
    assert watermarks(acme) == [3]


def test_silence_for_hours_ends_a_window(acme: Any, alice: Any) -> None:
    tell(alice, "s1", prompt("never stopped"))
    with tenant_scope(str(acme.pk)):
        Session.objects.update(last_received_at=timezone.now() - timedelta(hours=5))
    run = scheduled(acme, Scribe())
    assert run is not None and run.events_read == 1


def test_it_never_reads_its_own_sessions(acme: Any, alice: Any) -> None:
    tell(alice, "own", prompt("you keep the memory"), stop(), internal=True)
    assert dreamt(acme, Scribe()).state == "no_change"


def test_it_keeps_projects_apart(acme: Any, alice: Any) -> None:
    tell(alice, "s1", prompt("tabs"), stop(), root="/home/dev/shop")
    tell(alice, "s2", prompt("spaces"), stop(), root="/home/dev/bank")
    dreamt(acme, Scribe())
    with tenant_scope(str(acme.pk)):
        notes = {row.note.path: row.text for row in Proposal.objects.open().select_related("note")}
    assert [text.count("- ") for text in notes.values()] == [1, 1]


def test_it_keeps_teams_apart(acme: Any, globex: Any, alice: Any, charlie: Any) -> None:
    tell(alice, "s1", prompt("tabs"), stop())
    tell(charlie, "s1", prompt("spaces"), stop())
    assert dreamt(acme, Scribe()).events_read == 2
    with tenant_scope(str(globex.pk)):
        assert not Run.objects.exists() and not Watermark.objects.exists()


def test_it_reads_in_batches_and_proposes_once(acme: Any, ten: Any) -> None:
    mind = Scribe()
    mind.budget = 4
    run = dreamt(acme, mind)
    assert [len(batch) for batch in mind.batches] == [4, 4, 3]
    assert run.events_read == 11
    with tenant_scope(str(acme.pk)):
        assert Proposal.objects.count() == 1
        assert not Digest.objects.get().has_news


def test_what_an_earlier_run_had_only_counted_is_still_proposed(acme: Any, ten: Any) -> None:
    dreamt(acme, Scribe())
    with tenant_scope(str(acme.pk)):
        Proposal.objects.all().delete()
        Digest.objects.update(has_news=True)
    run = dreamt(acme, Scribe())
    assert (run.events_read, run.state) == (0, "succeeded")
    assert "- e10\n" in text_of_the_note(acme)


def test_a_second_dream_does_not_start(acme: Any, alice: Any, bound: Any) -> None:
    by = member_actor(alice)
    with bound(acme):
        first = dreams.start(acme, by=by)
    with bound(acme), pytest.raises(dreams.AlreadyRunning) as running:
        dreams.start(acme, by=by)
    assert running.value.run.public_id == first.public_id
    with bound(acme):
        assert Due.objects.get().argument == first.public_id
        assert AuditEntry.objects.filter(action="dream.start").count() == 1


def test_a_viewer_may_not_start_one(acme: Any, vera: Any, bound: Any) -> None:
    with bound(acme), pytest.raises(Refused):
        dreams.start(acme, by=member_actor(vera))


def test_a_start_that_is_rolled_back_leaves_nothing_due(acme: Any, alice: Any, bound: Any) -> None:
    with pytest.raises(RuntimeError), bound(acme):
        dreams.start(acme, by=member_actor(alice))
        raise RuntimeError
    with bound(acme):
        assert not Run.objects.exists() and not Due.objects.exists()


def test_the_task_does_it_once_however_often_it_is_sent(acme: Any, ten: Any, bound: Any) -> None:
    with bound(acme):
        run = dreams.start(acme, by=member_actor(ten))
        row = Due.objects.get()
    for _ in range(3):
        tasks.dream(tenant_id=str(acme.pk), due_id=str(row.pk))
    with bound(acme):
        run.refresh_from_db()
        assert run.events_read == 11 and run.finished_at is not None
        assert Run.objects.count() == 1


def test_it_is_not_taken_while_somebody_holds_it(acme: Any, ten: Any, bound: Any) -> None:
    claim = dreams.start_and_claim(acme, by=member_actor(ten))
    assert due.claim(claim.tenant_pk, claim.pk) is None
    with bound(acme):
        Due.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    taken = due.claim(claim.tenant_pk, claim.pk)
    assert taken is not None and taken.owner != claim.owner


def test_whoever_lost_the_lease_writes_nothing(acme: Any, ten: Any, bound: Any) -> None:
    claim = dreams.start_and_claim(acme, by=member_actor(ten))

    def taken_over(material: Material) -> None:
        with bound(acme):
            Due.objects.update(owner="another")

    run = dreams.perform(claim, mind=Scribe(failing=taken_over))
    assert run is not None and (run.state, run.events_read) == ("running", 0)
    assert watermarks(acme) == []
    with bound(acme):
        assert not Proposal.objects.exists()
        assert Due.objects.get().owner == "another"


def test_a_watermark_that_moved_meanwhile_undoes_the_batch(acme: Any, ten: Any, bound: Any) -> None:
    claim = dreams.start_and_claim(acme, by=member_actor(ten))

    def raced(material: Material) -> None:
        with bound(acme):
            Watermark.objects.get_or_create(tenant=acme, session=Session.objects.get(), defaults={"seq": 3})

    dreams.perform(claim, mind=Scribe(failing=raced))
    with bound(acme):
        assert not Proposal.objects.exists()
        assert Due.objects.get().owner == ""
    assert watermarks(acme) == [3]


def test_it_goes_on_where_a_dead_worker_left_it(acme: Any, ten: Any, bound: Any) -> None:
    class Died(BaseException):
        pass

    mind = Scribe()
    mind.budget = 4

    def dies(material: Material) -> None:
        if len(mind.batches) == 2:
            raise Died

    mind.failing = dies
    claim = dreams.start_and_claim(acme, by=member_actor(ten))
    with pytest.raises(Died):
        dreams.perform(claim, mind=mind)
    assert watermarks(acme) == [4]
    with bound(acme):
        Due.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    again = due.claim(claim.tenant_pk, claim.pk)
    assert again is not None
    run = dreams.perform(again, mind=Scribe())
    assert run is not None and (run.state, run.events_read) == ("succeeded", 11)
    assert text_of_the_note(acme).count("- e") == 10
    with bound(acme):
        assert Run.objects.count() == 1


def test_a_cancelled_run_stops_before_it_writes(acme: Any, ten: Any, bound: Any) -> None:
    claim = dreams.start_and_claim(acme, by=member_actor(ten))

    def cancelled(material: Material) -> None:
        with bound(acme):
            dreams.cancel(Run.objects.get(), by=member_actor(ten))

    run = dreams.perform(claim, mind=Scribe(failing=cancelled))
    assert run is not None and run.state == "cancelled"
    assert watermarks(acme) == []
    with bound(acme):
        assert not Due.objects.exists()
        with pytest.raises(dreams.AlreadyFinished):
            dreams.cancel(run, by=member_actor(ten))


@pytest.mark.parametrize("kind", ["rate_limited", "timeout", "cut_off", "refused", "unavailable", "malformed"])
def test_a_failure_keeps_the_watermark_and_says_when_it_tries_again(acme: Any, ten: Any, kind: str, bound: Any) -> None:
    def fails(material: Material) -> None:
        raise MindFailed(kind, "no", retry_after=300, usage=Usage(7, 0, 0))

    run = dreamt(acme, Scribe(failing=fails))
    assert (run.state, run.error, run.tokens_in) == ("failed", f"{kind}: no", 7)
    assert run.retry_at is not None and run.retry_at >= timezone.now() + timedelta(seconds=290)
    assert watermarks(acme) == [0]
    with bound(acme):
        waiting = Due.objects.get()
        assert (waiting.argument, waiting.due_at) == ("", run.retry_at)
        assert Window.objects.get().outcome == "failed"
        mark = Watermark.objects.get()
        assert mark.failures == (kind in ("cut_off", "refused", "malformed"))
        assert not Proposal.objects.exists()
    assert due.claim(str(acme.pk), str(waiting.pk)) is None, "not before its time"


def test_after_failures_everything_is_read_once(acme: Any, ten: Any) -> None:
    kinds = ["rate_limited", "timeout", "cut_off"]

    def fails(material: Material) -> None:
        if kinds:
            raise MindFailed(kinds.pop(0), "no")

    mind = Scribe(failing=fails)
    states = [dreamt(acme, mind).state for _ in range(4)]
    assert states == ["failed", "failed", "failed", "succeeded"]
    assert text_of_the_note(acme).count("- e") == 10


def test_one_bad_event_is_put_aside_and_the_others_are_dreamed(acme: Any, ten: Any, bound: Any) -> None:
    def poisoned(material: Material) -> None:
        if any(event.payload.get("prompt") == "e5" for event in material.events):
            raise MindFailed("malformed", "no JSON")

    mind = Scribe(failing=poisoned)
    runs = [dreamt(acme, mind) for _ in range(4)]
    assert [run.state for run in runs] == ["failed", "failed", "failed", "succeeded"]
    assert watermarks(acme) == [11]
    with bound(acme):
        aside = Quarantined.objects.get()
        event = Event.objects.get(session=aside.session_id, seq=aside.seq)
    assert (event.summary or event.body or "").find("e5") >= 0
    said = text_of_the_note(acme)
    assert [f"- e{n}\n" in said for n in range(1, 11)] == [n != 5 for n in range(1, 11)]
    assert len(mind.batches) <= 3 + 12, "the calls are bounded"


def test_a_bad_session_does_not_take_others_with_it(acme: Any, ten: Any, alice: Any) -> None:
    tell(alice, "s2", prompt("fine"), stop())

    def poisoned(material: Material) -> None:
        if any(event.payload.get("prompt") == "e5" for event in material.events):
            raise ValueError("a fault of the rules")

    mind = Scribe(failing=poisoned)
    assert dreamt(acme, mind).error.startswith("crashed: ValueError")
    assert dreamt(acme, mind).state == "failed"
    assert watermarks(acme) == [0, 2]


def test_a_mind_that_only_fails_is_not_asked_about_everything(
    acme: Any, alice: Any, bound: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(dreams, "MOST_IN_A_ROW", 4)
    for n in range(7):
        tell(alice, f"s{n}", prompt(f"e{n}"), stop())

    def fails(material: Material) -> None:
        raise MindFailed("malformed", "no JSON", usage=Usage(100, 0, 0))

    mind = Scribe(failing=fails)
    mind.budget = 2
    run = dreamt(acme, mind)
    assert len(mind.batches) == 4 and run.tokens_in == 400 and run.state == "failed"
    for _ in range(5):
        dreamt(acme, mind)
    assert len(mind.batches) == 6 * 4
    with bound(acme):
        waits = [one.retry_at - one.finished_at for one in Run.objects.order_by("created_at") if one.retry_at]
        assert waits[-1] > waits[0]
    assert dreamt(acme, Scribe()).state == "succeeded"
    assert watermarks(acme) == [2] * 7


def test_an_outage_never_puts_an_event_aside(acme: Any, ten: Any, bound: Any) -> None:
    def away(material: Material) -> None:
        raise MindFailed("unavailable", "503")

    mind = Scribe(failing=away)
    for _ in range(6):
        dreamt(acme, mind)
    assert len(mind.batches) == 6
    with bound(acme):
        assert not Quarantined.objects.exists()
        waits = [run.retry_at - run.finished_at for run in Run.objects.order_by("created_at") if run.retry_at]
    assert [round(wait / timedelta(minutes=1)) for wait in waits] == [1, 2, 4, 8, 16, 32]


def test_a_database_out_of_reach_is_not_laid_to_the_events(acme: Any, ten: Any, bound: Any) -> None:
    def away(material: Material) -> None:
        raise OperationalError("connection timed out")

    claim = dreams.start_and_claim(acme, by=command_actor(acme, "tests"))
    with pytest.raises(OperationalError):
        dreams.perform(claim, mind=Scribe(failing=away))
    with bound(acme):
        assert not Watermark.objects.filter(failures__gt=0).exists()
    due.release(claim)  # as when the lease has run out
    again = due.claim(str(acme.pk), claim.pk)
    assert again is not None
    run = dreams.perform(again, mind=Scribe())
    assert run is not None and run.state == "succeeded"


def test_a_note_that_cannot_be_one_is_left_out_and_told(acme: Any, ten: Any, bound: Any) -> None:
    class Sloppy(Scribe):
        def dream(self, material: Material) -> Outcome:
            outcome = super().dream(material)
            bad = Proposed("../etc/passwd.md", "x", ())
            return replace(outcome, proposed=(bad, *outcome.proposed))

    assert dreamt(acme, Sloppy()).state == "succeeded"
    with bound(acme):
        assert "../etc/passwd.md" in Window.objects.get().detail
        assert Proposal.objects.count() == 1


def test_a_profile_goes_to_the_space_of_its_member_alone(acme: Any, alice: Any, bound: Any) -> None:
    tell(alice, "s1", prompt("I prefer small commits, and I use tabs in Go."), stop())
    dreamt(acme, DistillMind())
    with bound(acme):
        profiles = Proposal.objects.filter(note__path__startswith="profile/").select_related("note__member")
        assert [(row.note.path, row.note.member.handle) for row in profiles if row.note.member] == [
            ("profile/preferences.md", "alice")
        ]


def test_workers_that_keep_dying_are_stopped(acme: Any, ten: Any, bound: Any) -> None:
    claim = dreams.start_and_claim(acme, by=member_actor(ten))
    assert dreams.perform(replace(claim, attempts=dreams.MOST_ATTEMPTS + 1), mind=Scribe()) is None
    with bound(acme):
        run = Run.objects.get()
        assert run.state == "failed" and "20 workers" in run.error


def test_a_stopped_session_is_due_at_once_and_an_idle_one_with_the_hours(acme: Any, alice: Any, bound: Any) -> None:
    tell(alice, "s1", prompt("still at work"))
    with bound(acme):
        Session.objects.update(last_received_at=timezone.now() - timedelta(hours=9))
        last = Run.objects.create(tenant=acme, asked_by="clock", state="no_change")
        Run.objects.filter(pk=last.pk).update(created_at=timezone.now() - timedelta(minutes=2))
    assert tasks.find_due() == 0, "it is idle, and the last dream was two minutes ago"
    tell(alice, "s2", prompt("done"), stop())
    assert tasks.find_due() == 1


def test_the_clock_finds_what_is_due(acme: Any, globex: Any, alice: Any, bound: Any) -> None:
    assert tasks.find_due() == 0
    tell(alice, "s1", prompt("not stopped"))
    assert tasks.find_due() == 0
    tell(alice, "s1", stop())
    assert tasks.find_due() == 1
    assert tasks.find_due() == 0, "once"
    with bound(acme):
        assert (Due.objects.get().task, Due.objects.get().argument) == ("dream", "")


def test_a_dream_that_ends_as_the_next_is_asked_for_is_no_fault(acme: Any, monkeypatch: Any) -> None:
    by = command_actor(acme, "tests")
    with tenant_scope(str(acme.pk)):
        first = dreams.start(acme, by=by)

        def ended() -> None:
            dreams.cancel(first, by=by)

        monkeypatch.setattr(dreams, "_running", ended)
        assert dreams.start(acme, by=by).state == "queued"


@pytest.mark.parametrize("was_aside", [False, True])
def test_what_is_purged_while_it_is_dreamed_proposes_nothing(acme: Any, ten: Any, alice: Any, was_aside: bool) -> None:
    with tenant_scope(str(acme.pk)):
        session = Session.objects.get()
        if was_aside:
            Watermark.objects.create(tenant=acme, session=session, seq=session.last_seq)
            Quarantined.objects.create(tenant=acme, session=session, seq=5, error="x", is_again=True)

    def purged(material: Material) -> None:
        if material.events:
            with tenant_scope(str(acme.pk)):
                purging.take_out(acme, session.public_id, mode="quarantine", by=member_actor(alice))

    mind = Scribe(failing=purged)
    dreamt(acme, mind)
    assert mind.batches and watermarks(acme) == [11]
    with tenant_scope(str(acme.pk)):
        assert not Proposal.objects.exists() and not Quarantined.objects.exists()
