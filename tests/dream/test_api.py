"""Dreams over REST."""

from typing import Any

import pytest

from dream import run as dreams
from dream.models import Run
from memory.tenants.access import member_actor
from memory.tenants.models import Due
from tests.conftest import Agent, new_agent


def test_it_starts_a_dream_and_sends_nothing_itself(acme: Any, agent: Agent, api: Any, bound: Any) -> None:
    answer = api(agent).post("dreams")
    assert answer.status_code == 202
    assert answer.json()["status"] == "queued"
    with bound(acme):
        run = Run.objects.get()
        assert answer.json()["id"] == run.public_id
        assert Due.objects.get().argument == run.public_id


def test_a_second_one_is_a_conflict(agent: Agent, api: Any) -> None:
    first = api(agent).post("dreams").json()["id"]
    second = api(agent).post("dreams")
    assert (second.status_code, second.json()["code"], second.json()["id"]) == (409, "already_running", first)


def test_it_shows_one_and_lists_all(acme: Any, agent: Agent, api: Any, bound: Any) -> None:
    ids = []
    for _ in range(3):
        ids.append(api(agent).post("dreams").json()["id"])
        assert api(agent).post(f"dreams/{ids[-1]}/cancel").json() == {"id": ids[-1], "status": "cancelled"}
    shown = api(agent).get(f"dreams/{ids[0]}").json()
    assert (shown["status"], shown["proposals"], shown["mind"]) == ("cancelled", [], "distill")
    page = api(agent).get("dreams", limit=2).json()
    rest = api(agent).get("dreams", limit=2, cursor=page["next_cursor"]).json()
    assert [row["id"] for row in page["items"] + rest["items"]] == ids[::-1]
    assert (page["has_more"], rest["has_more"]) == (True, False)


def test_a_finished_one_cannot_be_cancelled(agent: Agent, api: Any) -> None:
    started = api(agent).post("dreams").json()["id"]
    api(agent).post(f"dreams/{started}/cancel")
    again = api(agent).post(f"dreams/{started}/cancel")
    assert (again.status_code, again.json()["code"]) == (409, "already_finished")


@pytest.mark.parametrize(
    ("body", "code"), [({"proposal": "prp_x"}, "unknown_field"), ([], "not_an_object"), ('"all"', "not_an_object")]
)
def test_what_is_misspelt_takes_nothing_back(agent: Agent, api: Any, body: Any, code: str) -> None:
    started = api(agent).post("dreams").json()["id"]
    api(agent).post(f"dreams/{started}/cancel")
    for verb in ("undo", "replay"):
        answer = api(agent).post(f"dreams/{started}/{verb}", body)
        assert (answer.status_code, answer.json()["code"]) == (400, code)


@pytest.mark.parametrize("method", ["get", "post"])
def test_it_needs_a_key(client: Any, method: str, committed: None) -> None:
    assert getattr(client, method)("/api/v1/dreams").status_code == 401


def test_it_needs_the_scope_and_the_role(alice: Any, vera: Any, api: Any) -> None:
    reader = new_agent(alice, scopes=["read"])
    assert api(reader).get("dreams").status_code == 200
    assert api(reader).post("dreams").status_code == 403
    assert api(new_agent(alice, scopes=["ingest"])).get("dreams").status_code == 403
    assert api(new_agent(vera)).post("dreams").status_code == 403


def test_it_hides_the_dreams_of_other_teams(acme: Any, alice: Any, globex_agent: Agent, api: Any, bound: Any) -> None:
    with bound(acme):
        run = dreams.start(acme, by=member_actor(alice))
    other = api(globex_agent)
    assert other.get("dreams").json()["items"] == []
    for path in (f"dreams/{run.public_id}", "dreams/drm_unknown"):
        answer = other.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert other.post(f"dreams/{run.public_id}/cancel").status_code == 404
    with bound(acme):
        run.refresh_from_db()
        assert run.state == "queued"


def test_it_takes_no_other_method(agent: Agent, api: Any) -> None:
    assert api(agent).put("dreams").status_code == 405
    assert api(agent).post("dreams/drm_x").status_code == 405
    assert api(agent).get("dreams/drm_x/cancel").status_code == 405
