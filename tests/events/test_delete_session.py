"""DELETE /api/v1/sessions/{id}, the button of the page, and what is left of a session."""

import json
from typing import Any

import pytest

from memory.events.models import Event, Session
from memory.graph.models import Body, Worker
from memory.notes import review
from memory.notes.models import Note, Proposal
from memory.recall.models import Entry, Telling
from memory.tenants.access import member_actor
from memory.tenants.models import AuditEntry
from tests import database
from tests.conftest import Agent, new_agent
from tests.events.test_working import KEY, hook, made_a_pull_request, pass_over
from tests.events.test_working import at_once as at_once
from tests.graph.test_threads import trigger
from tests.pages import made

SECRET_WORDS = "Acquire the rival, codename heron"


@pytest.fixture
def client(api: Any, agent: Agent) -> Any:
    return api(agent)


def recorded(client: Any, key: str = "s1") -> str:
    """A session with a prompt, a large payload and a Stop; its id."""
    hook(client, "SessionStart", key, source="startup")
    hook(client, "UserPromptSubmit", key, prompt=SECRET_WORDS, prompt_id="p1")
    hook(client, "PostToolUse", key, tool_name="Read", tool_use_id="u1", tool_response={"text": "heron " * 5_000})
    hook(client, "Stop", key, last_assistant_message="The heron has landed.")
    return next(row["id"] for row in client.get("sessions").json()["items"] if row["key"] == key)


def event_ids(client: Any, session_id: str) -> list[str]:
    return [row["id"] for row in client.get(f"sessions/{session_id}/events").json()["items"]]


def test_it_takes_everything_that_was_recorded(
    client: Any, api: Any, globex_agent: Agent, acme: Any, bound: Any
) -> None:
    session_id = recorded(client)
    assert client.get("search", q="codename heron").json()["items"]
    events = event_ids(client, session_id)
    answer = client.delete(f"sessions/{session_id}")
    assert (answer.status_code, answer.json()["deleted"], answer.json()["events"]) == (200, True, 4)
    for path in (f"sessions/{session_id}", f"sessions/{session_id}/events", f"recall/{session_id}",
                 *(f"events/{one}{tail}" for one in events for tail in ("", "/payload"))):  # fmt: skip
        gone = client.get(path)
        assert (gone.status_code, gone.json()["code"]) == (410, "gone"), path
    assert client.delete(f"sessions/{session_id}").status_code == 410
    other = api(globex_agent)
    for path in (f"sessions/{session_id}", f"events/{events[0]}", f"events/{events[0]}/payload"):
        unknown = path.replace(path.split("/")[1], f"{path.split('/')[1][:-2]}zz")
        theirs, nobodys = other.get(path), other.get(unknown)
        assert theirs.status_code == nobodys.status_code == 404
        assert theirs.content.replace(path.split("/")[1].encode(), b"") == nobodys.content.replace(
            unknown.split("/")[1].encode(), b""
        )
    assert client.get("sessions").json()["items"] == []
    assert client.get("search", q="codename heron").json()["items"] == []
    with database.migrator() as everything:
        for table in ("events_session", "events_event", "recall_entry", "recall_telling", "tenants_auditentry"):
            rows = everything.execute(b"SELECT t::text FROM %s t" % table.encode()).fetchall()
            assert not any("heron" in str(row) for row in rows), table
    with bound(acme):
        assert Body.objects.count() == Entry.objects.filter(kind="event").count() == 0
        assert AuditEntry.objects.get(action="session.delete").target == session_id


def test_bytes_that_others_hold_too_stay(client: Any, acme: Any, bound: Any) -> None:
    first, large = recorded(client), {"tool_name": "Read", "tool_response": {"text": "heron " * 5_000}}
    payload = {"session_id": "s1", "hook_event_name": "PostToolUse", "cwd": "/home/dev/payments", **large}
    kept = client.post("hooks/codex", {**payload, "tool_use_id": "u1", "session_id": "s1"})["X-Team-Memory-Event"]
    client.delete(f"sessions/{first}")
    assert b"heron" in client.get(f"events/{kept}/payload").content


@pytest.mark.parametrize("many", [1, 25])
def test_what_comes_later_is_refused(client: Any, many: int, acme: Any, bound: Any) -> None:
    client.delete(f"sessions/{recorded(client)}")
    call = {"session_id": "s1", "hook_event_name": "PostToolUse", "tool_use_id": "u9", "cwd": "/home/dev/payments"}
    late = client.post("hooks/claude-code", call)
    assert (late.status_code, late.json()["code"]) == (410, "session_deleted")
    only = client.post("hooks/claude-code", {**call, "hook_event_name": "SessionStart", "source": "resume"},
                       headers={"X-Team-Memory-Tell": "only"})  # fmt: skip
    assert (only.status_code, only.json()) == (200, {})
    payloads = [
        {**call, "session_id": "s1" if number else "s2", "tool_use_id": f"u{number}", "big": "x" * 20_000}
        for number in range(many + 1)
    ]
    lines = [json.dumps({"client": "claude-code", "payload": payload}) for payload in payloads]
    said = client.post("events/batch", "\n".join(lines), content_type="application/x-ndjson").json()
    assert (said["accepted"], said["repeated"], len(said["refused"])) == (1, 0, many)
    assert {one["code"] for one in said["refused"]} == {"session_deleted"}
    with bound(acme):
        assert [one.key for one in Session.objects.all()] == ["s2"]
        assert (Event.objects.count(), Body.objects.count()) == (1, 1)
        assert not Event.with_deleted.filter(session__key="s1").exclude(kind="deleted").exists()


@pytest.mark.parametrize("many", [2, 9])
def test_a_key_of_a_deleted_session_still_serves_another(client: Any, many: int, acme: Any, bound: Any) -> None:
    client.delete(f"sessions/{recorded(client)}")
    payloads = [{"session_id": key, "hook_event_name": "Stop"} for key in ("s1", *("s2",) * (many - 1))]
    lines = [json.dumps({"client": "codex", "key": "one", "payload": payload}) for payload in payloads]
    lines[:0] = [json.dumps({"client": "claude-code", "key": "one", "payload": payloads[0]})]
    said = client.post("events/batch", "\n".join(lines), content_type="application/x-ndjson").json()
    # codex's s1 is another session than the deleted one of Claude Code.
    assert (said["accepted"], said["repeated"], len(said["refused"])) == (1, 0, many)
    assert [one["code"] for one in said["refused"]] == ["session_deleted"] + ["idempotency_conflict"] * (many - 1)
    with bound(acme):
        assert Event.objects.get(key="one").session.key == "s1"


def test_its_own_member_may_and_an_admin(api: Any, alice: Any, bob: Any, mia: Any, vera: Any) -> None:
    of_mia = api(new_agent(mia))
    first, second = recorded(of_mia, "m1"), recorded(of_mia, "m2")
    refused = api(new_agent(bob)).delete(f"sessions/{first}")
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    # An admin's key may so with the scope; their own click needs none.
    assert api(new_agent(alice)).delete(f"sessions/{first}").status_code == 403
    assert api(new_agent(alice, scopes=["read", "admin"])).delete(f"sessions/{first}").status_code == 200
    assert api(new_agent(mia, scopes=["read"])).delete(f"sessions/{second}").status_code == 403
    assert of_mia.delete(f"sessions/{second}").status_code == 200
    assert of_mia.delete("sessions/ses_01k0000000000000000000000x").status_code == 404
    assert of_mia.delete(f"sessions/{second}?keep_report=maybe").status_code == 400


def test_the_worker_and_drafts_go_unless_they_are_to_be_kept(client: Any, acme: Any, alice: Any, bound: Any) -> None:
    trigger(client, KEY)
    for key in ("s1", "s2"):
        made_a_pull_request(client, key)
    pass_over()
    with bound(acme):
        one, two = Session.objects.order_by("key")
        events = [session.events.earliest("seq") for session in (one, two)]
    own = made.proposal(acme, path="general/own.md", rests_on=(events[0],))
    both = made.proposal(acme, path="general/both.md", rests_on=tuple(events))
    with bound(acme):
        workers = {row.session_public_id: row.public_id for row in Worker.objects.all()}
    said = client.delete(f"sessions/{two.public_id}?keep_report=true").json()
    assert (said["workers_kept"], said["workers_deleted"]) == ([workers[two.public_id]], [])
    assert "Retries are idempotent" in client.get(f"workers/{workers[two.public_id]}/report").content.decode()
    said = client.delete(f"sessions/{one.public_id}").json()
    assert (said["workers_deleted"], said["proposals"]) == ([workers[one.public_id]], 2)
    assert client.get(f"workers/{workers[one.public_id]}").status_code == 410
    with bound(acme):
        drafts = dict(Proposal.objects.values_list("note__path", "state"))
        assert drafts["general/own.md"] == "superseded" and Proposal.objects.get(pk=own.pk).text == ""
        assert drafts["general/both.md"] == "superseded" and both.pk  # the other one it rested on was deleted before
    pass_over()
    with bound(acme):
        assert Worker.objects.filter(deleted_at__isnull=True).count() == 1


def test_a_note_keeps_its_citation_as_deleted(client: Any, acme: Any, alice: Any, bound: Any, logged_in: Any) -> None:
    session_id = recorded(client)
    with bound(acme):
        event = Event.objects.get(kind="prompt")
    proposal = made.proposal(acme, path="general/heron.md", rests_on=(event,))
    with bound(acme):
        review.approve(proposal, by=member_actor(alice), shown=bytes(proposal.sha256).hex())
        note = Note.objects.get(path="general/heron.md")
    told = client.post("hooks/claude-code", {"session_id": "s9", "hook_event_name": "SessionStart",
                                             "source": "startup", "cwd": "/home/dev/payments"})  # fmt: skip
    assert note.public_id in str(told.json())
    assert client.delete(f"sessions/{session_id}").json()["proposals"] == 0
    [line, *_] = client.get(f"notes/{note.public_id}").json()["sources"]
    assert line["events"] == line["deleted"] == [event.public_id]
    assert client.get(f"recall/{note.public_id}").status_code == 200
    page = logged_in(alice).get(f"/t/acme/notes/{note.public_id}/").content.decode()
    assert "The session that this came from was deleted" in page and f"/events/{event.public_id}/" not in page
    later = next(row["id"] for row in client.get("sessions").json()["items"])
    client.delete(f"sessions/{later}")
    with bound(acme):
        telling = Telling.objects.get()
        assert telling.text == "" and telling.notes.get().note_id == note.pk


def test_the_button_asks_and_then_deletes(
    client: Any, logged_in: Any, alice: Any, bob: Any, charlie: Any, acme: Any, bound: Any
) -> None:
    session_id = recorded(client)
    url = f"/t/acme/sessions/{session_id}/"
    assert "Delete this session" in logged_in(alice).get(url).content.decode()
    assert "Delete this session" not in logged_in(bob).get(url).content.decode()
    assert logged_in(bob).post(f"{url}delete/").status_code == 403
    assert logged_in(charlie).post(f"{url}delete/").status_code == 404
    assert logged_in(alice).get(f"{url}delete/").status_code == 405
    answer = logged_in(alice).post(f"{url}delete/", follow=True)
    assert answer.redirect_chain == [("/t/acme/sessions/", 302)] and "4 events" in answer.content.decode()
    assert logged_in(alice).get(url).status_code == 404
