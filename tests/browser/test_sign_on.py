"""Single sign-on in a browser: from a page to the provider and back, under our own policy for scripts and forms."""

from typing import Any

import pytest

from memory.tenants import rls, sign_on
from memory.tenants.access import member_actor
from tests.browser.conftest import Window
from tests.conftest import free_port, served
from tests.oidc_server import oidc_server

pytestmark = pytest.mark.browser


def test_a_member_comes_in_by_the_provider(
    browser: Any, acme: Any, alice: Any, bob: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    with oidc_server() as provider:
        settings.WEBHOOK_HOSTS = [provider.host]
        client_id, secret = provider.register(f"http://127.0.0.1:{port}/sso/acme/callback/")
        provider.knows("bob", email="bob@acme.test", email_verified=True)
        wanted = sign_on.Wanted(provider.issuer, client_id, secret, "acme.test", "", is_required=False)
        with rls.tenant_scope(str(acme.pk)):
            sign_on.save(acme, wanted, signed_on_at=0, by=member_actor(alice))
        monkeypatch.setenv("TEAM_MEMORY_WEBHOOK_HOSTS", provider.host)
        with served(port) as address:
            opened = Window(browser, address)
            page = opened.open("/t/acme/notes/")
            page.click("text=Single sign-on of Acme")
            page.wait_for_url(f"{provider.issuer}/**")
            # The provider's own page asks for a font that no test can fetch: what it says is not ours.
            opened.faults.clear()
            page.fill("input[name=sub]", "bob")
            page.click("button:has-text('Authorize')")
            page.wait_for_url(f"{address}/t/acme/notes/")
            assert "Bob" in page.inner_text(".side") and opened.faults == []
            opened.context.close()
