"""What leaves the server: where it may go, how it is signed, and what a failure says."""

import socket
import threading
import time
from typing import Any

import orjson
import pytest

from memory.graph.webhooks import proofs
from memory.settings import smtp
from memory.tenants import outgoing
from memory.tenants.outgoing import Mail, NotSent
from tests.hook_server import hook_server
from tests.mail_server import mail_server


def refused(url: str) -> NotSent:
    with pytest.raises(NotSent) as caught:
        outgoing.post_json(url, {})
    return caught.value


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/x",
        "https://127.1/x",
        "https://2130706433/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://10.0.0.7/",
        "https://192.168.1.1/",
        "https://169.254.169.254/latest/meta-data",
        "https://100.64.0.1/",
        "https://[fd00::1]/",
        "https://[fe80::1]/",
        "https://0.0.0.0/",
        "https://localhost/",
    ],
)
def test_private_and_loopback_addresses_are_refused(url: str) -> None:
    why = refused(url)
    assert why.kind == "never" and "TEAM_MEMORY_WEBHOOK_HOSTS" in str(why)


@pytest.mark.parametrize(
    "url",
    [
        "http://93.184.215.14/x",
        "ftp://example.org/",
        "file:///etc/passwd",
        "https://name:word@example.org/",
        "https:///x",
        "https://exa mple.org/",
        "https://example.org:0/",
        "https://example.org:99999/",
        "https://example.org/\r\nX: y",
        "https://example.org/" + "x" * 2_000,
        "javascript:alert(1)",
        "",
    ],
)
def test_what_is_no_https_address_is_refused_by_its_text(url: str) -> None:
    assert refused(url).kind == "never"
    with pytest.raises(outgoing.InvalidAddress):
        outgoing.check_url(url)


def test_a_name_that_leads_to_loopback_is_refused_though_it_looks_public(monkeypatch: pytest.MonkeyPatch) -> None:
    known = socket.getaddrinfo

    def lied(host: Any, *args: Any, **more: Any) -> Any:
        return known("127.0.0.1" if host == "hooks.example.org" else host, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", lied)
    assert refused("https://hooks.example.org/x").kind == "never"


def test_what_the_operator_listed_is_called_once_and_signed() -> None:
    with hook_server() as receiver:
        secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        assert outgoing.post_json(receiver.address, {"hello": "wörld"}, message_id="msg_1", secret=secret) == 200
    (body,), (headers,) = receiver.bodies, receiver.headers
    assert orjson.loads(body) == {"hello": "wörld"} and headers["User-Agent"] == "team-memory"
    proofs.check(proofs.STANDARD, [secret], headers, body, now=time.time())
    with pytest.raises(proofs.Unproven):
        proofs.check(proofs.STANDARD, [secret], headers, body + b" ", now=time.time())


def test_a_host_that_is_not_listed_is_not_called() -> None:
    with hook_server(listed=False) as receiver:
        assert refused(receiver.address).kind == "never"
        assert refused(receiver.address.replace("http:", "https:")).kind == "never"
    assert receiver.bodies == []


def test_slack_gets_text_and_no_signature() -> None:
    with hook_server() as receiver:
        outgoing.slack(receiver.address, "Two proposals wait")
    assert receiver.bodies == [b'{"text":"Two proposals wait"}'] and "webhook-signature" not in receiver.headers[0]


@pytest.mark.parametrize(
    ("answer", "kind", "wait"),
    [
        ((302, {"Location": "http://127.0.0.1:1/"}), "never", 0.0),
        ((410, {}), "never", 0.0),
        ((429, {"Retry-After": "7"}), "later", 7.0),
        ((503, {"Retry-After": "never"}), "later", 0.0),
        ((500, {}), "later", 0.0),
        (None, "unknown", 0.0),
    ],
)
def test_a_failure_says_whether_it_can_have_arrived(answer: Any, kind: str, wait: float) -> None:
    with hook_server(lambda number: answer) as receiver:
        why = refused(receiver.address)
    assert (why.kind, why.retry_after) == (kind, wait) and len(receiver.bodies) == 1
    assert "/services/" not in str(why)


def test_nobody_listens_is_a_later(settings: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        settings.WEBHOOK_HOSTS = ["127.0.0.1"]
        assert refused(f"http://127.0.0.1:{taken.getsockname()[1]}/").kind == "later"


def test_a_receiver_that_drips_is_cut_off(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each read is short, so only the clock of the whole call ends it."""
    monkeypatch.setattr(outgoing, "DEADLINE", 0.3)
    settings.WEBHOOK_HOSTS = ["127.0.0.1"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def drip() -> None:
            one, _ = server.accept()
            one.recv(65_536)
            one.sendall(b"HTTP/1.1 ")
            while not ended.wait(0.02):
                try:
                    one.sendall(b"2")
                except OSError:
                    return

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        why = refused(f"http://127.0.0.1:{server.getsockname()[1]}/")
        ended.set()
        thread.join(5)
    assert why.kind == "unknown"


def test_the_netrc_of_the_server_is_not_given_away(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login root password hunter2\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with hook_server() as receiver:
        outgoing.post_json(receiver.address, {})
    assert "Authorization" not in receiver.headers[0]


def test_mail_arrives_whole() -> None:
    with mail_server() as box:
        mail = Mail("bob@acme.test", "Grüße\nBcc: eve@evil.test", "Ein Satz…\n", "msg_1", page="https://m.test/news/")
        outgoing.send_mail(mail)
    (got,) = box.mails
    assert got["Subject"] == "Grüße Bcc: eve@evil.test" and got["Bcc"] is None
    assert got["Message-ID"] == "<msg_1@example.org>" and got["List-Unsubscribe"] == "<https://m.test/news/>"
    assert got["Auto-Submitted"] == "auto-generated" and got.get_content() == "Ein Satz…\r\n"


@pytest.mark.parametrize(("said", "kind"), [("451 not now", "later"), ("554 no", "never")])
def test_a_mail_server_that_refuses_says_how(said: str, kind: str) -> None:
    with mail_server(lambda number: said) as box, pytest.raises(NotSent) as caught:
        outgoing.send_mail(Mail("bob@acme.test", "Hello", "Hello", "msg_1"))
    assert caught.value.kind == kind and said[:3] in str(caught.value) and box.mails == []


def test_no_mail_server_and_no_answer(settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST = ""
    with pytest.raises(NotSent) as caught:
        outgoing.send_mail(Mail("bob@acme.test", "Hello", "Hello", "msg_1"))
    assert caught.value.kind == "never"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", taken.getsockname()[1]
        with pytest.raises(NotSent) as caught:
            outgoing.send_mail(Mail("bob@acme.test", "Hello", "Hello", "msg_1"))
    assert caught.value.kind == "later"


def test_the_url_of_the_mail_server() -> None:
    assert smtp("smtp://me:p%40ss@mail.test") == {
        "HOST": "mail.test", "PORT": 587, "HOST_USER": "me", "HOST_PASSWORD": "p@ss", "USE_SSL": False, "USE_TLS": True,
    }  # fmt: skip
    assert smtp("smtps://mail.test") | {} == {
        "HOST": "mail.test", "PORT": 465, "HOST_USER": "", "HOST_PASSWORD": "", "USE_SSL": True, "USE_TLS": False,
    }  # fmt: skip
    assert smtp("smtp://127.0.0.1:25?starttls=no")["USE_TLS"] is False
    for wrong in ("mail.test", "smtp://", "http://mail.test", "smtp://mail.test?starttls=maybe", "smtp://m?tls=no"):
        with pytest.raises(SystemExit):
            smtp(wrong)
