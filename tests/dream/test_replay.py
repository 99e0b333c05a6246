"""Dry runs: the same events by another mind or prompt, and how that differs."""

import json
from typing import Any

from dream import replay
from dream import run as dreams
from dream.mind import DistillMind
from dream.models import Budget, Quarantined, Run, Watermark
from memory.events.models import Project
from memory.notes.models import Proposal
from memory.tenants import choices
from memory.tenants.access import command_actor, member_actor
from memory.tenants.rls import tenant_scope
from tests import limited
from tests.conftest import Agent
from tests.dream.test_model import dreamt, mind, saying
from tests.dream.told import events_of, prompt, stop, tell
from tests.llm_server import Reply, provider
from tests.pages import made

PATH = "project/shop/rules.md"


def test_it_shows_the_difference_and_changes_nothing(acme: Any, alice: Any, bound: Any, logged_in: Any) -> None:
    tell(alice, "s1", prompt("Always lint first"), prompt("and test"), stop())
    with bound(acme):
        [first, second, _] = events_of("s1")
    with provider([saying(PATH, f"- Lint first [{first}]")]) as served:
        run = dreamt(acme, mind(served))
    tell(alice, "s1", prompt("what came later"), stop())
    with bound(acme):
        before = list(Proposal.objects.order_by("pk").values())
    answers = {"operations": [
        {"op": "create", "path": PATH, "body": f"- Lint before you commit [{first}]"},
        {"op": "create", "path": "general/tests.md", "body": f"- Test, too [{second}]"},
    ]}  # fmt: skip
    with provider([json.dumps(answers)]) as served:
        other = mind(served, "openai-compatible:other")
        other.instructions, other.version = "Be brief.", "own-1"
        dry = dreams.Dry(run, "distill", "Be brief.")
        claim = dreams.start_and_claim(acme, by=command_actor(acme, "tests"), dry=dry)
        done = dreams.perform(claim, mind=other)
        assert "Be brief." in served.prompts[0] and "what came later" not in served.prompts[0]
        assert "Lint first" not in served.prompts[0], "the notes as they stood then"
    assert done is not None and (done.state, done.model, done.events_read) == (
        "succeeded",
        "openai-compatible:other",
        3,
    )
    with bound(acme):
        assert list(Proposal.objects.order_by("pk").values()) == before
        assert Watermark.objects.get().seq == 3 and done.tokens_in == 1000
        rows = {row.path: row.outcome for row in replay.differences(Run.objects.get(pk=done.pk))}
    assert rows == {f"team/{PATH}": "different", "team/general/tests.md": "only here"}
    page = logged_in(alice).get(f"/t/acme/dreams/{done.public_id}/").content.decode()
    assert "Dry run" in page and "only here" in page and "before you commit" in page
    assert done.public_id in logged_in(alice).get(f"/t/acme/dreams/{run.public_id}/").content.decode()


def test_of_a_limited_project_nothing_is_written_elsewhere(acme: Any, alice: Any, mia: Any, bound: Any) -> None:
    """Neither by a dream nor by a replay, whatever the model answers; a member's own stays theirs."""
    tell(mia, "s1", prompt("Always deploy to zanzibar"), stop())
    with bound(acme):
        [first, _] = events_of("s1")
        limited.limit(Project.objects.get(), mia)
    paths = ("general/deploy.md", "project/other/deploy.md", "profile/mia/deploy.md", PATH)
    said = json.dumps({"operations": [
        {"op": "create", "path": path, "body": f"- Deploy to zanzibar ({number}) [{first}]"}
        for number, path in enumerate(paths)
    ]})  # fmt: skip
    with provider([said, said]) as served:
        run = dreamt(acme, mind(served))
        assert "write only below project/shop/" in served.prompts[0]
        dry = dreams.Dry(run, "distill", "Be brief.")
        claim = dreams.start_and_claim(acme, by=command_actor(acme, "tests"), dry=dry)
        done = dreams.perform(claim, mind=mind(served, "openai-compatible:other"))
    with bound(acme):
        for one in (run, done):
            assert one is not None
            changed = set(one.changes.values_list("path", flat=True))
            assert changed == {f"team/{PATH}", "members/mia/profile/deploy.md"}
            assert "general/deploy.md: not everybody sees this project" in one.windows.get().detail
        assert Proposal.objects.count() == 2


def test_it_fails_for_good(acme: Any, alice: Any, bound: Any) -> None:
    tell(alice, "s1", prompt("x"), stop())
    with provider(['{"operations": []}', Reply("down", status=503)]) as served:
        run = dreamt(acme, mind(served))
        claim = dreams.start_and_claim(acme, by=command_actor(acme, "tests"), dry=dreams.Dry(run))
        done = dreams.perform(claim, mind=mind(served))
    assert done is not None and done.state == "failed" and done.retry_at is None


def test_it_is_asked_for_over_rest_and_a_page(acme: Any, agent: Agent, api: Any, alice: Any, logged_in: Any) -> None:
    run = made.run(acme)
    url = f"dreams/{run.public_id}/replay"
    assert api(agent).post(url, {"model": "gpt"}).json()["code"] == "unknown_model"
    answer = api(agent).post(url, {"model": "distill"})
    assert answer.status_code == 202
    shown = api(agent).get(f"dreams/{answer.json()['id']}").json()
    assert (shown["replays"], shown["status"], shown["operations"]) == (run.public_id, "queued", [])
    assert api(agent).post(url, {}).json()["code"] == "already_running"
    page = logged_in(alice).post(f"/t/acme/{url}/", {"model": "distill"})
    assert page.status_code == 409 and "waits or runs already" in page.content.decode()
    api(agent).post(f"dreams/{answer.json()['id']}/cancel")
    assert logged_in(alice).post(f"/t/acme/{url}/", {"model": "nonsense"}).status_code == 409
    assert logged_in(alice).post(f"/t/acme/{url}/", {"model": "distill"}).status_code == 302


def test_a_team_sets_its_budget(acme: Any, alice: Any, bob: Any, logged_in: Any, bound: Any) -> None:
    url = "/t/acme/dreams/budget/"
    assert logged_in(bob).post(url, {"tokens": "5"}).status_code == 403
    for wrong in ({"tokens": "many"}, {"tokens": "-1"}, {"dollars": "1.234"}, {"dollars": "x"}):
        assert logged_in(alice).post(url, wrong).status_code == 400
    assert logged_in(alice).post(url, {"tokens": "1,000", "dollars": "$2.50"}).status_code == 302
    with bound(acme):
        row = Budget.objects.get()
        assert (row.tokens, str(row.dollars)) == (1000, "2.50")
        from dream.budget import TeamMeter
    from memory.llm import Usage

    TeamMeter(str(acme.pk)).after(Usage(900, 90, 0))
    assert "rest until" in logged_in(alice).get("/t/acme/").content.decode()


def test_an_event_that_stands_aside_is_in_the_inbox_and_is_tried_again(
    acme: Any, mia: Any, vera: Any, logged_in: Any
) -> None:
    event = made.event(made.session(acme), 3, summary="The odd one")
    with tenant_scope(str(acme.pk)):
        Quarantined.objects.create(tenant=acme, session=event.session, seq=3, error="malformed: no JSON")
    page = logged_in(vera).get("/t/acme/").content.decode()
    assert "The odd one" in page and "malformed: no JSON" in page and ">Try again<" not in page
    url = f"/t/acme/events/{event.public_id}/again/"
    assert logged_in(vera).post(url).status_code == 403
    assert logged_in(mia).post(url).status_code == 302
    with tenant_scope(str(acme.pk)):
        assert Quarantined.objects.get().is_again
    assert "The next dream tries it" in logged_in(vera).get("/t/acme/").content.decode()


def test_a_dry_run_asks_where_the_teams_own_model_answers(acme: Any, alice: Any, settings: Any) -> None:
    settings.DREAM_MODEL = settings.DREAM_MODEL_URL = ""
    settings.MODEL_URLS = ["http://127.0.0.1:9"]
    tell(alice, "s1", prompt("Always lint first"), stop())
    run = dreamt(acme, DistillMind())
    with tenant_scope(str(acme.pk)):
        choices.choose(acme, "model", "openai-compatible:small", by=member_actor(alice))
        choices.choose(acme, "model_url", settings.MODEL_URLS[0], by=member_actor(alice))
        dry = dreams.start(acme, by=member_actor(alice), dry=dreams.Dry(run, "openai-compatible:other"))
        assert (dry.asked_model, dry.state) == ("openai-compatible:other", "queued")
