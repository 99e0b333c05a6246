"""Half-sent bodies, and what stands in the log."""

import io
import logging
import threading
import time
from collections.abc import Iterable
from typing import Any

import pytest

from memory.logs import Masked
from memory.patience import MOST_DRAINED, Patient
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


def test_a_worker_with_too_many_waiting_threads_makes_way() -> None:
    ended = threading.Event()
    patient = Patient(echo, most=3, seconds=0.2, end=ended.set)
    bodies = [Sleeping() for _ in range(3)]
    threads = [threading.Thread(target=patient, args=({"wsgi.input": body}, None)) for body in bodies]
    for thread in threads:
        thread.start()
    assert ended.wait(10)
    for body in bodies:
        body.come.set()
    for thread in threads:
        thread.join(10)


def test_a_few_slow_clients_are_borne() -> None:
    ended = threading.Event()
    patient = Patient(echo, most=3, seconds=0.2, end=ended.set)
    body = Sleeping()
    thread = threading.Thread(target=patient, args=({"wsgi.input": body}, None))
    thread.start()
    deadline = time.monotonic() + 10
    while patient.stuck() < 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert patient.stuck() == 1 and not ended.is_set()
    body.come.set()
    thread.join(10)
    assert patient.stuck() == 0


def test_a_body_arrives_unchanged() -> None:
    patient = Patient(echo, most=3, seconds=5, end=lambda: None)
    assert list(patient({"wsgi.input": io.BytesIO(b"whole")}, None)) == [b"whole"]


def refused(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    return [b"no, for a reason"]


@pytest.mark.parametrize("size", [0, 1, 300_000, MOST_DRAINED], ids=["none", "a byte", "some", "the most"])
def test_what_a_refusal_leaves_of_a_body_is_read_to_its_end(size: int) -> None:
    body = io.BytesIO(bytes(size) + b"of the next request")
    environ = {"wsgi.input": Limited(body, size), "CONTENT_LENGTH": str(size) if size else ""}
    assert list(Patient(refused, most=3, seconds=5, end=lambda: None)(environ, None)) == [b"no, for a reason"]
    assert body.tell() == size


def test_what_a_refusal_leaves_of_chunks_is_read_to_its_end() -> None:
    body = io.BytesIO(bytes(300_000) + b"of the next request")
    environ = {"wsgi.input": Limited(body, 300_000), "HTTP_TRANSFER_ENCODING": "chunked"}
    assert list(Patient(refused, most=3, seconds=5, end=lambda: None)(environ, None)) == [b"no, for a reason"]
    assert body.tell() == 300_000


def test_a_body_without_end_is_left_alone() -> None:
    body = io.BytesIO(b"0" * 1000)
    environ = {"wsgi.input": body, "CONTENT_LENGTH": str(MOST_DRAINED + 1)}
    assert list(Patient(refused, most=3, seconds=5, end=lambda: None)(environ, None)) == [b"no, for a reason"]
    assert body.tell() == 0


def test_a_body_that_waits_to_be_asked_for_is_not_asked_for() -> None:
    body = io.BytesIO(b"0" * 1000)
    environ = {"wsgi.input": body, "CONTENT_LENGTH": "1000", "HTTP_EXPECT": "100-continue"}
    assert list(Patient(refused, most=3, seconds=5, end=lambda: None)(environ, None)) == [b"no, for a reason"]
    assert body.tell() == 0


def test_a_body_that_breaks_off_is_not_waited_for() -> None:
    environ = {"wsgi.input": io.BytesIO(b"half"), "CONTENT_LENGTH": "1000"}
    assert list(Patient(refused, most=3, seconds=5, end=lambda: None)(environ, None)) == [b"no, for a reason"]


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
