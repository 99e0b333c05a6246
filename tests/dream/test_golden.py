"""A dream over real sessions: does it find what a new member of that team would want to know, and nothing untrue?"""

import json
import re
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dream import run as dreams
from dream.mind import DistillMind
from memory.events.models import Event
from memory.hooks.history import import_paths
from memory.notes.models import Proposal, Source
from memory.tenants.access import command_actor
from memory.tenants.rls import tenant_scope
from tests.dream.golden import truth

SESSIONS = Path(__file__).resolve().parent.parent / "data" / "sessions"
GOLDEN = Path(__file__).resolve().parent / "golden"
PROJECTS = ("attio-mcp-server", "templar")
RUNS = re.compile(r"^- `([^`]+)`: succeeded in (\d+) of (\d+) runs")
TOUCHED = re.compile(r"^- `([^`]+)`: (?:(\d+) edits?)?(?:, )?(?:(\d+) reads?)?")


def dreamt(tenant: Any) -> Any:
    claim = dreams.start_and_claim(tenant, by=command_actor(tenant, "tests"))
    return dreams.perform(claim, mind=DistillMind())


@pytest.fixture(scope="module")
def notes(django_db_setup: None, django_db_blocker: Any) -> Iterator[dict[str, str]]:
    """The texts that one dream proposed over all the sessions, by path, read-only for the tests of this file."""
    from tests.conftest import new_team
    from tests.database import migrator

    with django_db_blocker.unblock():
        tenant, people = new_team("golden", alice="owner")
        began = time.monotonic()
        folders = [SESSIONS / project for project in PROJECTS]
        import_paths(tenant, folders, member=people["alice"], step=lambda done, total: None)
        imported = time.monotonic()
        run = dreamt(tenant)
        seconds = time.monotonic() - imported
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        read = f"{run.events_read} events of {run.sessions_read} sessions"
        print(f"\nimported in {imported - began:.1f} s; dreamed {read} in {seconds:.1f} s; at most {most} MB")
        with tenant_scope(str(tenant.pk)):
            assert (run.state, run.events_read, run.sessions_read) == ("succeeded", Event.objects.count(), 62)
            texts = {row.note.path: row.text for row in Proposal.objects.filter(state="open").select_related("note")}
            cited = set(Source.objects.values_list("proposal__note__path", "line"))
            events = set(Event.objects.values_list("pk", flat=True))
            assert set(Source.objects.values_list("event_id", flat=True)) <= events
        again = dreamt(tenant)
        with tenant_scope(str(tenant.pk)):
            after = {row.note.path: row.text for row in Proposal.objects.filter(state="open").select_related("note")}
        yield {"texts": texts, "cited": cited, "again": again.state, "after": after}  # type: ignore[dict-item]
        with migrator() as cleaner:
            cleaner.execute("DELETE FROM tenants_tenant")
            cleaner.execute("DELETE FROM tenants_browser")
            cleaner.execute("DELETE FROM tenants_user")


def lines_of(notes: Any, project: str) -> list[str]:
    texts = [text for path, text in notes["texts"].items() if project in path or path.startswith("profile/")]
    return [line for text in texts for line in text.splitlines() if line.startswith("- ")]


def is_found(fact: dict[str, Any], lines: list[str]) -> bool:
    def matches(line: str) -> bool:
        return all(any(re.search(each, line, re.I) for each in group) for group in fact["accept"]["all_of"])

    return any(matches(line) for line in lines)


@pytest.mark.parametrize("project", PROJECTS)
def test_it_finds_most_of_the_golden_facts(notes: Any, project: str) -> None:
    facts = json.loads((GOLDEN / f"{project}.json").read_text())
    lines = lines_of(notes, project)
    missed = [f"{fact['id']} {fact['fact']}" for fact in facts if not is_found(fact, lines)]
    print(f"\n{project}: {len(facts) - len(missed)} of {len(facts)} facts; missed: {missed}")
    assert len(facts) == 10
    assert len(missed) <= 2, missed


def test_it_cites_an_event_for_every_item(notes: Any) -> None:
    for path, text in notes["texts"].items():
        for line in text.splitlines():
            if line.startswith("- "):
                assert (path, line) in notes["cited"], (path, line)


def test_it_keeps_citation_marks_out_of_the_text(notes: Any) -> None:
    assert not [path for path, text in notes["texts"].items() if "[evt_" in text]


def test_it_says_on_each_note_that_no_model_made_it(notes: Any) -> None:
    assert notes["texts"]
    assert all("without a model" in text for text in notes["texts"].values())


@pytest.mark.parametrize("project", PROJECTS)
def test_it_claims_no_more_runs_and_touches_than_the_logs_hold(notes: Any, project: str) -> None:
    known = truth.tally(SESSIONS / project)
    checked = 0
    for line in lines_of(notes, project):
        if found := RUNS.match(line):
            command, ok, runs = found[1], int(found[2]), int(found[3])
            rows = [row for text, row in known["commands"].items() if command in text]
            assert ok <= sum(row["ok"] for row in rows), line
            assert runs <= sum(row["runs"] for row in rows), line
            checked += 1
        elif (found := TOUCHED.match(line)) and (found[2] or found[3]):
            rows = [row for path, row in known["files"].items() if path.endswith(found[1])]
            assert int(found[2] or 0) <= sum(row["edits"] for row in rows), line
            assert int(found[3] or 0) <= sum(row["reads"] for row in rows), line
            checked += 1
    assert checked > 5


def test_it_changes_nothing_when_it_runs_again(notes: Any) -> None:
    assert notes["again"] == "no_change"
    assert notes["after"] == notes["texts"]
