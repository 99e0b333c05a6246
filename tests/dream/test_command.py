"""`manage.py dream`."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from dream import run as dreams
from dream.models import Run
from memory.tenants.access import member_actor
from memory.tenants.models import AuditEntry, Due
from tests.dream.told import prompt, ran, stop, tell


def dream(team: str) -> str:
    said = StringIO()
    call_command("dream", tenant=team, stdout=said)
    return said.getvalue()


def test_it_says_what_it_read_what_it_proposes_and_by_which_mind(acme: Any, alice: Any, bound: Any) -> None:
    tell(alice, "s1", prompt("Always run make lint before you commit anything here."), *ran("make lint"), stop())
    said = dream("acme")
    assert "Read 4 events of 1 session by distill (rules, no model)" in said
    assert "write  team/project/shop/rules.md" in said
    assert "no_change. Read 0 events" in dream("acme")
    with bound(acme):
        assert AuditEntry.objects.filter(action="dream.start", actor_kind="command").count() == 2
        # The news of the proposal are for the workers; the dream itself is done.
        assert not Due.objects.filter(task__startswith="dream").exists()


def test_an_unknown_team_is_one_clear_line(acme: Any) -> None:
    with pytest.raises(CommandError, match="no team 'nobody'"):
        dream("nobody")


def test_it_does_not_start_beside_another(acme: Any, alice: Any, bound: Any) -> None:
    with bound(acme):
        first = dreams.start(acme, by=member_actor(alice))
    with pytest.raises(CommandError, match=first.public_id):
        dream("acme")


def test_a_model_that_is_none_fails_the_run_for_all_to_see(acme: Any, alice: Any, bound: Any, settings: Any) -> None:
    settings.DREAM_MODEL = "gpt-5"
    tell(alice, "s1", prompt("hello there"), stop())
    with pytest.raises(CommandError, match="'gpt-5' is no model"):
        dream("acme")
    with bound(acme):
        run = Run.objects.get()
        assert run.state == "failed" and run.retry_at is not None
        assert Due.objects.get().due_at == run.retry_at


def test_a_dry_run_shows_how_it_differs(acme: Any, alice: Any, bound: Any, tmp_path: Any) -> None:
    tell(alice, "s1", prompt("Always run make lint before you commit anything here."), *ran("make lint"), stop())
    dream("acme")
    with bound(acme):
        first = Run.objects.get().public_id
    said = StringIO()
    call_command("dream", tenant="acme", replay=first, model="distill", stdout=said)
    assert "same       team/project/shop/rules.md" in said.getvalue() and "Read 4 events" in said.getvalue()
    for wrong in ({"replay": "drm_none"}, {"model": "distill"}, {"replay": first, "model": "gpt"}):
        with pytest.raises(CommandError):
            call_command("dream", tenant="acme", stdout=said, **wrong)
    with pytest.raises(CommandError, match="can't be read"):
        call_command("dream", tenant="acme", replay=first, prompt=tmp_path / "none.txt", stdout=said)
