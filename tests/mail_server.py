"""A real SMTP server on loopback: keeps what it took, and fails as its script says."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session
from django.conf import settings

from tests.conftest import free_port

TAKEN = "250 OK"


@dataclass
class Mailbox:
    """The mails it took, in order. `on_data` gives the answer to each: "250 OK", "451 later", "554 never"."""

    on_data: Callable[[int], str] = lambda number: TAKEN
    mails: list[EmailMessage] = field(default_factory=list)
    asked: int = 0

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        self.asked += 1
        said = self.on_data(self.asked)
        if said == TAKEN:
            assert isinstance(envelope.content, bytes)
            parsed: Any = message_from_bytes(envelope.content, policy=policy.default)
            self.mails.append(parsed)
        return said

    @property
    def texts(self) -> list[str]:
        return [mail.get_content() for mail in self.mails]

    def to(self, address: str) -> list[EmailMessage]:
        return [mail for mail in self.mails if mail["To"] == address]


@contextmanager
def mail_server(on_data: Callable[[int], str] = lambda number: TAKEN, **more: Any) -> Iterator[Mailbox]:
    """A server that runs while the block does, and is the one of the settings."""
    box = Mailbox(on_data)
    port = free_port()
    # On a busy machine its loop may start late.
    controller = Controller(box, hostname="127.0.0.1", port=port, ready_timeout=60)
    controller.start()
    named = {"EMAIL_HOST": "127.0.0.1", "EMAIL_PORT": port, "EMAIL_USE_TLS": False, "EMAIL_USE_SSL": False}
    named["DEFAULT_FROM_EMAIL"] = "Team Memory <memory@example.org>"
    named["EMAIL_BACKEND"] = "django.core.mail.backends.smtp.EmailBackend"
    try:
        with _set({**named, **more}):
            yield box
    finally:
        controller.stop()


@contextmanager
def _set(values: dict[str, Any]) -> Iterator[None]:
    """As `override_settings`, but not as one of its layers: a test that lays its own over this one and takes it off
    later would put ours back for all that follow.
    """
    holder: Any = settings._wrapped
    before = {name: getattr(holder, name) for name in values}
    try:
        _put(holder, values)
        yield
    finally:
        _put(holder, before)


def _put(holder: Any, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(holder, name, value)
        # What was asked for once is kept.
        settings.__dict__.pop(name, None)
