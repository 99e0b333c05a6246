"""Every page in a browser: nothing in the console, no sideways scroll on a phone, dark where asked for."""

from typing import Any

import pytest
from django.test import Client

from tests.pages import chains, made

pytestmark = pytest.mark.browser
PHONE = {"viewport": {"width": 390, "height": 844}}
LONG = "x" * 300
CUT = """document.documentElement.scrollWidth > innerWidth || [...document.querySelectorAll("main table")]
    .some((table) => !table.closest(".prose") && table.getBoundingClientRect().right > innerWidth)"""
ALARM = "<img src=x onerror=alert(1)><svg/onload=alert(1)>"


@pytest.fixture
def pages(acme: Any, alice: Any) -> list[str]:
    """Every page, with long words and what would be a script in every field."""
    project = made.project(acme, "long", name=f"{ALARM} {LONG}"[:200], place=f"/home/{LONG}")
    session = made.session(acme, last_prompt=f"{ALARM} {LONG}", project=project, member=alice, cwd=f"/{LONG}")
    event = made.event(session, 1, tool=ALARM, name=LONG[:80], summary=LONG, body=f'{{"a": "{ALARM}{LONG * 20}"}}')
    made.event(session, 2, summary=ALARM)
    text = f"---\ntitle: {LONG[:200]}\ndescription: {LONG[:200]}\n---\n# {LONG}\n\n- {LONG}\n- {ALARM}\n"
    note = made.note(acme, alice, path=f"general/{LONG[:60]}/{LONG[:60]}.md", text=text + f"\n```\n{LONG}\n```\n")
    changed = made.proposal(acme, path=note.path, text=text.replace("# x", "# y"), rests_on=(event,), reason=LONG)
    made.telling(event, note, why=LONG)
    made.rewritten(note, alice, text)
    dream = made.run(acme, state="failed", error=f"{ALARM}{LONG}", proposals=(changed,), sessions=(session,))
    team = [
        "",
        f"proposals/{changed.public_id}/",
        f"proposals/{changed.public_id}/edit/",
        "notes/",
        "notes/new/",
        f"notes/{note.public_id}/",
        f"notes/{note.public_id}/edit/",
        f"notes/{note.public_id}/history/",
        f"notes/{note.public_id}/diff/?from=1&to=2",
        "sessions/",
        f"sessions/{session.public_id}/",
        f"events/{event.public_id}/",
        "projects/",
        "dreams/",
        f"dreams/{dream.public_id}/",
        "connect/",
        *(f"guide/{slug}/" for slug in ("start", "review", "api", "operate")),
        "notes/nte_none/",
    ]
    return [f"/t/acme/{page}" for page in team] + ["/password/"]


def too_wide(opened: Any, pages: list[str]) -> list[str]:
    """The pages that scroll sideways, or whose tables are cut."""
    return [path for path in pages if opened.open(path).evaluate(CUT)]


def test_no_page_scrolls_sideways_or_complains(window: Any, alice: Any, pages: list[str]) -> None:
    opened = window(alice, **PHONE)
    alarms: list[str] = []
    opened.page.on("dialog", lambda dialog: (alarms.append(dialog.message), dialog.dismiss()))
    wide = {390: too_wide(opened, pages)}
    for width in (1024, 1280, 1440, 1536):
        opened.page.set_viewport_size({"width": width, "height": 800})
        wide[width] = too_wide(opened, pages)
    assert ({width: found for width, found in wide.items() if found}, alarms, opened.faults) == ({}, [], [])


def test_the_api_page_works_under_the_policy(window: Any, acme: Any) -> None:
    opened = window()
    page = opened.open("/api/v1/docs")
    page.wait_for_selector(".opblock")
    assert "Team Memory" in opened.text() and opened.faults == []


def test_dark_follows_the_system_and_the_switch(window: Any, acme: Any, alice: Any) -> None:
    colour = "getComputedStyle(document.documentElement).backgroundColor"
    dark = f"{colour}.match(/\\d+/g).slice(0, 3).every((part) => part < 60)"
    opened = window(alice, color_scheme="dark")
    page = opened.open("/t/acme/")
    assert page.evaluate(dark)
    page.click(".side [data-toggle=theme]")
    assert not page.evaluate(dark)
    page.reload()
    assert not page.evaluate(dark), "the choice is kept"
    assert not window(alice, color_scheme="light").open("/t/acme/").evaluate(dark)


def test_the_timeline_opens_a_payload_in_place(window: Any, acme: Any, alice: Any) -> None:
    event = made.event(made.session(acme), body='{"command": "make test"}', summary="make test")
    opened = window(alice)
    page = opened.open(f"/t/acme/sessions/{event.session.public_id}/")
    page.click(f"#{event.public_id} summary")
    page.wait_for_selector(f"#{event.public_id} .peek pre")
    assert '"command": "make test"' in opened.text() and opened.faults == []


def test_searching_keeps_the_address_and_goes_back_to_a_whole_page(window: Any, acme: Any, alice: Any) -> None:
    note = made.note(acme, alice)
    opened = window(alice)
    page = opened.open("/t/acme/notes/")
    page.fill("#q", "nothinglikethis")
    page.wait_for_selector("text=No note has")
    assert page.url.endswith("?q=nothinglikethis")
    page.click("text=Show all notes")
    page.click("text=Retries")
    page.wait_for_url(f"**/{note.public_id}/")
    page.go_back()
    page.wait_for_selector(".side")
    assert page.locator("h1").inner_text() == "Notes" and opened.faults == []


def test_connecting_shows_the_first_event_by_itself(window: Any, acme: Any, alice: Any) -> None:
    opened = window(alice)
    page = opened.open("/t/acme/connect/")
    page.click("text=Make a key")
    secret = page.inner_text("#agent-key").strip()
    payload = {"session_id": "s", "hook_event_name": "SessionStart", "source": "startup", "cwd": "/src/x"}
    headers = {"Authorization": f"Bearer {secret}"}
    Client(headers=headers).post("/api/v1/hooks/claude-code", payload, content_type="application/json")
    page.wait_for_selector("text=It works")
    assert opened.faults == []


CROSSING = """[...document.querySelectorAll("main :is(td, th):not(:last-child)")].flatMap((cell) => {
    const next = cell.nextElementSibling.getBoundingClientRect();
    const words = document.createRange();
    words.selectNodeContents(cell);
    const ends = Math.max(...[...words.getClientRects()].map((box) => box.right), 0);
    return ends > next.left + 1 ? [`${cell.innerText} +${Math.round(ends - next.left)}`] : [];
})"""

# A word of a head, or a number of the menu, that stands on two lines.
BROKEN = """[...document.querySelectorAll("main th, .side .count")].filter((said) => {
    const words = document.createRange();
    words.selectNodeContents(said);
    const lines = new Set([...words.getClientRects()].map((box) => box.top));
    return lines.size > said.innerText.trim().split(/\\s+/).length;
}).map((said) => said.innerText)"""


@pytest.mark.parametrize("language", ["en", "fr", "pt", "vi"])
def test_words_stay_in_their_cells_in_any_language(window: Any, acme: Any, alice: Any, language: str) -> None:
    made.run(acme, sessions=(made.session(acme, member=alice),))
    for number in range(12):
        made.proposal(acme, path=f"general/{number}.md")
    chains.thread(acme)
    opened = window(alice, locale=language, viewport={"width": 1024, "height": 800})
    for at in ("sessions", "threads", "dreams"):
        page = opened.open(f"/t/acme/{at}/")
        assert (at, page.evaluate(CROSSING), page.evaluate(BROKEN)) == (at, [], [])
    assert opened.page.evaluate("document.documentElement.lang") == language
