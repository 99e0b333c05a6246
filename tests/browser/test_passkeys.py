"""Passkeys in a browser with a virtual authenticator: made, used without a password, proved by, taken away."""

from typing import Any

import pytest

from tests.browser.conftest import Window

pytestmark = pytest.mark.browser


@pytest.fixture
def window(browser: Any, live: str) -> Any:
    # By a name: browsers give no passkey to an address that is a number.
    opened = Window(browser, live.replace("127.0.0.1", "localhost"))
    devtools = opened.context.new_cdp_session(opened.page)
    devtools.send("WebAuthn.enable")
    options = {
        **{"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True},
        **{"isUserVerified": True, "automaticPresenceSimulation": True},
    }
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    yield opened
    opened.context.close()


def stale(alice: Any) -> None:
    """As if ten minutes had passed since she proved who she is."""
    from django.contrib.sessions.backends.db import SessionStore

    for browser in alice.user.browsers.all():
        session = SessionStore(browser.session_key)
        session["proved_at"] = 0
        session.save()


def test_a_passkey_is_made_used_and_taken_away(window: Any, acme: Any, alice: Any) -> None:
    page = window.enter(alice).open("/account/")
    page.fill("#passkey-name", "This laptop")
    page.click("text=Add a passkey")
    page.wait_for_selector("text=The passkey is kept")
    page.click("text=Rename or remove")
    page.fill("[id^=name-]", "Old laptop")
    page.click("button:text-is('Rename')")
    page.wait_for_selector("b:text('Old laptop')")

    # The same device has one already.
    page.click("text=Add a passkey")
    page.wait_for_selector("text=This device has a passkey of yours already.")

    # In, with no password.
    window.context.clear_cookies()
    page = window.open("/t/acme/keys/")
    page.click("text=Log in with a passkey")
    page.wait_for_url(lambda url: "login" not in url)

    # Step-up by it.
    stale(alice)
    window.open("/prove/?next=/account/")
    page.click("text=Take a passkey")
    page.wait_for_selector("text=Thank you.")
    page.click("text=Rename or remove")
    page.click("button:has-text('Remove')")
    page.wait_for_selector("text=This passkey opens nothing any more.")

    # The device still has it; the server knows it no more.
    window.context.clear_cookies()
    page = window.open("/login/")
    page.click("text=Log in with a passkey")
    page.wait_for_selector("text=This passkey was not accepted.")
    assert window.faults == []


def test_adding_asks_who_is_there(window: Any, acme: Any, alice: Any) -> None:
    page = window.enter(alice).open("/account/")
    stale(alice)
    page.click("text=Add a passkey")
    page.wait_for_url("**/prove/?next=%2Faccount%2F")


def test_an_address_that_is_a_number_says_why_it_can_not(browser: Any, live: str, acme: Any, alice: Any) -> None:
    opened = Window(browser, live)
    assert not opened.open("/login/").is_visible("text=Log in with a passkey")
    page = opened.enter(alice).open("/account/")
    assert f"Open {live.replace('127.0.0.1', 'localhost')} instead." in opened.text()
    assert page.is_disabled("text=Add a passkey")
    opened.context.close()
