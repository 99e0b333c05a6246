"""A proxy on loopback that adds an agent's key, for clients that can send none. All else goes through as it came."""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.loopback import serving


@contextmanager
def keyed(address: str, secret: str) -> Iterator[str]:
    """The proxy's address."""
    target = urlsplit(address).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            sent = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
            upstream = http.client.HTTPConnection(target, timeout=60)
            upstream.request(self.command, self.path, body, {**sent, "Authorization": f"Bearer {secret}"})
            answer = upstream.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            upstream.close()

        do_GET = do_POST = do_DELETE = _pass

        def log_message(self, *_: object) -> None:
            """Quiet."""

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with serving(proxy):
        yield f"http://127.0.0.1:{proxy.server_port}"
