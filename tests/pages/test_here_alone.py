"""An address that is handed to others says where it opens."""

from typing import Any

import pytest

from tests.pages import chains

WORDS = "opens on this machine alone"


@pytest.mark.parametrize(
    ("address", "alone"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://[::1]:8000", True),
        ("http://localhost:8000", True),
        ("https://memory.example.org", False),
        ("http://192.0.2.7:8000", False),
    ],
)
def test_an_invitation_a_webhook_and_a_command_say_where_they_open(
    logged_in: Any, acme: Any, alice: Any, settings: Any, address: str, alone: bool
) -> None:
    settings.PUBLIC_URL = address
    browser, endpoint = logged_in(alice), chains.endpoint(acme, alice)
    pages = [
        browser.post("/t/acme/members/", {"email": "reader@acme.test", "role": "viewer"}),
        browser.get(f"/t/acme/webhooks/{endpoint.public_id}/"),
        browser.post("/t/acme/connect/", {"client": "codex"}),
    ]
    said = [page.content.decode() for page in pages]
    assert all(address in page for page in said)
    assert [WORDS in page for page in said] == [alone] * 3
    # Where nothing is handed out, nothing is said.
    assert WORDS not in browser.get("/t/acme/members/").content.decode()
