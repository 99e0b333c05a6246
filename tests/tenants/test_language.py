"""In which language pages speak, who chooses it, and what never changes with it."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone, translation

from memory.templatetags import look
from memory.tenants.models import User
from tests.conftest import Agent

# A heading of each page, by language.
HEADS = {
    "fr": {"": "Boîte de réception", "notes/": "Notes", "caches/": "Caches", "members/": "Membres", "rules/": "Règles"},
    "pt": {"": "Caixa de entrada", "notes/": "Notas", "caches/": "Caches", "members/": "Membros", "rules/": "Regras"},
    "vi": {"": "Hộp thư đến", "notes/": "Ghi chú", "caches/": "Bộ nhớ đệm", "members/": "Thành viên"},
}
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


@pytest.mark.parametrize("language", HEADS)
def test_the_pages_of_a_team_speak_it(language: str, acme: Any, alice: Any, logged_in: Any) -> None:
    browser = logged_in(alice)
    for page, head in HEADS[language].items():
        answer = browser.get(f"/t/acme/{page}", headers={"Accept-Language": language})
        assert (answer.status_code, spoken(answer)) == (200, language)
        found = re.search(r"<h1[^>]*>([^<]+)", answer.content.decode())
        assert found and head in found[1], (page, found and found[1])


def test_a_piece_for_htmx_and_a_refusal_speak_it_too(acme: Any, alice: Any, logged_in: Any) -> None:
    browser = logged_in(alice)
    headers = {"Accept-Language": "fr", "HX-Request": "true"}
    piece = browser.get("/t/acme/notes/?q=nothing", headers=headers).content.decode()
    assert "<html" not in piece and "Aucune note ne contient" in piece
    gone = browser.get("/t/acme/notes/nte_none/", headers=headers)
    assert gone.status_code == 404 and "appartient à une autre équipe" in gone.content.decode()
    wrong = Client().post("/login/", {"email": "nobody@acme.test", "password": "x"}, headers={"Accept-Language": "fr"})
    assert "ne vont pas ensemble" in wrong.content.decode()


def test_numbers_and_times_read_as_the_language_writes_them() -> None:
    now = timezone.now()
    with translation.override("fr"):
        assert (look.thousands(5463), look.tokens(1200), look.size(1_600_000)) == ("5\u202f463", "1,2k", "1,5 MB")
        assert "il y a 3 h" in look.ago(now - timedelta(hours=3))
        assert look.relative(40 * 86400, datetime(2026, 3, 5, tzinfo=UTC)) == "5 mars 2026"
    with translation.override("vi"):
        assert (look.thousands(5463), look.relative(40 * 86400, datetime(2026, 3, 5, tzinfo=UTC))) == (
            "5.463",
            "05/03/2026",
        )
    assert (look.thousands(5463), look.tokens(1200)) == ("5,463", "1.2k")
    assert look.relative(40 * 86400, datetime(2026, 3, 5, tzinfo=UTC)) == "5 Mar 2026"
