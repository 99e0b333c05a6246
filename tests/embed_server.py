"""A scripted `/embeddings` endpoint on loopback: real HTTP, vectors that are the same for the same text."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memory.recall import words
from tests.loopback import serving


@dataclass(frozen=True)
class Reply:
    """What the endpoint does with one call; `body` None is the right answer."""

    status: int = 200
    body: bytes | None = None
    delay: float = 0.0
    drip: float = 0.0
    cut_at: int | None = None
    headers: dict[str, str] = field(default_factory=dict)


GOOD = Reply()


@dataclass
class Endpoint:
    """The calls it got; `script` says what to do with the n-th call and its texts."""

    script: Callable[[int, list[str]], Reply]
    length: int = 64
    address: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)
    authorization: list[str | None] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        return [text for call in self.calls for text in call["input"]]

    def vector(self, text: str) -> list[float]:
        """Texts with words in common are alike."""
        made = [0.001] * self.length
        for word in words.terms(text):
            made[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") % self.length] += 1.0
        return made

    def answer(self, body: dict[str, Any]) -> bytes:
        rows = [
            {"object": "embedding", "index": place, "embedding": self.vector(text)}
            for place, text in enumerate(body["input"])
        ]
        # The order is not promised: `index` is.
        return json.dumps({"object": "list", "data": rows[::-1], "model": body["model"]}).encode()


@contextmanager
def endpoint(script: Callable[[int, list[str]], Reply] | Reply = GOOD, length: int = 64) -> Iterator[Endpoint]:
    """An endpoint that runs while the block does; `.address` is its base URL."""
    served = Endpoint(script if callable(script) else lambda _n, _texts: script, length)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            served.calls.append({**body, "path": self.path})
            served.authorization.append(self.headers.get("Authorization"))
            reply = served.script(len(served.calls), body["input"])
            time.sleep(reply.delay)
            raw = served.answer(body) if reply.body is None else reply.body
            try:
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self._send(raw if reply.cut_at is None else raw[: reply.cut_at], reply.drip)
            except OSError:
                pass  # the caller did not wait

        def _send(self, raw: bytes, drip: float) -> None:
            step = 16 if drip else len(raw) or 1
            for start in range(0, len(raw), step):
                self.wfile.write(raw[start : start + step])
                self.wfile.flush()
                time.sleep(drip)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    served.address = f"http://127.0.0.1:{server.server_address[1]}/v1"
    with serving(server):
        yield served
