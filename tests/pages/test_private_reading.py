"""A member's own space is read by admins only while a rule of the team is on; each reading is audited and shown."""

from typing import Any

import pytest
from django.test import Client

from memory.tenants import rls
from memory.tenants.models import AuditEntry
from tests.pages import made

TEXT = "---\ntitle: Mia only\n---\n# Mia only\n\n- Keep it short\n"
PAGES = ("", "history/", "diff/?from=1&to=1", "lines/", "told/")


@pytest.fixture
def note(acme: Any, mia: Any) -> Any:
    return made.note(acme, mia, path="profile/me.md", text=TEXT, is_private=True)


def where(of: Any, owner: Any) -> list[str]:
    return [f"/t/acme/spaces/{owner.public_id}/", *(f"/t/acme/notes/{of.public_id}/{page}" for page in PAGES)]


def rule(browser: Any, value: str) -> Any:
    return browser.post("/t/acme/settings/", {"name": "private_reading", "value": value})


def readings(acme: Any) -> list[Any]:
    with rls.tenant_scope(str(acme.pk)):
        return list(AuditEntry.objects.filter(action="note.read_private").order_by("seq"))


def test_without_the_rule_no_role_reads_it(logged_in: Any, acme: Any, teams: Any, mia: Any, note: Any) -> None:
    for name in ("alice", "bob", "vera"):
        for address in where(note, mia):
            assert logged_in(teams[name]).get(address).status_code == 404, (name, address)
    own = logged_in(teams["mia"]).get(where(note, mia)[0]).content.decode()
    assert "Mia only" in own and "Nobody else can read here" in own
    assert readings(acme) == []


def test_with_the_rule_admins_read_it_and_each_reading_is_audited_and_shown(
    logged_in: Any, acme: Any, alice: Any, bob: Any, mia: Any, note: Any
) -> None:
    admin = logged_in(alice)
    assert rule(admin, "on").status_code == 302
    for address in where(note, mia):
        page = admin.get(address)
        assert page.status_code == 200 and b"Mia only" in page.content, address
    assert [(one.actor_label, one.target, one.after) for one in readings(acme)] == [
        ("alice", mia.public_id, "list"),
        *(("alice", note.public_id, page) for page in ("note", "history", "diff", "lines", "told")),
    ]
    assert logged_in(bob).get(where(note, mia)[1]).status_code == 404, "a reviewer is no admin"
    own = logged_in(mia).get(where(note, mia)[0]).content.decode()
    assert "Owners and admins of this team may read here" in own and "alice" in own and "opened the list" in own
    assert len(readings(acme)) == 6, "its member reads without a row"
    assert rule(admin, "").status_code == 302
    assert [admin.get(address).status_code for address in where(note, mia)] == [404] * 6
    with rls.tenant_scope(str(acme.pk)):
        changes = AuditEntry.objects.filter(action="settings.manage", target="private_reading").order_by("seq")
        assert [(one.before, one.after) for one in changes] == [("default", "on"), ("on", "default")]


def test_the_rule_opens_nothing_else(logged_in: Any, acme: Any, alice: Any, mia: Any, note: Any, agent: Any) -> None:
    admin = logged_in(alice)
    rule(admin, "on")
    page = admin.get(where(note, mia)[1]).content.decode()
    assert "/edit/" not in page and "/delete/" not in page and "own space" in page
    forms = {
        "edit/": {"text": "x\n", "revision": "1"},
        "delete/": {"reason": "x"},
        "keep/": {"pin": "1"},
        "move/": {"path": "general/x.md"},
        "revert/": {"revision": "1"},
    }
    for verb, form in forms.items():
        assert admin.post(f"/t/acme/notes/{note.public_id}/{verb}", form).status_code == 404, verb
    assert admin.get(f"/t/acme/notes/{note.public_id}/edit/").status_code == 404
    for address in ("/t/acme/notes/", "/t/acme/notes/?q=short", "/t/acme/"):
        assert "Mia only" not in admin.get(address).content.decode()
    api = Client(headers=agent.headers)
    assert api.get(f"/api/v1/notes/{note.public_id}").status_code == 404
    assert api.get("/api/v1/notes/by-path/members/mia/profile/me.md").status_code == 404
    assert "Mia only" not in api.get("/api/v1/search?q=mia").content.decode()
    assert readings(acme)[-1].after == "note" and len(readings(acme)) == 1


def test_only_admins_turn_the_rule_on(logged_in: Any, acme: Any, bob: Any, alice: Any) -> None:
    assert rule(logged_in(bob), "on").status_code == 403
    assert rule(logged_in(alice), "maybe").status_code == 422


def test_another_team_sees_no_space(logged_in: Any, charlie: Any, mia: Any, note: Any) -> None:
    rule_of_theirs = logged_in(charlie)
    rule_of_theirs.post("/t/globex/settings/", {"name": "private_reading", "value": "on"})
    assert rule_of_theirs.get(f"/t/globex/spaces/{mia.public_id}/").status_code == 404
    assert rule_of_theirs.get(f"/t/globex/notes/{note.public_id}/").status_code == 404
