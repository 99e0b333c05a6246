"""Single sign-on of a team, against a real OpenID provider on loopback."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.db import connection
from django.test import Client

from memory.tenants import invitations, oidc, outgoing, people, rls, sign_on
from memory.tenants.access import command_actor, member_actor
from memory.tenants.models import AuditEntry, Identity, Member, SignOn, User
from tests.conftest import PASSWORD, new_team
from tests.oidc_server import Provider, oidc_server

PAGE = "/t/acme/sign-on/"


@pytest.fixture(scope="module")
def _kept_provider() -> Iterator[Provider]:
    with oidc_server() as provider:
        yield provider


@pytest.fixture
def provider(_kept_provider: Provider, settings: Any) -> Provider:
    _kept_provider.straighten()
    settings.WEBHOOK_HOSTS = [_kept_provider.host]
    settings.PUBLIC_URL = "http://testserver"
    oidc.forget()
    return _kept_provider


@dataclass
class Team:
    """A team with its single sign-on, and what was typed to set it."""

    tenant: Any
    provider: Provider
    form: dict[str, str]

    def trip(self, browser: Client, subject: str, *, query: str = "") -> Any:
        """From the button to the provider and back; the last answer of ours."""
        return browser.get(self.back(browser, subject, query=query))

    def back(self, browser: Client, subject: str, *, query: str = "") -> str:
        started = browser.get(f"/sso/acme/start/{query}")
        assert started.status_code == 302, started.content
        return self.provider.agree(started["Location"], subject)

    def audit(self, action: str) -> list[tuple[str, str, str]]:
        with rls.tenant_scope(str(self.tenant.pk)):
            rows = AuditEntry.objects.filter(tenant=self.tenant, action=action).order_by("seq")
            return list(rows.values_list("actor_label", "outcome", "after"))

    def change(self, browser: Client, **typed: str) -> Any:
        return browser.post(PAGE, {**self.form, "secret": "", **typed})


@pytest.fixture
def team(acme: Any, alice: Any, provider: Provider, logged_in: Any) -> Team:
    client_id, secret = provider.register("http://testserver/sso/acme/callback/")
    form = {"issuer": provider.issuer, "client_id": client_id, "secret": secret, "domains": "acme.test", "role": ""}
    assert logged_in(alice).post(PAGE, form).status_code == 302
    for name in ("alice", "bob", "vera", "new"):
        provider.knows(name, email=f"{name}@acme.test", email_verified=True, name=name.title())
    return Team(acme, provider, form)


def stale(browser: Client) -> None:
    """As if ten minutes and more had passed since this browser proved who sits at it."""
    session = browser.session
    session["proved_at"] = 0
    kept = session.get("signed_on", {})
    session["signed_on"] = {pk: {**one, "proved_at": 0.0} for pk, one in kept.items()}
    session.save()


def test_a_member_comes_in_and_is_linked(team: Team, bob: Any) -> None:
    browser = Client()
    answer = team.trip(browser, "bob", query="?next=/t/acme/notes/")
    assert (answer.status_code, answer["Location"]) == (302, "/t/acme/notes/")
    assert browser.get("/t/acme/notes/").status_code == 200
    assert team.audit("sign_on.link") == [("bob", "done", "bob")]
    # Known by the provider's own name from now on, whatever becomes of the address.
    team.provider.knows("bob", email="robert@acme.test", email_verified=True)
    assert team.trip(Client(), "bob").status_code == 302
    with rls.tenant_scope(str(team.tenant.pk)):
        assert (
            str(Identity.objects.get().member_id) == str(bob.pk) and not Member.objects.filter(handle="robert").exists()
        )


def test_the_login_page_of_the_team_leads_there(team: Team) -> None:
    browser = Client()
    assert "Single sign-on of Acme" in browser.get("/login/?next=/t/acme/notes/").content.decode()
    assert "Single sign-on of" not in browser.get("/login/?next=/t/globex/").content.decode()
    assert browser.get("/sso/?team=acme")["Location"] == "/sso/acme/"
    assert "/sso/acme/start/" in browser.get("/sso/acme/").content.decode()


def test_a_team_without_it_looks_like_no_team(globex: Any, provider: Provider) -> None:
    for way in ("", "start/"):
        theirs, none = Client().get(f"/sso/globex/{way}"), Client().get(f"/sso/nobody/{way}")
        assert theirs.status_code == none.status_code == 302
        assert theirs["Location"].replace("globex", "nobody") == none["Location"]
    pages = [Client().get(f"/sso/?team={slug}") for slug in ("globex", "nobody")]
    assert [page.status_code for page in pages] == [404, 404]
    failed = [Client().get(f"/sso/{slug}/callback/?state=x&code=y") for slug in ("globex", "nobody")]
    assert [page.status_code for page in failed] == [400, 400]


def test_state_belongs_to_one_browser_and_one_use(team: Team, bob: Any) -> None:
    browser = Client()
    back = team.back(browser, "bob")
    assert Client().get(back).status_code == 400
    assert browser.get(back.replace("state=", "state=x")).status_code == 400
    assert browser.get(back).status_code == 302
    assert browser.get(back).status_code == 400


def test_a_trip_ends_after_ten_minutes(team: Team, bob: Any) -> None:
    browser = Client()
    back = team.back(browser, "bob")
    session = browser.session
    session["sign_on_trips"] = {
        state: {**trip, "at": trip["at"] - 601} for state, trip in session["sign_on_trips"].items()
    }
    session.save()
    assert browser.get(back).status_code == 400


def test_the_code_needs_our_verifier(team: Team, bob: Any) -> None:
    browser = Client()
    back = team.back(browser, "bob")
    session = browser.session
    session["sign_on_trips"] = {
        state: {**trip, "verifier": "x" * 43} for state, trip in session["sign_on_trips"].items()
    }
    session.save()
    answer = browser.get(back)
    assert answer.status_code == 502 and "invalid_grant" in answer.content.decode()


def other_key(claims: dict[str, Any], pem: str) -> str:
    return jwt.encode(claims, rsa.generate_private_key(65537, 2048), "RS256")


def unsigned(claims: dict[str, Any], pem: str) -> str:
    return jwt.encode(claims, None, "none")


def by_secret(claims: dict[str, Any], pem: str) -> str:
    return jwt.encode(claims, "a shared secret of 32 characters and more", "HS256")


@pytest.mark.parametrize(
    "bent",
    [
        {"nonce": "of another login"},
        {"iss": "https://elsewhere.example"},
        {"aud": "somebody-else"},
        {"aud": ["{client}", "somebody-else"]},
        {"exp": 1_700_000_000},
        {"sub": ""},
        {"sub": ["bob"]},
        {"sub": "bo\0b"},
        {"sub": "\ud800"},
        {"nonce": "\xe9"},
        {"nonce": None},
        {"iat": 10**30},
        {"azp": "somebody-else"},
    ],
    ids=repr,
)
def test_what_does_not_hold_lets_nobody_in(team: Team, bob: Any, bent: dict[str, Any]) -> None:
    client = team.form["client_id"]
    told = {
        key: [one.format(client=client) for one in value] if isinstance(value, list) else value
        for key, value in bent.items()
    }
    team.provider.bend = lambda claims: {**claims, **told}
    browser = Client()
    assert team.trip(browser, "bob").status_code == 403
    assert browser.get("/t/acme/").status_code == 302
    assert [(who, outcome) for who, outcome, _ in team.audit("sign_on.enter")] == [("single sign-on", "refused")]


@pytest.mark.parametrize(
    "email", ["bob\0@acme.test", "\ud800@acme.test", "bob@acme.test\nBcc: x", ["bob@acme.test"], 5]
)
def test_what_is_no_address_lets_nobody_in(team: Team, bob: Any, email: Any) -> None:
    team.provider.bend = lambda claims: {**claims, "email": email, "name": "\0\ud800"}
    answer = team.trip(Client(), "bob")
    assert answer.status_code == 403 and "tells no e-mail address" in answer.content.decode()


@pytest.mark.parametrize("sign", [other_key, unsigned, by_secret])
def test_a_wrong_signature_lets_nobody_in(team: Team, bob: Any, sign: Any) -> None:
    team.provider.sign = sign
    assert team.trip(Client(), "bob").status_code == 403
    assert len(team.audit("sign_on.enter")) == 1


def test_the_answer_must_come_from_who_was_asked(team: Team, bob: Any) -> None:
    browser = Client()
    assert browser.get(team.back(browser, "bob") + "&iss=https://elsewhere.example").status_code == 502


def test_a_person_may_say_no_at_the_provider(team: Team) -> None:
    browser = Client()
    url = browser.get("/sso/acme/start/")["Location"]
    answer = browser.get(team.provider.deny(url))
    assert answer.status_code == 403 and "access_denied" in answer.content.decode()


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"email": "bob@acme.test", "email_verified": False}, "verified"),
        ({"email": "bob@acme.test"}, "verified"),
        ({}, "verified"),
        ({"email": "bob@elsewhere.test", "email_verified": True}, "by an address like"),
        ({"email": "bob@acme.test.evil.test", "email_verified": True}, "by an address like"),
        ({"email": "stranger@acme.test", "email_verified": True}, "Nobody invited"),
    ],
    ids=str,
)
def test_who_is_not_let_in_is_told_why_and_stands_in_the_audit(
    team: Team, bob: Any, claims: dict[str, Any], why: str
) -> None:
    team.provider.knows("who", **claims)
    answer = team.trip(Client(), "who")
    assert answer.status_code == 403 and why in answer.content.decode()
    [(_, outcome, told)] = team.audit("sign_on.enter")
    assert outcome == "refused" and why in told
    assert not User.objects.filter(email="stranger@acme.test").exists()


def test_an_invited_person_joins_as_invited(team: Team, acme: Any, alice: Any) -> None:
    with rls.tenant_scope(str(acme.pk)):
        invitations.invite(acme, "new@acme.test", role="reviewer", by=member_actor(alice))
    browser = Client()
    assert team.trip(browser, "new").status_code == 302
    with rls.tenant_scope(str(acme.pk)):
        member = Member.objects.select_related("user").get(handle="new")
        assert member.role == "reviewer" and not member.user.has_usable_password() and member.user.name == "New"
        assert not invitations.open_invitations(acme).exists()
    assert team.audit("member.join") == [("new", "done", "reviewer by single sign-on")]
    # What waits there for their account in all teams is not this provider's to open.
    assert browser.get("/password/").status_code == 403


def test_anybody_of_the_domain_joins_where_the_team_says_so(team: Team, alice: Any, logged_in: Any) -> None:
    assert team.change(logged_in(alice), role="viewer").status_code == 302
    assert team.trip(Client(), "new").status_code == 302
    with rls.tenant_scope(str(team.tenant.pk)):
        assert Member.objects.get(handle="new").role == "viewer"


def test_an_account_that_is_not_a_members_is_never_linked(team: Team, alice: Any, charlie: Any, logged_in: Any) -> None:
    team.change(logged_in(alice), role="viewer", domains="acme.test, globex.test")
    team.provider.knows("c", email="charlie@globex.test", email_verified=True)
    browser = Client()
    answer = team.trip(browser, "c")
    assert answer.status_code == 403 and "You have an account" in answer.content.decode()
    assert browser.get("/t/globex/").status_code == 302
    with rls.tenant_scope(str(team.tenant.pk)):
        assert not Member.objects.filter(user=charlie.user).exists() and not Identity.objects.exists()


def test_it_opens_this_team_alone(team: Team, globex: Any, bob: Any) -> None:
    with rls.tenant_scope(str(globex.pk)):
        people.add_member(globex, "bob@acme.test", by=command_actor(globex, "tests"))
    browser = Client()
    team.trip(browser, "bob")
    assert browser.get("/t/acme/").status_code == 200
    assert browser.get("/t/globex/")["Location"].startswith("/login/")
    assert browser.get("/api/v1/notes", headers={"X-Team": "globex"}).status_code in (400, 401)
    assert browser.get("/teams/")["Location"] == "/t/acme/"
    account = browser.get("/account/").content.decode()
    assert "globex" not in account and "Add a passkey" not in account
    for page in ("/account/codes/", "/password/"):
        assert browser.get(page).status_code == 403
    assert browser.post("/account/passkeys/begin/").status_code == 403
    # A way in of their own opens the rest.
    browser.post("/login/", {"email": "bob@acme.test", "password": PASSWORD})
    assert browser.get("/t/globex/").status_code == 200


def test_who_is_in_already_stays_as_free_as_before(team: Team, bob: Any, logged_in: Any) -> None:
    browser = logged_in(bob)
    team.trip(browser, "bob")
    assert browser.get("/account/codes/").status_code == 200


def test_it_may_be_the_only_way_but_for_owners(team: Team, alice: Any, bob: Any, logged_in: Any) -> None:
    owner = logged_in(alice)
    untried = team.change(owner, is_required="on")
    assert untried.status_code == 422 and "Come in by it once yourself" in untried.content.decode()
    team.trip(owner, "alice")
    assert team.change(owner, is_required="on").status_code == 302
    browser = Client()
    browser.post("/login/", {"email": "bob@acme.test", "password": PASSWORD})
    assert browser.get("/t/acme/notes/")["Location"] == "/sso/acme/?next=/t/acme/notes/"
    panel = browser.get("/t/acme/notes/", headers={"HX-Request": "true"})
    assert (panel.status_code, panel["HX-Redirect"]) == (204, "/sso/acme/?next=/")
    program = browser.post("/api/v1/purges", {}, content_type="application/json")
    assert program.status_code == 401 and program["Content-Type"] == "application/problem+json"
    assert logged_in(alice).get("/t/acme/").status_code == 200
    team.trip(browser, "bob")
    assert browser.get("/t/acme/notes/").status_code == 200
    # Where it leads is changed: who came by what was there before is out.
    moved = team.change(owner, client_id="another")
    assert moved.status_code == 302
    team.change(owner, client_id=team.form["client_id"])
    fresh = Client()
    team.trip(fresh, "bob")
    with rls.tenant_scope(str(team.tenant.pk)):
        SignOn.objects.update(connected_at=SignOn.objects.get().connected_at + timedelta(minutes=5))
    assert fresh.get("/t/acme/")["Location"].startswith("/sso/acme/")


def test_what_an_admin_sets_lets_no_owner_in(team: Team, acme: Any, alice: Any, mia: Any, logged_in: Any) -> None:
    with rls.tenant_scope(str(acme.pk)):
        people.change_role(mia, "admin", by=member_actor(alice))
    client_id, secret = team.provider.register("http://testserver/sso/acme/callback/")
    assert team.change(logged_in(mia), client_id=client_id, secret=secret).status_code == 302
    refused = team.trip(Client(), "alice")
    assert refused.status_code == 403 and "once an owner has saved" in refused.content.decode()
    assert team.change(logged_in(alice), client_id=client_id).status_code == 302
    assert team.trip(Client(), "alice").status_code == 302


def test_the_secret_is_sealed_and_never_shown_again(team: Team, alice: Any, logged_in: Any) -> None:
    secret = team.form["secret"]
    page = logged_in(alice).get(PAGE).content.decode()
    assert secret not in page and "A secret is set" in page
    with rls.tenant_scope(str(team.tenant.pk)):
        assert secret.encode() not in bytes(SignOn.objects.get().secret)
        told = [" ".join(row) for row in AuditEntry.objects.values_list("before", "after")]
    assert not any(secret in row for row in told)
    [(who, outcome, after)] = team.audit("sign_on.change")
    assert (who, outcome) == ("alice", "done") and after.endswith("acme.test, new secret")


def test_only_admins_set_it(team: Team, bob: Any, logged_in: Any) -> None:
    browser = logged_in(bob)
    assert browser.get(PAGE).status_code == 403
    assert team.change(browser).status_code == 403
    assert browser.post(PAGE + "remove/").status_code == 403
    assert [outcome for _, outcome, _ in team.audit("settings.manage")] == ["refused"] * 3


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ({"issuer": "http://example.org"}, "begins with https://"),
        ({"issuer": "https://example.org/?x=y"}, "no ? and no #"),
        ({"domains": "not a domain!"}, "is no domain"),
        ({"role": "member", "domains": ""}, "of which domains"),
        ({"role": "admin"}, "valid choice"),
    ],
    ids=str,
)
def test_it_says_what_can_not_be_set(team: Team, alice: Any, logged_in: Any, typed: dict[str, str], why: str) -> None:
    answer = team.change(logged_in(alice), **typed)
    assert answer.status_code == 422 and why in answer.content.decode()
    with rls.tenant_scope(str(team.tenant.pk)):
        assert SignOn.objects.get().issuer == team.form["issuer"]


def test_who_tries_it_and_is_logged_in_is_not_told_to_be_out(
    team: Team, alice: Any, logged_in: Any, settings: Any
) -> None:
    settings.WEBHOOK_HOSTS = []
    tried = logged_in(alice).get("/sso/acme/start/?next=/t/acme/sign-on/").content.decode()
    assert "The single sign-on did not work" in tried and "Back to the inbox" in tried and "not in" not in tried
    assert "You are not in" in Client().get("/sso/acme/start/").content.decode()


def test_loopback_is_reached_only_where_the_operator_says_so(team: Team, settings: Any) -> None:
    settings.WEBHOOK_HOSTS = []
    answer = Client().get("/sso/acme/start/")
    assert answer.status_code == 502 and "TEAM_MEMORY_WEBHOOK_HOSTS" in answer.content.decode()
    with rls.tenant_scope(str(team.tenant.pk)):
        SignOn.objects.update(issuer=team.form["issuer"].replace("http:", "https:"))
    answer = Client().get("/sso/acme/start/")
    assert answer.status_code == 502 and "private or loopback" in answer.content.decode()


def test_who_clicks_again_and_again_makes_us_ask_once(team: Team) -> None:
    assert [Client().get("/sso/acme/start/").status_code for _ in range(3)] == [302] * 3
    assert team.provider.described == 1


def test_a_provider_that_is_away_is_not_asked_at_each_click(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    oidc.forget()
    asked: list[str] = []

    def away(url: str, **_: Any) -> Any:
        asked.append(url)
        raise outgoing.NotSent("later", "nobody is there")

    monkeypatch.setattr(outgoing, "fetch_json", away)
    said = [Client().get("/sso/acme/start/") for _ in range(3)]
    assert [one.status_code for one in said] == [502] * 3 and "nobody is there" in said[2].content.decode()
    assert len(asked) == 1


def test_few_wait_for_one_provider_and_hold_nothing(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """A team's provider that answers slowly keeps the server from nobody."""
    oidc.forget()
    is_answered, at_it = threading.Event(), threading.Semaphore(0)
    held: list[bool] = []

    def slowly(url: str, **_: Any) -> Any:
        outgoing.let_go()
        held.append(connection.connection is not None)
        at_it.release()
        assert is_answered.wait(20)
        raise outgoing.NotSent("later", "too late")

    monkeypatch.setattr(outgoing, "fetch_json", slowly)

    def click() -> None:
        Client().get("/sso/acme/start/")
        connection.close()

    threads = [threading.Thread(target=click) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert at_it.acquire(timeout=20)
    fifth = Client().get("/sso/acme/start/")
    assert fifth.status_code == 502 and "Try again in a moment" in fifth.content.decode()
    is_answered.set()
    for thread in threads:
        thread.join(20)
    assert held == [False] * 4


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ({"authorization_endpoint": "http://10.0.0.7/authorize"}, "authorization_endpoint"),
        ({"token_endpoint": "https://169.254.169.254/token"}, "private or loopback"),
        ({"jwks_uri": "file:///etc/passwd"}, "jwks_uri"),
        ({"issuer": "https://elsewhere.example"}, "calls itself"),
    ],
    ids=str,
)
def test_what_the_provider_names_is_held_to_the_same(team: Team, bob: Any, names: dict[str, str], why: str) -> None:
    team.provider.names = names
    browser = Client()
    answer = browser.get("/sso/acme/start/")
    if answer.status_code == 302:
        answer = browser.get(team.provider.agree(answer["Location"], "bob"))
    assert answer.status_code == 502 or (answer.status_code == 403 and "jwks_uri" in names)
    assert why in answer.content.decode()


def test_step_up_asks_the_provider_anew(team: Team, bob: Any) -> None:
    browser = Client()
    team.trip(browser, "bob")
    stale(browser)
    asked = browser.post("/t/acme/keys/", {"name": "x"}, headers={"Referer": "http://testserver/t/acme/keys/"})
    assert asked["Location"] == "/prove/?next=%2Ft%2Facme%2Fkeys%2F"
    assert "/sso/acme/start/?prove=yes" in browser.get(asked["Location"]).content.decode()
    query = "?prove=yes&next=/t/acme/keys/"
    old = int(time.time()) - 3600
    team.provider.bend = lambda claims: {**claims, "auth_time": old}
    assert team.trip(browser, "bob", query=query).status_code == 403
    team.provider.bend = lambda claims: {**claims, "auth_time": int(time.time())}
    # Somebody else at the same provider proves nothing of this person.
    assert team.trip(browser, "vera", query=query).status_code == 403
    assert team.trip(browser, "bob", query=query)["Location"] == "/t/acme/keys/"
    assert {(one["prompt"], one["max_age"]) for one in team.provider.asked[1:]} == {("login", "0")}
    assert browser.post("/t/acme/keys/", {"name": "x"}).status_code == 422


def test_a_login_that_the_provider_waved_through_is_no_proof(team: Team, bob: Any) -> None:
    browser = Client()
    team.provider.bend = lambda claims: {**claims, "auth_time": int(time.time()) - 3600}
    team.trip(browser, "bob")
    assert browser.post("/t/acme/keys/", {"name": "x"})["Location"].startswith("/prove/")


def test_a_reused_address_is_not_the_member_before(team: Team, bob: Any, alice: Any, logged_in: Any) -> None:
    team.trip(Client(), "bob")
    team.provider.knows("bob-2", email="bob@acme.test", email_verified=True)
    assert team.trip(Client(), "bob-2").status_code == 403
    owner = logged_in(alice)
    assert "Unlink" in owner.get("/t/acme/members/").content.decode()
    assert owner.post(f"/t/acme/members/{bob.public_id}/unlink/").status_code == 302
    assert team.audit("sign_on.unlink") == [("alice", "done", "")]
    assert team.trip(Client(), "bob-2").status_code == 302


def test_a_removed_member_stays_out(team: Team, acme: Any, alice: Any, bob: Any) -> None:
    team.trip(Client(), "bob")
    with rls.tenant_scope(str(acme.pk)):
        people.remove_member(bob, by=member_actor(alice))
    refused = team.trip(Client(), "bob")
    assert refused.status_code == 403 and "not in this team any more" in refused.content.decode()


def test_taking_it_away_ends_what_came_by_it(team: Team, alice: Any, bob: Any, logged_in: Any) -> None:
    browser = Client()
    team.trip(browser, "bob")
    assert logged_in(alice).post(PAGE + "remove/").status_code == 302
    assert browser.get("/t/acme/").status_code == 302
    assert len(team.audit("sign_on.remove")) == 1


def test_a_team_does_not_see_the_other_teams_settings(team: Team, globex: Any) -> None:
    with rls.tenant_scope(str(globex.pk)):
        assert not SignOn.objects.exists() and sign_on.of(team.tenant) is None
    new_team("initech", ivy="owner")
    assert sign_on.door("initech") is None and sign_on.door("acme") is not None
