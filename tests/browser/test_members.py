"""Who is in a team, in a browser: a role changes only by its button."""

from typing import Any

import pytest

from memory.tenants import rls
from memory.tenants.models import Member

pytestmark = pytest.mark.browser


def role_of(member: Any) -> str:
    with rls.tenant_scope(str(member.tenant_id)):
        return str(Member.objects.get(pk=member.pk).role)


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
