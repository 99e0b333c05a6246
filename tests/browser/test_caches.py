"""The caches' pages in a browser: they fit a phone, pairs are marked by keyboard, a call is tried as it is typed."""

from typing import Any

import pytest

from tests.browser.test_pages import ALARM, LONG, PHONE, too_wide
from tests.cache import filled
from tests.cache.asked import call, stored

pytestmark = pytest.mark.browser


def test_no_page_of_the_caches_scrolls_sideways(window: Any, acme: Any, alice: Any, agent: Any, api: Any) -> None:
    desk = api(agent)
    ids = filled.used(acme, desk)
    body = call(arguments={"path": f"{ALARM}{LONG}"}, content_hash=f"sha256:{'0f' * 86}")
    long = stored(desk, body, LONG * 30).json()
    desk.post("cache/tools/lookup", call(LONG[:190]))
    pages = ["", "tools/", f"policy/?tool={LONG[:190]}", "entries/", f"entries/{long['key']}/", "purge/?all=yes",
             "similar/", "analyses/", f"analyses/{ids['analysis']}/", "incidents/", f"incidents/{ids['incident']}/",
             "repeats/", "prompts/"]  # fmt: skip
    opened = window(alice, **PHONE)
    wide = {width: [] for width in (390, 1280)}
    for width in wide:
        opened.page.set_viewport_size({"width": width, "height": 844})
        wide[width] = too_wide(opened, [f"/t/acme/caches/{page}" for page in pages])
    assert (wide, opened.faults) == ({390: [], 1280: []}, [])


def test_a_pair_is_marked_by_a_key_and_a_call_is_tried_as_typed(
    window: Any, acme: Any, alice: Any, agent: Any, api: Any
) -> None:
    filled.near_pair(acme, api(agent))
    opened = window(alice)
    page = opened.open("/t/acme/caches/similar/")
    page.keyboard.press("d")
    page.wait_for_selector("text=Nothing waits")
    page.wait_for_selector("text=No, same")
    page = opened.open("/t/acme/caches/policy/?tool=count_things")
    for field in ("mode_2", "worst_outcome_1"):
        page.check(f"#id_{field}")
    page.fill("#id_ttl_s", "60")
    page.select_option("#id_scope", "team")
    page.fill("#id_rule_numbers", "n")
    page.fill("#id_call-arguments", '{"n": "10"}')
    page.click("text=Try this call")
    page.wait_for_selector("#verdict >> text=Nobody has stored this call")
    assert '"n": 10' in page.inner_text("#verdict") and page.input_value("#id_ttl_s") == "60"
    page.click("text=Save the policy")
    page.wait_for_selector("text=changed just now by Alice")
    assert opened.faults == []
