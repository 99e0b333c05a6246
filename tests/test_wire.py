"""Bodies that break off, bodies in chunks, and charsets that are none: on a real server, by bare sockets."""

import json
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from memory.wire import Forwarded, Whole
from tests.conftest import Agent

JSON = "application/json"
TRIGGER = json.dumps({"source": "ci", "summary": "x", "thread": {"key": "cut"}}).encode()
# Method, address, type, and a body that is whole wherever it is cut.
DOORS = {
    "trigger": ("POST", "/api/v1/triggers", JSON, TRIGGER),
    "batch": ("POST", "/api/v1/triggers/batch", "application/x-ndjson", TRIGGER + b"\n"),
    "payload": ("PUT", "/api/v1/triggers/{trigger}/payload", "text/plain", b"half of it"),
    "hook": ("POST", "/api/v1/hooks/claude-code", JSON, b'{"session_id": "cut", "hook_event_name": "Stop"}'),
    "large hook": ("POST", "/api/v1/hooks/claude-code", JSON,
                   b'{"session_id": "cut", "hook_event_name": "UserPromptSubmit", "prompt": "%s"}' % (b"x" * 70_000)),
    "result": ("POST", "/api/v1/results", JSON, b'{"content": "x"}'),
    "notes": ("POST", "/api/v1/notes/import", "application/x-ndjson", b'{"path": "general/cut.md", "text": "x"}'),
    "mcp": ("POST", "/mcp", JSON, b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'),
}  # fmt: skip


def sent(live: str, agent: Agent, door: str, *, length: str) -> tuple[int, dict[str, Any]]:
    """Status and problem of a call whose body ends with what it has, whatever its header says."""
    method, path, kind, body = DOORS[door]
    if "{trigger}" in path:
        made = requests.post(f"{live}/api/v1/triggers", TRIGGER, headers=agent.headers, timeout=20).json()
        path = path.format(trigger=made["trigger_id"])
    address = urlsplit(live)
    said = {**agent.headers, "Host": address.netloc, "Content-Type": kind, "Accept": f"{JSON}, text/event-stream"}
    head = "".join(f"{name}: {value}\r\n" for name, value in said.items())
    with socket.create_connection((str(address.hostname), address.port or 0), timeout=20) as wire:
        chunk = b"%x\r\n%b\r\n" % (len(body), body) if "chunked" in length else body
        wire.sendall(f"{method} {path} HTTP/1.1\r\n{head}{length}\r\nConnection: close\r\n\r\n".encode() + chunk)
        wire.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: wire.recv(65536), b""))
    return int(answer.split(b" ", 2)[1]), json.loads(answer[answer.index(b"{") : answer.rindex(b"}") + 1])


def counts(live: str, agent: Agent) -> list[int]:
    """How many of each the team has."""
    return [
        len(requests.get(f"{live}/api/v1/{name}", headers=agent.headers, timeout=20).json()["items"])
        for name in ("threads", "sessions", "notes", "proposals")
    ]


@pytest.mark.parametrize("length", ["Content-Length: 100000", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("door", DOORS)
def test_a_body_that_may_be_half_of_one_is_not_taken(live: str, agent: Agent, door: str, length: str) -> None:
    status, problem = sent(live, agent, door, length=length)
    wanted = (411, "length_required") if "chunked" in length else (400, "incomplete_body")
    assert (status, problem["code"]) == wanted
    if door == "payload":
        [thread] = requests.get(f"{live}/api/v1/threads?key=cut", headers=agent.headers, timeout=20).json()["items"]
        steps = requests.get(f"{live}/api/v1/threads/{thread['thread_id']}/events", headers=agent.headers, timeout=20)
        asked = f"{live}/api/v1/triggers/{steps.json()['items'][0]['trigger_id']}/payload"
        assert requests.get(asked, headers=agent.headers, timeout=20).status_code == 404
    else:
        assert counts(live, agent) == [0, 0, 0, 0]


def test_a_fault_outside_of_django_is_a_problem_too() -> None:
    def broken(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        raise ValueError("boom")

    said: list[Any] = []
    [body] = Whole(broken)({"REQUEST_METHOD": "GET", "PATH_INFO": "/api/v1/x"}, lambda *args: said.extend(args))
    assert said[0].startswith("500 ") and ("Content-Type", "application/problem+json") in said[1]
    assert json.loads(body)["code"] == "server_error" and b"boom" not in body
    assert dict(said[1])["X-Request-Id"]


@pytest.mark.parametrize("charset", ["utf-7", "unicode_escape", "rot13", "undefined", "none-such"])
def test_words_are_utf_8_whatever_charset_is_claimed(live: str, agent: Agent, charset: str) -> None:
    claimed = {"Content-Type": f"multipart/form-data; boundary=x; charset={charset}"}
    asked = {"q": "+2AA- \\ud800 é"}
    found = requests.get(f"{live}/api/v1/search", asked, headers={**agent.headers, **claimed}, timeout=20)
    assert found.status_code == 200
    assert requests.get(f"{live}/login/", asked, headers=claimed, timeout=20).status_code == 200
    form = b'--x\r\nContent-Disposition: form-data; name="email"\r\n\r\n+2AA- \\ud800\r\n--x--\r\n'
    assert requests.post(f"{live}/login/", form, headers=claimed, timeout=20).status_code == 403


@pytest.mark.parametrize(
    ("said", "asker"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("198.51.100.7, 203.0.113.9", "203.0.113.9"),
        ("198.51.100.7, 203.0.113.9, 10.0.0.2", "203.0.113.9"),
        ("10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("203.0.113.9:5555", "203.0.113.9"),
        ("[2001:db8::1]:5555", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("<script>", "10.0.0.1"),
        ("203.0.113.9, unknown, 10.0.0.2", "10.0.0.2"),
        (" , ,", "10.0.0.1"),
        ("9" * 5000, "10.0.0.1"),
    ],
)
def test_a_proxy_names_who_asks_and_by_an_address(said: str, asker: str) -> None:
    for server, taken in (("10.0.0.1", asker), ("::ffff:10.0.0.1", asker), ("192.0.2.1", "192.0.2.1")):
        environ = {
            "REMOTE_ADDR": server,
            "HTTP_X_FORWARDED_FOR": said,
            "HTTP_X_FORWARDED_PROTO": "http, https",
            "wsgi.url_scheme": "http",
        }
        Forwarded(lambda environ, start_response: [], ["10.0.0.0/8"])(environ, None)
        is_believed = server != "192.0.2.1"
        assert environ["wsgi.url_scheme"] == ("https" if is_believed else "http")
        assert environ["REMOTE_ADDR"].removeprefix("::ffff:") == taken
