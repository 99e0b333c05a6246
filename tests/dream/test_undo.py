"""Undoing a dream: what waits is withdrawn, what was let in is taken out, what people did since stays."""

from typing import Any

import pytest

from dream import undo
from dream.models import Run
from memory.notes import review, rules
from memory.notes.models import Note, Proposal
from memory.tenants.access import member_actor
from memory.tenants.rls import tenant_scope
from tests.conftest import Agent
from tests.pages import made

BASE = made.TEXT
DREAMT = BASE + "- Ask after the third time\n"
NEW = "general/new.md"


@pytest.fixture
def run(acme: Any, alice: Any) -> Run:
    """A dream that added a line to a note of Alice's, and made a note."""
    made.note(acme, alice)
    edit = made.proposal(acme, text=DREAMT)
    fresh = made.proposal(acme, path=NEW, text="# New\n\n- One\n")
    run = made.run(acme, proposals=(edit, fresh))
    with tenant_scope(str(acme.pk)):
        for change in run.changes.select_related("proposal__base"):
            change.text, change.path = change.proposal.text, f"team/{change.proposal.note.path}"
            change.old_text = change.proposal.base.text if change.proposal.base else ""
            change.save()
    return run


def approve(run: Run, alice: Any) -> None:
    with tenant_scope(str(run.tenant_id)):
        for waiting in Proposal.objects.open():
            review.approve(waiting, by=member_actor(alice), shown=made.shown(waiting))


def undone(run: Run, alice: Any) -> dict[str, str]:
    with tenant_scope(str(run.tenant_id)):
        found = undo.undo(Run.objects.get(pk=run.pk), by=member_actor(alice))
        return {one.change.path.rsplit("/", 1)[-1]: one.outcome for one in found}


def texts(run: Run) -> dict[str, str]:
    with tenant_scope(str(run.tenant_id)):
        return {note.path: note.current.text for note in Note.objects.live().select_related("current")}


def write(run: Run, alice: Any, text: str) -> None:
    with tenant_scope(str(run.tenant_id)):
        note = Note.objects.get(path=made.PATH)
        made.rewritten(note, alice, text)


def test_what_waits_is_withdrawn(run: Run, alice: Any) -> None:
    assert undone(run, alice) == {"retries.md": "withdrawn", "new.md": "withdrawn"}
    assert undone(run, alice) == {}, "once"
    with tenant_scope(str(run.tenant_id)):
        assert not Proposal.objects.open().exists()
        assert Run.objects.get().undone_by == "alice"
    assert texts(run) == {made.PATH: BASE}


def test_what_was_let_in_is_taken_out_to_the_same_bytes(run: Run, alice: Any) -> None:
    approve(run, alice)
    assert undone(run, alice) == {"retries.md": "undone", "new.md": "undone"}
    assert texts(run) == {made.PATH: BASE}


def test_later_edits_stay(run: Run, alice: Any) -> None:
    approve(run, alice)
    write(run, alice, DREAMT.replace("Try three times", "Try five times"))
    assert undone(run, alice)["retries.md"] == "undone"
    assert texts(run)[made.PATH] == BASE.replace("Try three times", "Try five times")


def test_a_conflict_changes_nothing_and_is_shown(run: Run, alice: Any, logged_in: Any) -> None:
    approve(run, alice)
    edited = DREAMT.replace("Ask after the third time", "Ask after the second time")
    write(run, alice, edited)
    assert undone(run, alice) == {"retries.md": "conflict", "new.md": "undone"}
    assert texts(run)[made.PATH] == edited
    page = logged_in(alice).get(f"/t/acme/dreams/{run.public_id}/").content.decode()
    for said in (
        "Ask after the third time",
        "Ask after the second time",
        "decide line by line",
        "Undo the whole dream",
    ):
        assert said in page


def test_a_deletion_is_undone_too(acme: Any, alice: Any) -> None:
    made.note(acme, alice)
    run = made.run(acme, proposals=(made.proposal(acme, operation="delete", text=""),))
    approve(run, alice)
    assert texts(run) == {}
    with tenant_scope(str(acme.pk)):
        [found] = undo.undo(Run.objects.get(), by=member_actor(alice))
    assert found.outcome == "undone" and texts(run) == {made.PATH: BASE}


def test_lines_of_a_replaced_proposal_are_taken_out_of_the_one_that_waits(run: Run, acme: Any, alice: Any) -> None:
    made.proposal(
        acme, text=DREAMT.replace("# Retries\n", "# Retries\n\nOf payments.\n"), by=made.dreamer(acme, "drm_2")
    )
    assert undone(run, alice)["retries.md"] == "withdrawn"
    with tenant_scope(str(acme.pk)):
        text = Proposal.objects.open().get().text
    assert "Of payments." in text and "third time" not in text


def test_one_change_alone(run: Run, alice: Any, logged_in: Any) -> None:
    approve(run, alice)
    with tenant_scope(str(run.tenant_id)):
        change = run.changes.select_related("proposal").get(path=f"team/{NEW}")
    url = f"/t/acme/dreams/{run.public_id}/undo/"
    assert logged_in(alice).post(url, {"change": change.proposal.public_id}).status_code == 302
    assert texts(run) == {made.PATH: DREAMT}
    assert logged_in(alice).post(url, {"change": "prp_none"}).status_code == 404


def test_a_key_withdraws_what_waits_and_asks_for_the_rest(run: Run, alice: Any, agent: Agent, api: Any) -> None:
    approve(run, alice)
    write(run, alice, DREAMT + "- And log it\n")
    answer = api(agent).post(f"dreams/{run.public_id}/undo").json()
    assert {one["outcome"] for one in answer["undone"]} == {"proposed", "conflict"}
    assert "third time" in texts(run)[made.PATH], "nothing changes without a person"
    with tenant_scope(str(run.tenant_id)):
        waiting = {one.note.path: one for one in Proposal.objects.open().select_related("note")}
    assert waiting[NEW].operation == "delete"


def test_it_needs_the_role(run: Run, vera: Any, mia: Any, logged_in: Any) -> None:
    for member in (vera, mia):
        assert logged_in(member).post(f"/t/acme/dreams/{run.public_id}/undo/").status_code == 403


def test_a_running_dream_is_cancelled_first(acme: Any, agent: Agent, api: Any, alice: Any, logged_in: Any) -> None:
    run = made.run(acme, state="running", finished_at=None)
    answer = api(agent).post(f"dreams/{run.public_id}/undo")
    assert (answer.status_code, answer.json()["code"]) == (409, "not_finished")
    browser = logged_in(alice)
    assert browser.post(f"/t/acme/dreams/{run.public_id}/undo/").status_code == 409
    assert browser.post(f"/t/acme/dreams/{run.public_id}/cancel/").status_code == 302
    assert browser.post(f"/t/acme/dreams/{run.public_id}/cancel/").status_code == 409


@pytest.mark.parametrize(
    ("asks", "outcome"), [({"mode": "locked"}, "conflict"), ({"four_eyes": True}, "proposed")], ids=["locked", "two"]
)
def test_a_path_that_one_may_not_change_alone_holds_up_no_other(
    run: Run, alice: Any, acme: Any, asks: Any, outcome: str
) -> None:
    approve(run, alice)
    with tenant_scope(str(acme.pk)):
        rules.save(acme, rules.Wanted(made.PATH, **asks), by=member_actor(alice))
    assert undone(run, alice) == {"retries.md": outcome, "new.md": "undone"}
    assert texts(run) == {made.PATH: DREAMT}
    assert undone(run, alice) == ({"retries.md": "conflict"} if outcome == "conflict" else {})
