"""Operators' pages in a real browser: suspended, taken away as a file, marked for deletion, kept."""

import zipfile
from typing import Any

from memory.tenants.models import User
from tests.pages import made


def test_an_operator_works_on_a_team(window: Any, acme: Any, alice: Any, charlie: Any) -> None:
    User.objects.filter(pk=charlie.user_id).update(is_operator=True)
    made.note(acme, alice, text="# acme-only words\n")
    shown = window(charlie, viewport={"width": 390, "height": 844})
    shown.open("/account/").get_by_role("link", name="Teams of this server").click()
    shown.page.get_by_role("link", name="Acme").click()
    with shown.page.expect_download() as export:
        shown.page.get_by_role("button", name="Export everything").click()
    with zipfile.ZipFile(export.value.path()) as file:
        assert file.testzip() is None and b"acme-only words" in file.read("tables/notes_revision.ndjson")
    shown.page.get_by_label("Type acme").fill("acme")
    shown.page.get_by_role("button", name="Delete the team").click()
    assert "goes for good" in shown.text()
    told = window(alice, viewport={"width": 390, "height": 844})
    told.open("/t/acme/")
    assert "Acme is suspended" in told.text() and "is to be deleted" in told.text()
    shown.page.get_by_role("button", name="Keep the team").click()
    shown.page.get_by_role("button", name="Resume").click()
    told.open("/t/acme/")
    assert "is suspended" not in told.text()
    for path in ("/operator/", "/operator/new/", "/operator/log/", "/operator/teams/acme/"):
        shown.open(path)
        assert shown.page.evaluate("document.documentElement.scrollWidth") == 390, path
    assert shown.faults == [] and told.faults == []
