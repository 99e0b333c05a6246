"""Single sign-on of a team by SAML, against a real provider on loopback: tests/saml_server.py."""

import ast
import base64
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import xmlsec
from django.test import Client
from lxml import etree

from memory.tenants import people, rls, saml
from memory.tenants.access import member_actor
from memory.tenants.models import Arrival, AuditEntry, Identity, SignOn
from tests import database
from tests.conftest import PASSWORD
from tests.saml_server import DS, SAML, SAMLP, Form, Key, Provider, new_id, saml_server, saying

PAGE = "/t/acme/sign-on/saml/"
ACS = "/sso/acme/saml/acs/"
FINISH = "/sso/acme/saml/finish/"


@pytest.fixture(scope="module")
def _kept_provider() -> Iterator[Provider]:
    with saml_server() as provider:
        yield provider


@pytest.fixture
def provider(_kept_provider: Provider, settings: Any) -> Provider:
    _kept_provider.straighten()
    settings.WEBHOOK_HOSTS = [_kept_provider.host]
    settings.PUBLIC_URL = "http://testserver"
    return _kept_provider


@dataclass
class Team:
    """A team with its single sign-on, and what was typed to set it."""

    tenant: Any
    provider: Provider
    form: dict[str, str]

    def asked(self, browser: Client, subject: str, *, query: str = "", slug: str = "acme") -> Form:
        """From the button to the provider; what its page would post to us."""
        to = browser.get(f"/sso/{slug}/start/{query}")
        assert to.status_code == 302 and to["Location"].startswith(f"/sso/{slug}/saml/start/")
        started = browser.get(to["Location"])
        assert started.status_code == 302, started.content
        return self.provider.agree(started["Location"], subject)

    def trip(self, browser: Client, subject: str, *, query: str = "") -> Any:
        """The whole way; the last answer of ours. The provider's post comes from another site, without our cookies."""
        posted = post(self.asked(browser, subject, query=query))
        return browser.get(posted["Location"]) if posted.status_code == 303 else posted

    def audit(self, action: str) -> list[tuple[str, str, str]]:
        with rls.tenant_scope(str(self.tenant.pk)):
            rows = AuditEntry.objects.filter(tenant=self.tenant, action=action).order_by("seq")
            return list(rows.values_list("actor_label", "outcome", "after"))

    def change(self, browser: Client, **typed: str) -> Any:
        return browser.post(PAGE, {**self.form, **typed})


def post(form: Form, *, to: str = ACS, **options: Any) -> Any:
    return Client(enforce_csrf_checks=True).post(to, form.fields, **options)


@pytest.fixture
def team(acme: Any, alice: Any, provider: Provider, logged_in: Any) -> Team:
    form = {"metadata": provider.metadata(), "domains": "acme.test", "role": ""}
    saved = logged_in(alice).post(PAGE, form)
    assert saved.status_code == 302, saved.content.decode()
    for name in ("alice", "bob", "vera", "new"):
        provider.knows(name, mail=f"{name}@acme.test", displayName=name.title())
    return Team(acme, provider, form)


def test_a_member_comes_in_and_is_linked(team: Team, bob: Any) -> None:
    browser = Client()
    answer = team.trip(browser, "bob", query="?next=/t/acme/notes/")
    assert (answer.status_code, answer["Location"]) == (302, "/t/acme/notes/")
    assert browser.get("/t/acme/notes/").status_code == 200
    assert team.audit("sign_on.link") == [("bob", "done", "bob")]
    [request] = team.provider.asked
    assert request["destination"] == team.provider.sso_url and request["force"] == ""
    assert request["issuer"] == "http://testserver/sso/acme/saml/metadata/" and "notes" not in request["relay"]
    # Known by the provider's own name from now on, whatever becomes of the address.
    team.provider.knows("bob", mail="robert@acme.test")
    assert team.trip(Client(), "bob").status_code == 302
    with rls.tenant_scope(str(team.tenant.pk)):
        linked = Identity.objects.get()
        assert (str(linked.member_id), linked.issuer) == (str(bob.pk), f"saml:{team.provider.issuer}")
        # What was said of the person is forgotten with its use.
        assert {bytes(one.claims) for one in Arrival.objects.all()} == {b""}


def both(response: Any, key: Key) -> None:
    key.sign(response.find(f"{{{SAML}}}Assertion"))
    key.sign(response)


def stronger(response: Any, key: Key) -> None:
    assertion = response.find(f"{{{SAML}}}Assertion")
    key.sign(assertion, by=xmlsec.Transform.RSA_SHA512, digest=xmlsec.Transform.SHA384)


@pytest.mark.parametrize("sign", [both, stronger])
def test_other_sound_signatures_are_taken(team: Team, bob: Any, sign: Any) -> None:
    team.provider.sign = sign
    assert team.trip(Client(), "bob").status_code == 302


def test_a_key_of_an_elliptic_curve_will_do(team: Team, alice: Any, bob: Any, logged_in: Any) -> None:
    curve = Key(bits=0)
    assert team.change(logged_in(alice), metadata=team.provider.metadata(curve)).status_code == 302
    team.provider.sign = lambda response, key: curve.sign(
        response.find(f"{{{SAML}}}Assertion"), by=xmlsec.Transform.ECDSA_SHA256
    )
    assert team.trip(Client(), "bob").status_code == 302


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ({"audience": "http://testserver/sso/globex/saml/metadata/"}, "not a valid audience"),
        ({"audience": None}, "for somebody else (audience)"),
        ({"recipient": "http://elsewhere.test/acs/"}, "SubjectConfirmation"),
        ({"recipient": "http://testserver/sso/acme/saml/acs/more/"}, "SubjectConfirmation"),
        ({"recipient": None}, "SubjectConfirmation"),
        ({"destination": "http://elsewhere.test/acs/"}, "instead of"),
        ({"destination": "http://testserver/sso/acme/saml/acs/more/"}, "Destination"),
        ({"issuer": "http://elsewhere.test/metadata"}, "Invalid issuer"),
        ({"in_response_to": None, "answers": None}, "not asked for here"),
        ({"in_response_to": "id-of-another"}, "SubjectConfirmation"),
        ({"answers": "id-of-another"}, "SubjectConfirmation"),
        ({"answers": None}, "SubjectConfirmation"),
        ({"not_after": -61}, "too old"),
        ({"not_before": 120}, "from the future"),
        ({"bearer_until": -61}, "SubjectConfirmation"),
        ({"bearer_until": None}, "SubjectConfirmation"),
        ({"asked_at": 3600}, "from the future"),
        ({"form": "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"}, "another name at each login"),
        ({"subject": ""}, "no usable name"),
        (
            {"extra": f'<saml:Assertion xmlns:saml="{SAML}" ID="x" Version="2.0" IssueInstant="x"/>'},
            "not one assertion",
        ),
    ],
    ids=str,
)
def test_what_does_not_hold_lets_nobody_in(team: Team, bob: Any, says: dict[str, Any], why: str) -> None:
    team.provider.say = saying(**says)
    browser = Client()
    answer = team.trip(browser, "bob")
    assert answer.status_code == 403 and why in answer.content.decode()
    assert browser.get("/t/acme/").status_code == 302
    [(who, outcome, told)] = team.audit("sign_on.enter")
    assert (who, outcome) == ("single sign-on", "refused") and why in told
    with rls.tenant_scope(str(team.tenant.pk)):
        assert not Arrival.objects.exists()


def unsigned(response: Any, key: Key) -> None:
    pass


def other_key(response: Any, key: Key) -> None:
    """With its own certificate beside it, which nobody asked for."""
    _OTHER.sign(response.find(f"{{{SAML}}}Assertion"))


def only_the_response(response: Any, key: Key) -> None:
    key.sign(response)


def by_sha1(response: Any, key: Key) -> None:
    key.sign(response.find(f"{{{SAML}}}Assertion"), by=xmlsec.Transform.RSA_SHA1)


def digest_of_sha1(response: Any, key: Key) -> None:
    key.sign(response.find(f"{{{SAML}}}Assertion"), digest=xmlsec.Transform.SHA1)


def response_by_other(response: Any, key: Key) -> None:
    key.sign(response.find(f"{{{SAML}}}Assertion"))
    _OTHER.sign(response)


_OTHER = Key()


@pytest.mark.parametrize(
    ("sign", "why"),
    [
        (unsigned, "does not sign the assertion itself"),
        (only_the_response, "does not sign the assertion itself"),
        (other_key, "Signature validation failed"),
        (response_by_other, "Signature validation failed"),
        (by_sha1, "rsa-sha1, which is not taken"),
        (digest_of_sha1, "sha1, which is not taken"),
    ],
)
def test_a_wrong_signature_lets_nobody_in(team: Team, bob: Any, sign: Any, why: str) -> None:
    team.provider.sign = sign
    answer = team.trip(Client(), "bob")
    assert answer.status_code == 403 and why in answer.content.decode()
    assert len(team.audit("sign_on.enter")) == 1


def evil(signed: Any, **changes: str) -> Any:
    """A copy of an assertion that names Alice, an owner; without its signature."""
    made = copy.deepcopy(signed)
    made.remove(made.find(f"{{{DS}}}Signature"))
    made.find(f".//{{{SAML}}}NameID").text = "alice"
    for value in made.iter(f"{{{SAML}}}AttributeValue"):
        value.text = "alice@acme.test"
    for name, value in changes.items():
        made.set(name, value)
    return made


def beside(root: Any, signed: Any) -> None:
    root.insert(root.index(signed), evil(signed, ID=new_id()))


def in_its_own_object(root: Any, signed: Any) -> None:
    """The signature in the evil one, and what it signs in the signature."""
    false = evil(signed, ID=new_id())
    signature = signed.find(f"{{{DS}}}Signature")
    root.replace(signed, false)
    false.insert(1, signature)
    signed_alone = copy.deepcopy(signed)
    etree.SubElement(signature, f"{{{DS}}}Object").append(signed_alone)


def in_extensions(root: Any, signed: Any) -> None:
    false = evil(signed, ID=new_id())
    root.replace(signed, false)
    extensions = etree.Element(f"{{{SAMLP}}}Extensions")
    extensions.append(signed)
    root.insert(1, extensions)


def in_advice(root: Any, signed: Any) -> None:
    false = evil(signed, ID=new_id())
    root.replace(signed, false)
    advice = etree.Element(f"{{{SAML}}}Advice")
    advice.append(signed)
    false.find(f"{{{SAML}}}Conditions").addnext(advice)


def under_one_name(root: Any, signed: Any) -> None:
    extensions = etree.Element(f"{{{SAMLP}}}Extensions")
    extensions.append(evil(signed))
    root.insert(1, extensions)


def whole_response_inside(root: Any, signed: Any) -> None:
    """The signed response as it was, in a false one that has its assertion taken out of place."""
    false = copy.deepcopy(root)
    false.set("ID", new_id())
    false.replace(false.find(f"{{{SAML}}}Assertion"), evil(signed, ID=new_id()))
    kept = copy.deepcopy(root)
    root[:] = list(false)
    root.set("ID", false.get("ID"))
    extensions = etree.Element(f"{{{SAMLP}}}Extensions")
    extensions.append(kept)
    root.insert(1, extensions)


@pytest.mark.parametrize(
    "wrap", [beside, in_its_own_object, in_extensions, in_advice, under_one_name, whole_response_inside]
)
def test_a_signature_is_of_what_is_read(team: Team, alice: Any, bob: Any, wrap: Any) -> None:
    def bend(sent: bytes) -> bytes:
        root = etree.fromstring(sent)
        wrap(root, root.find(f"{{{SAML}}}Assertion"))
        return etree.tostring(root)

    team.provider.bend = bend
    browser = Client()
    assert team.trip(browser, "bob").status_code == 403
    assert browser.get("/t/acme/").status_code == 302 and len(team.audit("sign_on.enter")) == 1


DTD = b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
LAUGHS = b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>'


@pytest.mark.parametrize(
    ("bend", "why"),
    [
        (lambda sent: sent.replace(b">bob<", b">alice<"), "Signature validation failed"),
        (lambda sent: sent.replace(b">bob<", b">b<!-- -->ob<"), "comments"),
        (lambda sent: sent.replace(b">bob<", b">b<?x y?>ob<"), "comments"),
        (lambda sent: b"<!-- -->" + sent, "comments"),
        (lambda sent: DTD + sent.replace(b">bob<", b">&e;<"), "XML is not taken"),
        (lambda sent: LAUGHS + sent.replace(b">bob<", b">&c;<"), "XML is not taken"),
        (lambda sent: (DTD + sent).decode().encode("utf-16"), "XML is not taken"),
        (lambda sent: b"no xml", "XML is not taken"),
        (lambda sent: b"", "is empty or longer"),
        (lambda sent: b"<x/>", "something else than a response"),
        (lambda sent: sent + b" " * 256 * 1024, "is empty or longer"),
        (lambda sent: sent.replace(b"status:Success", b"status:Requester"), "did not let you in"),
        (lambda sent: sent.replace(b'Version="2.0"', b'Version="1.1"', 1), "Unsupported SAML version"),
        (lambda sent: sent.replace(b":Assertion", b":EncryptedAssertion"), "encrypts its assertion"),
    ],
)
def test_what_was_bent_on_the_way_lets_nobody_in(team: Team, bob: Any, bend: Any, why: str) -> None:
    team.provider.bend = bend
    answer = team.trip(Client(), "bob")
    assert answer.status_code == 403 and why in answer.content.decode()


def test_too_large_a_post_is_not_read(team: Team) -> None:
    answer = Client().post(ACS, {"SAMLResponse": "A" * 600_000}, content_type="application/x-www-form-urlencoded")
    assert answer.status_code == 413
    assert Client().post(ACS, {"SAMLResponse": "no base64!"}).status_code == 403


def test_an_answer_belongs_to_one_browser_and_one_use(team: Team, bob: Any) -> None:
    browser = Client()
    form = team.asked(browser, "bob")
    assert post(form)["Location"] == FINISH
    # Only the browser that asked has anything of it.
    assert Client().get(FINISH).status_code == 400
    stranger = Client()
    team.asked(stranger, "vera")
    assert stranger.get(FINISH).status_code == 400
    assert browser.get(FINISH).status_code == 302
    assert browser.get(FINISH).status_code == 400
    again = post(form)
    assert again.status_code == 403 and "used before" in again.content.decode()
    assert [outcome for _, outcome, _ in team.audit("sign_on.enter")] == ["refused"]


def test_an_assertion_is_taken_once_whatever_it_answers(team: Team, bob: Any) -> None:
    team.provider.say = saying(assertion_id="_the-same")
    assert team.trip(Client(), "bob").status_code == 302
    assert team.trip(Client(), "bob").status_code == 403


def test_what_nobody_asked_for_lets_nobody_in(team: Team, bob: Any) -> None:
    """Signed by the provider, for us: a login begun by somebody else, or by nobody."""
    team.provider.say = saying(in_response_to="id-of-nobody", answers="id-of-nobody")
    browser = Client()
    form = team.asked(browser, "bob")
    assert post(form).status_code == 303
    assert browser.get(FINISH).status_code == 400
    assert browser.get("/t/acme/").status_code == 302


def test_a_relay_state_leads_nowhere(team: Team, bob: Any) -> None:
    browser = Client()
    form = team.asked(browser, "bob", query="?next=https://evil.test/")
    form.fields["RelayState"] = "https://evil.test/"
    assert post(form)["Location"] == FINISH
    assert browser.get(FINISH).status_code == 400
    assert team.trip(browser, "bob", query="?next=https://evil.test/")["Location"] == "/t/acme/"


def test_a_trip_ends_after_ten_minutes(team: Team, bob: Any) -> None:
    browser = Client()
    form = team.asked(browser, "bob")
    session = browser.session
    session["saml_trips"] = {name: {**trip, "at": trip["at"] - 601} for name, trip in session["saml_trips"].items()}
    session.save()
    assert post(form).status_code == 303 and browser.get(FINISH).status_code == 400


def test_a_team_takes_nothing_of_another_teams_provider(
    team: Team, globex: Any, charlie: Any, logged_in: Any, provider: Provider, settings: Any
) -> None:
    with saml_server() as theirs:
        settings.WEBHOOK_HOSTS = [provider.host, theirs.host]
        page = "/t/globex/sign-on/saml/"
        form = {"metadata": theirs.metadata(), "domains": "globex.test, acme.test", "role": ""}
        assert logged_in(charlie).post(page, form).status_code == 302
        provider.knows("charlie", mail="charlie@globex.test")
        to, browser = "/sso/globex/saml/acs/", Client()
        # Acme's provider says all that globex would want to hear.
        service = "http://testserver/sso/globex/saml"
        provider.say = saying(
            issuer=theirs.issuer, audience=f"{service}/metadata/", recipient=f"{service}/acs/", destination=None
        )
        refused = post(team.asked(browser, "charlie"), to=to)
        assert refused.status_code == 403 and "Signature validation failed" in refused.content.decode()
    # Both at one provider: what it says to acme, of somebody in both, opens acme alone.
    form["metadata"] = provider.metadata()
    assert logged_in(charlie).post(page, form).status_code == 302
    provider.straighten()
    refused = post(team.asked(browser, "charlie"), to=to)
    assert refused.status_code == 403
    assert browser.get("/sso/globex/saml/finish/").status_code == 400
    assert browser.get("/t/globex/").status_code == 302


def test_a_team_without_it_looks_like_no_team(globex: Any, provider: Provider) -> None:
    for way, method in (("start/", "get"), ("acs/", "post"), ("finish/", "get"), ("metadata/", "get")):
        theirs, none = (getattr(Client(), method)(f"/sso/{slug}/saml/{way}") for slug in ("globex", "nobody"))
        assert theirs.status_code == none.status_code == {"start/": 302, "metadata/": 200}.get(way, 400)
        bare = [
            re.sub(rb'(X-CSRFToken": "|csrfmiddlewaretoken" value=")\w+', b"", one.content) for one in (theirs, none)
        ]
        assert bare[0].replace(b"globex", b"nobody") == bare[1]
        assert theirs.get("Location", "").replace("globex", "nobody") == none.get("Location", "")


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({}, "verified"),
        ({"mail": "bob@acme.test", "email_verified": "false"}, "verified"),
        ({"mail": "bob@acme.test", "email": "vera@acme.test"}, "verified"),
        ({"mail": "bob@elsewhere.test"}, "by an address like"),
        ({"mail": "stranger@acme.test"}, "Nobody invited"),
        ({"mail": "charlie@globex.test"}, "by an address like"),
    ],
    ids=str,
)
def test_who_is_not_let_in_is_told_why(team: Team, bob: Any, attributes: dict[str, str], why: str) -> None:
    team.provider.knows("who", **attributes)
    answer = team.trip(Client(), "who")
    assert answer.status_code == 403 and why in answer.content.decode()
    [(_, outcome, told)] = team.audit("sign_on.enter")
    assert outcome == "refused" and why in told


def test_a_name_that_is_an_address_will_do(team: Team, bob: Any) -> None:
    team.provider.say = saying(form="urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress")
    assert team.trip(Client(), "bob@acme.test").status_code == 302


def test_step_up_asks_the_provider_anew(team: Team, bob: Any) -> None:
    browser = Client()
    team.provider.say = saying(asked_at=-3600)
    team.trip(browser, "bob")
    asked = browser.post("/t/acme/keys/", {"name": "x"}, headers={"Referer": "http://testserver/t/acme/keys/"})
    assert asked["Location"] == "/prove/?next=%2Ft%2Facme%2Fkeys%2F"
    query = "?prove=yes&next=/t/acme/keys/"
    # It waves through whom it asked an hour ago.
    assert team.trip(browser, "bob", query=query).status_code == 403
    team.provider.straighten()
    assert team.trip(browser, "vera", query=query).status_code == 403
    assert team.trip(browser, "bob", query=query)["Location"] == "/t/acme/keys/"
    assert {one["force"] for one in team.provider.asked} == {"true"}
    assert browser.post("/t/acme/keys/", {"name": "x"}).status_code == 422


def test_it_may_be_the_only_way_and_a_removed_member_stays_out(
    team: Team, acme: Any, alice: Any, bob: Any, logged_in: Any
) -> None:
    owner = logged_in(alice)
    assert team.change(owner, is_required="on").status_code == 422
    team.trip(owner, "alice")
    assert team.change(owner, is_required="on").status_code == 302
    browser = Client()
    browser.post("/login/", {"email": "bob@acme.test", "password": PASSWORD})
    assert browser.get("/t/acme/notes/")["Location"] == "/sso/acme/?next=/t/acme/notes/"
    team.trip(browser, "bob")
    assert browser.get("/t/acme/notes/").status_code == 200
    with rls.tenant_scope(str(acme.pk)):
        people.remove_member(bob, by=member_actor(alice))
    refused = team.trip(Client(), "bob")
    assert refused.status_code == 403 and "not in this team any more" in refused.content.decode()


def test_a_provider_changes_its_certificate(
    team: Team, acme: Any, alice: Any, bob: Any, mia: Any, logged_in: Any
) -> None:
    with rls.tenant_scope(str(acme.pk)):
        people.change_role(mia, "admin", by=member_actor(alice))
    team.provider.knows("mia", mail="mia@acme.test")
    admin, owner, browser = logged_in(mia), logged_in(alice), Client()
    for who, one in (("alice", owner), ("bob", browser), ("mia", admin)):
        assert team.trip(one, who).status_code == 302
    assert team.change(owner, is_required="on").status_code == 302
    # Both at once, set by an admin: whoever holds the new key could come in as an owner, and does not.
    typed = {"metadata": team.provider.metadata(team.provider.key, _OTHER), "is_required": "on"}
    assert team.change(admin, **typed)["Location"] == PAGE
    assert browser.get("/t/acme/").status_code == 200
    team.provider.sign = other_key
    assert team.trip(Client(), "bob").status_code == 302
    refused = team.trip(Client(), "alice")
    assert refused.status_code == 403 and "once an owner has saved" in refused.content.decode()
    # The old one goes, and with it what it proved.
    typed["metadata"] = team.provider.metadata(_OTHER)
    assert team.change(owner, **typed)["Location"] == PAGE
    assert team.trip(Client(), "alice").status_code == 302
    assert browser.get("/t/acme/")["Location"].startswith("/sso/acme/")
    team.provider.straighten()
    assert team.trip(Client(), "bob").status_code == 403
    [*_, (_, _, after)] = team.audit("sign_on.change")
    fingerprint = saml.shown(_OTHER.certificate).fingerprint
    assert fingerprint in owner.get(PAGE).content.decode() and fingerprint[:32] in after


def test_what_waits_is_of_the_provider_that_was_asked(team: Team, alice: Any, bob: Any, logged_in: Any) -> None:
    browser = Client()
    assert post(team.asked(browser, "bob")).status_code == 303
    assert team.change(logged_in(alice), metadata=team.provider.metadata(_OTHER)).status_code == 302
    assert browser.get(FINISH).status_code == 400


def test_who_posts_again_and_again_waits(team: Team, alice: Any, bob: Any, logged_in: Any) -> None:
    bad = [Client().post(ACS, {"SAMLResponse": "AAAA"}).status_code for _ in range(10)]
    assert bad[0] == 403 and bad[-1] == 429
    browser = Client()
    form = team.asked(browser, "bob")
    assert post(form).status_code == 429
    # Not for others, and not any more once somebody mended what was wrong.
    assert post(team.asked(Client(), "bob"), REMOTE_ADDR="10.9.8.7").status_code == 303
    assert team.change(logged_in(alice)).status_code == 302
    assert post(form).status_code == 303


@pytest.mark.parametrize(
    ("typed", "field", "why"),
    [
        ({"metadata": "no xml"}, "metadata", "XML is not taken"),
        ({"metadata": "<x/>"}, "metadata", "describes no provider"),
        ({"metadata": DTD.decode() + "<x/>"}, "metadata", "XML is not taken"),
        ({"metadata": "{metadata three}"}, "metadata", "one certificate, or two"),
        ({"metadata": "{metadata post}"}, "metadata", "HTTP-Redirect"),
        ({"metadata": ""}, "issuer", "or type its entity id"),
        ({"metadata": "", "issuer": "x y"}, "issuer", "has no spaces"),
        ({"metadata": "", "issuer": "x", "sso_url": "javascript:alert(1)"}, "sso_url", "web address"),
        ({"metadata": "", "issuer": "x", "sso_url": "http://example.org/"}, "sso_url", "begins with https://"),
        ({"metadata": "", "issuer": "x", "sso_url": "https://e.org/"}, "certificates", "one certificate"),
        (
            {"metadata": "", "issuer": "x", "sso_url": "https://e.org/", "certificates": "AAAA"},
            "certificates",
            "no certificate",
        ),
        (
            {"metadata": "", "issuer": "x", "sso_url": "https://e.org/", "certificates": "{weak}"},
            "certificates",
            "1024 bits is too short",
        ),
        ({"domains": ""}, "domains", "required"),
        ({"domains": "not a domain!"}, "domains", "is no domain"),
        ({"role": "admin"}, "role", "valid choice"),
    ],
    ids=str,
)
def test_it_says_what_can_not_be_set(
    team: Team, alice: Any, logged_in: Any, typed: dict[str, str], field: str, why: str
) -> None:
    made = {
        "{metadata three}": team.provider.metadata(team.provider.key, _OTHER, Key()),
        "{metadata post}": team.provider.metadata().replace("HTTP-Redirect", "HTTP-POST"),
        "{weak}": Key(1024).certificate,
    }
    answer = team.change(logged_in(alice), **{name: made.get(value, value) for name, value in typed.items()})
    assert answer.status_code == 422 and why in str(answer.context["form"].errors[field])
    with rls.tenant_scope(str(team.tenant.pk)):
        assert SignOn.objects.get().issuer == team.provider.issuer


def test_its_pieces_are_typed_one_by_one(team: Team, alice: Any, bob: Any, logged_in: Any) -> None:
    provider = team.provider
    bare = "".join(provider.key.certificate.splitlines()[1:-1])
    typed = {"metadata": "", "issuer": provider.issuer, "sso_url": provider.sso_url, "certificates": bare}
    assert team.change(logged_in(alice), **typed).status_code == 302
    assert team.trip(Client(), "bob").status_code == 302


def test_taking_it_away_ends_what_came_by_it(team: Team, alice: Any, bob: Any, logged_in: Any) -> None:
    browser = Client()
    team.trip(browser, "bob")
    assert logged_in(alice).post("/t/acme/sign-on/remove/").status_code == 302
    assert browser.get("/t/acme/").status_code == 302
    with rls.tenant_scope(str(team.tenant.pk)):
        assert not Arrival.objects.exists() and not Identity.objects.exists()


def test_only_admins_set_it(team: Team, bob: Any, logged_in: Any) -> None:
    browser = logged_in(bob)
    assert browser.get(PAGE).status_code == 403 and team.change(browser).status_code == 403


def test_one_protocol_takes_the_others_place(team: Team, alice: Any, bob: Any, logged_in: Any) -> None:
    owner = logged_in(alice)
    page = owner.get("/t/acme/sign-on/").content.decode()
    assert "takes its place" in page and team.provider.issuer not in page
    team.trip(Client(), "bob")
    typed = {"issuer": f"http://{team.provider.host}/oidc", "client_id": "x", "domains": "", "role": ""}
    missing = owner.post("/t/acme/sign-on/", typed)
    assert missing.status_code == 422 and "gives a secret" in missing.content.decode()
    assert owner.post("/t/acme/sign-on/", {**typed, "secret": "y"}).status_code == 302
    assert "takes its place" in owner.get(PAGE).content.decode()
    assert Client().get("/sso/acme/saml/start/")["Location"].startswith("/login/")
    assert Client().post(ACS, {"SAMLResponse": "AAAA"}).status_code == 400


def test_our_own_description_is_one(team: Team) -> None:
    from onelogin.saml2.settings import OneLogin_Saml2_Settings

    answer = Client().get("/sso/acme/saml/metadata/")
    assert answer["Content-Type"] == "application/samlmetadata+xml"
    root = etree.fromstring(answer.content)
    assert root.get("entityID") == "http://testserver/sso/acme/saml/metadata/" and not root.get("validUntil")
    [service] = root.iter("{urn:oasis:names:tc:SAML:2.0:metadata}SPSSODescriptor")
    assert service.get("WantAssertionsSigned") == "true"
    [acs] = root.iter("{urn:oasis:names:tc:SAML:2.0:metadata}AssertionConsumerService")
    assert acs.get("Location") == f"http://testserver{ACS}"
    ours = {"sp": {"entityId": "x", "assertionConsumerService": {"url": "https://example.org/"}}}
    assert OneLogin_Saml2_Settings(ours, sp_validation_only=True).validate_metadata(answer.content) == []


def test_without_the_extra_its_pages_say_how_to_install_it(
    team: Team, alice: Any, logged_in: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saml, "is_installed", lambda: False)
    for answer in (logged_in(alice).get(PAGE), team.change(logged_in(alice))):
        page = answer.content.decode()
        assert answer.status_code == 200 and "uv sync --extra saml" in page and "Remove single sign-on" in page
    started = Client().get("/sso/acme/saml/start/")
    assert started.status_code == 502 and "uv sync --extra saml" in started.content.decode()
    assert Client().get("/sso/acme/saml/metadata/").status_code == 404
    assert Client().post(ACS, {"SAMLResponse": "AAAA"}).status_code == 502


def test_nothing_imports_the_extra_with_its_module() -> None:
    """A server without it starts, and knows SAML's pages."""
    extra = {"lxml", "onelogin", "xmlsec"}
    for path in (database.ROOT / "memory").rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not extra & {name.partition(".")[0] for name in names}, path
    assert saml.is_installed()


def test_the_address_of_a_trip_is_the_providers_own(team: Team) -> None:
    started = Client().get("/sso/acme/saml/start/")["Location"]
    query = parse_qs(urlsplit(started).query)
    assert started.startswith(team.provider.sso_url) and (query["tenant"], query["b"]) == (["a"], ["c"])
    assert base64.b64decode(query["SAMLRequest"][0]) and len(query["RelayState"][0]) == 43
