"""A loopback proxy that spoils answers of the real server: what a contract check must notice."""

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.loopback import serving


@dataclass
class Exchange:
    """A request, and the answer that may be spoilt. `ask` puts another request to the real server."""

    method: str
    target: str
    sent: bytes
    status: int
    kind: str
    body: bytes
    ask: Callable[..., "Exchange"]
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.target).query)

    def json(self) -> Any:
        return json.loads(self.body)

    def say(self, said: Any, status: int | None = None) -> None:
        """Answer this instead."""
        self.body = json.dumps(said).encode()
        if status is not None:
            self.status, self.kind = status, "application/json"


Spoil = Callable[[Exchange], None]


@contextmanager
def spoilt(address: str, spoil: Spoil, *, before: Callable[[str, str], bool] | None = None) -> Iterator[str]:
    """The address of a proxy; where `before` says True, the request never reaches the server."""
    real = urlsplit(address)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Silence."""

        def ask(self, method: str, target: str, sent: bytes = b"") -> Exchange:
            line = http.client.HTTPConnection(real.hostname or "", real.port, timeout=20)
            dropped = ("host", "connection", "content-length")
            kept = {name: value for name, value in self.headers.items() if name.lower() not in dropped}
            line.request(method, target, body=sent or None, headers=kept)
            response = line.getresponse()
            body = response.read()
            told = {name.lower(): value for name, value in response.getheaders()}
            line.close()
            more = {name: told[name] for name in ("content-range", "retry-after", "location") if name in told}
            return Exchange(method, target, sent, response.status, told.get("content-type", ""), body, self.ask, more)

        def exchange(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if before is not None and before(self.command, self.path):
                answer = Exchange(self.command, self.path, sent, 200, "application/json", b"{}", self.ask)
            else:
                answer = self.ask(self.command, self.path, sent)
                answer.headers["x-range"] = self.headers.get("Range", "")
                spoil(answer)
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(answer.body)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = exchange

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that hangs up is no news."""

    server = Quiet(("127.0.0.1", 0), Handler)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}"
