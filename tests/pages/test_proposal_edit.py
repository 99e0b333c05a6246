"""Changing a proposal's text, then approving it."""

from typing import Any

import pytest
from django.test import Client

from memory.notes.models import Note
from memory.tenants import rls
from tests.pages import made
from tests.pages.test_note_edit import typed


@pytest.fixture
def proposal(acme: Any) -> Any:
    return made.proposal(acme)


def url(of: Any, team: str = "acme") -> str:
    return f"/t/{team}/proposals/{of.public_id}/edit/"


def form(of: Any, text: str) -> dict[str, str]:
    return {"shown": made.shown(of), "text": text}


def state(of: Any) -> str:
    with rls.tenant_scope(str(of.tenant_id)):
        of.refresh_from_db()
    return str(of.state)


def test_it_shows_the_text_as_it_was_proposed(logged_in: Any, bob: Any, proposal: Any) -> None:
    answer = logged_in(bob).get(url(proposal))
    assert answer.status_code == 200 and "Try three times" in answer.content.decode()


def test_it_lets_the_changed_text_in(logged_in: Any, acme: Any, bob: Any, proposal: Any) -> None:
    better = made.TEXT.replace("three", "four")
    # A browser sends the lines of a textarea with CR LF.
    answer = logged_in(bob).post(url(proposal), form(proposal, better.replace("\n", "\r\n")))
    assert answer.status_code == 302 and state(proposal) == "approved"
    with rls.tenant_scope(str(acme.pk)):
        current = Note.objects.get(pk=proposal.note_id).current
        assert current is not None and (current.text, current.author_kind) == (better, "member")


@pytest.mark.parametrize("is_there", [False, True])
def test_the_page_shows_how_the_text_reads_while_it_is_typed(
    logged_in: Any, acme: Any, alice: Any, bob: Any, is_there: bool
) -> None:
    if is_there:
        made.note(acme, alice)
    edited = made.proposal(acme, text=made.TEXT.replace("three", "five"))
    browser = logged_in(bob)
    page = browser.get(url(edited)).content.decode()
    assert 'hx-post="/t/acme/notes/preview/"' in page and '<div id="preview">' in page
    sent = {name: typed(page, name) for name in ("shown", "note", "path", "text") if f'name="{name}"' in page}
    assert ("note" in sent) is is_there
    live = browser.post("/t/acme/notes/preview/", {**sent, "text": sent["text"] + "\n- **Mine**\n"}).content.decode()
    assert "<strong>Mine</strong>" in live and live.count("<strong>") == page.count("<strong>") + 1
    named = browser.post("/t/acme/notes/preview/", {**sent, "text": "# Called so\n\n- One\n"}).content.decode()
    assert named.count("Called so") == 1 and "retries" not in named, "as the note's page calls it"
    # Without JavaScript a button shows the same, and decides nothing.
    asked = browser.post(url(edited), {**form(edited, "- **Mine**\n"), "preview": "1"})
    assert asked.status_code == 200 and "<strong>Mine</strong>" in asked.content.decode() and state(edited) == "open"


def test_a_text_that_cannot_be_a_note_stays_in_the_form(logged_in: Any, bob: Any, proposal: Any) -> None:
    broken = "---\ntitle: [unclosed\n---\nMy words\n"
    answer = logged_in(bob).post(url(proposal), form(proposal, broken))
    page = answer.content.decode()
    assert answer.status_code == 422 and "My words" in page and 'role="alert"' in page
    assert state(proposal) == "open"


def test_a_stale_screen_keeps_the_text(logged_in: Any, bob: Any, proposal: Any) -> None:
    answer = logged_in(bob).post(url(proposal), {"shown": "0" * 64, "text": "My words\n"})
    assert answer.status_code == 409 and "My words" in answer.content.decode()
    assert state(proposal) == "open"


def test_a_decided_proposal_is_shown_instead(logged_in: Any, alice: Any, bob: Any, proposal: Any) -> None:
    made.approved(proposal, alice)
    assert logged_in(bob).get(url(proposal))["Location"] == f"/t/acme/proposals/{proposal.public_id}/"
    assert logged_in(bob).post(url(proposal), form(proposal, "My words\n")).status_code == 409


def test_it_needs_login(proposal: Any) -> None:
    assert Client().get(url(proposal)).status_code == 302
    assert Client().post(url(proposal)).status_code == 302


@pytest.mark.parametrize("role", ["vera", "mia"])
def test_it_needs_the_role(logged_in: Any, teams: Any, proposal: Any, role: str) -> None:
    browser = logged_in(teams[role])
    assert browser.get(url(proposal)).status_code == 403
    assert browser.post(url(proposal), form(proposal, "My words\n")).status_code == 403
    assert state(proposal) == "open"


def test_it_hides_the_proposal_from_other_tenants(logged_in: Any, charlie: Any, proposal: Any) -> None:
    for team in ("acme", "globex"):
        assert logged_in(charlie).get(url(proposal, team)).status_code == 404
        assert logged_in(charlie).post(url(proposal, team), form(proposal, "x\n")).status_code == 404


def test_an_unknown_proposal_is_not_found(logged_in: Any, bob: Any, acme: Any) -> None:
    assert logged_in(bob).get("/t/acme/proposals/prp_none/edit/").status_code == 404


def test_it_takes_no_other_method(logged_in: Any, bob: Any, proposal: Any) -> None:
    assert logged_in(bob).delete(url(proposal)).status_code == 405


def test_what_was_approved_is_shown_and_not_what_was_proposed(logged_in: Any, acme: Any, alice: Any, bob: Any) -> None:
    made.note(acme, alice)
    changed = made.proposal(acme, text=made.TEXT.replace("three", "five"), reason="It failed thrice")
    browser = logged_in(bob)
    browser.post(url(changed), form(changed, made.TEXT.replace("three", "nine")))
    page = browser.get(f"/t/acme/proposals/{changed.public_id}/").content.decode()
    assert "Approved with changes by" in page and "What was approved, against revision 1" in page
    assert "<ins>nine</ins>" in page and "five" not in page
    history = browser.get(f"/t/acme/notes/{changed.note.public_id}/history/").content.decode()
    assert "Proposal, approved with changes" in history and "It failed thrice" in history
    assert "a dream</a>" in history and "edited by <bdi>Bob</bdi>" in history


def test_a_text_approved_as_it_was_says_nothing_of_changes(logged_in: Any, bob: Any, proposal: Any) -> None:
    made.approved(proposal, bob)
    page = logged_in(bob).get(f"/t/acme/proposals/{proposal.public_id}/").content.decode()
    assert "Approved by" in page and "with changes" not in page


def test_the_yaml_reader_s_words_are_not_shown(logged_in: Any, bob: Any, proposal: Any) -> None:
    page = logged_in(bob).post(url(proposal), form(proposal, "---\ntitle: a: b\n---\nMy words\n")).content.decode()
    assert "Line 2: this is not `key: value`; put the value in quotes." in page
