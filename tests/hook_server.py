"""A real HTTP server on loopback that takes webhook calls, and answers as its script says."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from django.test import override_settings

from tests.loopback import serving


@dataclass
class Receiver:
    """The calls it got. `script` gives status and headers for the n-th; a None breaks the connection off."""

    script: Callable[[int], tuple[int, dict[str, str]] | None]
    address: str = ""
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def hook_server(
    script: Callable[[int], tuple[int, dict[str, str]] | None] = lambda number: (200, {}), *, listed: bool = True
) -> Iterator[Receiver]:
    """A receiver that runs while the block does; `listed`: the operator allows its address."""
    receiver = Receiver(script)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            receiver.headers.append(dict(self.headers))
            said = receiver.script(len(receiver.bodies))
            if said is None:
                self.close_connection = True
                return
            status, headers = said
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    port = server.server_address[1]
    receiver.address = f"http://127.0.0.1:{port}/services/T0/B0/x"
    with serving(server), override_settings(WEBHOOK_HOSTS=[f"127.0.0.1:{port}"] if listed else []):
        yield receiver
