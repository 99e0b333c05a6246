"""Half-sent bodies, and what stands in the log."""

import io
import logging
import os
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from memory.logs import Masked
from memory.patience import MOST_DRAINED, Gathered, Patient, Peer, cut_off
from memory.tenants.keys import new_secret


class Sleeping:
    """A body that does not come before the test lets it."""

    def __init__(self) -> None:
        self.come = threading.Event()

    def read(self, *args: Any) -> bytes:
        self.come.wait(30)
        return b"late"


def echo(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    return [environ["wsgi.input"].read()]


HERE, THERE = ("203.0.113.7", 8000), ("203.0.113.8", 8000)


class Watched:
    """A patient application, whom it cut off, and whether it ended its worker."""

    def __init__(self, application: Any = echo, *, threads: int = 100, seconds: float = 0.2) -> None:
        self.cut: list[Peer] = []
        self.has_cut, self.ended = threading.Event(), threading.Event()
        self.patient = Patient(application, most=3, seconds=seconds, threads=threads, cut=self._cut, end=self.ended.set)

    def _cut(self, peer: Peer) -> None:
        self.cut.append(peer)
        self.has_cut.set()

    def ask(self, body: Any, **environ: str) -> list[bytes]:
        told = {"wsgi.input": body, "REMOTE_ADDR": HERE[0], "SERVER_PORT": str(HERE[1])}
        return list(self.patient({**told, **environ}, None))


@contextmanager
def waiting(watched: Watched, *addresses: str) -> Iterator[None]:
    """Requests of these addresses, whose bodies come when the block ends."""
    bodies = [Sleeping() for _ in addresses]
    threads = [
        threading.Thread(target=watched.ask, args=(body,), kwargs={"REMOTE_ADDR": address})
        for body, address in zip(bodies, addresses, strict=True)
    ]
    for thread in threads:
        thread.start()
    yield
    for body in bodies:
        body.come.set()
    for thread in threads:
        thread.join(10)


def test_an_address_whose_bodies_do_not_come_is_cut_off() -> None:
    watched = Watched()
    with waiting(watched, *[HERE[0]] * 3, THERE[0]):
        assert watched.has_cut.wait(10)
    assert set(watched.cut) == {HERE} and not watched.ended.is_set()


def test_where_threads_are_scarce_one_is_too_many() -> None:
    watched = Watched(threads=4, seconds=1)
    with waiting(watched, HERE[0], THERE[0]):
        assert watched.has_cut.wait(10)
    assert HERE in watched.cut and not watched.ended.is_set()


def test_a_worker_that_can_cut_nobody_makes_way() -> None:
    watched = Watched(threads=4)
    with waiting(watched, *[HERE[0]] * 3):
        assert watched.ended.wait(10)


def test_a_few_slow_clients_are_borne() -> None:
    watched = Watched()
    with waiting(watched, HERE[0]):
        deadline = time.monotonic() + 10
        while not watched.patient.late() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert watched.patient.late() == {HERE: 1}
    assert not watched.cut and not watched.patient.late()


def test_a_body_arrives_unchanged() -> None:
    assert Watched().ask(io.BytesIO(b"whole")) == [b"whole"]


def test_only_the_connections_of_the_address_to_the_port_are_cut() -> None:
    with socket.create_server(("127.0.0.1", 0)) as ours, socket.create_server(("127.0.0.1", 0)) as others:
        wires = [socket.create_connection(server.getsockname()) for server in (ours, others)]
        lent = [server.accept()[0] for server in (ours, others)]
        before = len(os.listdir("/dev/fd"))
        cut_off(("127.0.0.2", ours.getsockname()[1]))
        for one in lent:
            one.sendall(b"still here")
        cut_off(("127.0.0.1", ours.getsockname()[1]))
        assert len(os.listdir("/dev/fd")) == before
        assert lent[0].recv(1) == b""
        lent[1].sendall(b", still")
        for one in lent:
            one.close()
        for one, said in zip(wires, (b"still here", b"still here, still"), strict=True):
            assert one.makefile("rb").read() == said
        for one in wires:
            one.close()


def gathered(application: Any = echo, **changes: int) -> Gathered:
    return Gathered(application, **{"running": 1, "largest": 300_000, "room": 200_000, **changes})


@pytest.mark.parametrize("size", [0, 1, 64 * 1024, 64 * 1024 + 1, 200_000])
def test_a_body_is_here_before_it_is_asked_for(size: int) -> None:
    body = os.urandom(size)
    application = gathered()
    for _ in range(3):  # and what it took is given back
        assert b"".join(application({"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(size)}, None)) == body


def test_half_a_body_stays_half_of_one() -> None:
    for size in (1000, 100_000):
        assert list(gathered()({"wsgi.input": io.BytesIO(b"half"), "CONTENT_LENGTH": str(size)}, None)) == [b"half"]


def test_who_waits_for_a_body_keeps_nobody_waiting() -> None:
    application, body = gathered(), Sleeping()
    slow = threading.Thread(target=application, args=({"wsgi.input": body, "CONTENT_LENGTH": "4"}, None))
    slow.start()
    assert list(application({"wsgi.input": io.BytesIO(b"quick"), "CONTENT_LENGTH": "5"}, None)) == [b"quick"]
    body.come.set()
    slow.join(10)


def test_so_many_work_at_once() -> None:
    at_work, most, lock = [0], [0], threading.Lock()

    def work(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        with lock:
            at_work[0] += 1
            most[0] = max(most[0], at_work[0])
        threading.Event().wait(0.01)
        with lock:
            at_work[0] -= 1
        return [b""]

    application = gathered(work, running=2)
    threads = [threading.Thread(target=application, args=({"wsgi.input": io.BytesIO()}, None)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert most == [2]


def test_large_bodies_together_have_so_much_room() -> None:
    told: list[str] = []
    environ = {"wsgi.input": io.BytesIO(bytes(250_000)), "CONTENT_LENGTH": "250000"}
    application = gathered()
    [said] = application(environ, lambda status, headers: told.append(status))
    assert told == ["503 Service Unavailable"] and b"Send it again" in said
    assert list(application({"wsgi.input": io.BytesIO(bytes(200_000)), "CONTENT_LENGTH": "200000"}, None))


def test_what_is_too_large_for_any_door_is_not_gathered() -> None:
    body = io.BytesIO(bytes(300_001))
    assert list(gathered(refused)({"wsgi.input": body, "CONTENT_LENGTH": "300001"}, None)) == [b"no, for a reason"]
    assert body.tell() == 0


def refused(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    return [b"no, for a reason"]


@pytest.mark.parametrize("size", [0, 1, 300_000, MOST_DRAINED], ids=["none", "a byte", "some", "the most"])
def test_what_a_refusal_leaves_of_a_body_is_read_to_its_end(size: int) -> None:
    body = io.BytesIO(bytes(size) + b"of the next request")
    environ = {"wsgi.input": Limited(body, size), "CONTENT_LENGTH": str(size) if size else ""}
    assert list(Watched(refused).patient(environ, None)) == [b"no, for a reason"]
    assert body.tell() == size


def test_what_a_refusal_leaves_of_chunks_is_read_to_its_end() -> None:
    body = io.BytesIO(bytes(300_000) + b"of the next request")
    environ = {"wsgi.input": Limited(body, 300_000), "HTTP_TRANSFER_ENCODING": "chunked"}
    assert list(Watched(refused).patient(environ, None)) == [b"no, for a reason"]
    assert body.tell() == 300_000


def test_a_body_without_end_is_left_alone() -> None:
    body = io.BytesIO(b"0" * 1000)
    environ = {"wsgi.input": body, "CONTENT_LENGTH": str(MOST_DRAINED + 1)}
    assert list(Watched(refused).patient(environ, None)) == [b"no, for a reason"]
    assert body.tell() == 0


def test_a_body_that_waits_to_be_asked_for_is_not_asked_for() -> None:
    body = io.BytesIO(b"0" * 1000)
    environ = {"wsgi.input": body, "CONTENT_LENGTH": "1000", "HTTP_EXPECT": "100-continue"}
    assert list(Watched(refused).patient(environ, None)) == [b"no, for a reason"]
    assert body.tell() == 0


def test_a_body_that_breaks_off_is_not_waited_for() -> None:
    environ = {"wsgi.input": io.BytesIO(b"half"), "CONTENT_LENGTH": "1000"}
    assert list(Watched(refused).patient(environ, None)) == [b"no, for a reason"]


class Limited:
    """A body that ends where its request does, as a server gives it."""

    def __init__(self, body: io.BytesIO, size: int) -> None:
        self._body, self._left = body, size

    def read(self, most: int = -1) -> bytes:
        piece = self._body.read(self._left if most < 0 else min(most, self._left))
        self._left -= len(piece)
        return piece


def masked(message: str, *args: Any, level: int = logging.WARNING) -> str:
    record = logging.LogRecord("x", level, "x", 1, message, args, None)
    assert Masked().filter(record)
    return record.getMessage()


def test_a_log_holds_no_login_token_and_no_key() -> None:
    secret = new_secret()
    assert masked("Gone: %s", "/login/link/abc-DEF_123/", level=logging.INFO) == "Gone: /login/link/[token]/"
    assert secret not in masked("Not Found: %s", f"/api/v1/events/{secret}")
    assert masked("plain %s", "words") == "plain words"
