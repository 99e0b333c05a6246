"""`manage.py check_contracts` against servers that break one contract each: caught, named, and tidied up after."""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.management import CommandError

from tests.conftest import Agent, new_agent, served
from tests.graph.made import chain
from tests.graph.proxy import Exchange, Spoil, spoilt
from tests.graph.test_contracts import SCOPES, check

Maker = Callable[[], Spoil]
SPOILT: list[tuple[str, str, Maker]] = []


@pytest.fixture(scope="module")
def address(django_db_setup: None) -> Iterator[str]:
    with served() as url:
        yield url


@pytest.fixture
def checker(committed: None, alice: Any) -> Agent:
    return new_agent(alice, scopes=SCOPES)


def breaks(contract: str, words: str) -> Callable[[Maker], Maker]:
    """Register a maker of spoilers: the contract they break, and what the complaint must say (a pattern)."""

    def keep(maker: Maker) -> Maker:
        SPOILT.append((contract, words, maker))
        return maker

    return keep


def of(pattern: str, *, method: str = "GET", status: int | None = 200) -> Callable[[Spoil], Maker]:
    """A maker of a spoiler of the answers whose path ends so."""

    def make(spoil: Spoil) -> Maker:
        def maker() -> Spoil:
            def only(one: Exchange) -> None:
                if one.method == method and status in (None, one.status) and re.search(pattern + r"/?$", one.path):
                    spoil(one)

            only.__name__ = spoil.__name__
            return only

        maker.__name__ = spoil.__name__
        return maker

    return make


THREAD, WORKER, TRIGGER = (rf"/v1/{door}/[^/]+" for door in ("threads", "workers", "triggers"))
EVENTS, INBOX, PAYLOAD, RECALL = f"{THREAD}/events", f"{WORKER}/inbox", f"{TRIGGER}/payload", "/v1/recall/[^/]+"


@breaks("thread-same-twice", r'expected the same title .*got title "Contract check: twice \(2\)"')
def a_title_changes_on_the_second_read() -> Spoil:
    reads: Counter[str] = Counter()

    def spoil(one: Exchange) -> None:
        if one.method == "GET" and one.status == 200 and re.search(THREAD + "$", one.path):
            reads[one.path] += 1
            if reads[one.path] > 1:
                one.say(one.json() | {"title": f"{one.json()['title']} ({reads[one.path]})"})

    return spoil


@breaks("chain-resolves", r"GET /api/v1/workers/\S+: expected 200, got 404")
@of(WORKER)
def an_owner_is_not_found(one: Exchange) -> None:
    one.say({"code": "not_found"}, 404)


@breaks("chain-resolves", r"GET /api/v1/triggers/\S+: expected 200 \(wkr_\S+ cites it\), got 503")
@of(TRIGGER)
def a_cited_trigger_is_away(one: Exchange) -> None:
    one.status = 503


@breaks("chain-resolves", r"GET /api/v1/triggers/\S+: expected trigger_id")
@of(TRIGGER)
def another_trigger_is_given(one: Exchange) -> None:
    one.say(one.json() | {"trigger_id": "trg_another"})


@breaks("chain-resolves", "expected cites")
@of(WORKER)
def a_citation_is_lost(one: Exchange) -> None:
    one.say(one.json() | {"cites": one.json()["cites"][:1]})


@breaks("existing-resolve", r"GET /api/v1/triggers/\S+: expected 200 or 410 \(it is in thr_\S+\), got 404")
@of(TRIGGER)
def a_trigger_of_an_old_thread_is_lost(one: Exchange) -> None:
    one.say({"code": "not_found"}, 404)


@breaks("existing-resolve", r"GET /api/v1/threads\?limit=50: expected an answer of the documented shape, got KeyError")
@of("/v1/threads")
def the_list_names_no_ids(one: Exchange) -> None:
    page_spoilt(one, [{"id": item["thread_id"]} for item in one.json()["items"]])


@breaks("unknown-404", r"GET /api/v1/threads/thr_\S+: expected 404, got 200")
@of(THREAD, status=404)
def an_unknown_thread_is_fine(one: Exchange) -> None:
    one.say({"thread_id": one.path.rpartition("/")[2]}, 200)


@breaks("unknown-404", r"GET /api/v1/workers/wkr_\S+: expected application/problem\+json, got text/html")
@of(WORKER, status=404)
def an_unknown_worker_is_a_page(one: Exchange) -> None:
    one.kind, one.body = "text/html", b"<h1>Not found</h1>"


@breaks("unknown-404", r"GET /api/v1/triggers/trg_\S+: expected the body of any unknown id")
def an_unknown_trigger_tells_which_kind_it_is() -> Spoil:
    asked: Counter[str] = Counter()

    def spoil(one: Exchange) -> None:
        if one.status == 404 and re.search(TRIGGER + "$", one.path):
            asked[one.path] += 1
            one.body = one.body.replace(b"Unknown id.", b"Unknown id no. %d." % len(asked))

    return spoil


@breaks("never-nearest", r"GET /api/v1/threads/thr_\S+: expected 404, got 200")
def the_nearest_thread_is_given() -> Spoil:
    known: list[str] = []

    def spoil(one: Exchange) -> None:
        if one.method == "POST" and one.status == 201 and one.path.endswith("/threads"):
            known.append(one.json()["thread_id"])
        if one.method == "GET" and one.status == 404 and re.search(THREAD + "$", one.path):
            asked = one.path.rpartition("/")[2]
            near = next((full for full in known if full.startswith(asked)), None)
            if near:
                found = one.ask("GET", f"/api/v1/threads/{near}")
                one.status, one.kind, one.body = found.status, found.kind, found.body

    return spoil


def page_spoilt(one: Exchange, items: list[Any], **more: Any) -> None:
    one.say(one.json() | {"items": items} | more)


@breaks(
    "events-once-in-order",
    r"expected seq \d+ next: every event once, in order, no gaps, got seq \d+ and \d+ is missing",
)
@of(EVENTS)
def an_event_is_dropped(one: Exchange) -> None:
    page_spoilt(one, [item for item in one.json()["items"] if item["seq"] != 5])


@breaks("events-once-in-order", "expected seq")
@of(EVENTS)
def two_events_are_swapped(one: Exchange) -> None:
    items = one.json()["items"]
    page_spoilt(one, [items[1], items[0], *items[2:]] if len(items) > 1 else items)


@breaks("events-once-in-order", r"got seq \d+ again")
@of(EVENTS)
def an_event_comes_twice(one: Exchange) -> None:
    items = one.json()["items"]
    page_spoilt(one, [*items[:1], *items] if items and items[0]["seq"] > 3 else items)


@breaks("events-once-in-order", r"/events\?limit=\d+.*(missed|expected \d+ events)")
@of(EVENTS)
def the_last_page_comes_too_early(one: Exchange) -> None:
    one.say(one.json() | {"has_more": False})


@breaks("events-once-in-order", "expected at most 1 items, got")
@of(EVENTS)
def the_limit_is_not_kept(one: Exchange) -> None:
    if one.query.get("limit") == ["1"]:
        page_spoilt(one, one.json()["items"] * 2)


@breaks("events-once-in-order", "expected a JSON object")
@of(EVENTS)
def a_page_has_another_shape(one: Exchange) -> None:
    one.say([1])


@breaks("inbox-once-in-order", r"/inbox\?limit=2.*expected (seq 2 next|the triggers)")
@of(INBOX)
def an_inbox_loses_one(one: Exchange) -> None:
    page_spoilt(one, [item for item in one.json()["items"] if item["seq"] != 2])


@breaks("cursor-tail-resumes", "got seq 1 again")
@of(EVENTS)
def the_tail_starts_again(one: Exchange) -> None:
    if one.json()["items"]:
        return
    first = one.ask("GET", f"{one.path}?limit=3")
    one.body = first.body


@breaks("cursor-tail-resumes", r"expected .*next_cursor")
@of(EVENTS)
def the_tail_has_no_cursor(one: Exchange) -> None:
    if not one.json()["has_more"]:
        one.say(one.json() | {"next_cursor": None})


@breaks("cursor-wrong-400", r"/events\?limit=1&cursor=\S*: expected 400 invalid_cursor, got 200")
@of(EVENTS, status=400)
def a_wrong_cursor_is_page_one(one: Exchange) -> None:
    first = one.ask("GET", f"{one.path}?limit=1")
    one.status, one.kind, one.body = first.status, first.kind, first.body


@breaks(
    "payload-exact", r"GET /api/v1/triggers/\S+/payload\?part=body: expected 70000 bytes, .*first difference at 1234"
)
@of(PAYLOAD)
def a_byte_is_turned(one: Exchange) -> None:
    if len(one.body) == 70_000:
        one.body = one.body[:1234] + bytes([one.body[1234] ^ 1]) + one.body[1235:]


@breaks("payload-exact", "expected sha256")
@of(PAYLOAD, method="PUT", status=None)
def a_wrong_digest_is_told(one: Exchange) -> None:
    one.say(one.json() | {"sha256": "0" * 64})


@breaks("payload-exact", "expected [0-9]+ bytes")
@of(PAYLOAD)
def line_ends_are_made_alike(one: Exchange) -> None:
    one.body = one.body.replace(b"\r\n", b"\n")


@breaks("payload-pieces", "expected 10 bytes.*got 11 bytes")
@of(PAYLOAD, status=206)
def a_range_is_one_too_long(one: Exchange) -> None:
    if one.headers["x-range"] == "bytes=0-9":
        one.body += b"!"


@breaks("payload-pieces", "expected 206, got 200")
@of(PAYLOAD, status=206)
def a_range_is_ignored(one: Exchange) -> None:
    one.status = 200


@breaks("payload-pieces", r"lines=120-180: expected \d+ bytes")
@of(PAYLOAD)
def a_line_is_missing(one: Exchange) -> None:
    if one.query.get("lines") == ["120-180"]:
        one.body = one.body.partition(b"\n")[2]


@breaks("repeat-is-same", r"POST /api/v1/triggers: expected 200 \(an identical repeat\), got 201")
@of("/v1/triggers", method="POST")
def a_repeat_is_new(one: Exchange) -> None:
    one.status = 201


@breaks("repeat-is-same", "expected trigger_id")
@of("/v1/triggers", method="POST")
def a_repeat_has_another_id(one: Exchange) -> None:
    one.say(one.json() | {"trigger_id": "trg_another"})


@breaks("repeat-is-same", r"expected 409 \(another payload under the same identity\), got 200")
@of("/v1/triggers", method="POST", status=409)
def a_conflict_is_swallowed(one: Exchange) -> None:
    one.say({"trigger_id": one.json()["id"]}, 200)


@breaks("own-id-grammar", r"expected 400 or 409 or 422 .*no id that a caller may choose")
@of("/v1/(threads|triggers|workers)", method="POST", status=400)
def any_id_is_taken(one: Exchange) -> None:
    one.say({"trigger_id": "trg_taken"}, 201)


@breaks("deleted-410", r"expected 410 \(it was deleted\), got 404")
@of(f"({THREAD}|{WORKER}|{TRIGGER})", status=410)
def what_was_deleted_was_never_there(one: Exchange) -> None:
    one.say(one.json(), 404)


@breaks("ids-never-again", r"expected 409 or 410 or 422 \(\S+ was deleted and is never used again\), got 201")
@of("/v1/(threads|triggers|workers)", method="POST", status=409)
def a_deleted_id_is_taken_again(one: Exchange) -> None:
    one.say({"trigger_id": one.json()["id"]}, 201)


@breaks("ids-never-again", r"expected an id that was never used, got trg_\S+, which was")
def a_deleted_id_is_handed_out_again() -> Spoil:
    dead: list[str] = []

    def spoil(one: Exchange) -> None:
        if one.method == "DELETE" and re.search(TRIGGER + "$", one.path):
            dead.append(one.path.rpartition("/")[2])
        if one.method == "POST" and one.status == 201 and one.path.endswith("/triggers") and dead:
            one.say(one.json() | {"trigger_id": dead[0]})

    return spoil


@breaks("recall-same-bytes", r"GET /api/v1/recall/\S+: expected the bytes of the first call")
def recall_shows_a_clock() -> Spoil:
    clock: Counter[str] = Counter()

    def spoil(one: Exchange) -> None:
        if one.status == 200 and re.search(RECALL + "$", one.path):
            clock["ticks"] += 1
            one.say(one.json() | {"now": clock["ticks"]})

    return spoil


@breaks("recall-same-bytes", "which is within three hops")
@of(RECALL)
def recall_does_not_reach_the_cause(one: Exchange) -> None:
    said = one.json()
    one.say(said | {"items": said["items"][:1], "pointers": []})


@breaks("recall-in-budget", r"budget_tokens=200: expected at most 200 tokens, got \d{3}")
@of(RECALL)
def recall_is_over_its_budget(one: Exchange) -> None:
    one.say(one.json() | {"more": "one word after the other " * 60})


@breaks("both-slashes", r"GET /api/v1/threads/\S+/: expected 200 .*got 301")
@of(THREAD)
def a_slash_leads_elsewhere(one: Exchange) -> None:
    if one.path.endswith("/"):
        one.status = 301


@pytest.mark.parametrize(("contract", "words", "maker"), SPOILT, ids=[maker.__name__ for _, _, maker in SPOILT])
def test_it_names_what_broke(
    address: str, checker: Agent, acme: Any, bound: Any, contract: str, words: str, maker: Maker
) -> None:
    theirs = chain(acme)
    with spoilt(address, maker()) as proxied, pytest.raises(CommandError) as raised:
        check(proxied, checker.secret, "--only", contract, "--events", 16)
    assert raised.value.returncode == 1
    assert str(raised.value).startswith(f"{contract} is broken at ")
    assert re.search(words, str(raised.value)), str(raised.value)
    only_left(acme, bound, theirs)


def only_left(acme: Any, bound: Any, theirs: dict[str, str]) -> None:
    """What the team had is there; of the check's own nothing is but tombstones."""
    with bound(acme):
        for rows, kind in ((acme.threads, "thread"), (acme.workers, "worker"), (acme.triggers, "trigger")):
            assert [one.public_id for one in rows.filter(deleted_at__isnull=True)] == [theirs[kind]]


def test_it_tells_what_it_could_not_delete(address: str, checker: Agent) -> None:
    def is_kept(method: str, path: str) -> bool:
        return method == "DELETE" and "contract-" in path and "nobody" not in path

    with spoilt(address, lambda _: None, before=is_kept) as proxied, pytest.raises(CommandError) as raised:
        check(proxied, checker.secret, "--only", "thread-same-twice")
    assert re.search(r"^only-tombstones-left is broken at GET .*expected 410 \(deleted", str(raised.value))


def test_another_team_must_see_nothing(address: str, checker: Agent, globex_agent: Agent) -> None:
    def spoil(one: Exchange) -> None:
        if one.status == 404 and re.search(rf"{WORKER}$", one.path) and one.path.endswith("-ours"):
            one.say(one.json(), 403)

    with spoilt(address, spoil) as proxied, pytest.raises(CommandError) as raised:
        check(proxied, checker.secret, "--only", "other-team-404", "--other-key", globex_agent.secret)
    assert "other-team-404 is broken at GET /api/v1/workers/" in str(raised.value)


def test_a_limit_of_requests_is_waited_for(address: str, checker: Agent) -> None:
    refused, lock = Counter[str](), threading.Lock()

    def spoil(one: Exchange) -> None:
        with lock:
            refused["now"] += 1
            if one.method == "GET" and refused["now"] % 5 == 0:
                one.status, one.headers = 429, {"Retry-After": "0.1"}

    with spoilt(address, spoil) as proxied:
        assert "ok " in check(proxied, checker.secret, "--only", "thread-same-twice")
    assert refused["now"] > 10
