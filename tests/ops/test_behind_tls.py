"""A server behind a proxy that ends TLS, and the same over plain http: cookies, HSTS, CSRF, and who asked."""

import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from axes.models import AccessAttempt

from tests import database
from tests.conftest import served

HOST = "memory.example.test"
FROM = {"X-Forwarded-For": "198.51.100.7, 203.0.113.9", "X-Forwarded-Proto": "https"}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs") / "server.log"


@pytest.fixture(scope="module")
def behind_tls(logs: Path) -> Iterator[str]:
    with logs.open("wb") as said:
        settings = {"TEAM_MEMORY_PUBLIC_URL": f"https://{HOST}", "TEAM_MEMORY_LOG_FORMAT": "json"}
        with served(stderr=said, **settings) as address:
            yield address


def ask(address: str, method: str, path: str, body: dict[str, str] | None = None, **headers: str) -> Any:
    """The answer, as the proxy sees it; header names with _ for -."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
    sent = {"Host": HOST, **{name.replace("_", "-"): value for name, value in headers.items()}}
    content = urlencode(body).encode() if body is not None else None
    if content is not None:
        sent["Content-Type"] = "application/x-www-form-urlencoded"
    connection.request(method, path, content, sent)
    answer = connection.getresponse()
    answer.text = answer.read().decode()  # type: ignore[attr-defined]
    connection.close()
    return answer


def login(address: str, password: str, **headers: str) -> Any:
    """The answer to a password typed into the login page."""
    page = ask(address, "GET", "/login/", **headers)
    cookies = SimpleCookie()
    for header in page.headers.get_all("Set-Cookie"):
        cookies.load(header)
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
    assert token
    body = {"csrfmiddlewaretoken": token[1], "email": "alice@acme.test", "password": password}
    sent = "; ".join(f"{name}={morsel.value}" for name, morsel in cookies.items())
    return ask(address, "POST", "/login/", body, Cookie=sent, **headers)


@pytest.mark.usefixtures("committed")
def test_behind_tls_cookies_are_bound_to_the_host_and_the_browser_stays_on_https(behind_tls: str) -> None:
    page = ask(behind_tls, "GET", "/login/", **FROM)
    [cookie] = page.headers.get_all("Set-Cookie")
    assert cookie.startswith("__Host-csrf=") and "; Secure" in cookie and "; Path=/" in cookie
    assert "Domain" not in cookie and "SameSite=Lax" in cookie
    assert page.headers["Strict-Transport-Security"] == "max-age=31536000"
    assert "unsafe" not in page.headers["Content-Security-Policy"]
    # A call on this machine that did not come through the proxy is answered as ever.
    assert ask(behind_tls, "GET", "/healthz").status == 200
    assert "Strict-Transport-Security" not in ask(behind_tls, "GET", "/login/").headers


@pytest.mark.usefixtures("committed")
def test_behind_tls_a_form_must_come_from_our_own_pages(behind_tls: str, alice: Any) -> None:
    ours = login(behind_tls, "wrong", Referer=f"https://{HOST}/login/", **FROM)
    assert ours.status == 422 and "do not belong together" in ours.text
    assert login(behind_tls, "wrong", Referer="https://elsewhere.test/", **FROM).status == 403
    assert login(behind_tls, "wrong", Origin="https://elsewhere.test", **FROM).status == 403


@pytest.mark.usefixtures("committed")
def test_a_guess_counts_for_whom_the_proxy_names(behind_tls: str, alice: Any) -> None:
    login(behind_tls, "guessed", Referer=f"https://{HOST}/login/", **FROM)
    # The proxy wrote the last address; what stands before it is what the asker says.
    assert set(AccessAttempt.objects.values_list("ip_address", flat=True)) == {"203.0.113.9"}


@pytest.mark.usefixtures("committed")
def test_over_plain_http_nobody_may_say_who_asks(live: str, alice: Any) -> None:
    host = urlsplit(live).netloc
    page = ask(live, "GET", "/login/", Host=host, **FROM)
    [cookie] = page.headers.get_all("Set-Cookie")
    assert cookie.startswith("tm_csrf=") and "Secure" not in cookie, "a LAN without TLS still logs in"
    assert "Strict-Transport-Security" not in page.headers
    assert login(live, "guessed", Host=host, **FROM).status == 422
    assert set(AccessAttempt.objects.values_list("ip_address", flat=True)) == {"127.0.0.1"}


@pytest.mark.usefixtures("committed")
def test_a_logged_line_is_one_object_that_names_its_request(behind_tls: str, logs: Path) -> None:
    answer = ask(behind_tls, "GET", "/login/", Host="not-ours.example", **FROM)
    assert answer.status == 400
    lines = [json.loads(line) for line in logs.read_text().splitlines() if line.startswith("{")]
    said = [line for line in lines if "not-ours.example" in line["message"]]
    assert said, logs.read_text()[-2000:]
    assert said[-1]["request_id"] == answer.headers["X-Request-Id"] and said[-1]["level"] == "ERROR"
    assert set(said[-1]) >= {"at", "level", "logger", "message", "request_id", "task"}


def checked(*arguments: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-W", "ignore", "manage.py", "check", *arguments]
    # Set by browser tests in the same process, for themselves.
    usual = {name: value for name, value in os.environ.items() if name != "DJANGO_ALLOW_ASYNC_UNSAFE"}
    return subprocess.run(
        command, cwd=database.ROOT, env={**usual, **settings}, capture_output=True, text=True, timeout=120
    )


def test_the_deployment_check_has_nothing_to_say_behind_tls(tmp_path: Path) -> None:
    whole = checked("--deploy", "--fail-level", "WARNING", TEAM_MEMORY_PUBLIC_URL=f"https://{HOST}")
    assert whole.returncode == 0, whole.stderr[-2000:]
    assert "no issues" in whole.stdout
    plain = checked("--deploy", "--fail-level", "WARNING", TEAM_MEMORY_PUBLIC_URL=f"http://{HOST}")
    assert plain.returncode != 0 and "SESSION_COOKIE_SECURE" in plain.stderr, "it can fail"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("TEAM_MEMORY_TRUSTED_PROXIES", "10.0.0.0/8, proxy.internal", "addresses or networks"),
        ("TEAM_MEMORY_LOG_FORMAT", "xml", "line or json"),
    ],
)
def test_a_setting_that_is_wrong_is_named(name: str, value: str, said: str) -> None:
    refused = checked(**{name: value})
    assert refused.returncode != 0 and name in refused.stderr and said in refused.stderr
    assert "Traceback" not in refused.stderr
