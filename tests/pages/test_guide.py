"""The guide, and the answers that belong to no team."""

from typing import Any

import pytest
from django.test import Client

from memory import guide

URL = "/t/acme/guide/"


@pytest.mark.parametrize("page", ["", *(f"{slug}/" for slug in guide.ORDER)])
def test_every_page_is_there(logged_in: Any, acme: Any, vera: Any, page: str) -> None:
    answer = logged_in(vera).get(URL + page)
    assert answer.status_code == 200 and answer.context["page_title"] in answer.content.decode()


@pytest.mark.parametrize("page", guide.pages(), ids=lambda page: page.slug)
def test_every_page_has_something_to_say(page: guide.GuidePage) -> None:
    assert len(page.html) > 1500 and page.title


def test_an_unknown_page_is_not_found(logged_in: Any, acme: Any, vera: Any) -> None:
    assert logged_in(vera).get(f"{URL}nothing/").status_code == 404


def test_it_needs_login(acme: Any) -> None:
    assert Client().get(URL).status_code == 302


def test_it_is_not_shown_in_another_team(logged_in: Any, acme: Any, charlie: Any) -> None:
    assert logged_in(charlie).get(URL).status_code == 404


def test_it_takes_no_other_method(logged_in: Any, acme: Any, alice: Any) -> None:
    assert logged_in(alice).post(URL).status_code == 405


def test_home_leads_in(logged_in: Any, alice: Any) -> None:
    assert Client().get("/")["Location"] == "/login/"
    assert logged_in(alice).get("/")["Location"] == "/teams/"
    assert logged_in(alice).get("/teams/")["Location"] == "/t/acme/"


def test_the_process_says_how_it_is(committed: None) -> None:
    assert Client().get("/healthz").json() == {"status": "ok"}
    assert Client().get("/readyz").json()["status"] == "ok"
