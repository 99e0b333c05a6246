"""One thread: its timeline, owners and links, and what people may change."""

import json
from typing import Any

import pytest
from django.test import Client

from memory.graph import tombstones
from memory.graph.models import Link, Owner
from memory.tenants import rls
from memory.tenants.access import member_actor
from memory.tenants.models import AuditEntry
from tests.pages import chains
from tests.pages.test_markup import Danger

HTMX = {"HX-Request": "true"}


@pytest.fixture
def chain(acme: Any) -> dict[str, Any]:
    return chains.answered(acme)


def url(thread: Any, more: str = "", team: str = "acme") -> str:
    return f"/t/{team}/threads/{thread.public_id}/{more}"


def live_links(thread: Any) -> list[Any]:
    with rls.tenant_scope(str(thread.tenant_id)):
        return list(Link.objects.filter(from_thread=thread, removed_at__isnull=True).order_by("made_at"))


def test_it_shows_what_happened_in_order(logged_in: Any, vera: Any, chain: dict[str, Any]) -> None:
    page = logged_in(vera).get(url(chain["thread"])).content.decode()
    assert page.index("opened: Retry thrice</a>") < page.index(">Worker started<") < page.index(">Report<")
    assert f"/t/acme/workers/{chain['worker'].public_id}/#report" in page
    for cited in ("opened", "run"):
        assert f"/t/acme/triggers/{chain[cited].public_id}/" in page
    assert "Rests on" in page and "jira:PAY-7" in page and "by a rule" in page


def test_viewers_are_shown_no_forms(logged_in: Any, vera: Any, chain: dict[str, Any]) -> None:
    page = logged_in(vera).get(url(chain["thread"])).content.decode()
    assert "Add an owner" not in page and "Add a link" not in page and "/edit/" not in page


def test_a_long_thread_is_read_on_by_cursor(logged_in: Any, acme: Any, vera: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("memory.graph.views.STEPS", 2)
    thread = chains.thread(acme, "jira:PAY-7", title="Long")
    chains.happened(thread, 4)
    browser = logged_in(vera)
    for order, expected in (("", [1, 2, 3, 4, 5]), ("?order=newest", [5, 4, 3, 2, 1])):
        answer = browser.get(url(thread) + order)
        seen = [moment.step.seq for moment in answer.context["moments"]]
        while answer.context["next_url"]:
            answer = browser.get(answer.context["next_url"], headers={**HTMX, "HX-Target": "more"})
            assert answer.content.strip().startswith(b"<li")
            seen += [moment.step.seq for moment in answer.context["moments"]]
        assert seen == expected


def test_a_place_in_the_middle_has_an_address(logged_in: Any, acme: Any, vera: Any) -> None:
    thread = chains.thread(acme, "jira:PAY-7", title="Long")
    chains.happened(thread, 4)
    answer = logged_in(vera).get(url(thread, "?from=4"))
    assert [moment.step.seq for moment in answer.context["moments"]] == [4, 5]
    assert "Show from the beginning" in answer.content.decode()
    for odd in ("x", "-1", "9" * 40, "²"):
        assert logged_in(vera).get(url(thread, f"?from={odd}")).status_code == 200


def test_a_cursor_of_another_thread_is_refused(logged_in: Any, acme: Any, vera: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("memory.graph.views.STEPS", 1)
    one, two = (chains.thread(acme, f"jira:PAY-{number}", title="Long") for number in (1, 2))
    for thread in (one, two):
        chains.happened(thread, 2)
    browser = logged_in(vera)
    cursor = browser.get(url(two)).context["next_url"].split("?")[1]
    assert browser.get(f"{url(one)}?{cursor}").status_code == 400


def test_people_edit_title_state_and_summary(logged_in: Any, mia: Any, chain: dict[str, Any]) -> None:
    thread, browser = chain["thread"], logged_in(mia)
    said = {"title": "Retry  three times", "state": "merged", "summary": "Went live on Monday"}
    assert browser.post(url(thread, "edit/"), said).status_code == 302
    with rls.tenant_scope(str(thread.tenant_id)):
        thread.refresh_from_db()
    assert (thread.title, thread.state, thread.summary) == ("Retry three times", "merged", "Went live on Monday")
    page = browser.get(url(thread)).content.decode()
    assert "open → merged" in page and "Went live on Monday" in page


@pytest.mark.parametrize("state", ["", "Two words", "GROSS", "x" * 21])
def test_a_wrong_state_is_refused_in_the_form(logged_in: Any, mia: Any, chain: dict[str, Any], state: str) -> None:
    answer = logged_in(mia).post(url(chain["thread"], "edit/"), {"title": "Kept", "state": state})
    assert answer.status_code == 422 and "errorlist" in answer.content.decode() and "Kept" in answer.content.decode()


def test_people_add_and_remove_owners(logged_in: Any, acme: Any, mia: Any, chain: dict[str, Any]) -> None:
    thread, browser = chain["thread"], logged_in(mia)
    other = chains.worker(acme, thread, task="Watch the deploy")
    piece = browser.post(url(thread, "own/"), {"worker_id": other.public_id}, headers=HTMX)
    assert piece.content.strip().startswith(b'<section class="panel" id="owners"')
    assert b"Watch the deploy" in piece.content
    browser.post(url(thread, "own/"), {"worker_id": other.public_id, "pass_through": "yes"})
    with rls.tenant_scope(str(acme.pk)):
        assert Owner.objects.get(thread=thread, worker=other).pass_through
    assert browser.post(url(thread, "disown/"), {"worker_id": other.public_id}).status_code == 302
    with rls.tenant_scope(str(acme.pk)):
        assert not Owner.objects.filter(thread=thread, worker=other).exists()


def test_an_unknown_worker_is_told_in_the_panel(logged_in: Any, mia: Any, chain: dict[str, Any]) -> None:
    for headers in ({}, HTMX):
        answer = logged_in(mia).post(url(chain["thread"], "own/"), {"worker_id": "wkr_none"}, headers=headers)
        assert answer.status_code == 422 and "no worker with this id" in answer.content.decode()


def test_people_link_by_id_page_key_and_address(logged_in: Any, acme: Any, mia: Any, chain: dict[str, Any]) -> None:
    browser, thread = logged_in(mia), chains.thread(acme, "slack:C1", title="Who changed this?")
    pull = chain["thread"]
    for said in (pull.public_id, f"https://memory.test{url(pull)}", "github:acme/payments#412"):
        assert browser.post(url(thread, "link/"), {"to": said, "kind": "cause"}).status_code == 302
    browser.post(url(thread, "link/"), {"to": "https://github.com/acme/web/pull/9"})
    found = {(link.to_thread_id, link.to_key, link.kind) for link in live_links(thread)}
    assert (None, "github:acme/web#9", "related") in found and len(found) == 2
    page = browser.get(url(thread)).content.decode()
    assert "by Mia" in page and "Not here yet" in page


@pytest.mark.parametrize("to", ["", "thr_none", "https://example.com/", "x" * 400])
def test_a_link_to_nowhere_is_told_in_the_panel(logged_in: Any, mia: Any, chain: dict[str, Any], to: str) -> None:
    answer = logged_in(mia).post(url(chain["thread"], "link/"), {"to": to}, headers=HTMX)
    assert answer.status_code == 422 and 'role="alert"' in answer.content.decode()


def test_a_thread_does_not_link_to_itself(logged_in: Any, mia: Any, chain: dict[str, Any]) -> None:
    answer = logged_in(mia).post(url(chain["thread"], "link/"), {"to": chain["thread"].public_id})
    assert answer.status_code == 422 and "does not link to itself" in answer.content.decode()


def test_people_remove_links_whichever_way_they_lead(logged_in: Any, mia: Any, chain: dict[str, Any]) -> None:
    thread, ticket, browser = chain["thread"], chain["ticket"], logged_in(mia)
    said = {"to": thread.public_id, "kind": "mentions", "direction": "from"}
    assert browser.post(url(ticket, "unlink/"), said).status_code == 302
    assert live_links(thread) == []
    browser.post(url(thread, "link/"), {"to": "github:acme/web#9"})
    browser.post(url(thread, "unlink/"), {"to": "github:acme/web#9", "kind": "related", "direction": "to"})
    assert live_links(thread) == []


def test_the_audit_says_who(logged_in: Any, acme: Any, mia: Any, chain: dict[str, Any]) -> None:
    thread, worker, browser = chain["thread"], chain["worker"].public_id, logged_in(mia)
    browser.post(url(thread, "edit/"), {"title": "x", "state": "closed"})
    browser.post(url(thread, "disown/"), {"worker_id": worker})
    browser.post(url(thread, "own/"), {"worker_id": worker})
    browser.post(url(thread, "link/"), {"to": "github:acme/web#9"})
    browser.post(url(thread, "unlink/"), {"to": "github:acme/web#9", "kind": "related"})
    with rls.tenant_scope(str(acme.pk)):
        rows = list(AuditEntry.objects.filter(target=thread.public_id, tenant=acme).order_by("seq"))
    assert {row.actor_label for row in rows} == {"mia"}
    verbs = [row.action.removeprefix("thread.") for row in rows]
    assert verbs == ["edit", "disown", "own", "link", "unlink"]


POSTS = ("edit/", "own/", "disown/", "link/", "unlink/")


@pytest.mark.parametrize("verb", POSTS)
def test_a_viewer_may_not_change_it(logged_in: Any, vera: Any, chain: dict[str, Any], verb: str) -> None:
    said = {"worker_id": chain["worker"].public_id, "to": "github:acme/web#9", "state": "closed"}
    assert logged_in(vera).post(url(chain["thread"], verb), said).status_code == 403


@pytest.mark.parametrize("verb", ["", *POSTS, "map/"])
def test_it_needs_login(chain: dict[str, Any], verb: str) -> None:
    assert Client().post(url(chain["thread"], verb)).status_code == 302


@pytest.mark.parametrize("verb", ["", *POSTS, "map/"])
def test_it_hides_the_thread_from_other_tenants(logged_in: Any, charlie: Any, chain: dict[str, Any], verb: str) -> None:
    ask = "post" if verb in POSTS else "get"
    for team in ("acme", "globex"):
        assert getattr(logged_in(charlie), ask)(url(chain["thread"], verb, team)).status_code == 404


def test_an_unknown_thread_is_not_found_and_a_deleted_one_gone(logged_in: Any, alice: Any, acme: Any) -> None:
    thread = chains.thread(acme, "jira:PAY-7")
    with rls.tenant_scope(str(acme.pk)):
        tombstones.delete_thread(thread, by=member_actor(alice))
    assert logged_in(alice).get("/t/acme/threads/thr_none/").status_code == 404
    assert logged_in(alice).get(url(thread)).status_code == 410


@pytest.mark.parametrize("verb", ["own/", "disown/", "link/", "unlink/"])
def test_changes_are_only_posted(logged_in: Any, alice: Any, chain: dict[str, Any], verb: str) -> None:
    assert logged_in(alice).get(url(chain["thread"], verb)).status_code == 405
    assert logged_in(alice).post(url(chain["thread"])).status_code == 405


SIGN = "<img src=x onerror=alert(1)>"


def test_nothing_that_came_in_is_markup(logged_in: Any, acme: Any, alice: Any) -> None:
    evil = chains.trigger(acme, f"ci:{SIGN}", f"{SIGN}\nerror: {SIGN}\n".encode(), summary=SIGN, thread_title=SIGN)
    chains.part(evil, "full_log", f"{SIGN}\n".encode() * 2000)
    report = f"# {SIGN}\n\n{SIGN} [x](javascript:alert(1)) ![a](https://evil.example/p.png) {evil.public_id}"
    worker = chains.worker(acme, evil.thread, task=SIGN, report=report)
    chains.owner(evil.thread, worker)
    other = chains.thread(acme, f"x:{SIGN}", title=SIGN, summary=SIGN)
    chains.link(evil.thread, other, kind=SIGN[:40], made_by="rule:x")
    browser = logged_in(alice)
    for page in (
        "threads/", f"threads/?q={SIGN}", "threads/unlinked/", f"threads/{evil.thread.public_id}/",
        f"threads/{evil.thread.public_id}/edit/", f"threads/{evil.thread.public_id}/map/?to={SIGN}",
        f"triggers/{evil.public_id}/", f"triggers/{evil.public_id}/payload/?q=%3Cimg&errors=1",
        f"triggers/{evil.public_id}/payload/?part=full_log&q=x&line=900", f"workers/{worker.public_id}/",
    ):  # fmt: skip
        answer = browser.get(f"/t/acme/{page}")
        assert answer.status_code == 200, page
        assert Danger(answer.content.decode()).found == [], page


def test_it_leads_to_the_pull_request_at_its_source(logged_in: Any, acme: Any, vera: Any, agent: Any, api: Any) -> None:
    home = "https://git.acme.test/acme/payments"
    body = {
        "repository": {"full_name": "acme/payments", "html_url": home},
        "pull_request": {"number": 412, "html_url": f"{home}/pull/412"},
        "comment": {"html_url": f"{home}/pull/412#issuecomment-1"},
    }
    sent = chains.trigger(acme, payload=json.dumps(body).encode(), media_type=chains.JSON)
    browser = logged_in(vera)
    page = browser.get(url(sent.thread)).content.decode()
    assert f'href="{home}/pull/412" rel="noopener noreferrer"' in page and "Open on GitHub" in page
    page = browser.get(f"/t/acme/triggers/{sent.public_id}/").content.decode()
    assert f'href="{home}/pull/412#issuecomment-1" rel="noopener noreferrer"' in page
    # An agent's word for where a server is leads nobody there.
    told = {"source": "github", "thread": {"key": "github:acme/other#1"}, "payload": {**body, "repository": {}}}
    trigger = api(agent).post("triggers", told).json()
    page = browser.get(f"/t/acme/triggers/{trigger['trigger_id']}/").content.decode()
    assert "Open on GitHub" not in page
    page = browser.get(f"/t/acme/threads/{trigger['thread_id']}/").content.decode()
    assert 'href="https://github.com/acme/other/issues/1"' in page
    assert "Open on" not in browser.get(url(chains.thread(acme, "jira:PAY-7"))).content.decode()
