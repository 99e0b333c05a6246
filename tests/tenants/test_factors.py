"""Codes of an app, recovery codes, and step-up by them. Passkeys in a browser: tests/browser/test_passkeys.py."""

import base64
import hashlib
import hmac
import json
import re
import struct
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.core.management import call_command
from django.db import connection
from django.test import Client

from memory.management.commands.rotate_secrets import reseal
from memory.tenants import factors, keys, rls, vault
from memory.tenants.access import member_actor
from memory.tenants.models import AuditEntry
from tests.conftest import PASSWORD

NOW = 1_796_040_000


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's clock of codes stands still: a slow machine must not turn a code into an old one."""
    monkeypatch.setattr("allauth.mfa.totp.internal.auth.time", SimpleNamespace(time=lambda: NOW))


def code_of(secret: str, *, ahead: int = 0) -> str:
    """The code an app shows now, or a step of 30 seconds later (RFC 6238)."""
    digest = hmac.new(base64.b32decode(secret), struct.pack(">Q", NOW // 30 + ahead), hashlib.sha1).digest()
    offset = digest[-1] & 15
    return f"{(struct.unpack('>I', digest[offset : offset + 4])[0] & 0x7FFFFFFF) % 10**6:06}"


def turned_on(browser: Client) -> tuple[str, list[str]]:
    """Turn codes on by the pages; the secret and the recovery codes. The code of this moment is used up then."""
    page = browser.get("/account/codes/").content.decode()
    secret = re.search(r'id="secret"[^>]*>(\w+)<', page)[1]  # type: ignore[index]
    shown = browser.post("/account/codes/", {"code": code_of(secret)}).content.decode()
    codes = re.search(r'id="recovery"[^>]*>([\d\s]+)<', shown)[1].split()  # type: ignore[index]
    return secret, codes


def login(email: str, browser: Client | None = None) -> tuple[Client, Any]:
    browser = browser or Client()
    return browser, browser.post("/login/", {"email": email, "password": PASSWORD, "next": "/t/acme/notes/"})


def audit(tenant: Any, action: str) -> list[tuple[str, str, str]]:
    with rls.tenant_scope(str(tenant.pk)):
        rows = AuditEntry.objects.filter(tenant=tenant, action=action).order_by("seq")
        return list(rows.values_list("actor_label", "outcome", "after"))


@pytest.fixture
def on(alice: Any, logged_in: Callable[[Any], Client]) -> tuple[str, list[str]]:
    """Alice's secret and recovery codes."""
    return turned_on(logged_in(alice))


def test_the_page_shows_a_picture_and_the_secret(alice: Any, logged_in: Any) -> None:
    browser = logged_in(alice)
    page = browser.get("/account/codes/")
    text = page.content.decode()
    assert "<svg" in text and "<?xml" not in text and "style=" not in text and "no-store" in page["Cache-Control"]
    # The same secret until it is confirmed: who reloads the page has scanned it already.
    assert re.findall(r'id="secret"[^>]*>(\w+)<', text) == re.findall(
        r'id="secret"[^>]*>(\w+)<', browser.get("/account/codes/").content.decode()
    )
    assert browser.post("/account/codes/", {"code": "000000"}).status_code == 422
    assert not factors.asks_for_code(alice.user)


def test_a_login_by_password_asks_for_the_code(acme: Any, on: Any) -> None:
    secret, codes = on
    assert len(set(codes)) == 10
    browser, answer = login("alice@acme.test")
    assert answer["Location"] == "/login/code/"
    assert browser.get("/t/acme/notes/").status_code == 302
    assert browser.post("/login/code/", {"code": "000000"}).status_code == 422
    answer = browser.post("/login/code/", {"code": code_of(secret, ahead=1)})
    assert answer["Location"] == "/t/acme/notes/" and browser.get("/t/acme/notes/").status_code == 200
    assert audit(acme, "login.code") == [("alice", "refused", "")]
    assert audit(acme, "factor.codes_on") == [("alice", "done", "")]
    assert browser.get("/login/code/")["Location"] == "/login/"


def test_what_is_kept_before_a_login_is_kept_briefly(on: Any) -> None:
    browser, _answer = login("alice@acme.test")
    assert browser.session.get_expiry_age() == 900
    browser.post("/login/code/", {"code": code_of(on[0], ahead=1)})
    assert browser.session.get_expiry_age() == 14 * 24 * 3600


def test_a_code_works_once(on: Any) -> None:
    secret, _ = on
    code = code_of(secret, ahead=1)
    first, _answer = login("alice@acme.test")
    second, _answer = login("alice@acme.test")
    assert first.post("/login/code/", {"code": code}).status_code == 302
    assert second.post("/login/code/", {"code": code}).status_code == 422
    # Nor does an older one, which was not used.
    assert second.post("/login/code/", {"code": code_of(secret)}).status_code == 422


def test_of_two_that_show_one_code_at_once_one_comes_in(alice: Any, on: Any) -> None:
    code = code_of(on[0], ahead=1)

    def use(_: int) -> bool:
        try:
            return factors.use_code(alice.user, code)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(use, range(4))) == [False, False, False, True]


def test_a_recovery_code_works_once_and_is_counted(acme: Any, on: Any) -> None:
    _, codes = on
    browser, _answer = login("alice@acme.test")
    assert browser.post("/login/code/", {"code": f"{codes[0][:4]}-{codes[0][4:]}"}).status_code == 302
    assert "9 recovery codes left" in browser.get("/account/").content.decode()
    assert audit(acme, "factor.use_recovery_code") == [("alice", "done", "9 left")]
    again, _answer = login("alice@acme.test")
    assert again.post("/login/code/", {"code": codes[0]}).status_code == 422


def test_new_recovery_codes_end_the_former(acme: Any, alice: Any, on: Any, logged_in: Any) -> None:
    shown = logged_in(alice).post("/account/codes/recovery/").content.decode()
    assert "the former ones work no more" in shown and not factors.use_code(alice.user, on[1][1])
    assert len(audit(acme, "factor.new_recovery_codes")) == 1


def test_wrong_codes_are_slowed_like_passwords(acme: Any, on: Any) -> None:
    browser, _answer = login("alice@acme.test")
    tries = [browser.post("/login/code/", {"code": "000000"}).status_code for _ in range(8)]
    assert tries[:7] == [422] * 7 and tries[7] == 429
    locked = browser.post("/login/code/", {"code": code_of(on[0], ahead=1)})
    assert locked.status_code == 429 and locked["Retry-After"] == "900"
    # The same guard: the password is not taken either now.
    assert login("alice@acme.test")[1].status_code == 429
    assert len(audit(acme, "login.code")) == 7
    with connection.cursor() as cursor:
        cursor.execute("SELECT post_data FROM axes_accessattempt")
        assert all("000000" not in row[0] for row in cursor.fetchall())


def test_after_a_hundred_wrong_codes_from_anywhere_only_a_recovery_code_works(alice: Any, on: Any) -> None:
    secret, codes = on
    row = Authenticator.objects.get(user=alice.user, type="totp")
    row.data["wrong"] = factors.MOST_WRONG - 1
    row.save()
    assert not factors.use_code(alice.user, "000000")
    assert not factors.use_code(alice.user, code_of(secret, ahead=1))
    assert factors.use_code(alice.user, codes[5])
    assert factors.use_code(alice.user, code_of(secret, ahead=1))


def test_what_was_begun_ends_after_ten_minutes(on: Any) -> None:
    browser, _answer = login("alice@acme.test")
    session = browser.session
    session["awaits_code"] = {**session["awaits_code"], "at": time.time() - 601}
    session.save()
    assert browser.post("/login/code/", {"code": code_of(on[0], ahead=1)})["Location"] == "/login/"


def test_a_login_link_asks_for_the_code_too(acme: Any, alice: Any, on: Any) -> None:
    with rls.tenant_scope(str(acme.pk)):
        url = keys.make_login_link(alice, by=member_actor(alice))
    browser = Client()
    answer = browser.post("/login/link/" + url.rstrip("/").rsplit("/", 1)[1] + "/")
    assert answer["Location"] == "/login/code/" and browser.get("/t/acme/").status_code == 302
    assert browser.post("/login/code/", {"code": code_of(on[0], ahead=1)})["Location"] == "/t/acme/"
    # Who came by a link sets a new password without the old one.
    assert "Password until now" not in browser.get("/password/").content.decode()


def test_who_lost_all_gets_in_by_the_operator(acme: Any, on: Any, capsys: Any) -> None:
    call_command("login_link", "alice@acme.test", without_codes=True)
    browser = Client()
    link = "/login/link/" + capsys.readouterr().out.strip().rstrip("/").rsplit("/", 1)[1] + "/"
    assert browser.post(link)["Location"] == "/t/acme/"
    assert audit(acme, "factor.codes_off") == [("alice", "done", "by manage.py login_link")]


def stale(browser: Client) -> Client:
    session = browser.session
    session["proved_at"] = 0
    session.save()
    return browser


def test_turning_off_asks_who_is_there(acme: Any, alice: Any, on: Any, logged_in: Any) -> None:
    browser = stale(logged_in(alice))
    assert browser.post("/account/codes/off/")["Location"].startswith("/prove/")
    assert factors.asks_for_code(alice.user)
    browser.post("/prove/", {"code": code_of(on[0], ahead=1), "next": "/account/"})
    assert browser.post("/account/codes/off/")["Location"] == "/account/"
    assert not factors.asks_for_code(alice.user) and factors.recovery_codes_left(alice.user) == 0
    assert login("alice@acme.test")[1]["Location"] == "/t/acme/notes/"


def test_step_up_takes_a_code_and_audits_a_wrong_one(acme: Any, alice: Any, on: Any, logged_in: Any) -> None:
    browser = stale(logged_in(alice))
    page = browser.get("/prove/?next=/t/acme/keys/").content.decode()
    assert "Password" in page and "Code" in page and "passkey" not in page
    assert browser.post("/prove/", {"code": "000000"}).status_code == 422
    assert browser.post("/prove/", {"password": "not hers"}).status_code == 422
    assert browser.post("/prove/", {"credential": "{}"}).status_code == 422
    assert browser.post("/prove/", {}).status_code == 422
    assert audit(acme, "proof") == [("alice", "refused", "")] * 4
    assert browser.post("/t/acme/keys/", {"name": "x"})["Location"].startswith("/prove/")
    answer = browser.post("/prove/", {"code": code_of(on[0], ahead=1), "next": "/t/acme/keys/"})
    assert answer["Location"] == "/t/acme/keys/"
    assert browser.post("/t/acme/keys/", {"name": "x"}).status_code == 422


def test_who_has_only_a_login_link_proves_by_another(acme: Any, bob: Any, logged_in: Any) -> None:
    bob.user.set_unusable_password()
    bob.user.save()
    browser = stale(logged_in(bob))
    page = browser.get("/prove/?next=/t/acme/keys/").content.decode()
    assert "open a new login link" in page and "manage.py login_link bob@acme.test" in page
    assert browser.post("/prove/", {"password": ""}).status_code == 422
    with rls.tenant_scope(str(acme.pk)):
        url = keys.make_login_link(bob, by=member_actor(bob))
    browser.post("/login/link/" + url.rstrip("/").rsplit("/", 1)[1] + "/")
    assert browser.post("/t/acme/keys/", {"name": "x"}).status_code == 422


def test_the_link_for_step_up_is_mailed_where_there_is_mail(acme: Any, bob: Any, logged_in: Any, settings: Any) -> None:
    bob.user.set_unusable_password()
    bob.user.save()
    settings.EMAIL_HOST, settings.DEFAULT_FROM_EMAIL = "mail.test", "memory@acme.test"
    browser = stale(logged_in(bob))
    assert "Mail me a login link" in browser.get("/prove/").content.decode()
    for _ in range(2):
        browser.post("/prove/link/", {"next": "/t/acme/keys/"})
    with rls.tenant_scope(str(acme.pk)):
        [message] = acme.messages.all()
        assert message.recipient == "bob@acme.test" and "/login/link/" in vault.opened(bytes(message.sealed))
    assert len(audit(acme, "login_link.make")) == 1


def test_secrets_are_sealed_and_sealed_anew(alice: Any, on: Any, settings: Any) -> None:
    secret, codes = on
    kept = json.dumps([row.data for row in Authenticator.objects.filter(user=alice.user)])
    assert secret not in kept
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another key of forty characters and more, for certain"
    reseal()
    settings.SECRET_KEY_FALLBACKS = []
    assert factors.use_code(alice.user, code_of(secret, ahead=1)) and factors.use_code(alice.user, codes[3])


def test_a_key_that_is_gone_refuses_and_breaks_nothing(alice: Any, on: Any, settings: Any) -> None:
    settings.SECRET_KEY = "another key of forty characters and more, for certain"
    assert not factors.use_code(alice.user, code_of(on[0], ahead=1))


@pytest.mark.parametrize(
    "credential",
    [
        *("", "null", "[]", "{", '"x"', "{}", "[" * 5000, '{"response": null}', '{"response": {"userHandle": 7}}'),
        '{"response": {"userHandle": "AAAA"}}',
        '{"id": "AA", "rawId": "AA", "type": "public-key", "response": {"userHandle": "%s"}}',
        '{"id": "AA", "rawId": "AA", "response": {"userHandle": "%s", "clientDataJSON": "e30",'
        ' "authenticatorData": "AA", "signature": "AA"}}',
    ],
)
def test_a_made_up_passkey_opens_nothing(alice: Any, logged_in: Any, credential: str) -> None:
    handle = base64.urlsafe_b64encode(str(alice.user.pk).encode()).decode().rstrip("=")
    said = credential.replace("%s", handle)
    browser = Client()
    assert browser.post("/login/passkey/begin/").json()["publicKey"]["userVerification"] == "required"
    assert browser.post("/login/passkey/", {"credential": said})["Location"] == "/login/"
    assert browser.get("/t/acme/").status_code == 302
    owner = logged_in(alice)
    assert owner.post("/account/passkeys/begin/").json()["publicKey"]["user"]["name"] == "alice@acme.test"
    assert owner.post("/account/passkeys/", {"credential": said, "name": "x"})["Location"] == "/account/"
    assert not factors.has_passkey(alice.user)


@pytest.mark.parametrize(
    ("method", "page"),
    [
        ("get", "codes/"),
        *[("post", page) for page in ("codes/", "codes/off/", "codes/recovery/", "passkeys/", "passkeys/begin/")],
        *[("post", page) for page in ("passkeys/1/rename/", "passkeys/1/remove/")],
    ],
)
def test_what_changes_an_account_needs_a_login_and_a_proof(alice: Any, logged_in: Any, method: str, page: str) -> None:
    assert getattr(Client(), method)(f"/account/{page}")["Location"].startswith("/login/")
    browser = stale(logged_in(alice))
    assert getattr(browser, method)(f"/account/{page}")["Location"].startswith("/prove/")
    asked = getattr(browser, method)(f"/account/{page}", headers={"Accept": "application/json"})
    assert asked.status_code == 403 and asked.json()["ask"].startswith("/prove/")


def test_nobody_renames_or_removes_anothers_passkey(acme: Any, alice: Any, bob: Any, logged_in: Any) -> None:
    row = Authenticator.objects.create(user=bob.user, type="webauthn", data={"name": "Bob's"})
    browser = logged_in(alice)
    for page in ("rename", "remove"):
        browser.post(f"/account/passkeys/{row.pk}/{page}/", {"name": "Mine"})
    row.refresh_from_db()
    assert row.data["name"] == "Bob's" and audit(acme, "factor.rename_passkey") == []
    assert "/account/codes/off/" not in logged_in(bob).get("/account/").content.decode()


def test_no_address_of_allauth_is_open_and_no_request_passes_it(settings: Any) -> None:
    assert not [name for name in settings.MIDDLEWARE if "allauth" in name]
    for page in ("accounts/signup/", "accounts/email/", "accounts/mfa/", "accounts/3rdparty/", "accounts/login/"):
        assert Client().get(f"/{page}").status_code == 404
