"""Writing a note in a browser: it reads as one types, a draft outlives the window, and no save is lost."""

from typing import Any

import pytest

from memory.notes.models import Autosaved, Note
from memory.tenants import rls
from tests.pages import made

pytestmark = pytest.mark.browser


def text_of(note: Any) -> str:
    with rls.tenant_scope(str(note.tenant_id)):
        return str(Note.objects.select_related("current").get(pk=note.pk).current.text)


def test_it_reads_as_one_types_and_a_draft_outlives_the_window(window: Any, acme: Any, alice: Any, bob: Any) -> None:
    note = made.note(acme, alice)
    where = f"/t/acme/notes/{note.public_id}/edit/"
    opened = window(bob)
    page = opened.open(where)
    page.fill("#title", "Retries of payments")
    page.fill("#body", "# Retries\n\n- Try **twice**\n")
    page.wait_for_selector("#preview strong:text-is('twice')")
    assert page.inner_text("#preview h3") == "Retries of payments"
    page.wait_for_selector("text=Draft saved.")
    again = window(bob)
    page = again.open(where)
    assert page.input_value("#title") == "Retries of payments" and "This is your draft" in again.text()
    page.click("text=Raw text")
    page.wait_for_selector("#text")
    assert page.input_value("#text").startswith("---\ntitle: Retries of payments\ndescription: How payments are")
    page.click("text=Fields")
    page.wait_for_selector("#body")
    # Somebody is quicker, elsewhere in the note: both stand there before anything is saved.
    made.rewritten(note, alice, made.TEXT.replace("How payments", "How all payments"))
    page.click("button:has-text('Save and publish')")
    page.wait_for_selector("text=saved revision 2 while you wrote")
    assert page.input_value("#title") == "Retries of payments" and "How all" in page.input_value("#description")
    page.click("button:has-text('Save and publish')")
    page.wait_for_url(f"**/notes/{note.public_id}/")
    assert text_of(note).startswith("---\ntitle: Retries of payments\ndescription: How all payments")
    assert opened.faults == [] and again.faults == []
    with rls.tenant_scope(str(acme.pk)):
        assert not Autosaved.objects.exists()


def test_without_javascript_it_saves_too(window: Any, acme: Any, alice: Any, bob: Any) -> None:
    note = made.note(acme, alice)
    page = window(bob, java_script_enabled=False).open(f"/t/acme/notes/{note.public_id}/edit/")
    page.fill("#body", "# Retries\n\n- Try twice\n")
    page.click("button:has-text('Preview')")
    assert "Try twice" in page.inner_text("#preview")
    page.click("text=Raw text")
    page.fill("#text", page.input_value("#text") + "- Then stop\n")
    page.focus("#text")
    page.click("button:has-text('Save and publish')")
    assert text_of(note).endswith("- Try twice\n- Then stop\n")
