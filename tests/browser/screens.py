"""Fills a team with real sessions and one dream, and takes a picture of every page: `python -m tests.browser.screens`.

Pictures go to ./screenshots: wide (1440) and narrow (390), light and dark.
"""

import os
import sys
from pathlib import Path
from typing import Any

from tests import database  # first: it starts a database and points the settings at it
from tests.browser import chromium, filled

TARGET = database.ROOT / "screenshots"
SIZES = {"wide": (1440, 900), "narrow": (390, 844)}


def shoot(address: str, team: dict[str, Any]) -> None:
    """One picture a page, size and scheme; says which pages scroll sideways or complain in the console."""
    from django.conf import settings
    from django.test import Client

    entered = Client()
    entered.force_login(team["alice"].user)
    cookie = {"name": settings.SESSION_COOKIE_NAME, "value": entered.cookies[settings.SESSION_COOKIE_NAME].value}
    pages, before = filled.addresses(team) | filled.operated(team), filled.outside(team)
    with chromium.launched() as browser:
        for size, (width, height) in SIZES.items():
            for scheme in ("light", "dark"):
                context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
                context.add_cookies([{**cookie, "url": address}])
                page = context.new_page()
                page.on("console", lambda message: print("  console:", message.text, file=sys.stderr))
                for name, path in {**pages, **before}.items():
                    if name in before:
                        context.clear_cookies()
                    page.goto(address + path)
                    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                        print(f"  {name} scrolls sideways at {width}", file=sys.stderr)
                    target = TARGET / f"{name}-{size}-{scheme}.png"
                    # What is beyond three screens looks like what is before, and a picture of it can't be looked at.
                    tall = min(page.evaluate("document.documentElement.scrollHeight"), 3 * height)
                    page.screenshot(path=target, full_page=True, clip={"x": 0, "y": 0, "width": width, "height": tall})
                context.close()


def main() -> None:
    import django
    from django.test.utils import setup_test_environment

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory.settings")
    django.setup()
    setup_test_environment()  # lets Django's test client in by its own host name
    from tests.conftest import served

    TARGET.mkdir(exist_ok=True)
    try:
        team = filled.fill()
        with served() as address:
            shoot(address, team)
    finally:
        database.end()
    print(f"{len(list(Path(TARGET).glob('*.png')))} pictures in {TARGET}")


if __name__ == "__main__":
    main()
