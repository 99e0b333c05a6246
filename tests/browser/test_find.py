"""The finder in a browser: by keys alone, over any page, and without a script's help."""

from typing import Any

import pytest

from tests.browser.test_pages import PHONE
from tests.pages import chains, made

pytestmark = pytest.mark.browser


@pytest.fixture
def thread(acme: Any, alice: Any) -> Any:
    made.note(acme, alice)
    return chains.thread(acme, "github:acme/web#412", title="Retries run for ever")


def test_keys_alone_lead_to_what_is_meant(window: Any, alice: Any, thread: Any) -> None:
    opened = window(alice)
    page = opened.open("/t/acme/notes/")
    page.focus("#q")
    page.keyboard.press("Control+k")
    page.keyboard.type("run for ever")
    page.wait_for_selector("#finder [data-found]")
    page.keyboard.press("ArrowDown")
    assert "Retries run for ever" in page.evaluate("document.activeElement.textContent")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.id") == "finder-q"
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/threads/{thread.public_id}/")
    page.keyboard.press("Control+k")
    page.keyboard.press("Escape")
    assert not page.evaluate("document.getElementById('finder').open")
    assert opened.faults == []


def test_the_link_opens_it_too_and_a_click_beside_it_closes_it(window: Any, alice: Any, thread: Any) -> None:
    opened = window(alice)
    page = opened.open("/t/acme/notes/")
    page.locator(".side [data-finder]").click()
    assert page.evaluate("document.activeElement.id") == "finder-q"
    page.mouse.click(5, 5)
    assert not page.evaluate("document.getElementById('finder').open")
    assert opened.faults == []


def test_on_a_phone_it_fits(window: Any, alice: Any, thread: Any) -> None:
    opened = window(alice, **PHONE)
    page = opened.open("/t/acme/find/?q=retries")
    assert page.locator("#results [data-found]").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.keyboard.press("Control+k")
    box = page.locator("#finder").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    assert opened.faults == []
