"""Walks every address: what needs login or a key, and that what is another team's looks like what is not there.

A new address fails here until it says below how it is tried.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tests.cache import made as made_cache
from tests.conftest import new_agent
from tests.graph import made as made_graph
from tests.pages import chains, made

# Open to everyone, on purpose.
PUBLIC = {"home", "healthz", "readyz", "login", "link", "logout", "password", "choose", "schema", "api-docs"}
PUBLIC |= {"invitation", "prove", "account", "logout_everywhere"}
PUBLIC |= {"account_name"}  # it asks for a login itself
PUBLIC |= {"language"}  # who is not logged in has it in a cookie
PUBLIC |= {"login_code", "login_passkey", "login_passkey_begin", "sso", "sso_team", "sso_start", "sso_callback"}
PUBLIC |= {"saml_start", "saml_metadata", "saml_acs", "saml_finish"}
PUBLIC |= {"codes", "codes_off", "recovery_codes", "passkey_add", "passkey_begin", "passkey_rename", "passkey_remove"}
PUBLIC |= {"prove_passkey_begin", "prove_link"}  # these two rows ask for a login themselves
# To whom operates the server; 404 to everybody else: tests/ops/test_operator.py.
PUBLIC |= {
    f"operator{one}" for one in ("", "_new", "_log", "_team", "_suspend", "_resume", "_export", "_delete", "_keep")
}
PUBLIC |= {"metrics"}  # to this machine itself, or by its token
PUBLIC |= {"api-webhook"}  # a call proves itself by its endpoint's secret
PUBLIC |= {"hook-script", "hook-digest"}  # who installs it has no key on that machine yet
PUBLIC |= {"cache-client", "cache-client-digest"}
# Addresses of a team without an id in them: what another team has must not be in the answer.
LISTS = {
    "inbox": "get", "find": "get", "docs": "get", "notes": "get", "note_new": "get", "sessions": "get", "dreams": "get",
    "note_files": "get", "note_deleted": "get", "note_export": "get", "note_preview": "post", "note_draft": "post",
    "dream_start": "post", "dream_budget": "post", "projects": "get", "connect": "get",
    "api-projects": "get", "api-sessions": "get", "api-notes": "get", "api-proposals": "get", "api-dreams": "get",
    "api-hook": "post", "api-events-batch": "post", "api-search": "get",
    "api-cache-lookup": "post", "api-analyses-lookup": "post", "api-semantic-lookup": "post",
    "api-cache-invalidate": "post", "api-cache-incidents": "post", "api-cache-metrics": "get", "api-results": "post",
    "api-usage": "post", "api-cache-store": "put", "api-analysis-store": "put",
    "api-triggers": "post", "api-triggers-batch": "post", "api-threads": "get", "api-thread-index": "get",
    "api-workers": "post",
    "members": "get", "keys": "get", "roles": "get", "audit": "get", "audit_export": "post",
    "purge": "get", "rules": "get", "api-purges": "post", "api-notes-export": "get", "api-notes-import": "post",
    "api-notes-block": "get",
    "threads": "get", "unlinked": "get", "endpoints": "get",
    "mcp": "post",  # its tools are walked in tests/mcp/test_isolation.py
    "caches": "get", "cache_tools": "get", "cache_policy": "get", "cache_try": "post", "cache_entries": "get",
    "cache_purge": "get", "cache_pairs": "get", "cache_analyses": "get", "cache_incidents": "get",
    "cache_repeats": "get", "cache_prompts": "get", "cache_settings": "get",
    "settings": "get", "settings_server": "get", "messages": "get", "message_try": "post", "filter_save": "post",
    "news": "get", "garden": "get", "garden_start": "post", "sign_on": "get", "sign_on_remove": "post",
    "sign_on_saml": "get",
}  # fmt: skip
# What a list needs to be asked.
QUERIES = {"api-search": "?q=acme-only", "find": "?q=acme-only"}
# Addresses with an id: the method, which of the made things the id names, and what else belongs to the request.
BY_ID: dict[str, tuple[str, str, dict[str, str]]] = {
    "proposal": ("get", "proposal", {}),
    "proposal_approve": ("post", "proposal", {"shown": "{shown}"}),
    "proposal_reject": ("post", "proposal", {"reason": "No"}),
    "proposal_edit": ("post", "proposal", {"shown": "{shown}", "text": "Other words\n"}),
    "proposal_foretold": ("get", "proposal", {}),
    "dream_decide": ("get", "dream", {}),
    "proposal_comment": ("post", "proposal", {"text": "Is it so?"}),
    "proposal_assign": ("post", "proposal", {"to": "bob"}),
    "comment_remove": ("post", "comment", {}),
    "finding_dismiss": ("post", "finding", {}),
    "note": ("get", "note", {}),
    "proposal_undo": ("post", "proposal", {}),
    "note_keep": ("post", "note", {"pin": "1"}),
    "note_move": ("post", "note", {"path": "general/moved.md"}),
    "note_blame": ("get", "note", {}),
    "rule_remove": ("post", "rule", {}),
    "report_close": ("post", "report", {"answer": "Mended"}),
    "note_edit": ("post", "note", {"text": "Other words\n", "revision": "1"}),
    "note_draft_discard": ("post", "draft", {}),
    "note_told": ("get", "note", {}),
    "space": ("get", "self", {}),
    "note_history": ("get", "note", {}),
    "note_diff": ("get", "note", {"from": "1", "to": "1"}),
    "note_delete": ("post", "note", {"reason": "No longer true"}),
    "note_revert": ("post", "note", {"revision": "1"}),
    "session": ("get", "session", {}),
    "session_delete": ("post", "session", {}),
    "event": ("get", "event", {}),
    "event_payload": ("get", "event", {}),
    "dream": ("get", "dream", {}),
    "dream_cancel": ("post", "dream", {}),
    "dream_undo": ("post", "dream", {}),
    "dream_replay": ("post", "dream", {"model": "distill"}),
    "event_again": ("post", "event", {}),
    "project_merge": ("post", "project", {"into": "{project}"}),
    "project_limit": ("post", "project", {"for": "some"}),
    "project_map": ("post", "project", {"root": "/srv/somewhere"}),
    "key_revoke": ("post", "key", {}),
    "key_rotate": ("post", "key", {"overlap": "1"}),
    "key_change": ("post", "key", {"name": "Another name", "rate_limit": "100"}),
    "member_role": ("post", "colleague", {"role": "viewer"}),
    "member_remove": ("post", "colleague", {}),
    "member_link": ("post", "colleague", {}),
    "member_unlink": ("post", "colleague", {}),
    "invitation_withdraw": ("post", "invitation", {}),
    "message_again": ("post", "message", {}),
    "filter_change": ("post", "filter", {"name": "Other name"}),
    "filter_remove": ("post", "filter", {}),
    "filter_restore": ("post", "filter", {}),
    "thread": ("get", "thread", {}),
    "thread_edit": ("post", "thread", {"title": "Other words", "state": "open"}),
    "thread_own": ("post", "thread", {"worker_id": "{worker}"}),
    "thread_disown": ("post", "thread", {"worker_id": "{worker}"}),
    "thread_link": ("post", "thread", {"to": "github:acme/later#2"}),
    "thread_unlink": ("post", "thread", {"to": "github:acme/later#2", "kind": "related"}),
    "thread_map": ("get", "thread", {}),
    "trigger": ("get", "trigger", {}),
    "trigger_payload": ("get", "trigger", {}),
    "trigger_raw": ("get", "trigger", {}),
    "worker": ("get", "worker", {}),
    "worker_report": ("get", "worker", {}),
    "endpoint": ("get", "endpoint", {}),
    "endpoint_rotate": ("post", "endpoint", {"overlap": "24"}),
    "endpoint_pause": ("post", "endpoint", {"is_paused": "yes"}),
    "endpoint_change": ("post", "endpoint", {"name": "Another name"}),
    "endpoint_remove": ("post", "endpoint", {}),
    "api-trigger": ("get", "trigger", {}),
    "api-trigger-payload": ("get", "trigger", {}),
    "api-thread": ("get", "thread", {}),
    "api-thread-events": ("get", "thread", {}),
    "api-thread-owners": ("post", "thread", {"worker_id": "{worker}"}),
    "api-thread-links": ("post", "thread", {"key": "github:acme/later#1"}),
    "api-worker": ("get", "worker", {}),
    "api-worker-report": ("get", "worker", {}),
    "api-worker-inbox": ("get", "worker", {}),
    "api-recall": ("get", "thread", {}),
    "api-session": ("get", "session", {}),
    "api-session-events": ("get", "session", {}),
    "api-event": ("get", "event", {}),
    "api-event-payload": ("get", "event", {}),
    "api-note": ("get", "note", {}),
    "api-note-revisions": ("get", "note", {}),
    "api-note-by-path": ("get", "path", {}),
    "api-note-move": ("post", "note", {"path": "general/moved.md"}),
    "api-note-reports": ("post", "note", {"reason": "Not any more"}),
    "api-proposal": ("get", "proposal", {}),
    "api-proposal-approve": ("post", "proposal", {}),
    "api-proposal-reject": ("post", "proposal", {}),
    "api-dream": ("get", "dream", {}),
    "api-dream-cancel": ("post", "dream", {}),
    "api-dream-undo": ("post", "dream", {}),
    "api-dream-replay": ("post", "dream", {}),
    "api-result": ("get", "result", {}),
    "cache_entry": ("get", "cache_key", {}),
    "cache_pair_decide": ("post", "pair", {"verdict": "same"}),
    "cache_analysis": ("get", "analysis", {}),
    "cache_incident": ("get", "incident", {}),
}
# People decide: a key is refused before anything is looked up.
NEVER_FOR_KEYS = {"api-proposal-approve", "api-proposal-reject"}


@dataclass(frozen=True)
class Route:
    """One address of the app, with a hole for the team and one for an id."""

    name: str
    address: str

    def at(self, team: str, public_id: str = "") -> str:
        filled = self.address.replace("<slug:slug>", team).replace("<slug:page>", "start")
        filled = filled.replace("<str:client>", "claude-code").replace("<int:passkey_id>", "1")
        return "/" + re.sub(r"<[a-z]+:[a-z_]+>", lambda _: public_id, filled)


def routes(patterns: list[Any] | None = None, before: str = "") -> Iterator[Route]:
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        address = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, address)
        elif isinstance(pattern, URLPattern):
            yield Route(pattern.name or address, address)


ROUTES = sorted(routes(), key=lambda route: route.address)
PAGES = [route for route in ROUTES if route.address.startswith("t/")]
API = [route for route in ROUTES if route.address.startswith("api/") and route.name not in PUBLIC]


def named(route: Route) -> str:
    return route.name


def test_every_address_is_tried_here() -> None:
    for route in ROUTES:
        kinds = [route.name in kind for kind in (PUBLIC, LISTS, BY_ID)]
        assert sum(kinds) == 1, (
            f"The address {route.address} ({route.name}) is not tried. Add it to LISTS where it holds no id, to BY_ID"
            " with its method and the thing its id names, or to PUBLIC where everyone may open it."
        )


def test_only_what_stands_here_is_public() -> None:
    from django.urls import resolve

    for route in ROUTES:
        view = resolve(route.at("acme", "x")).func
        assert getattr(view, "is_public", False) == (route.name in PUBLIC), route.name


@pytest.fixture
def things(acme: Any, alice: Any, mia: Any) -> dict[str, str]:
    """One of everything in acme."""
    session = made.session(acme, last_prompt="acme-only words")
    event = made.event(session, body='{"prompt": "acme-only words"}')
    note = made.note(acme, alice, text="---\ntitle: acme-only words\n---\n# acme-only words\n")
    proposal = made.proposal(acme, path="general/acme-only.md", rests_on=(event,))
    return {
        "session": session.public_id,
        "event": event.public_id,
        "note": note.public_id,
        "path": f"team/{note.path}",
        "proposal": proposal.public_id,
        "shown": made.shown(proposal),
        "project": made.project(acme, "acme-only").public_id,
        "key": new_agent(alice).key.public_id,
        "colleague": mia.public_id,
        "self": alice.public_id,
        "invitation": made.invitation(acme, alice).public_id,
        "finding": made.finding(note, "acme-only: too long").public_id,
        "comment": made.comment(proposal, alice).public_id,
        "message": made.message(acme).public_id,
        "filter": made.saved_filter(acme, alice).public_id,
        "rule": made.rule(acme, alice).public_id,
        "report": made.report(note, alice).public_id,
        "draft": made.draft(alice, "acme-only words").public_id,
        **made_graph.chain(acme),
        "endpoint": chains.endpoint(acme, alice, name="acme-only endpoint").public_id,
        "dream": made.run(acme, proposals=(proposal,), sessions=(session,)).public_id,
        "result": made_cache.result(acme, alice).public_id,
        **made_cache.shown(acme, alice),
    }


def unknown(public_id: str) -> str:
    """An id of the same form that nobody has."""
    return public_id[:-4] + "0000" if not public_id.endswith(".md") else "team/general/none.md"


def ask(browser: Client, route: Route, url: str, things: dict[str, str]) -> Any:
    method, _, form = BY_ID[route.name]
    filled = {key: value.format(**things) if "{" in value else value for key, value in form.items()}
    if route.name.startswith("api-"):
        body = json.dumps(filled).encode() if method == "post" else b""
        return browser.generic(method.upper(), url, body, "application/json")
    return getattr(browser, method)(url, filled)


def masked(answer: Any, public_id: str) -> bytes:
    """The bytes of an answer without the asked id and the tokens that are random in every answer."""
    content = answer.content.replace(public_id.encode(), b"ID")
    return re.sub(rb'(X-CSRFToken": "|csrfmiddlewaretoken" value=")\w+', rb"\1", content)


@pytest.mark.parametrize("route", PAGES, ids=named)
def test_every_page_needs_login(route: Route, things: dict[str, str]) -> None:
    method, thing, _ = BY_ID.get(route.name, (LISTS.get(route.name, "get"), "note", {}))
    url = route.at("acme", things[thing])
    answer = getattr(Client(), method)(url)
    assert answer.status_code == 302 and answer["Location"].startswith("/login/?next=/t/acme/")


@pytest.mark.parametrize("route", PAGES, ids=named)
def test_every_page_hides_the_team_from_a_stranger(
    route: Route, things: dict[str, str], logged_in: Any, charlie: Any
) -> None:
    method, thing, _ = BY_ID.get(route.name, (LISTS.get(route.name, "get"), "note", {}))
    browser = logged_in(charlie)
    theirs = getattr(browser, method)(route.at("acme", things[thing]))
    none = getattr(browser, method)(route.at("none", things[thing]))
    assert (theirs.status_code, none.status_code) == (404, 404)
    assert masked(theirs, "acme") == masked(none, "none")


@pytest.mark.parametrize("route", [route for route in PAGES if route.name in BY_ID], ids=named)
def test_a_page_for_a_foreign_id_is_the_page_for_an_unknown_one(
    route: Route, things: dict[str, str], logged_in: Any, alice: Any, charlie: Any
) -> None:
    own = things[BY_ID[route.name][1]]
    assert ask(logged_in(alice), route, route.at("acme", own), things).status_code in (200, 302, 409)
    browser = logged_in(charlie)
    foreign, none = (ask(browser, route, route.at("globex", asked), things) for asked in (own, unknown(own)))
    assert (foreign.status_code, none.status_code) == (404, 404)
    assert masked(foreign, own) == masked(none, unknown(own))


@pytest.mark.parametrize("route", [route for route in PAGES if route.name in LISTS], ids=named)
def test_a_list_holds_nothing_of_another_team(
    route: Route, things: dict[str, str], logged_in: Any, charlie: Any
) -> None:
    method = LISTS[route.name]
    answer = getattr(logged_in(charlie), method)(route.at("globex"), follow=True)
    page = answer.getvalue().decode(errors="replace")  # of a file, too; names in a zip are plain
    assert not any(thing in page for thing in (*things.values(), "acme-only"))


@pytest.mark.parametrize("route", API, ids=named)
def test_every_api_address_needs_a_key(route: Route, things: dict[str, str]) -> None:
    method, thing, _ = BY_ID.get(route.name, (LISTS.get(route.name, "get"), "note", {}))
    for headers in ({}, {"Authorization": "Bearer tm_live_no"}, {"Authorization": "Basic YTpi"}):
        answer = Client(headers=headers).generic(method.upper(), route.at("", things[thing]), b"{}", "application/json")
        assert answer.status_code == 401, headers
        assert answer["Content-Type"] == "application/problem+json" and "Bearer" in answer["WWW-Authenticate"]


@pytest.mark.parametrize("route", [route for route in API if route.name in BY_ID], ids=named)
def test_an_api_answer_for_a_foreign_id_is_the_one_for_an_unknown_id(
    route: Route, things: dict[str, str], agent: Any, globex_agent: Any
) -> None:
    own = things[BY_ID[route.name][1]]
    known = ask(Client(headers=agent.headers), route, route.at("", own), things)
    assert known.status_code in ((403,) if route.name in NEVER_FOR_KEYS else (200, 201, 202, 304, 409))
    stranger = Client(headers=globex_agent.headers)
    foreign, none = (ask(stranger, route, route.at("", asked), things) for asked in (own, unknown(own)))
    expected = 403 if route.name in NEVER_FOR_KEYS else 404
    assert (foreign.status_code, none.status_code) == (expected, expected)
    assert masked(foreign, own) == masked(none, unknown(own))
    assert foreign["Content-Type"] == none["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("route", [route for route in API if LISTS.get(route.name) == "get"], ids=named)
def test_an_api_list_holds_nothing_of_another_team(route: Route, things: dict[str, str], globex_agent: Any) -> None:
    answer = Client(headers={**globex_agent.headers, "X-Tenant": "acme"}).get(
        route.at("") + QUERIES.get(route.name, "")
    )
    if answer["Content-Type"] == "application/zip":
        assert answer.status_code == 200 and b"acme" not in answer.content and b"general/" not in answer.content
        return
    if answer["Content-Type"].startswith("text/markdown"):
        assert answer.status_code == 200 and b"acme" not in answer.content and b"nte_" not in answer.content
        return
    assert answer.status_code == 200 and answer.json()["items"] == []
