"""What the client decides by itself: who calls, what is a secret, what is ignored, where work happens."""

import ast
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memory.hooks import client
from tests.client.machine import SAMPLES, SCRIPT, Machine, tool_call


def test_it_is_python_3_8_and_needs_nothing() -> None:
    source = SCRIPT.read_text()
    tree = ast.parse(source, feature_version=(3, 8))
    top = {alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    top |= {str(node.module).split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    known = {
        *(
            "__future__",
            "argparse",
            "calendar",
            "collections",
            "difflib",
            "email",
            "fcntl",
            "hashlib",
            "json",
            "msvcrt",
        ),
        *("os", "py_compile", "random", "re", "shutil", "subprocess", "sys", "threading", "time", "tomllib"),
        *("signal", "stat", "_thread", "traceback", "typing", "urllib", "zlib"),
    }
    assert top <= known


@pytest.mark.parametrize(
    ("launched", "folder"),
    [
        *[
            (name, name)
            for name in ("claude_code", "codex", "cursor", "gemini_cli", "copilot_cli", "vscode", "windsurf")
        ],
        ("opencode", "opencode"),
        ("claude_code", "cursor"),
        ("claude-code", "vscode"),
        ("claude_code", "windsurf"),
        ("vscode", "copilot_cli"),
        ("copilot_cli", "vscode"),
    ],
)
def test_it_knows_who_really_calls(launched: str, folder: str) -> None:
    for path in SAMPLES.glob(f"{folder}/*.json"):
        assert client.detected(launched, json.loads(path.read_bytes())) == folder, path


def test_cursor_sends_once_where_both_settings_name_the_hook(machine: Machine, tmp_path: Path) -> None:
    machine.connect("http://127.0.0.1:9")
    payload = json.loads((SAMPLES / "cursor" / "postToolUse.json").read_bytes())
    machine.hook("claude_code", "PostToolUse", payload)
    assert [line["client"] for line in machine.waiting()] == ["cursor"]
    (machine.home / ".cursor").mkdir()
    entry = {"command": "python3 /home/ann/.config/team-memory/hook.py --client cursor --event postToolUse"}
    (machine.home / ".cursor" / "hooks.json").write_text(json.dumps({"version": 1, "hooks": {"postToolUse": [entry]}}))
    machine.hook("claude_code", "PostToolUse", payload)
    assert len(machine.waiting()) == 1
    machine.hook("cursor", "postToolUse", payload)
    assert len(machine.waiting()) == 2


SECRETS = [
    "tm_live_" + "aB3" * 15,
    "sk-ant-api03-" + "aB3_" * 20,
    "ghp_" + "aB3d" * 9,
    "AKIA" + "IOSFODNN7EXAMPLF",
    "xoxb-" + "1234567890-abcdefABCDEF",
    "AIza" + "SyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
    "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV",
    "glpat-" + "aB3dE5fG7hI9jK1lM3nO",
    "npm_" + "aB3d" * 9,
    "hf_" + "aB3d" * 9,
    "sk_live_" + "aB3d" * 6,
]


@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: str(secret)[:7])
@pytest.mark.parametrize("around", ["{}", "export KEY={}", '{{"a": "{}"}}', "curl -H 'X: {}' x", "a\n{}\nb"])
def test_secrets_stay_on_the_machine(secret: str, around: str) -> None:
    assert secret not in client.clean_text(around.format(secret))


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("DB_PASSWORD=Tr0ub4dor&3", "Tr0ub4dor"),
        ("İ DB_PASSWORD=Tr0ub4dor&3", "Tr0ub4dor"),
        ("TOKEN_KIND=x-access-token:Tr0ub4dor3x", "Tr0ub4dor3x"),
        (f"{'a' * 60}_secret = Tr0ub4dor3x", "Tr0ub4dor3x"),
        ("password: 'Tr0ub4dor3x'", "Tr0ub4dor3x"),
        ('{"clientSecret": "Zm9vYmFyYmF6"}', "Zm9vYmFyYmF6"),
        ('{\\"api_key\\": \\"Zm9vYmFyYmF6\\"}', "Zm9vYmFyYmF6"),
        ("Authorization: Bearer abcdef0123456789abcdef", "abcdef0123456789abcdef"),
        ("postgres://app:hunter2secret@db/shop", "hunter2secret"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nAAAA\n-----END RSA PRIVATE KEY-----\nafter", "MIIEow"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\ncut off here b3BlbnNz", "b3BlbnNz"),
    ],
)
def test_named_secrets_stay_too(text: str, gone: str) -> None:
    cleaned = client.clean_text(text)
    assert gone not in cleaned
    assert client.REDACTED in cleaned
    assert client.clean_text(cleaned) == cleaned


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 4096",
        "token = self.next_token",
        "password: required",
        "def secret_santa(names): return names",
        "https://example.test/a:b@c",
        "the task-0001-abcdef is done",
        "input_tokens=123456789",
        "Bearer tokens are sent in a header",
    ],
)
def test_what_is_no_secret_stays_as_it_is(text: str) -> None:
    assert client.clean_text(text) == text


def test_a_secret_is_gone_from_the_spool_and_the_names_stay(machine: Machine) -> None:
    machine.connect("http://127.0.0.1:9")
    call = tool_call("z", 1, tool_input={"password": "Tr0ub4dor3x", "n": 1.5}, tool_response=[SECRETS[2], None, True])
    machine.hook("codex", "PostToolUse", call)
    [line] = machine.waiting()
    assert line["payload"]["tool_input"] == {"password": client.REDACTED, "n": 1.5}
    assert line["payload"]["tool_response"] == [client.REDACTED, None, True]
    everything = b"".join(path.read_bytes() for path in machine.state.rglob("*") if path.is_file())
    assert b"Tr0ub4dor3x" not in everything


def test_redaction_reads_a_hostile_text_once() -> None:
    """Four times the text may not take sixteen times as long: each of these makes a careless expression quadratic."""
    for unit in ("a_", "token", "password=", "eyJaaaaaaaa.", "-----BEGIN RSA PRIVATE KEY-----", "x://", "sk-", "a-b_c"):
        client.clean_text(unit * 40_000)


@pytest.mark.parametrize(
    ("remote", "said"),
    [
        ("https://ann:s3cret@forge.test/acme/shop.git", "https://forge.test/acme/shop.git"),
        ("https://x-access-token:p@ss@forge.test/acme/shop", "https://forge.test/acme/shop"),
        ("ssh://git@forge.test:2222/acme/shop.git", "ssh://forge.test:2222/acme/shop.git"),
        ("git@forge.test:acme/shop.git", "git@forge.test:acme/shop.git"),
        ("https://forge.test/acme/shop.git?token=abc#x", "https://forge.test/acme/shop.git"),
        ("../shop", "../shop"),
    ],
)
def test_a_remote_goes_out_without_login(remote: str, said: str) -> None:
    assert client.without_login(remote) == said


def git(folder: Path, *arguments: str) -> str:
    options = ["-c", "user.name=Ann", "-c", "user.email=ann@acme.test", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *options, "-C", str(folder), *arguments], check=True, capture_output=True)
    return done.stdout.decode().strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.py").write_text("a = 1\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "First")
    return folder


@pytest.mark.parametrize("name", ["origin", "upstream", 'we"ird'])
def test_it_reads_the_remote_as_git_does(repository: Path, name: str) -> None:
    git(repository, "remote", "add", name, "https://forge.test/acme/shop.git")
    assert client.place_of(str(repository)).remote == git(repository, "remote", "get-url", name)


def test_it_reads_rewritten_and_quoted_remotes(repository: Path) -> None:
    git(repository, "config", "url.https://forge.test/.insteadOf", "work:")
    git(repository, "remote", "add", "other", "https://elsewhere.test/x")
    git(repository, "remote", "add", "origin", "work:acme/shop.git")
    assert client.place_of(str(repository)).remote == git(repository, "remote", "get-url", "origin")
    git(repository, "config", "remote.origin.url", "https://forge.test/with space;x y")
    assert client.place_of(str(repository)).remote == git(repository, "remote", "get-url", "origin")


def test_a_worktree_and_a_folder_below_belong_to_the_repository(repository: Path, tmp_path: Path) -> None:
    git(repository, "remote", "add", "origin", "https://forge.test/acme/shop.git")
    git(repository, "worktree", "add", "-q", str(tmp_path / "fix"), "-b", "fix")
    (repository / "deep" / "er").mkdir(parents=True)
    for folder in (repository / "deep" / "er", tmp_path / "fix"):
        place = client.place_of(str(folder))
        assert (place.root, place.remote) == (str(repository), "https://forge.test/acme/shop.git")
    assert client.place_of(str(tmp_path / "fix")).top == str(tmp_path / "fix")


def test_a_submodule_is_a_repository_of_its_own(repository: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repository), "inner")
    place = client.place_of(str(outer / "inner"))
    assert (place.root, place.remote) == (str(outer / "inner"), str(repository))


def test_no_repository_is_no_place(tmp_path: Path) -> None:
    assert client.place_of(str(tmp_path)).root == ""
    (tmp_path / ".git").write_text("nonsense")
    assert client.place_of(str(tmp_path)).remote == ""


@pytest.mark.parametrize(
    ("rules", "payload", "hidden"),
    [
        ("secrets/", {"tool_input": {"file_path": "/r/secrets/key.txt"}}, True),
        ("secrets/", {"tool_input": {"file_path": "/r/src/secrets/deep/key.txt"}}, True),
        ("secrets/", {"tool_input": {"file_path": "/r/src/not-secrets.txt"}}, False),
        ("*.pem", {"tool_input": {"file_path": "/r/a/b/c.pem"}}, True),
        ("/top.txt", {"tool_input": {"file_path": "/r/top.txt"}}, True),
        ("path: docs/**/draft.md", {"tool_input": {"path": "docs/a/b/draft.md"}}, True),
        ("path: docs/*.md", {"tool_input": {"path": "docs/a/b.md"}}, False),
        ("*.pem", {"tool_input": {"command": "cat 'certs/site.pem' | wc"}}, True),
        ("*.pem", {"tool_input": {"command": "ls"}}, False),
        ("*.pem", {"tool_input": {"file_path": "C:\\r\\certs\\site.pem"}}, True),
        ("*.pem", {"attachments": [{"type": "file", "file_path": "/r/site.pem"}]}, True),
        ("*.pem", {"toolArgs": {"path": "../r/./site.pem"}}, True),
        ("tool: WebSearch", {"tool_name": "WebSearch"}, True),
        ("tool: mcp__mail__*", {"tool_name": "mcp__mail__send"}, True),
        ("tool: Web*", {"toolName": "bash"}, False),
        ("repository: forge.test/acme/*", {}, True),
        ("repo: forge.test/acme/shop", {}, True),
        ("repository: forge.test/globex/*", {}, False),
        ("repository: *", {}, True),
        ("# nothing\n\n", {"tool_input": {"file_path": "/r/x"}}, False),
    ],
)
def test_ignore_rules(rules: str, payload: dict[str, Any], hidden: bool) -> None:
    place = client.Place("/r", "git@forge.test:acme/shop.git")
    assert client.Ignore(rules).hides(payload, place, "/r") is hidden


def test_ignore_files_of_the_project_and_of_the_user_hold(machine: Machine, repository: Path) -> None:
    machine.connect("http://127.0.0.1:9")
    (repository / ".team-memory-ignore").write_text("*.pem\n")
    (machine.config / "ignore").write_text("tool: WebSearch\n")
    here = {"cwd": str(repository)}
    machine.hook("codex", "PostToolUse", tool_call("i", 1, tool_input={"file_path": "x.pem"}, **here))
    machine.hook("codex", "PostToolUse", {**tool_call("i", 2, **here), "tool_name": "WebSearch"})
    machine.hook("codex", "PostToolUse", tool_call("i", 3, **here))
    assert [line["payload"]["tool_use_id"] for line in machine.waiting()] == ["toolu_i_3"]
    assert machine.waiting()[0]["workspace_root"] == str(repository)


def test_the_digest_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    whole = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert client.file_digest(str(tmp_path / "a")) == whole


def test_the_digest_of_a_tree_moves_with_every_change(repository: Path) -> None:
    seen = [client.tree_digest(str(repository))]

    def moved() -> bool:
        seen.append(client.tree_digest(str(repository)))
        return len(set(seen)) == len(seen)

    assert client.tree_digest(str(repository)) == seen[0]
    (repository / "a.py").write_text("a = 2\n")
    assert moved()
    (repository / "a.py").write_text("a = 3\n")
    assert moved(), "the same file, dirty in another way"
    (repository / "neü\n.py").write_text("new\n")
    assert moved()
    (repository / "a.py").unlink()
    assert moved()
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "Second")
    assert moved()
    (repository / "link").symlink_to("neü\n.py")
    assert moved()
    (repository / "link").unlink()
    assert client.tree_digest(str(repository)) == seen[-2]
    assert client.tree_digest(str(repository)) == client.tree_digest(str(repository / "."))


def test_a_folder_without_git_has_no_tree(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="not a git repository"):
        client.tree_digest(str(tmp_path))


@pytest.mark.parametrize(
    ("url", "is_here"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://localhost", True),
        ("http://[::1]:8000/x", True),
        ("https://127.example.test", False),
        ("https://localhost.example.test", False),
        ("https://memory.example", False),
    ],
)
def test_proxies_are_not_asked_for_what_is_here(url: str, is_here: bool) -> None:
    assert client.is_loopback(url) is is_here


def test_headers_end_where_they_end() -> None:
    assert client._header("a\r\nX-Evil: 1\x00") == "aX-Evil: 1"
    assert client._header("/home/jürgen").encode("latin-1").decode() == "/home/jürgen"


WINDOWS = client.Launch("C:\\Program Files\\Python\\python.exe", "C:\\Users\\O'Ann B\\team-memory\\hook.py", True)
POSIX = client.Launch("/usr/bin/python3", "/home/o'ann b/team-memory/hook.py", False)


def test_commands_survive_the_shells_they_go_through() -> None:
    import shlex

    assert shlex.split(POSIX.posix("codex", "Stop")) == POSIX.words("codex", "Stop")
    shown = WINDOWS.powershell("cursor", "stop")
    assert shown.startswith(
        "& 'C:\\Program Files\\Python\\python.exe' -I -S 'C:\\Users\\O''Ann B\\team-memory\\hook.py'"
    )
    assert WINDOWS.cmd("codex", "Stop").startswith(
        'call "C:\\Program Files\\Python\\python.exe" -I -S "C:\\Users\\O\'Ann B'
    )
    plain = client.Launch("C:\\Python\\python.exe", "C:\\Users\\ann\\hook.py", True)
    assert (
        plain.cmd("codex", "Stop") == "C:\\Python\\python.exe -I -S C:\\Users\\ann\\hook.py --client codex --event Stop"
    )


def test_entries_on_windows() -> None:
    start = client.handlers("claude_code", WINDOWS)["SessionStart"]["hooks"][0]
    assert [start["command"], *start["args"]] == WINDOWS.words("claude_code", "SessionStart")
    codex = client.handlers("codex", WINDOWS)["Stop"]["hooks"][0]
    assert codex["commandWindows"].startswith("call ")
    assert client.handlers("cursor", WINDOWS)["stop"]["command"].startswith("& '")
    assert all(client.is_our_entry(entry) for name in ("claude_code", "codex", "cursor", "copilot_cli", "vscode")
               for entry in client.handlers(name, WINDOWS).values())  # fmt: skip
