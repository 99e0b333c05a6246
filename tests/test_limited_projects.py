"""Whoever may not see a limited project can't tell that it is there: walked over every address and every tool.

The addresses and how each is tried stand in tests/test_urls.py, the tools in tests/mcp/test_isolation.py: a new one
can't be forgotten.
"""

import json
import re
from typing import Any

import pytest
from django.test import Client

from memory.tenants import rls
from tests import limited
from tests.conftest import Agent, new_agent
from tests.limited import WORD, World
from tests.mcp import test_isolation as tools
from tests.mcp.asked import Mcp
from tests.pages import made
from tests.test_urls import API, BY_ID, LISTS, NEVER_FOR_KEYS, PAGES, QUERIES, Route, ask, masked, unknown

# Things of the team, of a person, or of a run through all projects: none of these is a project's.
TEAMS = {"key", "colleague", "self", "invitation", "message", "endpoint", "dream", "draft", "filter"}


@pytest.fixture
def secret(acme: Any, mia: Any, alice: Any) -> World:
    """A project with one of everything, which only Mia sees, and Alice, who owns the team."""
    project = limited.project_at(acme, "secret")
    limited.limit(project, mia)
    return limited.world(acme, project, alice)


@pytest.fixture
def narrow(acme: Any, alice: Any) -> Agent:
    """A key of Alice's, who sees everything, that works in one other project only."""
    other = limited.project_at(acme, "other")
    return new_agent(alice, only_projects=[other.pk])


def by_id(routes: list[Route]) -> list[Route]:
    return [route for route in routes if route.name in BY_ID and BY_ID[route.name][1] not in TEAMS]


def shown(browser: Client, route: Route, public_id: str, things: dict[str, str]) -> tuple[int, bytes]:
    answer = ask(browser, route, route.at("acme", public_id), things)
    return answer.status_code, masked(answer, public_id)


def test_a_page_of_a_limited_project_is_the_page_of_an_unknown_id(
    secret: World, logged_in: Any, bob: Any, mia: Any
) -> None:
    in_, out = logged_in(mia), logged_in(bob)
    for route in by_id(PAGES):
        own = secret.things[BY_ID[route.name][1]]
        hidden, none = (shown(out, route, asked, secret.things) for asked in (own, unknown(own)))
        assert hidden == none, route.name
        assert hidden[0] in (403, 404), route.name
        if BY_ID[route.name][0] == "get":
            assert shown(in_, route, own, secret.things)[0] == 200, route.name


def test_an_api_answer_of_a_limited_project_is_the_one_for_an_unknown_id(
    secret: World, narrow: Agent, bob: Any, mia: Any
) -> None:
    in_ = Client(headers=new_agent(mia).headers)
    outs = [Client(headers=new_agent(bob, scopes=EVERY).headers), Client(headers=narrow.headers)]
    for route in by_id(API):
        own = secret.things[BY_ID[route.name][1]]
        for out in outs:
            hidden, none = (shown(out, route, asked, secret.things) for asked in (own, unknown(own)))
            assert hidden == none, route.name
            assert hidden[0] == (403 if route.name in NEVER_FOR_KEYS else 404), route.name
        if BY_ID[route.name][0] == "get":
            assert shown(in_, route, own, secret.things)[0] == 200, route.name


EVERY = ("ingest", "read", "propose", "cache", "dream", "admin")


def page_of(browser: Client, route: Route) -> bytes:
    query = QUERIES.get(route.name, "").replace("acme-only", WORD)
    answer = browser.get(route.at("acme") + query, follow=True)
    body = re.sub(rb'(csrfmiddlewaretoken" value="|X-CSRFToken": ")\w+', rb"\1", answer.getvalue())
    # What is said of the moment, and how full the store is that all of the team's quota hangs on.
    body = re.sub(rb'<time datetime="[^"]*" title="[^"]*">[^<]*', b"NOW", body)
    body = re.sub(rb'\d+\xc2\xa0bytes of|"storage":\{"bytes":\d+', b"BYTES", body)
    return re.sub(rb'"next_cursor":"[^"]*"|cursor=[^"&]*', b"CURSOR", body)


def test_lists_leave_it_out(
    acme: Any, alice: Any, mia: Any, bob: Any, vera: Any, logged_in: Any, narrow: Agent
) -> None:
    """Every list is, byte for byte, what it was before the project came."""
    limited.world(acme, limited.project_at(acme, "open"), bob, word="marmalade")
    askers = [
        *((logged_in(who), PAGES) for who in (bob, vera)),
        (Client(headers=new_agent(bob, scopes=EVERY).headers), API),
        (Client(headers=narrow.headers), API),
    ]
    walks = [(browser, route) for browser, routes in askers for route in routes if LISTS.get(route.name) == "get"]
    before = [page_of(*walk) for walk in walks]
    project = limited.project_at(acme, "secret")
    limited.limit(project, mia)
    hidden = limited.world(acme, project, alice)
    for (browser, route), was in zip(walks, before, strict=True):
        now = page_of(browser, route)
        assert not any(thing.encode() in now for name, thing in hidden.things.items() if name != "shown"), route.name
        # A page that finds says what it was asked for; that it finds nothing is seen by its bytes.
        assert route.name in QUERIES or WORD.encode() not in now, route.name
        assert b"secret/" not in now, route.name
        if not now.startswith(b"PK") and route.name not in COUNTS_CALLS:
            assert now == was, route.name
    seen = logged_in(mia)
    pages = b"".join(page_of(seen, route) for route in PAGES if route.name in ("sessions", "threads", "notes", "inbox"))
    assert pages.count(WORD.encode()) >= 4


# They say what each key was used for, and this walk uses some.
COUNTS_CALLS = {"keys", "connect"}


def test_a_run_shows_of_its_sessions_and_changes_what_is_seen(
    acme: Any, secret: World, logged_in: Any, bob: Any, mia: Any
) -> None:
    with rls.tenant_scope(str(acme.pk)):
        proposal = secret.note.proposals.model.objects.select_related("note").get(public_id=secret.things["proposal"])
    run = made.run(acme, proposals=(proposal,), sessions=(secret.session,))
    inside, outside = (logged_in(who).get(f"/t/acme/dreams/{run.public_id}/").content.decode() for who in (mia, bob))
    assert secret.session.public_id in inside and "project/secret/more.md" in inside
    assert not any(word in outside for word in (secret.session.public_id, "secret", WORD))
    refused = logged_in(bob).post(f"/t/acme/dreams/{run.public_id}/undo/")
    assert refused.status_code == 403 and "secret" not in refused.content.decode()


def test_why_a_run_failed_quotes_no_answer_to_who_does_not_see_all(
    acme: Any, secret: World, narrow: Agent, logged_in: Any, bob: Any, alice: Any
) -> None:
    run = made.run(acme, state="failed", error=f"malformed: the body of project/secret/{WORD}.md is empty")
    paths = ("dreams/", f"dreams/{run.public_id}/", "")
    for path in paths:
        seen, unseen = (logged_in(who).get(f"/t/acme/{path}").content.decode() for who in (alice, bob))
        assert f"{WORD}.md is empty" in seen and "malformed" in unseen and WORD not in unseen, path
    for path in ("dreams", f"dreams/{run.public_id}"):
        said = Client(headers=narrow.headers).get(f"/api/v1/{path}").content.decode()
        assert "malformed" in said and WORD not in said


def answered(out: Mcp, tool: str, arguments: Any, public_id: str) -> str:
    return json.dumps(out.told("tools/call", name=tool, arguments=arguments)).replace(public_id, "ID")


def test_no_tool_steps_into_it(secret: World, narrow: Agent, bob: Any, mia: Any) -> None:
    in_ = Mcp(new_agent(mia))
    for out in (Mcp(new_agent(bob)), Mcp(narrow)):
        for tool, (arguments, kinds) in tools.BY_ID.items():
            for kind in kinds:
                own = secret.things[kind]
                told = [
                    json.dumps(out.told("tools/call", name=tool, arguments=tools.asked(arguments, asked))).replace(
                        asked, "ID"
                    )
                    for asked in (own, tools.unknown(own))
                ]
                assert told[0] == told[1], (tool, kind)
                assert "not_found" in told[0], (tool, kind)
        for tool, arguments in tools.LISTS.items():
            if tool != "propose_note":
                said = json.dumps(out.call(tool, **{**arguments, "q": WORD} if "q" in arguments else arguments))
                assert WORD not in said.replace(f'"{WORD}"', "") and "secret" not in said, tool
        assert "secret" not in json.dumps(out.ask("resources/list"))
        for uri in (f"team-memory://{secret.things['address']}", f"team-memory://notes/{secret.note.public_id}"):
            assert out.told("resources/read", uri=uri)["error"]["data"] == {"code": "not_found", "id": uri}
    assert WORD in json.dumps(in_.call("recall", id=secret.things["thread"]))
    assert WORD in json.dumps(in_.call("search", q=WORD))
