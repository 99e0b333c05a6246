"""In which language pages speak, who chooses it, and what never changes with it."""

import re
from typing import Any

import pytest
from django.test import Client

from memory.tenants.models import User
from tests.conftest import Agent

SAVE = {"en": "Save", "fr": "Enregistrer", "pt": "Salvar", "vi": "Lưu"}


def spoken(page: Any) -> str:
    found = re.search(r'<html lang="(\w+)">', page.content.decode())
    assert found, page.content.decode()
    return found[1]


@pytest.mark.parametrize("language", SAVE)
def test_the_account_page_speaks_what_the_browser_asks_for(language: str, alice: Any, logged_in: Any) -> None:
    page = logged_in(alice).get("/account/", headers={"Accept-Language": f"{language};q=0.9, de"})
    assert (spoken(page), page["Content-Language"]) == (language, language)
    assert f">{SAVE[language]}</button>" in page.content.decode()
    assert {"Accept-Language", "Cookie"} <= {name.strip() for name in page["Vary"].split(",")}


def test_a_language_without_a_catalogue_is_answered_in_english(committed: None) -> None:
    assert spoken(Client().get("/login/", headers={"Accept-Language": "de, ja"})) == "en"


def test_a_person_s_choice_goes_with_them_to_every_browser(alice: Any, logged_in: Any, committed: None) -> None:
    here = logged_in(alice)
    answer = here.post("/account/language/", {"language": "vi", "next": "/account/"}, headers={"Accept-Language": "fr"})
    assert (answer.status_code, answer["Location"]) == (302, "/account/")
    assert User.objects.get(pk=alice.user_id).language == "vi"
    assert spoken(logged_in(alice).get("/account/", headers={"Accept-Language": "fr"})) == "vi"
    here.post("/account/language/", {"language": "", "next": "/account/"})
    assert spoken(here.get("/account/", headers={"Accept-Language": "fr"})) == "fr"


def test_before_login_the_browser_keeps_it(committed: None) -> None:
    browser = Client(headers={"Accept-Language": "fr"})
    assert 'action="/account/language/"' in browser.get("/login/").content.decode()
    answer = browser.post("/account/language/", {"language": "pt", "next": "/login/?next=/t/acme/"})
    assert answer["Location"] == "/login/?next=/t/acme/"
    assert answer.cookies["tm_language"]["httponly"] and answer.cookies["tm_language"]["samesite"] == "Lax"
    assert spoken(browser.get("/login/")) == "pt"


def test_the_choice_leads_nowhere_else_and_takes_no_other_language(committed: None) -> None:
    browser = Client()
    answer = browser.post("/account/language/", {"language": "fr", "next": "https://evil.test/"})
    assert answer["Location"] == "/teams/"
    assert not browser.post("/account/language/", {"language": "xx"}).cookies
    assert browser.get("/account/language/").status_code == 405
    assert Client(enforce_csrf_checks=True).post("/account/language/", {"language": "fr"}).status_code == 403


def test_programs_read_english_even_after_a_french_page(agent: Agent, acme: Any, alice: Any, logged_in: Any) -> None:
    french = {"Accept-Language": "fr"}
    assert spoken(logged_in(alice).get("/t/acme/", headers=french)) == "fr"
    api = Client(headers={**agent.headers, **french})
    answer = api.get("/api/v1/notes/not_one")
    assert answer.status_code == 404
    said = answer.json()["detail"]
    assert said == Client(headers=agent.headers).get("/api/v1/notes/not_one").json()["detail"]
    refused = api.post("/api/v1/cache/tools/lookup", {"tool": 1}, content_type="application/json")
    assert refused.status_code == 400 and "a text of at most 200 characters" in refused.json()["detail"]
    assert "Content-Language" not in refused
