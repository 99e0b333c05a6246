"""What leaves the server: mail by the operator's SMTP server, and calls to an address that an admin typed.

Only workers send, never a request; a login by single sign-on asks the provider, outside of any transaction. An address
is resolved once, refused where it is private or loopback, and the connection goes to that very IP (requests-hardened),
so that no second DNS answer leads elsewhere; redirects are never followed. A failure says whether the other side can
have taken it: only where it can't, trying again is safe.
"""

import base64
import binascii
import hashlib
import hmac
import smtplib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import orjson
import requests
from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.db import connection
from requests_hardened import Config, Manager
from requests_hardened.ip_filter import InvalidIPAddress
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from memory.sentences import sentence

# Seconds for one read, and for a whole call: a receiver that drips bytes must not keep a worker.
TIMEOUT: Final = 10
DEADLINE: Final = 25.0
MOST_ANSWER: Final = 4_096
# What is asked while a person waits: seconds for one read and for the whole, and how long the answer may be.
ASK_TIMEOUT: Final = 5
ASK_DEADLINE: Final = 10.0
MOST_DOCUMENT: Final = 512 * 1024
MOST_URL: Final = 2_000
_LATER: Final = (408, 425, 429)
_AGENT: Final = "team-memory"

# never: it can't work as it stands. later: it was not taken, try again. unknown: it may have been taken.
Kind = Literal["never", "later", "unknown"]


class NotSent(Exception):
    """It was not sent, or nobody knows; `str()` says why, without any secret."""

    def __init__(self, kind: Kind, why: str, *, retry_after: float = 0.0) -> None:
        super().__init__(why)
        self.kind = kind
        self.retry_after = retry_after


class InvalidAddress(ValueError):
    """The server may not send to this address; the message says what it may."""


def check_url(url: str) -> None:
    """Raises InvalidAddress unless the server may send to it, as far as its text tells: where the name leads is asked
    at each call.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidAddress(sentence("This is no web address.")) from None
    if len(url) > MOST_URL or not url.isprintable() or " " in url or not parts.hostname or port == 0:
        raise InvalidAddress(
            sentence(
                "A web address has a host, no spaces, and up to %(most_url)s characters.",
                most_url=format(MOST_URL, ","),
            )
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidAddress(sentence("Leave name and password out of the address."))
    if parts.scheme != "https" and not (parts.scheme == "http" and is_listed(url)):
        raise InvalidAddress(
            sentence("The address begins with https://. The operator may allow others: TEAM_MEMORY_WEBHOOK_HOSTS.")
        )


def is_listed(url: str) -> bool:
    """Whether the operator named this host (or host:port): then it may be private, and plain http."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return any(one in (host, f"{host}:{port}") for one in settings.WEBHOOK_HOSTS)


def place(url: str) -> str:
    """What may be shown of an address: paths and queries of webhooks are secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"


def post_json(url: str, body: Any, *, message_id: str = "", secret: str = "") -> int:
    """POST `body` and give the status, a 2xx. With a secret it is signed as Standard Webhooks say: `message_id` is the
    same at each try, so that the receiver can drop repeats. Raises NotSent.
    """
    try:
        check_url(url)
    except InvalidAddress as why:
        raise NotSent("never", str(why)) from None
    raw = orjson.dumps(body)
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    if secret:
        headers |= signature(raw, message_id=message_id, secret=secret, at=int(time.time()))
    with _session(url, timeout=TIMEOUT, deadline=DEADLINE) as (session, wire):
        try:
            answer = session.post(url, data=raw, headers=headers, stream=True)
            said = answer.raw.read(MOST_ANSWER, decode_content=False)
        except InvalidIPAddress:
            raise NotSent("never", _private(url)) from None
        except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema):
            raise NotSent("never", sentence("This is no web address.")) from None
        except (requests.RequestException, OSError, ValueError) as why:
            raise _broken(url, why, wire) from None
    return _taken(url, answer, said)


def fetch_json(url: str, *, form: dict[str, str] | None = None, authorization: str = "") -> dict[str, Any]:
    """The JSON object at an address, by GET, or by POST of a form. What it costs a person who waits is bounded. Raises
    NotSent.
    """
    try:
        check_url(url)
    except InvalidAddress as why:
        raise NotSent("never", str(why)) from None
    let_go()
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    if authorization:
        headers["Authorization"] = authorization
    with _session(url, timeout=ASK_TIMEOUT, deadline=ASK_DEADLINE) as (session, wire):
        try:
            method = "GET" if form is None else "POST"
            answer = session.request(method, url, data=form, headers=headers, stream=True)
            said = answer.raw.read(MOST_DOCUMENT + 1, decode_content=False)
        except InvalidIPAddress:
            raise NotSent("never", _private(url)) from None
        except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema):
            raise NotSent("never", sentence("This is no web address.")) from None
        except (requests.RequestException, OSError, ValueError) as why:
            raise _broken(url, why, wire) from None
    _taken(url, answer, said)
    try:
        document = orjson.loads(said) if len(said) <= MOST_DOCUMENT else None
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise NotSent("never", sentence("%(where)s answered no JSON object.", where=place(url)))
    return document


def let_go() -> None:
    """Give the database connection back: a process has few, and whoever waits for somebody else's server needs none."""
    if not connection.in_atomic_block:
        connection.close()


def _private(url: str) -> str:
    return sentence(
        "%(where)s is a private or loopback address. The operator may allow it by TEAM_MEMORY_WEBHOOK_HOSTS.",
        where=place(url),
    )


def _taken(url: str, answer: requests.Response, said: bytes) -> int:
    status = answer.status_code
    if 200 <= status < 300:
        return status
    words = "".join(char for char in said[:120].decode("utf-8", "replace") if char.isprintable())
    told = sentence("%(where)s answered %(status)s", where=place(url), status=f"{status}: {words}" if words else status)
    if 300 <= status < 400:
        raise NotSent(
            "never",
            sentence(
                "%(where)s answered %(status)s, a redirect: type the address it leads to.",
                where=place(url),
                status=status,
            ),
        )
    if status in _LATER or status >= 500:
        raise NotSent("later", told, retry_after=_seconds(answer.headers.get("Retry-After", "")))
    raise NotSent("never", told)


def _broken(url: str, why: Exception, wire: "_Wire") -> NotSent:
    if wire.is_open:
        late = isinstance(why, requests.Timeout) or wire.is_late
        seconds = wire.deadline if wire.is_late else wire.timeout
        what = (
            sentence("no answer within %(seconds)s s", seconds=f"{seconds:g}")
            if late
            else sentence("the connection broke")
        )
        return NotSent("unknown", sentence("%(where)s: %(what)s after it was sent.", where=place(url), what=what))
    if isinstance(why, requests.exceptions.SSLError):
        return NotSent("later", sentence("%(where)s: its certificate or its TLS can't be trusted.", where=place(url)))
    return NotSent("later", sentence("%(where)s can't be reached: %(why)s.", where=place(url), why=_reason(why, wire)))


def _reason(why: Exception, wire: "_Wire") -> str:
    if isinstance(why, requests.Timeout):
        return sentence("no connection within %(seconds)s s", seconds=f"{wire.timeout:g}")
    text = str(why)
    if "resolve" in text:
        return sentence("nobody knows this name")
    return sentence("it refuses the connection") if "refused" in text else sentence("the connection failed")


def _seconds(text: str) -> float:
    return min(float(text), 3600.0) if text.isascii() and text.isdigit() and len(text) < 7 else 0.0


def signature(raw: bytes, *, message_id: str, secret: str, at: int) -> dict[str, str]:
    """The three headers of Standard Webhooks over the bytes of a body."""
    signed = f"{message_id}.{at}.".encode() + raw
    made = base64.b64encode(hmac.new(_key(secret), signed, hashlib.sha256).digest()).decode()
    return {"webhook-id": message_id, "webhook-timestamp": str(at), "webhook-signature": f"v1,{made}"}


def _key(secret: str) -> bytes:
    if secret.startswith("whsec_"):
        with suppress(binascii.Error):
            return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    return secret.encode()


@dataclass
class _Wire:
    """The connections of one call, and whether one of them stands: then the other side may have read."""

    timeout: float
    deadline: float
    open: list[socket.socket] = field(default_factory=list)
    is_open: bool = False
    is_late: bool = False

    def connected(self, connection: HTTPConnection) -> None:
        self.is_open = True
        if connection.sock is not None:
            self.open.append(connection.sock)
        if self.is_late:
            # The time was over before the connection stood.
            self.cut()

    def cut(self) -> None:
        self.is_late = True
        for one in self.open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@contextmanager
def _session(url: str, *, timeout: float, deadline: float) -> Iterator[tuple[requests.Session, _Wire]]:
    config = Config(
        ip_filter_enable=not is_listed(url),
        ip_filter_allow_loopback_ips=False,
        never_redirect=True,
        default_timeout=(timeout, timeout),
        user_agent_override=_AGENT,
    )
    wire = _Wire(timeout, deadline)
    # Timeouts of sockets are for each read: only a clock of our own ends a call whose bytes drip.
    clock = threading.Timer(deadline, wire.cut)
    clock.daemon = True
    with Manager(config).get_session() as session:
        # Else ~/.netrc of the server's user would give its passwords to whoever was typed.
        session.auth = lambda request: request
        for adapter in session.adapters.values():
            adapter.poolmanager.pool_classes_by_scheme = _pools(wire.connected)
        clock.start()
        try:
            yield session, wire
        finally:
            clock.cancel()


def _pools(connected: Callable[[HTTPConnection], None]) -> dict[str, type[HTTPConnectionPool]]:
    class Plain(HTTPConnection):
        def connect(self) -> None:
            super().connect()
            connected(self)

    class Secure(HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            connected(self)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    return {"http": PlainPool, "https": SecurePool}


def slack(url: str, text: str) -> int:
    """A message to a Slack-compatible incoming webhook (Slack, Mattermost, Rocket.Chat). Raises NotSent."""
    return post_json(url, {"text": text})


@dataclass(frozen=True)
class Mail:
    """One mail to one person. `message_id` is the same at each try: most mailboxes show it once even if it came twice.
    `page` is where its reader chooses what is sent to them.
    """

    to: str
    subject: str
    text: str
    message_id: str
    page: str = ""


def has_mail() -> bool:
    """Whether the operator named an SMTP server."""
    return bool(settings.EMAIL_HOST)


def send_mail(mail: Mail, *, before: Callable[[], None] = lambda: None) -> None:
    """Hand a mail to the SMTP server. `before` is called once all is ready, just before the server may take it; what it
    raises ends the sending. Raises NotSent.
    """
    if not has_mail():
        raise NotSent("never", sentence("The operator named no SMTP server (TEAM_MEMORY_SMTP_URL)."))
    connection: Any = get_connection()
    try:
        connection.open()
    except (OSError, smtplib.SMTPException) as why:
        raise _unmailed(why, is_taken=False) from None
    try:
        before()
        _message(mail, connection).send()
    except (OSError, smtplib.SMTPException) as why:
        raise _unmailed(why, is_taken=True) from None
    except ValueError:
        raise NotSent("never", sentence("This is no address that mail can be sent to.")) from None
    finally:
        with suppress(OSError, smtplib.SMTPException):
            connection.close()


def _message(mail: Mail, connection: Any) -> EmailMessage:
    domain = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].strip("> ") or "team-memory.invalid"
    headers = {"Message-ID": f"<{mail.message_id}@{domain}>", "Auto-Submitted": "auto-generated"}
    if mail.page:
        headers["List-Unsubscribe"] = f"<{mail.page}>"
    # A subject comes from what people typed: no line of it may become a header.
    subject = " ".join(mail.subject.split())[:200]
    return EmailMessage(subject, mail.text, to=[mail.to], headers=headers, connection=connection)


def _unmailed(why: Exception, *, is_taken: bool) -> NotSent:
    """What an SMTP failure says. A code of the server is a clear no; silence after the text was handed over is none."""
    where = sentence("The SMTP server %(host)s", host=settings.EMAIL_HOST)
    if isinstance(why, smtplib.SMTPRecipientsRefused):
        code, said = next(iter(why.recipients.values()))
        return _answered(where, code, said)
    if isinstance(why, smtplib.SMTPResponseException):
        # A password that is wrong today is put right by the operator, not by the mail.
        is_login = isinstance(why, smtplib.SMTPAuthenticationError)
        return _answered(where, 454 if is_login else why.smtp_code, why.smtp_error)
    if isinstance(why, smtplib.SMTPNotSupportedError):
        return NotSent(
            "later",
            sentence("%(where)s does not offer what TEAM_MEMORY_SMTP_URL asks for: %(why)s", where=where, why=why),
        )
    if is_taken:
        return NotSent("unknown", sentence("%(where)s fell silent after the mail was handed over.", where=where))
    return NotSent("later", sentence("%(where)s can't be reached: %(why)s.", where=where, why=_plain(why)))


def _answered(where: str, code: int, said: bytes | str) -> NotSent:
    words = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    told = "".join(char for char in words[:160] if char.isprintable())
    return NotSent(
        "never" if code >= 500 else "later",
        sentence("%(where)s answered %(status)s", where=where, status=f"{code} {told}"),
    )


def _plain(why: Exception) -> str:
    if isinstance(why, TimeoutError):
        return sentence("no connection within %(seconds)s s", seconds=settings.EMAIL_TIMEOUT)
    if isinstance(why, ConnectionRefusedError):
        return sentence("it refuses the connection")
    return sentence("nobody knows this name") if isinstance(why, socket.gaierror) else type(why).__name__
