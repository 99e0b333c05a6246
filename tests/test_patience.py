"""Half-sent bodies, and what stands in the log."""

import io
import logging
import threading
import time
from collections.abc import Iterable
from typing import Any

from memory.logs import Masked
from memory.patience import Patient
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


def masked(message: str, *args: Any, level: int = logging.WARNING) -> str:
    record = logging.LogRecord("x", level, "x", 1, message, args, None)
    assert Masked().filter(record)
    return record.getMessage()


def test_a_log_holds_no_login_token_and_no_key() -> None:
    secret = new_secret()
    assert masked("Gone: %s", "/login/link/abc-DEF_123/", level=logging.INFO) == "Gone: /login/link/[token]/"
    assert secret not in masked("Not Found: %s", f"/api/v1/events/{secret}")
    assert masked("plain %s", "words") == "plain words"
