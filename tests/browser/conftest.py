"""A browser in which a member is logged in, at the address of a live server."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from tests.browser import chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with chromium.launched() as running:
        yield running


class Window:
    """One window; `faults` holds what the console complained about and which requests broke the policy."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.address = address
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.page.on("console", self._listen)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def _listen(self, message: Any) -> None:
        # What a page asks for and may not have (404, 409) is for the page to say; the console repeats it.
        if message.type in ("error", "warning") and "the server responded with a status" not in message.text:
            self.faults.append(f"{self.page.url}: {message.text}")

    def enter(self, member: Any) -> "Window":
        client = Client()
        client.force_login(member.user)
        value = client.cookies[settings.SESSION_COOKIE_NAME].value
        self.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": value, "url": self.address}])
        return self

    def open(self, path: str) -> Any:
        self.page.goto(self.address + path)
        return self.page

    def text(self) -> str:
        return str(self.page.inner_text("body"))


@pytest.fixture
def window(browser: Any, live: str) -> Iterator[Callable[..., Window]]:
    """Opens a window, logged in or not; all of them are closed at the end."""
    opened: list[Window] = []

    def new(member: Any = None, **options: Any) -> Window:
        made = Window(browser, live, **options)
        opened.append(made)
        return made.enter(member) if member else made

    yield new
    for one in opened:
        one.context.close()
