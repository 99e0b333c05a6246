"""The client for tool authors against a real server: what runs once, what is not kept, what is never waited for."""

import ast
import asyncio
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from cache_admin import client, policies
from cache_admin.client import Cache, cached, files, tree
from memory.hooks import client as hook
from memory.tenants.access import member_actor
from tests.cache import replay
from tests.conftest import Agent, new_agent, served

SCRIPT = Path(client.__file__)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text("def a(): ...\n")
    return tmp_path


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """One server for all tests here: starting it takes longer than they do."""
    with served() as running:
        yield running


@pytest.fixture
def desk(address: str, committed: None, agent: Agent, root: Path) -> Cache:
    return Cache(address, agent.secret, root=str(root), project="shop", timeout=20)


def reader(cache: Cache, ran: "Counter[str]", *, takes: float = 0, **more: Any) -> Callable[..., Any]:
    """A tool that reads a file, and counts that it ran."""

    @cached("read_file", cache=cache, content=files("path"), version="1", **more)
    def read_file(path: str, answer: Any = None) -> Any:
        ran["read"] += 1
        time.sleep(takes)
        return answer if answer is not None else Path(path).read_text()

    return read_file


def test_it_is_served_as_one_file_that_needs_nothing() -> None:
    content = SCRIPT.read_bytes()
    parsed = ast.parse(content, feature_version=(3, 8))
    named = {
        alias.name.split(".")[0] for node in ast.walk(parsed) if isinstance(node, ast.Import) for alias in node.names
    }
    named |= {str(node.module).split(".")[0] for node in ast.walk(parsed) if isinstance(node, ast.ImportFrom)}
    assert named <= sys.stdlib_module_names
    assert Client().get("/clients/python/team_memory.py").content == content
    digest = hashlib.sha256(content).hexdigest()
    assert Client().get("/clients/python/team_memory.py.sha256").content == f"{digest}  team_memory.py\n".encode()
    for address in ("/clients/python/team_memory.py", "/clients/python/team_memory.py.sha256"):
        assert Client().post(address).status_code == 405


def test_a_tool_runs_again_only_when_its_file_is_another(desk: Cache, address: str, bob: Any, root: Path) -> None:
    ran: Counter[str] = Counter()
    file, linked = root / "a.py", root / "b.py"
    linked.symlink_to(file)
    read = reader(desk, ran)
    assert read(str(file)) == read(str(linked)) == read(path=str(file)) == file.read_text() and ran["read"] == 1
    other = reader(Cache(address, new_agent(bob).secret, root=str(root), project="shop"), ran)
    assert other(str(file)) == file.read_text() and ran["read"] == 1
    file.write_text("changed\n")
    assert read(str(file)) == other(str(file)) == "changed\n" and ran["read"] == 2
    assert desk.stats == {"hit": 2, "miss": 2, "stored": 2}
    alone = reader(Cache(address, new_agent(bob).secret, root=str(root), project="shop", scope="member"), ran)
    assert alone(str(file)) == "changed\n" and ran["read"] == 3, "another scope is another audience"
    elsewhere = reader(Cache(address, new_agent(bob).secret, root=str(root), project="blog"), ran)
    assert elsewhere(str(file)) == "changed\n" and ran["read"] == 4


def test_where_a_tool_stands_and_what_it_was_made_with_tell_calls_apart(
    desk: Cache, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", "-C", str(root), *command], check=True)
    (root / "sub").mkdir()
    (root / "sub" / "b.py").write_text("b")

    def listing(ending: str) -> Callable[[str], list[str]]:
        @cached("LS", cache=desk, content=tree())
        def ls(path: str = ".") -> list[str]:
            return [one.name for one in sorted(Path(path).iterdir()) if one.name.endswith(ending)]

        return ls

    for ending, place, found in ((".py", root, ["a.py"]), (".py", root / "sub", ["b.py"]), ("b", root, ["sub"])):
        monkeypatch.chdir(place)
        ls = listing(ending)
        assert ls(".") == ls(".") == found
    assert desk.stats == {"miss": 3, "stored": 3, "hit": 3}


def test_what_the_digest_of_a_tree_does_not_see_is_not_kept(
    desk: Cache, root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    for folder in (root, root / "made"):
        folder.mkdir(exist_ok=True)
        (folder / "link").symlink_to(outside)
    (root / ".gitignore").write_text("made\n")
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", "-C", str(root), *command], check=True)
    monkeypatch.chdir(root)
    ran: Counter[str] = Counter()

    def ls(path: Any, *, kind: Any) -> Any:
        @cached("LS", cache=desk, content=kind, version="1")
        def run(path: Any) -> str:
            ran[str(path)] += 1
            return "text"

        return run(path)

    beyond = [str(outside), "link", f"{outside}/*.py", ["a.py", "made"], "made/link", ".git", "../*", f"{root}/.."]
    for path in beyond:
        assert ls(path, kind=tree()) == ls(path, kind=tree()) == "text" and ran[str(path)] == 2, path
    assert ls("made", kind=files("path")) == ls("made", kind=files("path")) == "text" and ran["made"] == 2
    assert desk.stats["hit"] == desk.stats["stored"] == 0
    for path in ("a.py", "*.py", "/[a-z]+", "words", str(root)):
        assert ls(path, kind=tree()) == ls(path, kind=tree()) == "text" and ran[str(path)] == 1, path


ODD = [(1, 2), {1: "a"}, b"x", float("nan"), "\ud800", object(), {"n": 1.5, "of": [True, None]}]


def test_a_hit_is_the_very_value_that_the_tool_gave(desk: Cache, root: Path) -> None:
    """What JSON would change is not kept, and whoever asks next runs at once."""
    ran: Counter[int] = Counter()

    @cached("read_file", cache=desk, content=files("path"), version="1")
    def read_file(path: str, number: int) -> Any:
        ran[number] += 1
        return ODD[number]

    for number, answer in enumerate(ODD):
        assert read_file(str(root / "a.py"), number) is answer
        again = read_file(str(root / "a.py"), number)
        is_kept = number == len(ODD) - 1
        assert ran[number] == (1 if is_kept else 2) and (again == answer if is_kept else again is answer)
    assert "wait" not in desk.stats and "fault" not in desk.stats


def test_errors_changes_and_what_has_no_digest_are_not_kept(desk: Cache, root: Path) -> None:
    ran: Counter[str] = Counter()
    file = root / "a.py"

    @cached("read_file", cache=desk, content=files("path"), version="1")
    def read_file(path: str, do: str) -> str:
        ran[do] += 1
        if do == "raise":
            raise ValueError("no")
        if do == "change":
            file.write_text(f"{ran[do]}\n")
        return "read"

    for do in ("raise", "raise"):
        with pytest.raises(ValueError, match="no"):
            read_file(str(file), do)
    assert [read_file(str(file), "change"), read_file(str(file), "change")] == ["read", "read"]
    assert [read_file(str(root / "none.py"), "gone"), read_file(str(root / "none.py"), "gone")] == ["read", "read"]
    assert ran == {"raise": 2, "change": 2, "gone": 2} and "stored" not in desk.stats


def test_64_callers_of_a_cold_key_run_the_tool_once(desk: Cache, root: Path) -> None:
    ran: Counter[str] = Counter()
    read = reader(desk, ran, takes=0.3)
    gate, answers = threading.Barrier(64), []

    def ask() -> None:
        gate.wait()
        answers.append(read(str(root / "a.py")))

    threads = [threading.Thread(target=ask) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert ran["read"] == 1, desk.stats
    assert answers == [(root / "a.py").read_text()] * 64


LEADER = """
import sys, time
sys.path.insert(0, sys.argv[1])
import client
desk = client.Cache(sys.argv[2], sys.argv[3], root=sys.argv[4], project="shop", timeout=20)
@client.cached("read_file", cache=desk, content=client.files("path"), version="1", lease_s=2)
def read_file(path, answer=None):
    print("runs", flush=True)
    time.sleep(60)
read_file(sys.argv[4] + "/a.py")
"""


def test_when_the_leader_is_killed_one_other_runs(desk: Cache, address: str, agent: Agent, root: Path) -> None:
    """Its lease is made to last as long as it lives, and ends soon after."""
    command = [sys.executable, "-c", LEADER, str(SCRIPT.parent), address, agent.secret, str(root)]
    leader = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert leader.stdout is not None and leader.stdout.readline() == b"runs\n"
    ran: Counter[str] = Counter()
    read = reader(desk, ran, takes=0.1, lease_s=2)
    threads = [threading.Thread(target=read, args=(str(root / "a.py"),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(3)
    assert ran["read"] == 0, "the leader is alive"
    os.kill(leader.pid, signal.SIGKILL)
    leader.wait(10)
    for thread in threads:
        thread.join(60)
    assert ran["read"] == 1
    assert read(str(root / "a.py")) and ran["read"] == 1


def test_async_tools(desk: Cache, root: Path) -> None:
    ran: Counter[str] = Counter()

    @cached("read_file", cache=desk, content=files("path"), version="1")
    async def read_file(path: str) -> str:
        ran["read"] += 1
        await asyncio.sleep(0.2)
        return "text"

    async def both() -> list[str]:
        return await asyncio.gather(*(read_file(str(root / "a.py")) for _ in range(8)))

    assert asyncio.run(both()) == ["text"] * 8 and ran["read"] == 1
    with pytest.raises(TypeError, match="return the whole"):
        cached("x")(lambda: (yield))


def test_a_shadow_run_tells_the_server_what_the_tool_says_now(
    desk: Cache, acme: Any, alice: Any, bound: Any, root: Path
) -> None:
    with bound(acme):
        policies.save(acme, "read_file", by=member_actor(alice), shadow_percent=100)
    said = iter(["old", "new", "new"])

    @cached("read_file", cache=desk, content=files("path"), version="1")
    def read_file(path: str) -> str:
        return next(said)

    assert [read_file(str(root / "a.py")) for _ in range(2)] == ["old", "new"]
    assert desk.stats["shadow"] == 1
    with bound(acme):
        assert [one.kind for one in acme.cache_incidents.all()] == ["shadow"]


def test_the_other_doors(desk: Cache, root: Path) -> None:
    ran: Counter[str] = Counter()
    for number in range(48):
        (root / f"f{number}.py").write_text(f"x = {number}\n")
    paths = [str(root / f"f{number}.py") for number in range(48)]

    def count(path: str) -> Any:
        ran["analysed"] += 1
        return {"lines": 1}

    first = desk.analyse(paths, "outline", "1", count)
    for number in range(12):
        (root / f"f{number}.py").write_text(f"y = {number}\n")
    assert desk.analyse(paths, "outline", "1", count) == first
    assert ran["analysed"] == 48 + 12
    kept = desk.keep(
        "\n".join(f"{number}: INFO step {number}" for number in range(500)) + "\nERROR it broke", kind="logs"
    )
    assert kept is not None and "ERROR it broke" in kept["summary"]
    assert desk.expand(kept["result_id"], grep="broke") == "501:ERROR it broke"
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5}
    assert desk.usage("m1", "claude", usage, harness="codex") == {"recorded": 1, "repeated": 0}
    read = reader(desk, ran)
    read(paths[0])
    said = desk.lookup(
        "read_file", {"path": paths[0], "answer": None}, content_hash=client.file_digest(paths[0]), version="1"
    )
    assert said is not None and said["status"] == "hit"
    told = desk.stale("the branch was switched", result_id=said["result_id"])
    assert told is not None and told["removed"] == 1
    read(paths[0])
    assert desk.invalidate(paths=["f0.py"]) == {"removed": 1}
    assert "fault" not in desk.stats


def test_the_watcher_tells_what_changes_outside_the_agents(desk: Cache, address: str, agent: Agent, root: Path) -> None:
    (root / "b.py").write_text("b")
    ran: Counter[str] = Counter()
    read = reader(desk, ran)
    for name in ("a.py", "b.py"):
        read(str(root / name))
    environment = {**os.environ, "TEAM_MEMORY_URL": address, "TEAM_MEMORY_KEY": agent.secret, "HOME": str(root / "h")}
    command = [sys.executable, hook.__file__, "watch", str(root), "--interval", "0.1"]
    watcher = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert watcher.stdout is not None and watcher.stdout.readline().startswith("Watching 2 files")
        (root / "a.py").write_text("from an editor\n")
        (root / "b.py").touch()
        (root / "c.py").write_text("new")
        told = [watcher.stdout.readline()]
        while sum(int(line.split()[0]) for line in told) < 3:
            told.append(watcher.stdout.readline())
        assert sum(int(line.split()[2]) for line in told) == 1, "what is still of the same content stays"
    finally:
        watcher.send_signal(signal.SIGINT)
        assert watcher.wait(20) == 0
    assert read(str(root / "b.py")) == "b" and ran["read"] == 2


SLICE = Path(__file__).parents[1] / "data" / "sessions" / "attio-mcp-server"


def test_recorded_sessions_are_served_nothing_stale(desk: Cache) -> None:
    """One session of a real project: what is served is what the log says the tool returned."""
    sessions = replay.sessions_of(SLICE)[5:6]
    desk.root = desk.context["root"] = str(sessions[0][0]["payload"]["cwd"])
    found = replay.replay(sessions, desk)
    assert found.stale == [] and found.counts["hit"] >= 1 and found.counts["unknown_state"] > found.counts["hit"]
    assert found.counts["tokens_saved"] > 500 and "fault" not in desk.stats


@contextmanager
def saying(answer: Callable[[socket.socket], Any]) -> Iterator[str]:
    """A server that does with each connection as it is told."""
    server = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                one, _ = server.accept()
            except OSError:
                return
            held.append(one)
            threading.Thread(target=answer, args=(one,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        server.close()
        for one in held:
            one.close()


def drip(one: socket.socket) -> None:
    one.recv(65536)
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n" * 20:
        try:
            one.sendall(bytes([byte]))
        except OSError:
            return
        time.sleep(0.05)


def say(status: str, body: bytes) -> Callable[[socket.socket], None]:
    def answer(one: socket.socket) -> None:
        one.recv(65536)
        one.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)

    return answer


BAD: dict[str, Callable[[socket.socket], Any]] = {
    "silent": lambda one: time.sleep(30),
    "dripping": drip,
    "closing": lambda one: one.close(),
    "broken": say("500 Oops", b"{}"),
    "busy": say("503 Busy", b""),
    "refusing": say("401 No", b"{}"),
    "html": say("200 OK", b"<html>login</html>"),
    "list": say("200 OK", b"[1]"),
    "empty_hit": say("200 OK", b'{"status": "hit"}'),
    "strange": say("200 OK", b'{"status": "maybe", "result": 7}'),
    "lease_of_nothing": say("200 OK", b'{"status": "miss", "lease": "lse_1", "key": 7}'),
    "endless_wait": say("200 OK", b'{"status": "wait", "retry_after": 0.1}'),
    "bad_wait": say("200 OK", b'{"status": "wait", "retry_after": "soon"}'),
}


@pytest.mark.parametrize("name", BAD)
def test_whatever_the_server_says_the_tool_runs(root: Path, name: str) -> None:
    ran: Counter[str] = Counter()
    with saying(BAD[name]) as address:
        cache = Cache(address, "tm_live_x", root=str(root), project="shop", timeout=0.3)
        read = reader(cache, ran, wait_s=0.3)
        began = time.monotonic()
        assert read(str(root / "a.py")) == read(str(root / "a.py")) == (root / "a.py").read_text()
        assert ran["read"] == 2 and time.monotonic() - began < 20, "none of these is waited for"


@pytest.mark.slow
def test_a_server_that_went_away_is_asked_no_more_for_a_while(agent: Agent, root: Path) -> None:
    ran: Counter[str] = Counter()
    with served() as address:
        cache = Cache(address, agent.secret, root=str(root), project="shop", timeout=20)
        read = reader(cache, ran)
        assert read(str(root / "a.py")) == read(str(root / "a.py")) and ran["read"] == 1
    for number in range(20):
        assert read(str(root / "a.py")) == (root / "a.py").read_text(), number
    assert ran["read"] == 21 and cache.stats["fault"] == 2
    assert cache.keep("x") is None and cache.analyses([{}, {}]) == [{"status": "miss", "reason": "away"}] * 2


def test_the_digest_of_a_tree_is_the_hook_clients_and_sees_every_change(root: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "one")
    seen = [client.tree_digest(str(root))]

    def differs(change: Callable[[], Any]) -> None:
        change()
        seen.append(tree("folder")({"folder": str(root)}))
        assert seen[-1] not in seen[:-1]

    assert seen[0] == hook.tree_digest(str(root))
    differs(lambda: (root / "a.py").write_text("def b(): ...\n"))
    differs(lambda: (root / "new é\n.py").write_text("x"))
    assert seen[-1] == hook.tree_digest(str(root))
    differs(lambda: (root / "a.py").chmod(0o755))
    differs(lambda: (root / "a.py").unlink())
    git("checkout", "-q", "a.py")
    git("update-index", "--assume-unchanged", "a.py")
    differs(lambda: (root / "a.py").write_text("git does not look here\n"))


def test_where_it_sends_to(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(root))
    for name in ("TEAM_MEMORY_URL", "TEAM_MEMORY_KEY"):
        monkeypatch.delenv(name, raising=False)
    kept = root / "team-memory" / "credentials.json"
    kept.parent.mkdir()
    kept.write_text(
        '{"default": {"url": "https://one.test/", "key": "k1"}, "projects": {"/srv/shop": {"url": "https://two.test",'
        ' "key": "k2"}}}'
    )
    kept.chmod(0o600)
    assert client._target("/home/me") == ("https://one.test", "k1")
    assert client._target("/srv/shop/api") == ("https://two.test", "k2") != client._target("/srv/shopping")
    kept.chmod(0o644)
    assert client._target("/home/me") is None, "others may have read it"
    monkeypatch.setenv("TEAM_MEMORY_URL", "https://three.test")
    monkeypatch.setenv("TEAM_MEMORY_KEY", "k3")
    assert client._target("/home/me") == ("https://three.test", "k3")
