"""The tree of notes, and the search in it."""

from typing import Any

from django.test import Client

from tests.pages import made

URL = "/t/acme/notes/"
HTMX = {"HX-Request": "true"}


def test_it_shows_notes_in_their_folders(logged_in: Any, acme: Any, alice: Any, vera: Any) -> None:
    made.note(acme, alice)
    made.note(acme, alice, path="tools/git/hooks.md", text="# Hooks\n\n- Run them\n")
    page = logged_in(vera).get(URL).content.decode()
    for said in ("Retries", "How payments are tried again", "Hooks", "payments", "2 notes"):
        assert said in page


def test_it_finds_words_of_path_title_and_text(logged_in: Any, acme: Any, alice: Any) -> None:
    made.note(acme, alice)
    made.note(acme, alice, path="tools/git/hooks.md", text="# Hooks\n\n- Chạy trước khi đẩy\n")
    browser = logged_in(alice)
    for words, found in (("retries", "Retries"), ("CHẠY đẩy", "Hooks"), ("git", "Hooks"), ("second", "Retries")):
        page = browser.get(URL, {"q": words}, headers=HTMX).content.decode()
        assert found in page and ("Hooks" if found == "Retries" else "Retries") not in page


def test_signs_of_the_search_language_are_letters(logged_in: Any, acme: Any, alice: Any) -> None:
    made.note(acme, alice)
    for q in ("%", "_", "\\", "'", "\0", "a" * 5000):
        assert logged_in(alice).get(URL, {"q": q}).status_code == 200
    assert "No note has" in logged_in(alice).get(URL, {"q": "100%"}).content.decode()


def test_a_piece_for_htmx_a_page_for_the_back_button(logged_in: Any, acme: Any, alice: Any) -> None:
    browser = logged_in(alice)
    assert browser.get(URL, headers=HTMX).content.strip().startswith(b'<div id="tree">')
    back = browser.get(URL, headers={**HTMX, "HX-History-Restore-Request": "true"})
    assert b"<!doctype html>" in back.content and "HX-Request" in back["Vary"]


def test_an_empty_tree_says_what_to_do(logged_in: Any, acme: Any, alice: Any) -> None:
    assert "Go to dreams" in logged_in(alice).get(URL).content.decode()
    made.proposal(acme)
    assert "Review proposals" in logged_in(alice).get(URL).content.decode()


def test_it_needs_login(acme: Any) -> None:
    assert Client().get(URL).status_code == 302


def test_it_hides_the_notes_from_other_tenants(logged_in: Any, acme: Any, alice: Any, charlie: Any) -> None:
    made.note(acme, alice)
    assert logged_in(charlie).get(URL).status_code == 404
    assert "Retries" not in logged_in(charlie).get("/t/globex/notes/", {"q": "retries"}).content.decode()


def test_it_takes_no_other_method(logged_in: Any, alice: Any) -> None:
    assert logged_in(alice).post(URL).status_code == 405
