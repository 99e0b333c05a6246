"""A server on the loopback that behaves as badly as it is told to."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Scripted(ThreadingHTTPServer):
    """Takes events as the real one does, unless `mode` says otherwise; `events` are those that were new."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.mode = "well"
        self.calls: list[tuple[str, dict[str, str], bytes]] = []
        self.events: list[dict[str, Any]] = []
        self.identities: set[str] = set()
        self.batch_received = threading.Event()
        self.released = threading.Event()
        self.lock = threading.Lock()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def take(self, event: dict[str, Any]) -> bool:
        payload = event["payload"]
        identity = event.get("key") or json.dumps([payload.get("tool_use_id"), payload], sort_keys=True)
        with self.lock:
            if identity in self.identities:
                return False
            self.identities.add(identity)
            self.events.append(event)
        return True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the play."""


class _Handler(BaseHTTPRequestHandler):
    server: Scripted

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.calls.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        mode = self.server.mode
        if mode == "broken":
            return self._say(500, b"<h1>Server Error</h1>", "text/html")
        if mode == "elsewhere":
            self.send_response(301)
            self.send_header("Location", "http://127.0.0.1:9/")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if mode == "portal":
            return self._say(200, b"<h1>Log in to the hotel's network</h1>", "text/html")
        if mode == "revoked":
            return self._say(401, b'{"code": "unauthenticated", "detail": "This key is not valid."}')
        if mode == "silent":
            self.server.released.wait(60)
            return self._hang_up()
        if mode == "dripping":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n{")
            while not self.server.released.wait(0.05):
                self.wfile.write(b" ")
            return self._hang_up()
        if mode == "too_large" and body.count(b"\n") > 1:
            return self._say(413, b'{"code": "too_large", "detail": "Too large."}')
        said = self._taken(body)
        self.server.batch_received.set()
        if mode == "cut_off":
            return self._hang_up()
        if mode == "held":
            self.server.released.wait(60)
        self._say(200, said)

    def _taken(self, body: bytes) -> bytes:
        if self.path.startswith("/api/v1/hooks/"):
            if self.headers.get("X-Team-Memory-Tell") != "only":
                event = {"payload": json.loads(body), "event": self.path.partition("event=")[2]}
                if self.headers.get("Idempotency-Key"):
                    event["key"] = self.headers["Idempotency-Key"]
                self.server.take(event)
            return json.dumps({"hookSpecificOutput": {"additionalContext": "Grüße, 東京 ✓"}}).encode()
        accepted, repeated, refused = 0, 0, []
        for number, line in enumerate(body.splitlines(), 1):
            event = json.loads(line)
            if event["payload"].get("poison"):
                refused.append({"line": number, "code": "not_storable", "detail": "No."})
            elif self.server.take(event):
                accepted += 1
            else:
                repeated += 1
        return json.dumps({"accepted": accepted, "repeated": repeated, "refused": refused}).encode()

    def _say(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status == 200 and kind == "application/json":
            self.send_header("X-Team-Memory-Event", "evt_1")
        self.end_headers()
        self.wfile.write(body)

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:
        """The tests' output is no place for an access log."""


@contextmanager
def scripted(port: int = 0) -> Iterator[Scripted]:
    server = Scripted(port)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()
