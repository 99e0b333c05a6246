"""One field for everything: what it finds, for whom, and in what order."""

from typing import Any

import pytest

from tests.pages import chains, made

URL = "/t/acme/find/"
HTMX = {"HX-Request": "true"}


def found(answer: Any) -> list[tuple[str, str]]:
    assert answer.status_code == 200
    return [(one.kind, one.title) for one in answer.context["found"]]


@pytest.fixture
def things(acme: Any, alice: Any) -> dict[str, Any]:
    project = made.project(acme, "payments", name="Payments")
    session = made.session(acme, "9f8e7d", project=project, last_prompt="Mend the retries of the gateway")
    return {
        "note": made.note(acme, alice),
        "thread": chains.thread(acme, "github:acme/web#412", title="Retries run for ever"),
        "session": session,
        "project": project,
    }


def test_a_word_finds_each_kind(things: dict[str, Any], logged_in: Any, vera: Any) -> None:
    browser = logged_in(vera)
    kinds = dict(found(browser.get(URL, {"q": "retries"})))
    assert kinds == {"Note": "Retries", "Thread": "Retries run for ever"}
    assert ("Session", "Mend the retries of the gateway") in found(browser.get(URL, {"q": "payments"}))
    assert ("Member", "Bob") in found(browser.get(URL, {"q": "bob@acme"}))
    assert ("Page", "Agent keys") in found(browser.get(URL, {"q": "agent k"}))


def test_a_prompt_is_called_by_its_words(things: dict[str, Any], logged_in: Any, vera: Any) -> None:
    made.event(things["session"], 1, name="UserPromptSubmit", summary="Mend the refunds", body='{"prompt": "refunds"}')
    assert found(logged_in(vera).get(URL, {"q": "refunds"})) == [("Prompt", "Mend the refunds")]


def test_ids_and_numbers_lead_to_the_very_thing(things: dict[str, Any], logged_in: Any, vera: Any) -> None:
    browser = logged_in(vera)
    for q, kind in ((things["thread"].public_id, "Thread"), ("#412", "Thread"), (things["note"].public_id, "Note")):
        assert found(browser.get(URL, {"q": q}))[0][0] == kind, q
    session = things["session"]
    for q in (session.public_id, session.public_id[:20], "9f8e7d"):
        [one] = browser.get(URL, {"q": q}).context["found"]
        assert one.url == f"/t/acme/sessions/{session.public_id}/"
        assert browser.get(one.url).status_code == 200


def test_every_address_it_gives_opens(things: dict[str, Any], logged_in: Any, alice: Any) -> None:
    browser = logged_in(alice)
    for q in "abcdefghijklmnopqrstuvwxyz":
        for one in browser.get(URL, {"q": q}).context["found"]:
            assert browser.get(one.url).status_code == 200, one


def test_nobody_is_led_to_what_they_may_not_see(
    things: dict[str, Any], acme: Any, alice: Any, vera: Any, charlie: Any, logged_in: Any
) -> None:
    assert ("Page", "Audit") in found(logged_in(alice).get(URL, {"q": "audit"}))
    assert ("Page", "Audit") not in found(logged_in(vera).get(URL, {"q": "audit"}))
    browser = logged_in(charlie)
    for q in ("retries", "payments", "#412", "bob", things["session"].public_id, things["note"].public_id):
        assert found(browser.get("/t/globex/find/", {"q": q})) == [], q
    assert browser.get(URL, {"q": "retries"}).status_code == 404


def test_while_somebody_types_the_hits_come_alone(things: dict[str, Any], logged_in: Any, vera: Any) -> None:
    browser = logged_in(vera)
    piece = browser.get(URL, {"q": "retries"}, headers=HTMX).content.decode()
    assert "<html" not in piece and "Retries run for ever" in piece
    assert "Notes, threads" in browser.get(URL, {"q": " "}, headers=HTMX).content.decode()
    nothing = browser.get(URL, {"q": "<b>zzz\0</b>"}, headers=HTMX).content.decode()
    assert "&lt;b&gt;zzz&lt;/b&gt;" in nothing
    assert browser.get(URL, {"q": "%' OR 1=1 --" * 50}).status_code == 200
