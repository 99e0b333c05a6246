"""The client against the real server."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from memory.events.models import Event, Session
from memory.hooks.client import Target, needs_key
from memory.hooks.payloads import Told, canonical
from memory.ops import teams
from memory.tenants.models import Tenant
from tests import limited
from tests.client.machine import SAMPLES, SCRIPT, Machine, tool_call, until
from tests.conftest import Agent, free_port, new_agent, served

FILES = sorted(path for path in SAMPLES.glob("*/*.json"))


def stored(bound: Any, tenant: Tenant) -> list[tuple[str, str]]:
    with bound(tenant):
        return list(Event.objects.order_by("session_id", "seq").values_list("session__client", "name"))


def is_in_shape(name: str, said: Any) -> bool:
    """Nothing, or the harness's own keys and no other; what the sessions before did is told to those that ask."""
    if said is None or said == {"continue": True}:
        return True
    match name:
        case "cursor" | "cursor_via_claude_settings":
            return set(said) <= {"continue", "additional_context"} and "<team-memory" in said["additional_context"]
        case "copilot_cli":
            return set(said) == {"additionalContext"}
        case "claude_code" | "codex" | "gemini_cli" | "opencode":
            inner = said["hookSpecificOutput"]
            return set(said) == {"hookSpecificOutput"} and set(inner) == {"hookEventName", "additionalContext"}
    return False


def test_every_sample_becomes_one_row_by_both_ways(
    live: str, acme: Tenant, agent: Agent, bound: Any, machine: Machine
) -> None:
    """Through the client, then raw: where the harness tells two calls apart, both ways make one event."""
    machine.connect(live, agent.secret)
    browser = Client(headers=agent.headers)
    identities: set[Any] = set()
    wanted = set()
    raw_only = 0
    for path in FILES:
        body = path.read_bytes()
        payload = json.loads(body)
        event = path.stem.split(".")[0]
        said = machine.hook(path.parent.name, event, body)
        assert is_in_shape(path.parent.name, said), f"{path}: {said}"
        seen = canonical(path.parent.name, payload, Told(event=event))
        assert needs_key(payload) is (not seen.key), f"{path}: client and server disagree on what tells calls apart"
        identities.add((seen.client, seen.session_key, seen.key) if seen.key else path)
        wanted.add((seen.client, seen.session_key))
        raw_only += needs_key(payload)
    until(lambda: len(stored(bound, acme)) == len(identities), "all are stored")
    until(lambda: not machine.waiting(), "nothing waits")
    for path in FILES:
        body = path.read_bytes()
        event = path.stem.split(".")[0]
        answer = browser.post(f"/api/v1/hooks/{path.parent.name}?event={event}", body, content_type="application/json")
        assert answer.status_code == 200, answer.content
        if not needs_key(json.loads(body)):
            assert answer["X-Team-Memory-Outcome"] == "repeat", path
    assert len(stored(bound, acme)) == len(identities) + raw_only
    with bound(acme):
        found = {(client, key) for client, key in Session.objects.values_list("client", "key")}
    assert found == wanted


def test_offline_then_online(acme: Tenant, agent: Agent, bound: Any, machine: Machine) -> None:
    machine.connect("http://127.0.0.1:9", agent.secret)
    start = {"session_id": "off", "hook_event_name": "SessionStart", "source": "startup", "cwd": "/nowhere/shop"}
    assert machine.hook("claude_code", "SessionStart", start) is None
    for number in range(3):
        machine.hook("claude_code", "PostToolUse", tool_call("off", number))
    stop = {"session_id": "off", "hook_event_name": "Stop", "prompt_id": "p", "cwd": "/nowhere/shop"}
    machine.hook("claude_code", "Stop", stop)
    with served() as address:
        # The spool belongs to the address: the server is what comes back, so the file points where it answers.
        [old] = machine.spools()
        old.rename(old.with_name(Target(address, agent.secret, "default").spool_name))
        machine.connect(address, agent.secret)
        until(lambda: not machine.flusher(), "the one for the other address has ended")
        machine.hook("claude_code", "PostToolUse", tool_call("off", 3))
        until(lambda: len(stored(bound, acme)) == 6, "all are stored")
    names = [name for _, name in stored(bound, acme)]
    assert names == ["SessionStart", "PostToolUse", "PostToolUse", "PostToolUse", "Stop", "PostToolUse"]


def test_what_a_suspended_team_is_sent_waits_here(
    live: str, acme: Tenant, agent: Agent, bound: Any, machine: Machine
) -> None:
    machine.connect(live, agent.secret)
    by = teams.command("suspend_tenant")
    teams.suspend(teams.on_server("acme")[0], by=by)
    start = {"session_id": "shut", "hook_event_name": "SessionStart", "source": "startup", "cwd": "/nowhere/shop"}
    assert machine.hook("claude_code", "SessionStart", start) is None
    machine.hook("claude_code", "PostToolUse", tool_call("shut", 0))
    assert b"the team is suspended" in machine.run("doctor").stdout
    assert stored(bound, acme) == [] and machine.waiting()
    teams.resume(teams.on_server("acme")[0], by=by)
    machine.hook("claude_code", "PostToolUse", tool_call("shut", 1))
    until(lambda: len(stored(bound, acme)) == 3, "all are stored")
    assert [name for _, name in stored(bound, acme)] == ["SessionStart", "PostToolUse", "PostToolUse"]


def test_a_question_without_its_event_stores_nothing(acme: Tenant, agent: Agent, bound: Any) -> None:
    browser = Client(headers={**agent.headers, "X-Team-Memory-Tell": "only"})
    body = (SAMPLES / "cursor" / "beforeSubmitPrompt.json").read_bytes()
    answer = browser.post("/api/v1/hooks/cursor", body, content_type="application/json")
    assert (answer.status_code, answer.json()) == (200, {"continue": True})
    assert "X-Team-Memory-Event" not in answer
    with bound(acme):
        assert (Event.objects.count(), Session.objects.count()) == (0, 0)


def test_a_question_needs_the_right_to_record(acme: Tenant, vera: Any, agent: Agent) -> None:
    reader = new_agent(vera)
    for headers, status in (({"Authorization": "Bearer no"}, 401), (reader.headers, 403)):
        browser = Client(headers={**headers, "X-Team-Memory-Tell": "only"})
        assert browser.post("/api/v1/hooks/codex", {"session_id": "s"}, "application/json").status_code == status


def test_doctor_search_recall_and_delete(live: str, acme: Tenant, agent: Agent, machine: Machine, api: Any) -> None:
    machine.connect(live, agent.secret)
    assert machine.run("install", "--client", "cursor", "--yes").returncode == 0
    machine.hook("cursor", "sessionStart", (SAMPLES / "cursor" / "sessionStart.json").read_bytes())
    done = machine.run("doctor")
    assert done.returncode == 0, done.stdout.decode()
    for part in (b"the server answers", b"the key is valid", b"clock agrees", b"last event", b"nothing waits"):
        assert part in done.stdout
    assert json.loads(machine.run("search", "rounding", "totals").stdout)["items"] == []
    missing = machine.run("recall", "thr_nothing")
    assert missing.returncode == 1
    assert missing.stderr.startswith(b"Unknown id")
    [session] = api(agent).get("sessions").json()["items"]
    unasked = machine.run("delete-session", session["id"])
    assert unasked.returncode == 1 and b"--yes" in unasked.stderr
    later = {"session_id": "later", "hook_event_name": "SessionStart", "source": "startup", "cwd": "/src/x"}
    machine.hook("claude_code", "SessionStart", later)
    newest = api(agent).get("sessions?order=latest").json()
    assert [one["id"] for one in newest["items"]][1:] == [session["id"]]
    assert newest["items"][0]["id"].encode() in machine.run("doctor").stdout
    assert machine.run("delete-session", session["id"], "--yes").returncode == 0
    assert machine.run("delete-session", "ses_nothing", "--yes").returncode == 1
    machine.connect(live, agent.secret[:-1] + ("y" if agent.secret.endswith("x") else "x"))
    assert b"the key is not valid" in machine.run("doctor").stdout


@pytest.mark.parametrize("address", ["/clients/hook.py", "/clients/hook.py.sha256"])
def test_the_script_is_open_to_everyone(address: str, committed: None) -> None:
    answer = Client().get(address)
    digest = hashlib.sha256(SCRIPT.read_bytes()).hexdigest()
    assert (answer.status_code, answer["X-Content-SHA256"]) == (200, digest)
    assert answer.content in (SCRIPT.read_bytes(), f"{digest}  hook.py\n".encode())
    assert Client(headers={"If-None-Match": answer["ETag"]}).get(address).status_code == 304
    assert Client().head(address).status_code == 200
    assert Client().post(address).status_code == 405


def test_the_files_are_samples_of_every_harness() -> None:
    names = {path.parent.name for path in FILES}
    assert {"claude_code", "codex", "cursor", "gemini_cli", "copilot_cli", "opencode", "vscode"} <= names
    assert Path(SCRIPT).name == "client.py"


# A harness that calls the hook 1,250 times: each call is a process of its own, forked instead of started, which spares
# the test an hour of interpreters starting.
HARNESS = """
import os, sys, time
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import client
import json
for number in range(int(sys.argv[3])):
    call = {
        "session_id": sys.argv[2], "hook_event_name": "PostToolUse", "tool_name": "Bash", "cwd": "/nowhere/shop",
        "tool_use_id": f"u{number}", "tool_input": {"command": f"echo {number}"}, "tool_response": {"stdout": "x"},
    }
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(writer)
        os.dup2(reader, 0)
        sys.stdin = open(0)
        client.STARTED_AT, client.STARTED = time.time_ns(), time.monotonic()
        client.main(["--client", "claude_code", "--event", "PostToolUse"])
    os.close(reader)
    os.write(writer, json.dumps(call).encode())
    os.close(writer)
    assert os.wait()[1] == 0
"""


@pytest.mark.slow
def test_5000_events_of_four_clients_wait_for_the_server_and_arrive_once_in_order(
    acme: Tenant, agent: Agent, bound: Any, machine: Machine
) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    machine.connect(address, agent.secret)
    command = [sys.executable, "-I", "-S", "-c", HARNESS, str(SCRIPT)]
    clients = [
        subprocess.Popen([*command, f"s{number}", "1250"], env=machine.environment, stderr=subprocess.PIPE)
        for number in range(4)
    ]
    for one in clients:
        assert (one.communicate()[1], one.returncode) == (b"", 0)
    assert len(machine.waiting()) == 5_000
    with served(int(address.rpartition(":")[2])):
        machine.wake()
        until(lambda: len(stored(bound, acme)) == 5_000, "all are stored")
        until(lambda: not machine.waiting(), "nothing waits")
    with bound(acme):
        for session in Session.objects.all():
            uses = list(session.events.order_by("seq").values_list("seq", "tool_use_id"))
            assert uses == [(number + 1, f"u{number}") for number in range(1250)], session.key
        assert Session.objects.count() == 4


def test_what_waits_for_an_old_address_goes_to_the_new_one_and_is_said_aloud(
    live: str, acme: Tenant, agent: Agent, bound: Any, machine: Machine
) -> None:
    machine.connect("http://127.0.0.1:9", agent.secret)
    machine.hook("claude_code", "PostToolUse", tool_call("old", 1))
    until(lambda: machine.flusher() > 1, "it waits for its server")
    os.kill(machine.flusher(), signal.SIGKILL)  # as a restart of the machine would
    done = machine.run("install", "--client", "claude-code", "--url", live, "--key", agent.secret, "--yes")
    assert done.returncode == 0 and b"1 events that wait for the address before" in done.stdout
    until(lambda: len(stored(bound, acme)) == 1, "it is stored")
    until(lambda: not machine.waiting(), "nothing waits")
    # One whose address is known no more at all.
    [spool] = machine.spools()
    lost = spool.with_name("0123456789abcdef")
    lost.mkdir(mode=0o700)
    line = {"client": "claude_code", "event": "PostToolUse", "payload": tool_call("lost", 1)}
    (lost / "00000000000000000001.ndjson").write_text(json.dumps(line) + "\n")
    said = machine.run("doctor").stdout
    assert b"1 events wait for an address or key that is not configured any more" in said and b"--adopt" in said
    assert len(stored(bound, acme)) == 1
    machine.run("doctor", "--adopt")
    until(lambda: len(stored(bound, acme)) == 2, "it is stored too")


def test_an_event_of_a_closed_project_stays_whole_on_the_machine(
    live: str, acme: Tenant, bound: Any, bob: Any, mia: Any, machine: Machine
) -> None:
    """No hook fails, the server keeps nothing, and what it refused can be sent again once the project is open."""
    project = limited.project_at(acme, "secret")
    limited.limit(project, mia)
    machine.connect(live, new_agent(bob).secret)
    closed, open_ = ({**tool_call(name, 1), "cwd": f"/src/{name}"} for name in ("secret", "open"))
    for payload in (closed, open_):
        assert machine.hook("claude_code", "PostToolUse", payload) is None
    start = {"session_id": "secret", "cwd": "/src/secret", "hook_event_name": "SessionStart", "source": "startup"}
    assert machine.hook("claude_code", "SessionStart", start) is None

    def refused() -> list[tuple[str, Any]]:
        lines = [line for spool in machine.spools() if (spool / "refused.log").exists()
                 for line in (spool / "refused.log").read_text().splitlines()]  # fmt: skip
        parts = [line.split("\t", 1) for line in lines]
        return [(json.loads(about)["code"], json.loads(line)["payload"]) for about, line in parts]

    until(lambda: len(refused()) == 2 and not machine.waiting(), "both are put aside")
    assert {code for code, _ in refused()} == {"project_closed"}
    kept = {payload["hook_event_name"]: payload for _, payload in refused()}
    assert kept["PostToolUse"]["tool_use_id"] == closed["tool_use_id"] and kept["SessionStart"]["cwd"] == "/src/secret"
    assert stored(bound, acme) == [("claude_code", "PostToolUse")]
