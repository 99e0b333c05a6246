"""Saved filters: a list's own question under a name, a person's or the team's."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memory.tenants import filters
from memory.tenants.models import SavedFilter
from tests.pages import made

THREADS = "/t/acme/threads/"
SAVE = "/t/acme/filters/"


def saved(browser: Client, query: str = "q=retry&state=any", name: str = "Retries", **more: str) -> Any:
    form = {"page": "threads", "query": query, "name": name, **more}
    return browser.post(SAVE, form)


def act(browser: Client, one: SavedFilter, verb: str, **form: str) -> Any:
    return browser.post(f"{SAVE}{one.public_id}/{verb}/", form, follow=True)


def rows(bound: Any, acme: Any) -> list[SavedFilter]:
    with bound(acme):
        return list(acme.filters.order_by("name"))


def test_it_is_saved_shown_and_opened_by_one_click(logged_in: Any, acme: Any, alice: Any, bound: Any) -> None:
    browser = logged_in(alice)
    assert "Save this filter" in browser.get(THREADS, {"q": "retry"}).content.decode()
    answer = saved(browser, "state=any&cursor=x&q=%20retry%20&page=2")
    assert answer.status_code == 302 and answer["Location"] == f"{THREADS}?q=retry&state=any"
    page = browser.get(THREADS).content.decode()
    assert 'href="?q=retry&amp;state=any"' in page and ">Retries<" in page and "Save this filter" not in page
    opened = browser.get(THREADS, {"q": "retry", "state": "any"}).content.decode()
    assert 'aria-current="true"><bdi>Retries' in opened and "Save this filter" not in opened
    piece = browser.get(THREADS, {"q": "other"}, headers={"HX-Request": "true"}).content.decode()
    assert "Save this filter" in piece and 'value="q=other"' in piece
    [row] = rows(bound, acme)
    assert (row.page, row.query, row.is_shared) == ("threads", "q=retry&state=any", False)


@pytest.mark.parametrize(
    ("page", "query", "leads"),
    [
        ("sessions", "client=codex&state=failed&next=//evil", "/t/acme/sessions/?client=codex&state=failed"),
        ("notes", "q=a%26b", "/t/acme/notes/?q=a%26b"),
        ("audit", "outcome=refused&who=bob", "/t/acme/audit/?who=bob&outcome=refused"),
        ("inbox", "risk=high", "/t/acme/?risk=high"),
        ("cache_entries", "tool=grep", "/t/acme/caches/entries/?tool=grep"),
        ("projects", "q=shop", "/t/acme/projects/?q=shop"),
    ],
)
def test_each_list_keeps_what_its_form_sends(logged_in: Any, alice: Any, page: str, query: str, leads: str) -> None:
    browser = logged_in(alice)
    answer = browser.post(SAVE, {"page": page, "query": query, "name": "Mine"})
    assert answer["Location"] == leads
    assert ">Mine<" in browser.get(leads, follow=True).content.decode()


def test_deliveries_of_one_webhook_have_their_own(logged_in: Any, acme: Any, alice: Any, bound: Any) -> None:
    from tests.pages import chains

    browser = logged_in(alice)
    one, other = (chains.endpoint(acme, alice, name=name).public_id for name in ("One", "Other"))
    form = {"page": "endpoint", "of": one, "query": "status=refused", "name": "Refused ones"}
    assert browser.post(SAVE, form)["Location"] == f"/t/acme/webhooks/{one}/?status=refused"
    assert "Refused ones" in browser.get(f"/t/acme/webhooks/{one}/").content.decode()
    assert "Refused ones" not in browser.get(f"/t/acme/webhooks/{other}/").content.decode()


@pytest.mark.parametrize(
    "form",
    [
        {"page": "https://evil.example/"},
        {"page": "keys"},
        {"page": "endpoint"},
        {"page": "threads", "of": "whk_x"},
        {"query": ""},
        {"query": "next=https://evil.example/"},
        {"query": "&" * 2000},
        {"name": "  "},
        {"name": "x" * 61},
    ],
)
def test_nothing_else_is_kept_and_no_address_leads_away(
    logged_in: Any, acme: Any, alice: Any, bound: Any, form: dict[str, str]
) -> None:
    answer = logged_in(alice).post(SAVE, {"page": "threads", "query": "q=x", "name": "X", **form}, follow=True)
    assert answer.status_code == 200 and answer.redirect_chain[-1][0].startswith("/t/acme/")
    assert rows(bound, acme) == [] and 'class="message error"' in answer.content.decode()


def test_a_name_is_a_persons_once_a_list(logged_in: Any, acme: Any, alice: Any, bob: Any, bound: Any) -> None:
    browser = logged_in(alice)
    saved(browser)
    again = browser.post(SAVE, {"page": "threads", "query": "q=x", "name": " Retries "}, follow=True)
    assert "You have a filter" in again.content.decode()
    browser.post(SAVE, {"page": "notes", "query": "q=x", "name": "Retries"})
    saved(logged_in(bob))
    assert [row.name for row in rows(bound, acme)] == ["Retries"] * 3


def test_a_person_has_fifty_at_most(logged_in: Any, acme: Any, alice: Any, bob: Any, bound: Any) -> None:
    with bound(acme):
        some = [SavedFilter(tenant=acme, member=alice, page="threads", name=f"F{n}", query="q=x") for n in range(50)]
        SavedFilter.objects.bulk_create(some)
    more = logged_in(alice).post(SAVE, {"page": "notes", "query": "q=x", "name": "More"}, follow=True)
    assert "You have 50" in more.content.decode()
    saved(logged_in(bob))
    assert len(rows(bound, acme)) == 51


def test_it_is_renamed_and_removed_and_comes_back(logged_in: Any, acme: Any, alice: Any, bound: Any) -> None:
    browser, one = logged_in(alice), made.saved_filter(acme, alice)
    assert ">Renamed<" in act(browser, one, "change", name=" Renamed ").content.decode()
    page = act(browser, one, "remove").content.decode()
    assert "Undo" in page and 'href="?q=acme-only"' not in page
    back = act(browser, one, "restore").content.decode()
    assert ">Renamed<" in back and 'href="?q=acme-only"' in back and "Undo" not in back
    act(browser, one, "remove")
    saved(browser, name="Renamed")
    assert "already" in act(browser, one, "restore").content.decode()


def test_after_its_time_it_does_not_come_back(logged_in: Any, acme: Any, alice: Any, bound: Any) -> None:
    browser, one = logged_in(alice), made.saved_filter(acme, alice)
    act(browser, one, "remove")
    with bound(acme):
        acme.filters.update(removed_at=timezone.now() - filters.RETURNS - timedelta(seconds=1))
    assert "too long ago" in act(browser, one, "restore").content.decode()
    [left] = rows(bound, acme)
    assert left.removed_at is not None


def test_for_everybody_by_who_may(
    logged_in: Any, acme: Any, bob: Any, vera: Any, mia: Any, alice: Any, bound: Any
) -> None:
    assert saved(logged_in(mia), share="yes").status_code == 403
    assert saved(logged_in(bob), share="yes").status_code == 302
    [one] = rows(bound, acme)
    seen = logged_in(vera).get(THREADS).content.decode()
    assert ">Retries<" in seen and "Manage" not in seen
    for verb in ("change", "remove", "restore"):
        assert act(logged_in(mia), one, verb, name="Mine").status_code == 403
    act(logged_in(alice), one, "change", name="Of the team", share="yes")
    assert ">Of the team<" in logged_in(mia).get(THREADS).content.decode()
    act(logged_in(alice), one, "remove")
    assert ">Of the team<" not in logged_in(mia).get(THREADS).content.decode()
    with bound(acme):
        assert acme.audit.filter(action="filter.share", outcome="done").count() == 3


def test_what_is_not_shared_is_nobody_elses(logged_in: Any, acme: Any, alice: Any, bob: Any, charlie: Any) -> None:
    one = made.saved_filter(acme, bob)
    assert "acme-only filter" not in logged_in(alice).get(THREADS).content.decode()
    for verb in ("change", "remove", "restore"):
        assert act(logged_in(alice), one, verb, name="X").status_code == 404
        url = f"/t/globex/filters/{one.public_id}/{verb}/"
        assert logged_in(charlie).post(url, {"name": "X"}).status_code == 404


def test_it_needs_login_and_post(logged_in: Any, acme: Any, alice: Any) -> None:
    assert Client().post(SAVE).status_code == 302
    assert logged_in(alice).get(SAVE).status_code == 405


def test_a_query_is_what_the_page_takes_each_once() -> None:
    said = "?q=a&q=b&owned=yes&state=&source=git\0hub&x=1&tool=y"
    assert filters.canonical("threads", said) == "q=a&source=github&owned=yes"
