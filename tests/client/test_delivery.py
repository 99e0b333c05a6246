"""From the spool to the server: once, in order, after hours offline, through kills, full disks and torn lines."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memory.hooks import client
from tests.client.machine import SAMPLES, Machine, tool_call, until
from tests.client.scripted import Scripted, scripted

PROMPT = json.loads((SAMPLES / "claude_code" / "UserPromptSubmit.json").read_bytes())
START = json.loads((SAMPLES / "claude_code" / "SessionStart.json").read_bytes())


def numbers(server: Scripted, session: str) -> list[int]:
    """The calls of a session in the order the server got them."""
    mine = [event["payload"] for event in server.events if event["payload"]["session_id"] == session]
    return [int(payload["tool_use_id"].rpartition("_")[2]) for payload in mine]


def spool_at(folder: Path) -> client.Spool:
    folder.mkdir(exist_ok=True)
    return client.Spool(str(folder))


def test_twenty_at_once_all_arrive_once(machine: Machine, server: Scripted) -> None:
    machine.connect(server.address)
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda n: machine.hook("claude_code", "PostToolUse", tool_call(f"p{n}", n)), range(20)))
    until(lambda: len(server.events) == 20, "all arrived")
    assert sorted(event["payload"]["session_id"] for event in server.events) == sorted(f"p{n}" for n in range(20))


def test_what_was_written_offline_arrives_in_order(machine: Machine) -> None:
    with scripted() as away:
        port = away.server_address[1]
    machine.connect(f"http://127.0.0.1:{port}")

    def session(name: str) -> None:
        for number in range(6):
            machine.hook("claude_code", "PostToolUse", tool_call(name, number))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(session, ["a", "b"]))
    assert len(machine.waiting()) == 12
    with scripted(port) as back:
        machine.wake()
        until(lambda: len(back.events) == 12, "all arrived")
        assert (numbers(back, "a"), numbers(back, "b")) == (list(range(6)), list(range(6)))
        until(lambda: not machine.waiting(), "the spool is empty")


def test_a_killed_flusher_loses_and_doubles_nothing(machine: Machine, server: Scripted) -> None:
    machine.connect(server.address)
    server.mode = "held"
    for number in range(3):
        machine.hook("claude_code", "PostToolUse", tool_call("k", number))
    # The server has the batch and the flusher has no answer yet.
    assert server.batch_received.wait(60)
    until(lambda: bool(machine.flusher()), "a flusher holds the lock")
    os.kill(machine.flusher(), signal.SIGKILL)
    server.mode = "well"
    server.released.set()
    for spool in machine.spools():
        (spool / "started").unlink(missing_ok=True)
    machine.hook("claude_code", "PostToolUse", tool_call("k", 3))
    until(lambda: len(server.events) == 4 and not machine.waiting(), "all arrived")
    assert numbers(server, "k") == [0, 1, 2, 3]


def test_the_flusher_outlives_the_harness(machine: Machine, server: Scripted) -> None:
    machine.connect(server.address)
    server.mode = "broken"
    script = f"{sys.executable} -I -S {client.__file__} --client claude_code --event PostToolUse"
    harness = subprocess.Popen(
        ["sh", "-c", f"{script}; sleep 60"],
        stdin=subprocess.PIPE,
        env=machine.environment,
        start_new_session=True,
    )
    assert harness.stdin
    harness.stdin.write(json.dumps(tool_call("o", 1)).encode())
    harness.stdin.close()
    until(lambda: bool(server.calls), "the flusher has tried")
    os.killpg(harness.pid, signal.SIGKILL)
    harness.wait()
    server.mode = "well"
    machine.wake()
    until(lambda: numbers(server, "o") == [1], "it arrived")


def test_an_answer_that_is_cut_off_is_asked_for_again(machine: Machine, server: Scripted) -> None:
    machine.connect(server.address)
    server.mode = "cut_off"
    machine.hook("claude_code", "PostToolUse", tool_call("c", 1))
    assert server.batch_received.wait(60)
    server.mode = "well"
    until(lambda: not machine.waiting(), "the spool is empty")
    assert numbers(server, "c") == [1]


def test_a_prompt_that_timed_out_is_the_same_event_later(machine: Machine, server: Scripted) -> None:
    machine.connect(server.address)
    server.mode = "cut_off"
    machine.hook("claude_code", "SessionStart", START)
    server.mode = "well"
    machine.wake()
    until(lambda: not machine.waiting(), "the spool is empty")
    assert len(server.events) == 1
    assert server.events[0]["key"].startswith("hook-")


def test_behind_a_backlog_a_prompt_only_asks(machine: Machine, server: Scripted) -> None:
    machine.connect(server.address)
    server.mode = "broken"
    machine.hook("claude_code", "PostToolUse", tool_call("q", 1))
    until(lambda: bool(server.calls), "the flusher has failed")
    until(lambda: any((spool / "state.json").exists() for spool in machine.spools()), "it was noted")
    machine.hook("claude_code", "UserPromptSubmit", PROMPT)
    asked = [headers for path, headers, _ in server.calls if "/hooks/" in path]
    assert [headers.get("x-team-memory-tell") for headers in asked] == ["only"]
    assert [line["event"] for line in machine.waiting()] == ["PostToolUse", "UserPromptSubmit"]
    server.mode = "well"
    machine.wake()
    until(lambda: len(server.events) == 2, "both arrived")
    assert [event["event"] for event in server.events] == ["PostToolUse", "UserPromptSubmit"]


def test_one_poisoned_line_is_put_aside_alone(machine: Machine, server: Scripted) -> None:
    machine.connect(server.address)
    for number in range(3):
        machine.hook("claude_code", "PostToolUse", tool_call("x", number, **({"poison": True} if number == 1 else {})))
    until(lambda: numbers(server, "x") == [0, 2], "the others arrived")
    until(lambda: not machine.waiting(), "the spool is empty")
    assert b"not_storable" in (machine.spools()[0] / "refused.log").read_bytes()


def test_a_batch_that_is_too_large_is_halved(machine: Machine, server: Scripted) -> None:
    machine.connect("http://127.0.0.1:9")
    for number in range(4):
        machine.hook("claude_code", "PostToolUse", tool_call("h", number))
    server.mode = "too_large"
    target = client.Target(server.address, "k" * 30, "default")
    lines = [json.dumps(line).encode() for line in machine.waiting()]
    client._deliver(client.Spool(str(machine.spools()[0])), target, lines)
    assert numbers(server, "h") == [0, 1, 2, 3]


def test_a_hook_that_is_called_twice_at_once_is_one_event(machine: Machine, server: Scripted) -> None:
    """Two settings files that both name the script start it twice within milliseconds."""
    machine.connect(server.address)
    note = {"session_id": "t", "hook_event_name": "Notification", "message": "waiting", "cwd": "/nowhere"}
    spool = client.Spool(str(machine.home / "keys"))
    (machine.home / "keys").mkdir()
    call = client.Call("claude_code", "Notification", note)
    assert client.key_of(spool, call) == client.key_of(spool, call)
    other = client.Call("claude_code", "Notification", {**note, "message": "done"})
    assert client.key_of(spool, call) != client.key_of(spool, other)


@pytest.mark.parametrize(
    ("payload", "needed"),
    [
        ({"tool_use_id": "t1"}, False),
        ({"prompt_id": "p1"}, False),
        ({"turn_id": "p1"}, False),
        ({"generation_id": "g1"}, False),
        ({"timestamp": 1795946400000}, False),
        ({"agent_id": "a1"}, False),
        ({"prompt": "yes"}, True),
        ({"source": "startup", "tool_use_id": ""}, True),
    ],
)
def test_a_key_is_given_only_where_the_harness_tells_calls_not_apart(payload: dict[str, Any], needed: bool) -> None:
    assert client.needs_key(payload) is needed


def test_a_torn_line_ends_where_the_next_begins(tmp_path: Path) -> None:
    spool = spool_at(tmp_path / "spool")
    spool.append(b'{"payload": {"a": 1}}')
    [name] = spool.segments()
    with open(spool.path(name), "ab") as file:
        file.write(b'{"payload": {"tor')
    spool.append(b'{"payload": {"b": 2}}')
    found = spool.chunk()
    assert found is not None
    lines = client._in_order(spool, [line for line in found[2].split(b"\n") if line])
    assert lines == [b'{"payload": {"a": 1}}', b'{"payload": {"b": 2}}']


def test_a_spool_knows_where_it_stopped(tmp_path: Path) -> None:
    spool = spool_at(tmp_path / "spool")
    for number in range(client.CHUNK_LINES + 5):
        spool.append(b'{"payload": {"n": %d}}' % number)
    name, end, data = spool.chunk() or ("", 0, b"")
    assert data.count(b"\n") == client.CHUNK_LINES
    assert spool.chunk() == (name, end, data)
    spool.delivered(name, end)
    assert spool.count() == 5
    _, end, data = client.Spool(spool.folder).chunk() or ("", 0, b"")
    assert data.count(b"\n") == 5
    spool.delivered(name, end)
    assert spool.chunk() is None
    assert not spool.has_backlog()


def test_a_full_spool_drops_old_bodies_and_no_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "spool_cap", lambda: 3_000_000)
    spool = spool_at(tmp_path / "spool")
    for number in range(60):
        event = {"payload": tool_call("f", number, tool_response={"stdout": "x" * 100_000})}
        spool.append(json.dumps(event).encode())
    assert sum(spool.size(name) for name in spool.segments()) <= 3_000_000
    kept = []
    while (found := spool.chunk()) is not None:
        kept += [json.loads(line)["payload"] for line in found[2].splitlines()]
        spool.delivered(found[0], found[1])
    assert [payload["tool_use_id"] for payload in kept] == [f"toolu_f_{number}" for number in range(60)]
    assert "100,000 characters, cut" in kept[0]["tool_response"]["stdout"]
    assert kept[-1]["tool_response"]["stdout"] == "x" * 100_000


def test_what_may_have_been_sent_stays_as_it_was_sent(tmp_path: Path) -> None:
    spool = spool_at(tmp_path / "spool")
    line = json.dumps({"payload": tool_call("g", 1, tool_response={"stdout": "x" * 5000})}).encode()
    spool.append(line)
    spool.chunk()
    spool._shrink(0)
    assert (spool.chunk() or ("", 0, b""))[2] == line + b"\n"


def test_a_clock_set_back_puts_nothing_before_older_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = spool_at(tmp_path / "spool")
    monkeypatch.setattr(client, "SEGMENT_BYTES", 1)
    for number, now in enumerate([3_000, 2_000, 1_000]):
        monkeypatch.setattr(client.time, "time_ns", lambda now=now: now)
        spool.append(b'{"payload": {"n": %d}}' % number)
    lines = [Path(spool.path(name)).read_bytes() for name in spool.segments()]
    assert lines == [b'{"payload": {"n": %d}}\n' % number for number in range(3)]


def test_a_full_disk_keeps_what_happened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = spool_at(tmp_path / "spool")
    real = client._append

    def nearly_full(path: str, line: bytes) -> None:
        if len(line) > 2000:
            raise OSError(28, "No space left on device")
        real(path, line)

    monkeypatch.setattr(client, "_append", nearly_full)
    spool.append(json.dumps({"payload": tool_call("e", 1, tool_response={"stdout": "x" * 9000})}).encode())
    found = spool.chunk()
    assert found is not None
    assert json.loads(found[2])["payload"]["tool_use_id"] == "toolu_e_1"


def test_a_write_that_fails_half_way_leaves_no_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "1.ndjson"
    client._append(str(path), b"whole")
    real, tries = os.write, []

    def full(fd: int, content: bytes) -> int:
        if tries:
            raise OSError(28, "No space left on device")
        tries.append(1)
        return real(fd, content[:3])

    monkeypatch.setattr(client.os, "write", full)
    with pytest.raises(OSError, match="No space"):
        client._append(str(path), b"another")
    assert path.read_bytes() == b"whole\n"


def test_a_waiting_call_that_was_killed_is_taken_over(tmp_path: Path) -> None:
    spool = spool_at(tmp_path / "spool")
    left = Path(spool.pend(b'{"payload": {"prompt": "yes"}}'))
    spool.adopt()
    assert left.exists(), "one that may still be on its way is left alone"
    os.utime(left, (1, 1))
    spool.adopt()
    assert not left.exists()
    assert spool.count() == 1


def test_parallel_hooks_are_put_in_the_order_they_began(tmp_path: Path) -> None:
    spool = spool_at(tmp_path / "spool")
    lines = [json.dumps({"occurred_at": at, "payload": {"at": at}}).encode() for at in ("3", "1", "2")]
    assert [json.loads(line)["occurred_at"] for line in client._in_order(spool, lines)] == ["1", "2", "3"]


def test_an_event_no_server_would_take_is_cut(tmp_path: Path) -> None:
    event = {"client": "codex", "payload": tool_call("l", 1, tool_response={"stdout": "x" * 30_000_000})}
    line = client.fitted(event)
    assert len(line) < client.MAX_EVENT
    assert json.loads(line)["payload"]["tool_use_id"] == "toolu_l_1"


def test_keys_of_two_teams_have_two_spools() -> None:
    one, two = (client.Target("https://m.test", key, "environment").spool_name for key in ("a" * 30, "b" * 30))
    assert one != two
    # A rotated key in the user's file takes the old one's place, and what waits goes by it.
    one, two = (client.Target("https://m.test", key, "default").spool_name for key in ("a" * 30, "b" * 30))
    assert one == two
