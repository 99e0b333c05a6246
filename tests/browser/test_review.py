"""A person reviews in the browser, and the next session is told: the whole way, by keyboard."""

from typing import Any

import pytest
from django.test import Client

from memory.notes.models import Note, Proposal
from memory.tenants import rls
from tests.conftest import Agent, new_agent
from tests.pages import made

pytestmark = pytest.mark.browser
RULE = "Retry a payment three times, never more"
TEXT = f"---\ntitle: Retries\ndescription: How payments are tried again\nkind: rule\n---\n# Retries\n\n- {RULE}\n"


def start(agent: Agent, key: str, root: str) -> str:
    """What a session that starts in a folder is told."""
    payload = {"session_id": key, "hook_event_name": "SessionStart", "source": "startup", "cwd": root}
    answer = Client(headers=agent.headers).post(
        "/api/v1/hooks/claude-code",
        payload,
        content_type="application/json",
        headers={"X-Team-Memory-Root": root},
    )
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def slug_at(acme: Any, root: str) -> str:
    with rls.tenant_scope(str(acme.pk)):
        return str(acme.projects.get(roots__place=root).slug)


def state(of: Any) -> str:
    with rls.tenant_scope(str(of.tenant_id)):
        return str(Proposal.objects.get(pk=of.pk).state)


def approve_by_keyboard(window: Any, member: Any, proposal: Any) -> None:
    opened = window(member)
    page = opened.open(f"/t/acme/proposals/{proposal.public_id}/")
    page.keyboard.press("a")
    page.wait_for_selector("text=Approved by")
    assert opened.faults == []


def test_what_was_approved_is_told_to_the_next_session_of_that_project_alone(
    window: Any, acme: Any, bob: Any, agent: Agent, globex_agent: Agent
) -> None:
    assert RULE not in start(agent, "before", "/src/payments")
    start(agent, "elsewhere", "/src/other")
    project = slug_at(acme, "/src/payments")
    proposal = made.proposal(acme, path=f"project/{project}/retries.md", text=TEXT)
    assert RULE not in start(agent, "waiting", "/src/payments")
    approve_by_keyboard(window, bob, proposal)
    told = start(agent, "after", "/src/payments")
    assert RULE in told and proposal.note.public_id in told
    assert RULE not in start(agent, "other project", "/src/other")
    assert RULE not in start(globex_agent, "other team", "/src/payments")
    with rls.tenant_scope(str(acme.pk)):
        session = acme.sessions.get(key="after")
    page = window(bob)
    page.open(f"/t/acme/sessions/{session.public_id}/")
    assert "Retries" in page.text() and "Told 1 note" in page.text()


def test_a_private_note_is_told_to_its_member_alone(window: Any, acme: Any, mia: Any, agent: Agent) -> None:
    start(agent, "before", "/src/payments")
    project = slug_at(acme, "/src/payments")
    proposal = made.proposal(acme, path=f"project/{project}/mine.md", text=TEXT, member=mia)
    approve_by_keyboard(window, mia, proposal)
    assert RULE in start(new_agent(mia), "hers", "/src/payments")
    assert RULE not in start(agent, "another member's", "/src/payments")


def test_j_and_k_move_between_proposals(window: Any, acme: Any, bob: Any) -> None:
    rows = [made.proposal(acme, path=f"general/{name}.md", text=f"# {name}\n\n- Say {name}\n") for name in "abc"]
    opened = window(bob)
    page = opened.open("/t/acme/")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{rows[1].public_id}/")
    page.keyboard.press("j")
    page.wait_for_url(f"**/{rows[2].public_id}/")
    page.keyboard.press("k")
    page.wait_for_url(f"**/{rows[1].public_id}/")
    assert opened.faults == []


def test_r_rejects_with_a_reason(window: Any, acme: Any, bob: Any) -> None:
    proposal = made.proposal(acme)
    opened = window(bob)
    page = opened.open(f"/t/acme/proposals/{proposal.public_id}/")
    page.keyboard.press("r")
    page.keyboard.type("Two times is enough, not a")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=Rejected by")
    assert "Two times is enough, not a" in opened.text()
    assert (state(proposal), opened.faults) == ("rejected", [])


def test_e_edits_then_approves(window: Any, acme: Any, bob: Any) -> None:
    proposal = made.proposal(acme)
    opened = window(bob)
    page = opened.open(f"/t/acme/proposals/{proposal.public_id}/")
    page.keyboard.press("e")
    page.wait_for_url("**/edit/")
    page.fill("#text", page.input_value("#text").replace("three", "four"))
    page.click("text=Approve this text")
    page.wait_for_selector("text=Approved with changes")
    with rls.tenant_scope(str(acme.pk)):
        current = Note.objects.select_related("current").get(pk=proposal.note_id).current
        assert current is not None and current.text == made.TEXT.replace("three", "four")
    assert opened.faults == []


def test_a_text_that_changed_meanwhile_is_shown_and_not_approved(window: Any, acme: Any, alice: Any, bob: Any) -> None:
    note = made.note(acme, alice)
    proposal = made.proposal(acme, text=made.TEXT + "- Log each try\n")
    opened = window(bob)
    page = opened.open(f"/t/acme/proposals/{proposal.public_id}/")
    made.rewritten(note, alice, made.TEXT.replace("three", "seven"))
    page.keyboard.press("a")
    page.wait_for_selector("text=The text changed since you opened this page")
    assert "seven" in page.inner_text("#proposal") and state(proposal) == "open"
    page.keyboard.press("a")
    page.wait_for_selector("text=Approved by")
    assert opened.faults == []


def test_keys_can_be_switched_off(window: Any, acme: Any, bob: Any) -> None:
    proposal = made.proposal(acme)
    opened = window(bob)
    page = opened.open(f"/t/acme/proposals/{proposal.public_id}/")
    page.click(".side [data-toggle=keys]")
    page.keyboard.press("a")
    page.keyboard.press("j")
    assert state(proposal) == "open" and page.url.endswith(f"{proposal.public_id}/")


def test_without_javascript_it_works_too(window: Any, acme: Any, bob: Any) -> None:
    proposal = made.proposal(acme)
    page = window(bob, java_script_enabled=False).open(f"/t/acme/proposals/{proposal.public_id}/")
    page.click("button:has-text('Approve')")
    assert page.url.endswith(f"/proposals/{proposal.public_id}/") and state(proposal) == "approved"


def test_the_words_to_edit_have_the_focus_and_are_not_lost_by_a_click_beside(window: Any, acme: Any, bob: Any) -> None:
    proposal = made.proposal(acme, path="general/retries.md", text=TEXT)
    opened = window(bob)
    page = opened.open(f"/t/acme/proposals/{proposal.public_id}/")
    page.keyboard.press("e")
    page.wait_for_selector("#text:focus")
    page.keyboard.type("x")
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    page.click("text=Cancel")
    assert asked == ["beforeunload"] and page.input_value("#text").startswith("x---")
    # Nothing changed, or sent: nothing is asked.
    page.keyboard.press("Escape")
    page.fill("#text", TEXT.replace("three", "four"))
    page.click("text=Approve this text")
    page.wait_for_selector("text=Approved with changes by")
    assert asked == ["beforeunload"] and opened.faults == []


def test_the_list_of_keys_lies_within_the_window(window: Any, acme: Any, bob: Any) -> None:
    proposal = made.proposal(acme, path="general/retries.md", text=TEXT)
    opened = window(bob)
    page = opened.open(f"/t/acme/proposals/{proposal.public_id}/")
    for width in (1280, 900, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.keyboard.press("?")
        page.wait_for_selector(".last .popover-panel")
        box = page.locator(".last .popover-panel").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        page.keyboard.press("Escape")
