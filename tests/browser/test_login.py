"""Getting in by the link that was handed out, in a browser."""

from typing import Any

import pytest

from memory.tenants import keys, rls
from memory.tenants.access import member_actor

pytestmark = pytest.mark.browser


def test_a_link_lets_in_and_a_password_lets_in_again(window: Any, acme: Any, alice: Any) -> None:
    alice.user.set_unusable_password()
    alice.user.save()
    with rls.tenant_scope(str(acme.pk)):
        link = keys.make_login_link(alice, by=member_actor(alice))
    opened = window()
    page = opened.open("/login/link/" + link.rstrip("/").rsplit("/", 1)[1] + "/")
    page.click("text=Log in as Alice")
    page.wait_for_url("**/password/**")
    page.fill("#id_password1", "a long enough one")
    page.fill("#id_password2", "a long enough one")
    page.click("text=Set the password")
    page.wait_for_url("**/t/acme/")
    page.click(".side >> text=Log out")
    page.wait_for_url("**/login/")
    page.fill("#id_email", "alice@acme.test")
    page.fill("#id_password", "a long enough one")
    page.keyboard.press("Enter")
    page.wait_for_url("**/t/acme/")
    assert opened.faults == []


def test_a_page_that_needs_login_is_reached_after_it(window: Any, acme: Any, alice: Any) -> None:
    page = window().open("/t/acme/notes/")
    page.fill("#id_email", "alice@acme.test")
    page.fill("#id_password", "correct horse battery")
    page.keyboard.press("Enter")
    page.wait_for_url("**/t/acme/notes/")


def test_a_login_that_was_lost_in_between_leads_to_the_login_page(window: Any, acme: Any, alice: Any) -> None:
    opened = window(alice)
    page = opened.open("/t/acme/notes/")
    opened.context.clear_cookies()
    page.fill("#q", "anything")
    page.wait_for_url("**/login/?next=/t/acme/notes/")
