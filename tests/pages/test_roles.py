"""What a role is shown is what it may use: every page is walked, and its buttons and links are tried."""

import re
from collections import Counter
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client
from django.urls import Resolver404, resolve

from memory.tenants.models import Role
from tests.conftest import new_agent
from tests.pages import chains, made
from tests.test_urls import BY_ID, LISTS, PAGES, QUERIES, things  # noqa: F401 - a fixture

# What ends something is tried last: after it the other buttons would find nothing any more.
_ENDS = re.compile(
    r"delete|remove|purge|revoke|discard|disown|withdraw|undo|cancel|logout|reject|dismiss|close|restore"
)


class Shown(HTMLParser):
    """The addresses that a page's forms and buttons post to, each with what goes along, and those its links open."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        self.posts: dict[str, dict[str, str]] = {}
        self.links: set[str] = set()
        self.form: dict[str, str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        if tag == "form" and said.get("method", "get").lower() == "post":
            self.form = self.posts.setdefault(said.get("action") or self.address, {})
        elif tag == "form":
            self.form = None
        if self.form is not None and tag == "input" and said.get("type") == "hidden":
            self.form[said["name"]] = said.get("value", "")
        for name in ("hx-post", "formaction"):
            # What waits for input, as a preview does, is no button.
            if name in said:
                self.posts.setdefault(said[name], {})
        if tag == "a" and said.get("href", "").startswith("/t/"):
            self.links.add(said["href"])

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.form = None


def route_of(address: str) -> str:
    try:
        return str(resolve(address.partition("?")[0].partition("#")[0]).url_name)
    except Resolver404:
        return ""


def opened(browser: Client, everything: dict[str, str]) -> dict[str, Shown]:
    """Every page of the list of routes that this browser may read, by its address."""
    found = {}
    for route in PAGES:
        thing = BY_ID.get(route.name, ("", "note", {}))[1]
        address = route.at("acme", everything[thing]) + QUERIES.get(route.name, "")
        answer = browser.get(address)
        if answer.status_code == 200 and answer["Content-Type"].startswith("text/html"):
            found[address] = Shown(address)
            found[address].feed(answer.content.decode())
    return found


@pytest.fixture
def everything(things: dict[str, str], acme: Any, alice: Any, bob: Any, mia: Any, vera: Any) -> dict[str, str]:  # noqa: F811
    """One of everything, of everybody: what somebody made themselves has other buttons than what others made."""
    chain = chains.answered(acme)
    for member in (vera, mia, bob):
        new_agent(member)
        session = made.session(acme, f"of {member.handle}", member=member)
        made.event(session)
        made.saved_filter(acme, member, query="q=mine&state=any", name="Mine")
        if member != vera:
            made.note(acme, member, path=f"general/{member.handle}.md", is_private=True)
    made.run(acme, state="running")
    made.run(acme, state="failed")
    return {**things, "thread": chain["thread"].public_id, "trigger": chain["run"].public_id}


@pytest.mark.parametrize("role", [Role.VIEWER, Role.MEMBER, Role.REVIEWER])
def test_nobody_is_shown_what_their_role_may_not_use(
    role: str, everything: dict[str, str], vera: Any, mia: Any, bob: Any, logged_in: Any
) -> None:
    member = {Role.VIEWER: vera, Role.MEMBER: mia}.get(Role(role), bob)
    browser = logged_in(member)
    pages = opened(browser, everything)
    assert len(pages) > 40, "the walk found no pages"
    dead: set[str] = set()
    tried: Counter[str] = Counter()
    for address, page in pages.items():
        for link in sorted(page.links):
            name = route_of(link)
            if name and tried[name] < 2:
                tried[name] += 1
                answer = browser.get(unescape(link))
                answer.close()
                if answer.status_code == 403:
                    dead.add(f"{address}: link {link}")
    posts = {action: (address, said) for address, page in pages.items() for action, said in page.posts.items()}
    # Logging out ends the session that the others need.
    posts.pop("/logout/", None)
    for action, (address, said) in sorted(posts.items(), key=lambda item: bool(_ENDS.search(item[0]))):
        answer = browser.post(action, said)
        answer.close()
        if answer.status_code == 403:
            dead.add(f"{address}: button {action}")
    assert sorted(dead) == []
    # It finds what there is: somebody who may do more is shown more.
    assert len(posts) >= {"viewer": 5, "member": 20, "reviewer": 30}[role]
