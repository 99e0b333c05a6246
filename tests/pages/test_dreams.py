"""Dream runs: the list, one run with what it read and proposed, and starting one."""

from typing import Any

import pytest
from django.test import Client

from dream.models import Run
from memory.tenants import rls
from memory.tenants.models import Due
from tests.pages import made

URL = "/t/acme/dreams/"
START = "/t/acme/dreams/start/"
HTMX = {"HX-Request": "true"}


def url(of: Any, team: str = "acme") -> str:
    return f"/t/{team}/dreams/{of.public_id}/"


def test_it_lists_runs_the_latest_first(logged_in: Any, acme: Any, vera: Any) -> None:
    old = made.run(acme, state="failed", error="No answer")
    new = made.run(acme, proposals=(made.proposal(acme),), events_read=1234)
    answer = logged_in(vera).get(URL)
    assert [run.public_id for run in answer.context["runs"]] == [new.public_id, old.public_id]
    assert "1,234" in answer.content.decode() and "No answer" in answer.content.decode()


def test_it_is_read_on_by_cursor(logged_in: Any, acme: Any, vera: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("dream.shown.PAGE", 2)
    runs = [made.run(acme) for _ in range(5)]
    browser, address, seen = logged_in(vera), URL, []
    while address:
        context = browser.get(address).context
        seen += [run.public_id for run in context["runs"]]
        address = context["next_url"]
    assert seen == [run.public_id for run in reversed(runs)]


def test_a_run_shows_what_it_read_and_proposes(logged_in: Any, acme: Any, vera: Any) -> None:
    session = made.session(acme, last_prompt="Mend the totals")
    run = made.run(acme, proposals=(made.proposal(acme),), sessions=(session,), model="some-model", tokens_in=5200)
    page = logged_in(vera).get(url(run)).content.decode()
    for said in ("Retries", "Mend the totals", "some-model", "5.2k", "Succeeded"):
        assert said in page


def test_a_running_dream_follows_itself(logged_in: Any, acme: Any, vera: Any) -> None:
    made.event(made.session(acme), 3)
    run = made.run(acme, state="running", finished_at=None, events_read=1)
    page = logged_in(vera).get(url(run)).content.decode()
    assert 'hx-trigger="every 2s"' in page and 'value="25"' in page
    piece = logged_in(vera).get(url(run), headers=HTMX).content
    assert piece.strip().startswith(b'<article id="run"')


def test_starting_puts_it_down_for_a_worker(logged_in: Any, acme: Any, mia: Any) -> None:
    made.event(made.session(acme))
    assert logged_in(mia).post(START)["Location"] == URL
    with rls.tenant_scope(str(acme.pk)):
        run = Run.objects.get()
        assert (run.state, run.asked_by) == ("queued", "mia")
        assert Due.objects.filter(argument=run.public_id).exists()


def test_one_dream_at_a_time(logged_in: Any, acme: Any, mia: Any) -> None:
    browser = logged_in(mia)
    assert browser.post(START, headers=HTMX).content.strip().startswith(b'<div id="runs"')
    answer = browser.post(START, headers=HTMX)
    assert answer.status_code == 409 and "waits or runs already" in answer.content.decode()
    with rls.tenant_scope(str(acme.pk)):
        assert Run.objects.count() == 1


def test_an_empty_list_says_what_to_do(logged_in: Any, acme: Any, alice: Any) -> None:
    assert "Connect an agent" in logged_in(alice).get(URL).content.decode()
    made.event(made.session(acme))
    assert "1 event waits" in logged_in(alice).get(URL).content.decode()


def test_it_needs_login(acme: Any) -> None:
    run = made.run(acme)
    for address in (URL, url(run)):
        assert Client().get(address).status_code == 302
    assert Client().post(START).status_code == 302


def test_starting_needs_the_role(logged_in: Any, acme: Any, vera: Any) -> None:
    assert "Dream now" not in logged_in(vera).get(URL).content.decode()
    assert logged_in(vera).post(START).status_code == 403
    with rls.tenant_scope(str(acme.pk)):
        assert not Run.objects.exists()


def test_it_hides_the_runs_from_other_tenants(logged_in: Any, acme: Any, charlie: Any) -> None:
    run = made.run(acme)
    browser = logged_in(charlie)
    assert browser.get(URL).status_code == 404 and browser.post(START).status_code == 404
    for team in ("acme", "globex"):
        assert browser.get(url(run, team)).status_code == 404


def test_an_unknown_run_is_not_found(logged_in: Any, vera: Any, acme: Any) -> None:
    assert logged_in(vera).get("/t/acme/dreams/drm_none/").status_code == 404


@pytest.mark.parametrize("method", ["put", "delete"])
def test_they_take_no_other_method(logged_in: Any, acme: Any, alice: Any, method: str) -> None:
    run = made.run(acme)
    for address in (URL, url(run), START):
        assert getattr(logged_in(alice), method)(address).status_code == 405
    assert logged_in(alice).get(START).status_code == 405
