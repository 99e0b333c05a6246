"""Chromium for the tests: where it is, how it is started, and what a run says where there is none."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
HINT = "No chromium here, so the browser tests did not run. Get it by: apt-get install chromium"


def path() -> str | None:
    """Where chromium is, or None."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def launched() -> Iterator[Any]:
    """A running chromium, driven by Playwright."""
    from playwright.sync_api import sync_playwright

    # Playwright's synchronous interface runs a loop in this thread, in which Django would refuse the database.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path(), args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()
            del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without chromium its tests are left out, and the rest runs."""
    if path() is None:
        out = [item for item in items if item.get_closest_marker("browser")]
        items[:] = [item for item in items if item not in out]
        config.hook.pytest_deselected(items=out)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if path() is None:
        terminalreporter.write_line(HINT, yellow=True)
