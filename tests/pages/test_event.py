"""One event: its payload made readable, the stored bytes, the notes that rest on it."""

from typing import Any

import pytest
from django.test import Client

from tests.pages import made


@pytest.fixture
def event(acme: Any) -> Any:
    return made.event(made.session(acme), 2, tool="Bash", summary="make test", body='{"b":"ü","a":[1]}')


def url(of: Any, team: str = "acme") -> str:
    return f"/t/{team}/events/{of.public_id}/"


def test_it_shows_the_payload_with_indents(logged_in: Any, vera: Any, event: Any) -> None:
    answer = logged_in(vera).get(url(event))
    assert answer.context["payload_text"] == '{\n  "b": "ü",\n  "a": [\n    1\n  ]\n}'
    assert bytes(event.sha256).hex() in answer.content.decode()


def test_htmx_gets_the_payload_alone(logged_in: Any, vera: Any, event: Any) -> None:
    piece = logged_in(vera).get(url(event), headers={"HX-Request": "true"}).content.decode()
    assert piece.strip().startswith("<pre") and "<!doctype" not in piece


def test_a_long_payload_is_cut(logged_in: Any, acme: Any, vera: Any) -> None:
    huge = made.event(made.session(acme), body='{"a":"' + "x" * 100_000 + '"}')
    answer = logged_in(vera).get(url(huge))
    assert answer.context["is_cut"] and len(answer.content) < 90_000


def test_the_stored_bytes_are_a_file_never_a_page(logged_in: Any, vera: Any, event: Any) -> None:
    answer = logged_in(vera).get(f"{url(event)}payload/")
    assert answer.content == '{"b":"ü","a":[1]}'.encode()
    assert (answer["Content-Type"], answer["X-Content-Type-Options"]) == ("application/json", "nosniff")
    assert answer["Content-Disposition"].startswith("attachment")


def test_it_leads_to_its_neighbours(logged_in: Any, vera: Any, event: Any) -> None:
    before, after = made.event(event.session, 1), made.event(event.session, 3)
    context = logged_in(vera).get(url(event)).context
    assert (context["previous"].public_id, context["next"].public_id) == (before.public_id, after.public_id)


def test_it_names_the_notes_that_rest_on_it(logged_in: Any, acme: Any, bob: Any, vera: Any, event: Any) -> None:
    revision = made.approved(made.proposal(acme, rests_on=(event,)), bob)
    assert f"/t/acme/notes/{revision.note.public_id}/" in logged_in(vera).get(url(event)).content.decode()


@pytest.mark.parametrize("page", ["", "payload/"])
def test_it_needs_login(event: Any, page: str) -> None:
    assert Client().get(url(event) + page).status_code == 302


@pytest.mark.parametrize("page", ["", "payload/"])
def test_it_hides_the_event_from_other_tenants(logged_in: Any, charlie: Any, event: Any, page: str) -> None:
    for team in ("acme", "globex"):
        assert logged_in(charlie).get(url(event, team) + page).status_code == 404


@pytest.mark.parametrize("page", ["", "payload/"])
def test_an_unknown_event_is_not_found(logged_in: Any, vera: Any, acme: Any, page: str) -> None:
    assert logged_in(vera).get(f"/t/acme/events/evt_none/{page}").status_code == 404


@pytest.mark.parametrize("page", ["", "payload/"])
def test_it_takes_no_other_method(logged_in: Any, alice: Any, event: Any, page: str) -> None:
    assert logged_in(alice).post(url(event) + page).status_code == 405
