"""Notes in the walk: a note leads to the events it rests on, their session and its workers; private ones to nobody."""

from collections.abc import Callable
from typing import Any

import pytest

from memory.notes.models import Note
from tests.conftest import Agent, new_agent
from tests.graph.test_threads import trigger
from tests.graph.test_workers import started
from tests.pages import made


@pytest.fixture
def client(api: Callable[[Agent], Any], agent: Agent) -> Any:
    return api(agent)


def ids_of(answer: Any) -> list[str]:
    return [item["id"] for item in answer.json()["items"]]


def test_a_proposal_and_its_note_lead_to_the_work_they_come_from(client: Any, acme: Any, bob: Any) -> None:
    session = made.session(acme)
    event = made.event(session)
    thread = trigger(client, "pr")["thread_id"]
    wkr = started(client, thread=thread, session_id=session.public_id).json()["worker_id"]
    proposal = made.proposal(acme, rests_on=(event,))
    found = client.get(f"recall/{proposal.public_id}", budget_tokens=20_000)
    assert ids_of(found)[:4] == [proposal.public_id, event.public_id, session.public_id, wkr]
    assert thread in ids_of(found)
    assert "text" in found.json()["items"][0]["view"]


def test_a_note_leads_to_its_evidence(client: Any, acme: Any, bob: Any, bound: Any) -> None:
    session = made.session(acme)
    event = made.event(session)
    proposal = made.proposal(acme, rests_on=(event,))
    made.approved(proposal, bob)
    with bound(acme):
        note = Note.objects.select_related("current").get(pk=proposal.note_id)
    assert note.current is not None
    found = client.get(f"recall/{note.public_id}")
    assert ids_of(found)[:3] == [note.public_id, event.public_id, session.public_id]
    assert found.json()["items"][0]["view"]["path"] == note.path
    assert ids_of(client.get(f"recall/{note.current.public_id}"))[0] == note.current.public_id
    after = client.get(f"recall/{proposal.public_id}", direction="after")
    assert ids_of(after) == [proposal.public_id, note.public_id]


def test_a_private_note_is_unknown_to_all_others(
    client: Any, acme: Any, mia: Any, bob: Any, api: Any, globex: Any, charlie: Any
) -> None:
    own = made.note(acme, mia, is_private=True)
    mine = api(new_agent(mia))
    assert ids_of(mine.get(f"recall/{own.public_id}")) == [own.public_id]
    unknown = own.public_id[:-3] + "zzz"
    for other in (api(new_agent(bob)), api(new_agent(charlie))):
        refused, nobody = other.get(f"recall/{own.public_id}"), other.get(f"recall/{unknown}")
        assert refused.status_code == nobody.status_code == 404
        masked = [
            {name: value for name, value in answer.json().items() if name not in ("request_id", "instance")}
            for answer in (refused, nobody)
        ]
        assert str(masked[0]).replace(own.public_id, "ID") == str(masked[1]).replace(unknown, "ID")


def test_a_teams_note_is_unknown_to_another_team(acme: Any, bob: Any, charlie: Any, globex: Any, api: Any) -> None:
    note = made.note(acme, bob)
    assert api(new_agent(charlie)).get(f"recall/{note.public_id}").status_code == 404
