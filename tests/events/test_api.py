"""GET /api/v1/projects, /sessions, /events and POST /api/v1/events/batch."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from memory.events.models import Event, Session
from memory.tenants.models import Member
from tests.conftest import Agent, new_agent

Lines = list[dict[str, Any]]


def line(number: int, session: str = "s1", **more: Any) -> dict[str, Any]:
    payload = {
        "session_id": session,
        "cwd": "/home/dev/shop",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "n": number,
    }
    return {"client": "claude-code", "key": f"{session}:{number}", "payload": payload, **more}


def send(client: Any, lines: Lines | str) -> Any:
    body = lines if isinstance(lines, str) else "\n".join(map(json.dumps, lines))
    return client.post("events/batch", body, content_type="application/x-ndjson")


@pytest.fixture
def client(api: Callable[[Agent], Any], agent: Agent) -> Any:
    return api(agent)


@pytest.fixture
def ids(client: Any) -> dict[str, str]:
    send(client, [line(number) for number in range(5)])
    session = client.get("sessions").json()["items"][0]
    event = client.get(f"sessions/{session['id']}/events").json()["items"][0]
    return {"session": session["id"], "event": event["id"], "project": session["project"]}


def test_a_batch_is_kept_in_order_and_once(client: Any, acme: Any, bound: Any) -> None:
    lines = [line(number, f"s{number % 3}") for number in range(30)]
    assert send(client, lines).json() == {"accepted": 30, "repeated": 0, "refused": []}
    assert send(client, lines).json() == {"accepted": 0, "repeated": 30, "refused": []}
    with bound(acme):
        for session in Session.objects.all():
            kept = [(event.seq, json.loads(event.body or "")["n"]) for event in session.events.order_by("seq")]
            assert kept == [(seq, int(session.key[1:]) + 3 * (seq - 1)) for seq in range(1, 11)]


def test_a_bad_line_is_refused_alone(client: Any, acme: Any, bound: Any) -> None:
    conflicting = {**line(0), "payload": {"session_id": "s1", "other": True}}
    bad = [
        "not json",
        '{"client":"emacs","payload":{"a":1}}',
        '{"client":"codex","payload":[]}',
        '{"client":"codex","event":[],"payload":{"a":1}}',
    ]
    answer = send(
        client, "\n".join([json.dumps(line(0)), *bad, "", json.dumps(line(1)), json.dumps(conflicting)])
    ).json()
    assert (answer["accepted"], answer["repeated"]) == (2, 0)
    assert [(one["line"], one["code"]) for one in answer["refused"]] == [
        (2, "invalid_json"),
        (3, "unknown_client"),
        (4, "not_an_object"),
        (5, "invalid_line"),
        (8, "idempotency_conflict"),
    ]
    with bound(acme):
        assert Event.objects.count() == 2


def test_a_key_twice_in_one_batch_is_one_event(client: Any) -> None:
    assert send(client, [line(1), line(1), line(2)]).json() == {"accepted": 2, "repeated": 1, "refused": []}


def test_the_time_is_what_the_line_says_or_nothing(client: Any, acme: Any, bound: Any) -> None:
    times = ["2026-11-29T10:00:00Z", "1795946400000", 1795946400, "yesterday", None, ""]
    send(client, [line(number, occurred_at=at) for number, at in enumerate(times)])
    with bound(acme):
        kept = [at and at.isoformat() for at in Event.objects.order_by("seq").values_list("occurred_at", flat=True)]
    assert kept == ["2026-11-29T10:00:00+00:00"] * 3 + [None] * 3


def test_lines_carry_their_own_project(client: Any) -> None:
    send(
        client,
        [
            line(1, git_remote="git@github.com:a/shop.git"),
            line(2, "s2", git_remote="https://github.com/A/shop", workspace_root="/x/y"),
        ],
    )
    [project] = client.get("projects").json()["items"]
    assert (project["slug"], project["sessions"]) == ("shop", 2)
    assert {place["place"] for place in project["places"]} == {"github.com/a/shop", "/home/dev/shop", "/x/y"}


def test_pages_go_on_where_they_ended(client: Any) -> None:
    send(client, [line(number) for number in range(5)])
    path = f"sessions/{client.get('sessions').json()['items'][0]['id']}/events"
    first = client.get(path, limit=3).json()
    rest = client.get(path, cursor=first["next_cursor"]).json()
    assert [event["seq"] for event in first["items"] + rest["items"]] == [1, 2, 3, 4, 5]
    assert (first["has_more"], rest["has_more"]) == (True, False)
    send(client, [line(9)])
    assert [event["seq"] for event in client.get(path, cursor=rest["next_cursor"]).json()["items"]] == [6]


@pytest.mark.parametrize("name", ["sessions", "projects"])
def test_lists_are_paged_to_the_end(client: Any, name: str) -> None:
    send(client, [line(0, f"s{number}", workspace_root=f"/src/p{number}") for number in range(7)])
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 3}
    for _ in range(4):
        page = client.get(name, **query).json()
        seen += [item["id"] for item in page["items"]]
        query = {"limit": 3, "cursor": page["next_cursor"]}
    assert len(seen) == len(set(seen)) == 7 and not page["has_more"]


@pytest.mark.parametrize("query", [{"cursor": "AAAA"}, {"limit": 0}, {"limit": 1000}, {"page": 2}])
def test_a_wrong_cursor_or_limit_is_never_page_one(client: Any, query: dict[str, Any]) -> None:
    assert client.get("sessions", **query).status_code == 400


def test_the_newest_sessions_come_first_where_that_is_asked(client: Any) -> None:
    send(client, [line(0, f"s{number}", workspace_root="/src/p") for number in (7, 8)])
    items = client.get("sessions", order="latest").json()["items"]
    assert items == sorted(items, key=lambda one: (one["last_received_at"], one["id"]), reverse=True) and len(items) > 1
    first = client.get("sessions", order="latest", limit=1).json()
    second = client.get("sessions", order="latest", limit=1, cursor=first["next_cursor"]).json()
    assert [*first["items"], *second["items"]] == items[:2]
    assert client.get("sessions", cursor=first["next_cursor"]).json()["code"] == "invalid_cursor"
    assert client.get("sessions", order="size").json()["code"] == "invalid_order"


def test_sessions_of_one_project(client: Any, ids: dict[str, str]) -> None:
    send(client, [line(0, "elsewhere", workspace_root="/src/other")])
    [session] = client.get("sessions", project=ids["project"]).json()["items"]
    assert session["id"] == ids["session"]
    assert client.get("sessions", project="prj_x").status_code == 404


def test_the_payload_comes_whole_or_in_part(client: Any, ids: dict[str, str]) -> None:
    path = f"events/{ids['event']}/payload"
    whole = client.get(path)
    assert whole.json()["n"] == 0 and whole["ETag"].strip('"') == client.get(f"events/{ids['event']}").json()["sha256"]
    for asked, part in (
        ("bytes=0-9", whole.content[:10]),
        ("bytes=5-", whole.content[5:]),
        ("bytes=-4", whole.content[-4:]),
    ):
        answer = client.client.get(f"/api/v1/{path}", headers={"Range": asked})
        assert (answer.status_code, answer.content) == (206, part)
    assert client.client.get(f"/api/v1/{path}", headers={"Range": "bytes=999999-"}).status_code == 416


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("bytes=" + "9" * 5000 + "-", 416),
        ("bytes=-" + "9" * 5000, 206),
        ("bytes=0-" + "9" * 5000, 206),
        ("bytes=-0", 416),
        ("bytes=²-", 200),
        ("bytes=٣-", 200),
    ],
)
def test_no_part_is_too_odd_to_ask_for(client: Any, ids: dict[str, str], asked: str, status: int) -> None:
    headers = {"Range": asked.encode().decode("latin-1")}
    assert client.client.get(f"/api/v1/events/{ids['event']}/payload", headers=headers).status_code == status


@pytest.mark.parametrize("name", ["project", "cursor", "limit", "x"])
@pytest.mark.parametrize("path", ["sessions", "projects", "sessions/{session}/events", "notes", "proposals", "dreams"])
def test_a_nul_in_a_query_is_the_asker_s_fault(client: Any, ids: dict[str, str], path: str, name: str) -> None:
    assert client.get(path.format(**ids), **{name: "a\0"}).status_code == 400


@pytest.mark.parametrize("query", ["space=%00", "space=members/%00", "prefix=%00", "q=%00"])
def test_a_nul_finds_no_note(client: Any, query: str) -> None:
    answer = client.client.get(f"/api/v1/notes?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_parameter")


PATHS = ["sessions/{session}", "sessions/{session}/events", "events/{event}", "events/{event}/payload"]


@pytest.mark.parametrize("path", PATHS)
def test_it_hides_other_teams_and_says_the_same_of_unknown_ids(
    client: Any, api: Callable[[Agent], Any], globex_agent: Agent, ids: dict[str, str], path: str
) -> None:
    mine, theirs = path.format(**ids), path.format(session="ses_none", event="evt_none")
    assert client.get(mine).status_code == 200
    stranger = api(globex_agent)
    foreign, unknown = stranger.get(mine), stranger.get(theirs)
    assert foreign.status_code == unknown.status_code == 404
    asked, missing = (ids["session"], "ses_none") if "session" in path else (ids["event"], "evt_none")
    assert foreign.content.replace(asked.encode(), b"ID") == unknown.content.replace(missing.encode(), b"ID")
    assert stranger.get("sessions").json()["items"] == stranger.get("projects").json()["items"] == []


@pytest.mark.parametrize("path", ["projects", "sessions", *PATHS])
def test_it_needs_a_key_the_scope_and_the_method(
    client: Any, api: Callable[[Agent], Any], alice: Member, ids: dict[str, str], path: str
) -> None:
    path = path.format(**ids)
    assert client.client.get(f"/api/v1/{path}", headers={"Authorization": "Bearer x"}).status_code == 401
    assert api(new_agent(alice, scopes=["ingest"])).get(path).status_code == 403
    assert client.post(path, {}).status_code == 405


@pytest.mark.parametrize("path", ["projects", "sessions", "notes", "proposals", "dreams", "schema", *PATHS])
def test_the_head_of_an_answer_may_be_asked_for(client: Any, ids: dict[str, str], path: str) -> None:
    address = f"/api/v1/{path.format(**ids)}"
    whole, head = client.client.get(address), client.client.head(address)
    assert (whole.status_code, head.status_code, head.content) == (200, 200, b"")
    assert (head["Content-Type"], head["Content-Length"]) == (whole["Content-Type"], str(len(whole.content)))


@pytest.mark.parametrize("path", ["hooks/codex", "events/batch", "sessions/none"])
def test_a_head_is_refused_where_the_whole_would_be(client: Any, path: str) -> None:
    whole, head = client.get(path), client.client.head(f"/api/v1/{path}")
    assert (head.status_code, head.content) == (whole.status_code, b"") and whole.status_code in (404, 405)


def test_the_batch_needs_a_key_the_scope_and_the_method(
    client: Any, api: Callable[[Agent], Any], alice: Member
) -> None:
    assert client.client.post("/api/v1/events/batch", headers={"Authorization": "Bearer x"}).status_code == 401
    assert send(api(new_agent(alice, scopes=["read"])), [line(1)]).status_code == 403
    assert client.get("events/batch").status_code == 405
