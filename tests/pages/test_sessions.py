"""The list of sessions: filters, search, cursor."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from dream.models import Watermark
from memory.tenants import rls
from tests.pages import made

URL = "/t/acme/sessions/"
HTMX = {"HX-Request": "true"}


def prompts(answer: Any) -> list[str]:
    return [session.last_prompt for session in answer.context["sessions"]]


def test_it_lists_the_latest_first(logged_in: Any, acme: Any, alice: Any, vera: Any) -> None:
    payments = made.project(acme, "payments", name="Payments")
    for age, prompt in enumerate(("new", "old")):
        at = timezone.now() - timedelta(hours=age)
        made.session(acme, prompt, last_prompt=prompt, last_received_at=at, project=payments, member=alice)
    answer = logged_in(vera).get(URL)
    assert prompts(answer) == ["new", "old"]
    for said in ("Payments", "Claude Code", "Alice"):
        assert said in answer.content.decode()


def test_it_filters(logged_in: Any, acme: Any, alice: Any) -> None:
    payments = made.project(acme)
    made.session(acme, "a", last_prompt="Mend the totals", project=payments)
    made.session(acme, "b", last_prompt="Sửa lỗi", client="codex", state="closed")
    browser = logged_in(alice)
    assert prompts(browser.get(URL, {"q": "TOTALS"})) == ["Mend the totals"]
    assert prompts(browser.get(URL, {"q": "sửa"})) == ["Sửa lỗi"]
    assert prompts(browser.get(URL, {"project": payments.public_id})) == ["Mend the totals"]
    assert prompts(browser.get(URL, {"client": "codex"})) == ["Sửa lỗi"]
    assert prompts(browser.get(URL, {"state": "open"})) == ["Mend the totals"]
    assert "No session fits" in browser.get(URL, {"q": "nothing"}).content.decode()


def test_it_knows_what_a_dream_has_read(logged_in: Any, acme: Any, alice: Any) -> None:
    for name, seq, failures in (("done", 2, 0), ("waiting", 1, 0), ("failed", 1, 2)):
        session = made.session(acme, name, last_prompt=name)
        for number in (1, 2):
            made.event(session, number)
        with rls.tenant_scope(str(acme.pk)):
            Watermark.objects.create(tenant=acme, session=session, seq=seq, failures=failures)
    browser = logged_in(alice)
    for name in ("done", "waiting", "failed"):
        assert prompts(browser.get(URL, {"state": name})) == [name]


def test_it_is_read_on_by_cursor_with_its_filters(logged_in: Any, acme: Any, alice: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("dream.views.PAGE", 2)
    at = timezone.now()
    for number in range(5):
        made.session(acme, str(number), last_prompt=f"totals {number}", last_received_at=at)
    made.session(acme, "other")
    browser = logged_in(alice)
    answer = browser.get(URL, {"q": "totals"})
    seen = prompts(answer)
    while answer.context["next_url"]:
        answer = browser.get(answer.context["next_url"], headers={**HTMX, "HX-Target": "more"})
        assert answer.content.strip().startswith(b"<tr")
        seen += prompts(answer)
    assert sorted(seen) == [f"totals {number}" for number in range(5)]


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "%00"])
def test_a_wrong_cursor_is_never_page_one(logged_in: Any, acme: Any, alice: Any, cursor: str) -> None:
    assert logged_in(alice).get(f"{URL}?cursor={cursor}").status_code == 400


def test_a_piece_for_htmx_a_page_for_the_back_button(logged_in: Any, acme: Any, alice: Any) -> None:
    made.session(acme)
    browser = logged_in(alice)
    assert browser.get(URL, headers=HTMX).content.strip().startswith(b'<div id="sessions">')
    back = browser.get(URL, headers={**HTMX, "HX-History-Restore-Request": "true"})
    assert b"<!doctype html>" in back.content


def test_an_empty_list_says_what_to_do(logged_in: Any, acme: Any, alice: Any) -> None:
    page = logged_in(alice).get(URL).content.decode()
    assert "No sessions yet" in page and "/t/acme/connect/" in page


def test_it_needs_login(acme: Any) -> None:
    assert Client().get(URL).status_code == 302


def test_it_hides_the_sessions_from_other_tenants(logged_in: Any, acme: Any, charlie: Any) -> None:
    project = made.project(acme)
    made.session(acme, last_prompt="Mend the totals", project=project)
    browser = logged_in(charlie)
    assert browser.get(URL).status_code == 404
    for query in ({}, {"q": "totals"}, {"project": project.public_id}):
        assert prompts(browser.get("/t/globex/sessions/", query)) == []


def test_it_takes_no_other_method(logged_in: Any, alice: Any) -> None:
    assert logged_in(alice).post(URL).status_code == 405


def test_two_projects_of_one_name_are_told_apart(logged_in: Any, acme: Any, alice: Any) -> None:
    made.project(acme, "shop", name="shop")
    made.session(acme, project=made.project(acme, "shop-2", name="shop"))
    browser = logged_in(alice)
    for page in ("sessions/", "caches/purge/"):
        shown = browser.get(f"/t/acme/{page}").content.decode()
        assert ">shop</option>" in shown and ">shop (shop-2)</option>" in shown, page
    keys = browser.get("/t/acme/keys/").content.decode()
    assert "shop (shop-2)" in keys
