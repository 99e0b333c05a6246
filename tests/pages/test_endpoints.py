"""Webhook endpoints: made, set up, given a new secret, paused, and what was sent to them last."""

import json
from typing import Any

import pytest
from django.test import Client

from memory.graph import endpoints
from memory.graph.webhooks.models import Delivery, Endpoint
from memory.tenants import rls
from tests.pages import chains
from tests.pages.test_markup import Danger

URL = "/t/acme/webhooks/"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def endpoint(acme: Any, alice: Any) -> Endpoint:
    return chains.endpoint(acme, alice)


def url(endpoint: Endpoint, more: str = "", team: str = "acme") -> str:
    return f"/t/{team}/webhooks/{endpoint.public_id}/{more}"


def fresh(endpoint: Endpoint) -> Endpoint:
    with rls.tenant_scope(str(endpoint.tenant_id)):
        return Endpoint.objects.get(pk=endpoint.pk)


def delivered(endpoint: Endpoint, **said: Any) -> None:
    with rls.tenant_scope(str(endpoint.tenant_id)):
        endpoints.delivered(endpoint, Delivery(**said))


def send(endpoint: Endpoint, secret: str, body: Any) -> Any:
    headers = {"Authorization": f"Bearer {secret}"}
    return Client(headers=headers).post(endpoint.path, json.dumps(body), content_type="application/json")


@pytest.mark.parametrize("kind", ["github", "gitlab", "slack", "mail", "generic"])
def test_an_admin_makes_one_and_sees_the_secret_once(logged_in: Any, acme: Any, alice: Any, kind: str) -> None:
    browser = logged_in(alice)
    given = {"secret": "a1b2c3d4e5f6a7b8c9d0"} if kind == "slack" else {}
    answer = browser.post(URL, {"kind": kind, "name": "New one", **given})
    assert answer.status_code == 200
    secret, made = answer.context["secret"], answer.context["endpoint"]
    page = answer.content.decode()
    assert len(secret) >= 20 and secret in page and made.path in page and '<ol class="how">' in page
    again = browser.get(url(made)).content.decode()
    assert secret not in again and made.path in again
    assert "New one" in browser.get(URL).content.decode()


def test_what_it_says_works(logged_in: Any, acme: Any, alice: Any) -> None:
    browser = logged_in(alice)
    answer = browser.post(URL, {"kind": "generic", "name": "Tickets"})
    made, secret = answer.context["endpoint"], answer.context["secret"]
    paths = {"map_thread": "/issue/key", "map_title": "/issue/title", "map_external_id": "/id"}
    assert browser.post(url(made, "change/"), {"name": "Tickets", **paths}).status_code == 302
    assert fresh(made).field_map == {"thread": "/issue/key", "title": "/issue/title", "external_id": "/id"}
    assert send(made, secret, {"id": "1", "issue": {"key": "PAY-7", "title": "Twice"}}).status_code == 201
    assert send(made, "wrong" * 9, {"id": "2"}).status_code == 401
    page = browser.get(url(made)).content.decode()
    assert "Accepted" in page and "Refused" in page and "/t/acme/triggers/trg_" in page
    assert browser.get("/t/acme/threads/?q=twice").context["threads"][0].key == "tickets:PAY-7"


def test_other_proofs_may_be_chosen(logged_in: Any, acme: Any, alice: Any) -> None:
    said = {"kind": "generic", "name": "Signed", "method": "hmac", "header": "X-Signature", "before": "sha256="}
    made = logged_in(alice).post(URL, said).context["endpoint"]
    assert (made.proof["method"], made.proof["header"], made.proof["prefix"]) == ("hmac", "X-Signature", "sha256=")
    said = {"kind": "gitlab", "name": "Standard", "method": "standard"}
    assert logged_in(alice).post(URL, said).context["secret"].startswith("whsec_")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"kind": "github", "name": ""}, "required"),
        ({"kind": "nothing", "name": "x"}, "valid choice"),
        ({"kind": "slack", "name": "Slack"}, "Slack makes the signing secret"),
        ({"kind": "github", "name": "x", "secret": "short"}, "16 to 500"),
        ({"kind": "github", "name": "Ticket tracker"}, "Choose another"),
        ({"kind": "generic", "name": "x", "method": "hmac", "header": "not a header"}, "letters, digits and dashes"),
        ({"kind": "github", "name": "x", "method": "standard"}, "in its own way"),
    ],
)
def test_what_can_t_be_made_is_told(
    logged_in: Any, alice: Any, endpoint: Endpoint, said: dict[str, str], words: str
) -> None:
    answer = logged_in(alice).post(URL, said)
    assert answer.status_code == 422 and words in answer.content.decode()


def test_a_new_secret_is_shown_and_the_old_one_good_for_a_while(logged_in: Any, alice: Any, acme: Any) -> None:
    browser = logged_in(alice)
    made = browser.post(URL, {"kind": "generic", "name": "Tickets"})
    endpoint, old = made.context["endpoint"], made.context["secret"]
    new = browser.post(url(endpoint, "rotate/"), {"overlap": "24"}).context["secret"]
    assert new != old
    assert [send(endpoint, secret, {"id": secret}).status_code for secret in (old, new)] == [201, 201]
    browser.post(url(endpoint, "rotate/"), {"overlap": "0"})
    assert send(endpoint, new, {"id": "3"}).status_code == 401


def test_it_is_paused_and_resumed(logged_in: Any, alice: Any, endpoint: Endpoint) -> None:
    browser = logged_in(alice)
    assert browser.post(url(endpoint, "pause/"), {"is_paused": "yes"}).status_code == 302
    assert fresh(endpoint).paused_at and "Paused" in browser.get(URL).content.decode()
    browser.post(url(endpoint, "pause/"), {"is_paused": "no"})
    assert fresh(endpoint).paused_at is None


def test_a_wrong_map_is_told(logged_in: Any, alice: Any, endpoint: Endpoint) -> None:
    answer = logged_in(alice).post(url(endpoint, "change/"), {"name": "x", "map_thread": "issue.key"})
    assert answer.status_code == 422 and "a JSON Pointer begins with /" in answer.content.decode()
    assert fresh(endpoint).name == "Ticket tracker"


def test_it_is_removed(logged_in: Any, alice: Any, endpoint: Endpoint) -> None:
    browser = logged_in(alice)
    assert browser.post(url(endpoint, "remove/")).status_code == 302
    assert browser.get(url(endpoint)).status_code == 404


def test_it_says_why_one_was_refused(logged_in: Any, vera: Any, endpoint: Endpoint) -> None:
    delivered(endpoint, status="accepted", event="push", trigger_public_id="trg_x")
    for _ in range(3):
        delivered(endpoint, status="refused", code="bad_signature", detail="The secret at the sender is another one.")
    browser = logged_in(vera)
    page = browser.get(url(endpoint)).content.decode()
    assert "The secret at the sender is another one." in page and "3 times" in page
    answer = browser.get(url(endpoint), {"status": "accepted"}, headers=HTMX)
    assert [one.event for one in answer.context["deliveries"]] == ["push"]
    assert answer.content.strip().startswith(b'<div id="deliveries">')
    assert "The secret at the sender" in browser.get(URL).content.decode()


def test_deliveries_are_read_on_by_cursor(logged_in: Any, vera: Any, endpoint: Endpoint, monkeypatch: Any) -> None:
    monkeypatch.setattr("memory.graph.endpoint_views.DELIVERIES", 2)
    for number in range(5):
        delivered(endpoint, status="accepted", event=str(number))
    browser = logged_in(vera)
    answer = browser.get(url(endpoint))
    seen = [one.event for one in answer.context["deliveries"]]
    while answer.context["next_url"]:
        answer = browser.get(answer.context["next_url"], headers={**HTMX, "HX-Target": "more"})
        assert answer.content.strip().startswith(b"<tr")
        seen += [one.event for one in answer.context["deliveries"]]
    assert seen == ["4", "3", "2", "1", "0"]


def test_what_a_sender_says_is_no_markup(logged_in: Any, alice: Any, acme: Any) -> None:
    sign = "<img src=x onerror=alert(1)>"
    evil = chains.endpoint(acme, alice, name=sign, source="evil")
    delivered(evil, status="refused", code="x", event=sign, detail=sign, delivery_id=sign)
    for page in (URL, url(evil)):
        assert Danger(logged_in(alice).get(page).content.decode()).found == []


def test_an_empty_list_says_what_to_do(logged_in: Any, acme: Any, alice: Any, vera: Any) -> None:
    assert "Make one" in logged_in(alice).get(URL).content.decode()
    page = logged_in(vera).get(URL).content.decode()
    assert "An admin or owner" in page and "New endpoint" not in page


VERBS = ("rotate/", "pause/", "change/", "remove/")


def test_others_may_read_but_not_change(logged_in: Any, bob: Any, vera: Any, endpoint: Endpoint) -> None:
    for member in (bob, vera):
        browser = logged_in(member)
        assert browser.get(url(endpoint)).status_code == 200
        assert browser.post(URL, {"kind": "github", "name": "x"}).status_code == 403
        for verb in VERBS:
            assert browser.post(url(endpoint, verb), {"name": "x"}).status_code == 403, verb


def test_it_needs_login(endpoint: Endpoint) -> None:
    for page in (URL, url(endpoint), *(url(endpoint, verb) for verb in VERBS)):
        assert Client().post(page).status_code == 302


def test_it_hides_the_endpoint_from_other_tenants(logged_in: Any, charlie: Any, endpoint: Endpoint) -> None:
    browser = logged_in(charlie)
    for team in ("acme", "globex"):
        assert browser.get(url(endpoint, "", team)).status_code == 404
        for verb in VERBS:
            assert browser.post(url(endpoint, verb, team), {"name": "x"}).status_code == 404
    assert endpoint.public_id not in browser.get("/t/globex/webhooks/").content.decode()


def test_an_unknown_endpoint_is_not_found(logged_in: Any, alice: Any, acme: Any) -> None:
    assert logged_in(alice).get(f"{URL}whk_none/").status_code == 404


def test_changes_are_only_posted(logged_in: Any, alice: Any, endpoint: Endpoint) -> None:
    for verb in VERBS:
        assert logged_in(alice).get(url(endpoint, verb)).status_code == 405
    assert logged_in(alice).post(url(endpoint)).status_code == 405
