"""A load client cheap enough not to be what is measured: plain sockets, one thread, one epoll."""

import selectors
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass
class Slice:
    """What one stretch of load gave: seconds of each answer, the whole time, and the client's own CPU time."""

    took: list[float] = field(default_factory=list)
    seconds: float = 0.0
    own: float = 0.0

    @property
    def rate(self) -> float:
        return len(self.took) / self.seconds


class _Line:
    """One connection that sends the next request when it has the answer of the last."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answer = b""
        self.since = 0.0

    def send(self, request: bytes) -> None:
        self.answer = b""
        self.since = time.perf_counter()
        self.socket.sendall(request)

    def is_done(self) -> bool:
        """True once the answer is whole. Raises SystemExit for anything but a success."""
        came = self.socket.recv(262_144)
        self.answer = self.answer + came if self.answer else came
        head, rule, body = self.answer.partition(b"\r\n\r\n")
        if not came:
            raise SystemExit("the server closed a connection")
        if not rule:
            return False
        if head[9:12] not in (b"200", b"201"):
            raise SystemExit(self.answer[:600].decode(errors="replace"))
        low = head.lower()
        place = low.find(b"content-length:")
        if place < 0:
            return body.endswith(b"0\r\n\r\n")
        return len(body) >= int(low[place + 15 :].split(b"\r", 1)[0])


def run(port: int, requests: Iterator[bytes], *, connections: int, seconds: float) -> Slice:
    """Keep so many connections busy for so long, or until the requests run out."""
    found = Slice()
    picked = selectors.DefaultSelector()
    lines = [_Line(port) for _ in range(connections)]
    for line in lines:
        picked.register(line.socket, selectors.EVENT_READ, line)
    began, own = time.perf_counter(), time.process_time()
    busy = 0
    for line in lines:
        if (request := next(requests, None)) is not None:
            line.send(request)
            busy += 1
    while busy:
        for key, _ in picked.select():
            line = key.data
            if not line.is_done():
                continue
            now = time.perf_counter()
            found.took.append(now - line.since)
            request = next(requests, None) if now - began < seconds else None
            if request is None:
                busy -= 1
            else:
                line.send(request)
    found.seconds, found.own = time.perf_counter() - began, time.process_time() - own
    for line in lines:
        line.socket.close()
    picked.close()
    return found


def get(path: str, secret: str) -> bytes:
    """A GET as bytes."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {secret}\r\n\r\n".encode()


def post(path: str, secret: str, body: bytes, kind: str = "application/json", *, key: str = "") -> bytes:
    """A POST as bytes, with an Idempotency-Key where one is given."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {secret}\r\nContent-Type: {kind}\r\n"
    head += f"Idempotency-Key: {key}\r\n" if key else ""
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def forever(make: Callable[[int], bytes]) -> Iterator[bytes]:
    """Requests without an end, made ahead of their use by a number."""
    number = 0
    while True:
        yield make(number)
        number += 1
