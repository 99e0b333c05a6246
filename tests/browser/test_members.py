"""Who and what gets into a team, in a browser: nothing happens by one key press too many, and nothing typed is lost."""

from typing import Any

import pytest
from django.contrib.sessions.backends.db import SessionStore

from memory.tenants import rls
from memory.tenants.models import AgentKey, Invitation, Member
from tests.conftest import new_agent

pytestmark = pytest.mark.browser


def role_of(member: Any) -> str:
    with rls.tenant_scope(str(member.tenant_id)):
        return str(Member.objects.get(pk=member.pk).role)


def stale(member: Any) -> None:
    """As if ten minutes had passed since they proved who they are."""
    for browser in member.user.browsers.all():
        session = SessionStore(browser.session_key)
        session["proved_at"] = 0
        session.save()


def test_a_role_changes_by_its_button_and_not_by_an_arrow_key(window: Any, acme: Any, alice: Any, vera: Any) -> None:
    opened = window(alice)
    page = opened.open("/t/acme/members/")
    page.focus(f"#role-{vera.public_id}")
    page.keyboard.press("ArrowUp")
    assert page.input_value(f"#role-{vera.public_id}") == "member"
    page.wait_for_load_state("networkidle")
    assert role_of(vera) == "viewer"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=vera is member now.")
    assert role_of(vera) == "member" and opened.faults == []


def test_what_was_typed_comes_back_after_the_proof(window: Any, acme: Any, alice: Any) -> None:
    opened = window(alice)
    page = opened.open("/t/acme/members/")
    stale(alice)
    page.fill("#id_email", "reader@acme.test")
    page.select_option("#id_role", "viewer")
    page.click("text=Make an invitation")
    page.wait_for_url("**/prove/**")
    page.fill("#id_password", "correct horse battery")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Now do it again")
    assert (page.input_value("#id_email"), page.input_value("#id_role")) == ("reader@acme.test", "viewer")
    # The button has the focus: once more, and it is done.
    page.keyboard.press("Enter")
    page.wait_for_selector("#shown-link")
    with rls.tenant_scope(str(acme.pk)):
        assert [(one.email, one.role) for one in Invitation.objects.all()] == [("reader@acme.test", "viewer")]
    # Another page's form gets nothing of it, nor does the same one later.
    assert opened.open("/t/acme/members/").input_value("#id_email") == "" and opened.faults == []


def test_a_secret_is_not_held_meanwhile(window: Any, acme: Any, alice: Any) -> None:
    page = window(alice).open("/t/acme/sign-on/")
    stale(alice)
    page.fill("[name=issuer]", "https://login.example.org")
    page.fill("[name=client_id]", "abc")
    page.fill("[name*=secret]", "the-provider-gave-it")
    page.click("main button:text-is('Save')")
    page.wait_for_url("**/prove/**")
    held = page.evaluate("sessionStorage.getItem('typed')")
    assert "login.example.org" in held and "the-provider-gave-it" not in held


@pytest.mark.parametrize("path", ["keys", "connect"])
def test_a_key_is_revoked_by_the_second_press(window: Any, acme: Any, alice: Any, path: str) -> None:
    key = new_agent(alice).key
    opened = window(alice)
    page = opened.open(f"/t/acme/{path}/")
    row = page.locator(f"#{key.public_id}")
    row.locator("summary:has-text('Revoke')").click()
    box = row.locator(".popover-panel").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 1280

    def ended() -> bool:
        with rls.tenant_scope(str(acme.pk)):
            return AgentKey.objects.get(pk=key.pk).revoked_at is not None

    assert not ended()
    row.locator("button:has-text('Revoke')").click()
    page.wait_for_selector("text=opens nothing any more")
    assert ended() and opened.faults == []
