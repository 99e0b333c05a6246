"""Threads in a browser: the hop map by keyboard, the payload viewer, the panels, an endpoint's secret."""

from typing import Any

import pytest

from tests.browser.test_pages import ALARM, CUT, LONG, PHONE
from tests.pages import chains

pytestmark = pytest.mark.browser


@pytest.fixture
def chain(acme: Any) -> dict[str, Any]:
    return chains.answered(acme)


def test_tab_walks_through_the_map_and_enter_opens_a_stop(window: Any, alice: Any, chain: dict[str, Any]) -> None:
    opened = window(alice)
    page = opened.open(f"/t/acme/threads/{chain['thread'].public_id}/map/")
    page.locator(".map.wide .stop").first.focus()
    walked = []
    for _ in range(4):
        walked.append(page.evaluate("document.activeElement.getAttribute('aria-label')"))
        page.keyboard.press("Tab")
    assert walked == [
        "thread: Retry thrice, github:acme/payments#…, open",
        "Hop 1, worker: Why did the build fail?, owner · done",
        "Hop 2, report: Why it failed, report",
        "Hop 3, trigger: build failed: test_retries, cited trigger",
    ]
    page.keyboard.press("Shift+Tab")
    assert page.locator(".map.wide .stop.way").count() == 4, "the way to it lights up"
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/triggers/{chain['run'].public_id}/")
    assert opened.faults == []


def test_j_and_k_walk_through_the_map_on_a_phone(window: Any, alice: Any, chain: dict[str, Any]) -> None:
    opened = window(alice, **PHONE)
    page = opened.open(f"/t/acme/threads/{chain['thread'].public_id}/map/")
    for key in "jjk":
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("thread: Retry thrice")
    assert page.evaluate("document.activeElement.closest('.map').className") == "map narrow"


def test_a_log_is_searched_and_its_errors_jumped_to(window: Any, acme: Any, alice: Any) -> None:
    lines = [f"step {number} ok" for number in range(1, 9001)]
    lines[7000] = "##[error]Process completed with exit code 2"
    lines[6500] = "E       AssertionError: assert 3 == 4"
    log = chains.trigger(acme, "ci:1", "\n".join(lines).encode(), source="ci")
    opened = window(alice)
    page = opened.open(f"/t/acme/triggers/{log.public_id}/payload/")
    page.wait_for_selector("text=First real error")
    page.keyboard.press("e")
    page.wait_for_selector("#L6501.at")
    assert page.locator(".log li").count() == 200
    assert page.evaluate("document.activeElement.closest('li')?.id") == "L6501"
    page.keyboard.press("/")
    page.keyboard.type("step 80[0-9]{2} ok")
    page.keyboard.press("Enter")
    page.wait_for_selector("mark >> text=step 8000 ok")
    assert page.locator(".hits li").count() >= 100
    page.keyboard.press("n")
    page.wait_for_selector("text=Lines 8,192 to 8,391 of 9,000")
    page.go_back()
    page.wait_for_selector("#L8000")
    assert opened.faults == []


def test_going_to_a_line_works_without_javascript(window: Any, acme: Any, alice: Any) -> None:
    log = chains.trigger(acme, "ci:1", b"line\n" * 3000)
    page = window(alice, java_script_enabled=False).open(f"/t/acme/triggers/{log.public_id}/payload/")
    page.fill("#line", "2500")
    page.click("form[role=search] button")
    page.wait_for_selector("#L2500.at")
    page.click("text=Look for its errors")
    page.wait_for_selector("text=No line looks like a failure")


def test_owners_and_links_change_in_their_panels(window: Any, acme: Any, alice: Any, chain: dict[str, Any]) -> None:
    other = chains.worker(acme, chain["thread"], task="Watch the deploy")
    opened = window(alice)
    page = opened.open(f"/t/acme/threads/{chain['thread'].public_id}/")
    page.click("text=Add an owner worker")
    page.fill("#worker_id", other.public_id)
    page.click("#owners .adding .button")
    page.wait_for_selector("#owners >> text=Watch the deploy")
    page.click("text=Add a link")
    page.fill("#to", "thr_none")
    page.click("#links .adding .button")
    page.wait_for_selector("#links [role=alert]")
    page.fill("#to", "github:acme/web#9")
    page.click("#links .adding .button")
    page.wait_for_selector("#links >> text=Not here yet")
    assert page.locator("#links [role=alert]").count() == 0 and opened.faults == []


def test_an_endpoint_is_made_and_its_secret_shown_once(window: Any, acme: Any, alice: Any) -> None:
    opened = window(alice)
    page = opened.open("/t/acme/webhooks/")
    page.select_option("#id_kind", "generic")
    page.fill("#id_name", "Tickets")
    page.click("text=Make the endpoint")
    secret = page.inner_text("#endpoint-secret").strip()
    assert len(secret) > 30 and secret in page.inner_text("#endpoint-try")
    page.goto(opened.address + "/t/acme/webhooks/")
    page.click("text=Tickets")
    page.wait_for_selector("text=Set it up")
    assert secret not in opened.text() and opened.faults == []


def test_no_page_scrolls_sideways_or_complains(window: Any, acme: Any, alice: Any) -> None:
    words = f"{ALARM} {LONG}"
    evil = chains.trigger(acme, f"ci:{LONG[:200]}", f"{words}\n".encode() * 900, summary=words, thread_title=words)
    body = chains.trigger(acme, "x:1", f'{{"{LONG}": "{LONG}"}}'.encode(), media_type=chains.JSON, source=LONG[:90])
    report = f"# {words}\n\n| {LONG} | b |\n|---|---|\n| {LONG} | {evil.public_id} |\n\n`{LONG}`\n"
    worker = chains.worker(acme, evil.thread, task=words, report=report)
    chains.owner(evil.thread, worker, pass_through=True)
    chains.trigger(acme, f"ci:{LONG[:200]}", summary=words)
    chains.link(evil.thread, body.thread, kind=LONG[:40])
    endpoint = chains.endpoint(acme, alice, name=LONG[:120], source="x")
    pages = [
        "threads/", "threads/unlinked/", f"threads/{evil.thread.public_id}/", f"threads/{evil.thread.public_id}/edit/",
        f"threads/{evil.thread.public_id}/map/", f"triggers/{evil.public_id}/", f"triggers/{body.public_id}/",
        f"triggers/{evil.public_id}/payload/?q=x%2B&errors=1", f"triggers/{body.public_id}/payload/",
        f"workers/{worker.public_id}/", "webhooks/", f"webhooks/{endpoint.public_id}/", "guide/threads/",
    ]  # fmt: skip
    opened = window(alice, **PHONE)
    alarms: list[str] = []
    opened.page.on("dialog", lambda dialog: (alarms.append(dialog.message), dialog.dismiss()))
    wide = {}
    for width in (390, 1024, 1300, 1440):
        opened.page.set_viewport_size({"width": width, "height": 800})
        wide[width] = [page for page in pages if opened.open(f"/t/acme/{page}").evaluate(CUT)]
    assert ({width: found for width, found in wide.items() if found}, alarms, opened.faults) == ({}, [], [])
