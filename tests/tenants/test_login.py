"""Getting in: by password, by a one-time link, out again."""

import re
from typing import Any

import pytest
from django.test import Client

from memory.tenants import keys, rls
from memory.tenants.access import member_actor
from tests.conftest import PASSWORD


def link_for(member: Any) -> str:
    with rls.tenant_scope(str(member.tenant_id)):
        url = keys.make_login_link(member, by=member_actor(member))
    return "/login/link/" + url.rstrip("/").rsplit("/", 1)[1] + "/"


@pytest.fixture
def browser() -> Client:
    return Client()


def enter(browser: Client, email: str, password: str, **more: str) -> Any:
    return browser.post("/login/", {"email": email, "password": password, **more})


def test_it_lets_in_by_password(browser: Client, alice: Any) -> None:
    assert enter(browser, "Alice@acme.test", PASSWORD).status_code == 302
    assert browser.get("/t/acme/connect/").status_code == 200


def test_it_says_the_same_for_a_wrong_password_and_an_unknown_person(browser: Client, alice: Any) -> None:
    wrong = enter(browser, "alice@acme.test", "not the password")
    unknown = enter(browser, "nobody@acme.test", "not the password")
    assert (wrong.status_code, unknown.status_code) == (422, 422)
    message = "This e-mail address and password do not belong together."
    assert message in wrong.content.decode() and message in unknown.content.decode()


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/",
        "//evil.example/",
        "javascript:alert(1)",
        "/\\evil.example",
        "members",
        "{}",
        "\0",
        "http://[",
    ],
)
def test_it_never_leads_to_another_site(browser: Client, alice: Any, target: str) -> None:
    assert enter(browser, "alice@acme.test", PASSWORD, next=target)["Location"] == "/teams/"


@pytest.mark.parametrize("here", ["http://[", "//evil.example", "\xff"])
def test_it_comes_back_to_no_address_that_can_not_be_read(browser: Client, acme: Any, here: str) -> None:
    answer = browser.get("/t/acme/", headers={"HX-Request": "true", "HX-Current-URL": here})
    assert (answer.status_code, answer["HX-Redirect"]) == (204, "/login/?next=/")


def test_it_goes_where_the_person_wanted(browser: Client, alice: Any) -> None:
    assert enter(browser, "alice@acme.test", PASSWORD, next="/t/acme/connect/")["Location"] == "/t/acme/connect/"


def test_a_link_is_not_used_up_by_opening_its_page(browser: Client, alice: Any) -> None:
    link = link_for(alice)
    assert browser.get(link).status_code == 200
    assert browser.get(link).status_code == 200
    assert browser.post(link).status_code == 302
    assert browser.get("/t/acme/connect/").status_code == 200


def test_a_used_link_is_gone(browser: Client, alice: Any) -> None:
    link = link_for(alice)
    browser.post(link)
    assert Client().post(link).status_code == 410
    assert Client().get(link).status_code == 410


def test_an_unknown_link_is_gone(browser: Client, alice: Any) -> None:
    assert browser.get("/login/link/none/").status_code == 410


def test_it_asks_a_new_person_for_a_password(browser: Client, alice: Any) -> None:
    alice.user.set_unusable_password()
    alice.user.save()
    assert browser.post(link_for(alice))["Location"].startswith("/password/")
    answer = browser.post("/password/", {"password1": "a long enough one", "password2": "a long enough one"})
    assert answer.status_code == 302
    assert enter(Client(), "alice@acme.test", "a long enough one").status_code == 302


def test_it_refuses_a_weak_or_mistyped_password(browser: Client, alice: Any) -> None:
    browser.force_login(alice.user)
    assert browser.post("/password/", {"password1": "short", "password2": "short"}).status_code == 422
    assert browser.post("/password/", {"password1": "long enough one", "password2": "another one!"}).status_code == 422


def test_logging_out_ends_the_session(browser: Client, alice: Any) -> None:
    browser.force_login(alice.user)
    assert browser.post("/logout/").status_code == 302
    assert browser.get("/t/acme/connect/")["Location"].startswith("/login/")


def test_a_stranger_sees_the_same_for_a_team_that_exists(browser: Client, charlie: Any) -> None:
    browser.force_login(charlie.user)
    theirs, none = browser.get("/t/acme/connect/"), browser.get("/t/no-such-team/connect/")
    assert (theirs.status_code, none.status_code) == (404, 404)
    assert masked(theirs).replace(b"acme", b"") == masked(none).replace(b"no-such-team", b"")


def masked(page: Any) -> bytes:
    """The page without the token that is random in every answer."""
    return re.sub(rb'(X-CSRFToken": ")\w+', rb"\1", page.content)


def test_a_panel_is_not_given_the_login_page(browser: Client, alice: Any) -> None:
    answer = browser.get(
        "/t/acme/connect/", headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/t/acme/connect/"}
    )
    assert (answer.status_code, answer["HX-Redirect"]) == (204, "/login/?next=/t/acme/connect/")


def test_a_removed_member_is_out_at_once(browser: Client, acme: Any, mia: Any) -> None:
    browser.force_login(mia.user)
    assert browser.get("/t/acme/connect/").status_code == 200
    with rls.tenant_scope(str(acme.pk)):
        mia.removed_at = mia.created_at
        mia.save()
    assert browser.get("/t/acme/connect/").status_code == 404
