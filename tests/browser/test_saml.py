"""Single sign-on by SAML in a browser: the provider is another site, and its post brings none of our cookies."""

from typing import Any

import pytest

from memory.tenants import rls, saml, sign_on
from memory.tenants.access import member_actor
from tests.browser.conftest import Window
from tests.conftest import free_port, served
from tests.saml_server import saml_server

pytestmark = pytest.mark.browser


def test_a_member_comes_in_by_a_provider_of_another_site(
    browser: Any, acme: Any, alice: Any, bob: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # To a browser 127.0.0.1 and localhost are two sites; two ports of one host are not.
    with saml_server("localhost") as provider:
        settings.WEBHOOK_HOSTS = [provider.host]
        monkeypatch.setenv("TEAM_MEMORY_WEBHOOK_HOSTS", provider.host)
        provider.knows("bob", mail="bob@acme.test")
        described = saml.described(provider.metadata())
        wanted = sign_on.Wanted("", "", "", "acme.test", "", is_required=False, provider=described)
        with rls.tenant_scope(str(acme.pk)):
            sign_on.save(acme, wanted, signed_on_at=0, by=member_actor(alice))
        with served(free_port()) as address:
            opened = Window(browser, address)
            cookies: list[str] = []

            def note(request: Any) -> None:
                if "/saml/acs/" in request.url:
                    cookies.append(request.all_headers().get("cookie", ""))

            opened.page.on("request", note)
            page = opened.open("/t/acme/notes/")
            page.click("text=Single sign-on of Acme")
            page.wait_for_url(f"http://{provider.host}/**")
            page.fill("input[name=sub]", "bob")
            page.click("button:has-text('Log in')")
            page.wait_for_url(f"{address}/t/acme/notes/")
            assert "Bob" in page.inner_text(".side") and opened.faults == []
            assert cookies == [""]
            opened.context.close()
