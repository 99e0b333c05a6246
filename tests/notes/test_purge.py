"""Purge by source, and old secrets: found, shown, taken out; ids, hashes and who was told stay."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client

from memory.notes import review, undoing
from memory.notes.models import Note, Proposal, Revision, Source, Tombstone
from memory.recall.models import Telling
from memory.tenants.access import member_actor
from tests.pages import made

WHERE = "/api/v1/purges"


def people(member: Any) -> Client:
    client = Client()
    client.force_login(member.user)
    return client


def ask(member: Any, source: str, mode: str = "preview") -> Any:
    return people(member).post(WHERE, {"source": source, "mode": mode}, "application/json")


@pytest.fixture
def poisoned(acme: Any, bob: Any) -> dict[str, Any]:
    """A session whose lines stand in two notes and a proposal, one of which a session was told."""
    bad, good = made.session(acme, key="bad"), made.session(acme, key="good")
    event, other = made.event(bad), made.event(good)
    made.note(acme, bob, path="tools/a.md", text="# A\n\n- fine\n")
    first = made.proposal(acme, path="tools/a.md", text="# A\n\n- fine\n- poison one\n", rests_on=(event,))
    mixed = made.approved(first, bob).note
    made.rewritten(mixed, bob, "# A\n\n- fine\n- poison one\n- later\n")
    alone = made.approved(made.proposal(acme, path="tools/b.md", text="- poison two\n", rests_on=(event,)), bob).note
    waits = made.proposal(acme, path="tools/c.md", text="- poison three\n", rests_on=(event,))
    made.telling(other, mixed)
    return {"session": bad.public_id, "told": good.public_id, "mixed": mixed, "alone": alone, "waits": waits}


@pytest.mark.parametrize("mode", ["quarantine", "purge"])
def test_it_takes_out_all_that_came_from_a_session(
    mode: str, poisoned: dict[str, Any], acme: Any, alice: Any, bound: Any
) -> None:
    seen = ask(alice, poisoned["session"]).json()
    assert seen["counts"]["notes"] == 2 and seen["proposals"] and "poison one" in str(seen["notes"])
    assert {one["path"]: one["outcome"] for one in seen["notes"]} == {"tools/a.md": "cut", "tools/b.md": "delete"}
    done = ask(alice, poisoned["session"], mode)
    assert done.status_code == 200, done.content
    with bound(acme):
        mixed = Note.objects.select_related("current").get(pk=poisoned["mixed"].pk)
        assert mixed.current is not None and mixed.current.text == "# A\n\n- fine\n- later\n"
        assert not Note.objects.present().filter(pk=poisoned["alone"].pk).exists()
        assert not Proposal.objects.open().exists()
        assert Tombstone.objects.filter(line__contains="poison").count() == 2
        texts = [*Revision.objects.values_list("text", flat=True), *Proposal.objects.values_list("text", flat=True)]
        texts += Telling.objects.values_list("text", flat=True)
        assert any("poison" in text for text in texts) is (mode == "quarantine")
        assert all(len(bytes(digest)) == 32 for digest in Revision.objects.values_list("sha256", flat=True))
    again = ask(alice, poisoned["session"]).json()
    assert again["notes"] == [] and poisoned["told"] in again["sessions_told"]


@pytest.mark.parametrize("mode", ["quarantine", "purge"])
def test_doing_it_twice_changes_nothing_more(
    mode: str, poisoned: dict[str, Any], acme: Any, alice: Any, bound: Any
) -> None:
    def stands() -> list[Any]:
        with bound(acme):
            notes = list(Note.objects.order_by("pk").values_list("path", "current", "deleted_at"))
            return [*notes, *Revision.objects.order_by("pk").values_list("pk", "text"), Tombstone.objects.count()]

    assert ask(alice, poisoned["session"], mode).status_code == 200
    once = stands()
    again = ask(alice, poisoned["session"], mode)
    assert again.status_code == 200 and again.json()["counts"]["notes"] == 0
    assert stands() == once


def test_a_purge_after_a_quarantine_leaves_what_was_kept(
    poisoned: dict[str, Any], acme: Any, alice: Any, bound: Any
) -> None:
    for mode in ("quarantine", "purge"):
        assert ask(alice, poisoned["session"], mode).status_code == 200
    with bound(acme):
        mixed = Note.objects.select_related("current").get(pk=poisoned["mixed"].pk)
        assert mixed.current is not None and mixed.current.text == "# A\n\n- fine\n- later\n"
        assert not Revision.objects.filter(text__contains="poison").exists()


def test_a_line_that_people_wrote_and_the_source_only_backs_stays(acme: Any, bob: Any, alice: Any, bound: Any) -> None:
    bad, good = made.session(acme, key="bad"), made.session(acme, key="good")
    note = made.note(acme, bob, path="tools/a.md", text="- fine\n")
    more = made.proposal(acme, path="tools/a.md", text="- fine\n- more\n", rests_on=(made.event(good),))
    with bound(acme):
        event = made.event(bad)
        Source.objects.create(tenant=acme, proposal=more, event=event, line="- fine", position=1, tier=3)
    made.approved(more, bob)
    ask(alice, bad.public_id, "purge")
    with bound(acme):
        now = Note.objects.select_related("current").get(pk=note.pk)
        assert now.current is not None and now.current.text == "- fine\n- more\n"


def test_a_decision_on_purged_words_is_not_taken_back(
    poisoned: dict[str, Any], acme: Any, alice: Any, bound: Any
) -> None:
    with bound(acme):
        review.reject(poisoned["waits"], by=member_actor(alice), reason="No")
    ask(alice, poisoned["session"], "purge")
    with bound(acme), pytest.raises(undoing.TooLate, match="taken out"):
        undoing.undo(poisoned["waits"], by=member_actor(alice))
    with bound(acme):
        assert not Proposal.objects.open().exists()


def test_it_finds_what_a_key_wrote_without_any_event(
    acme: Any, alice: Any, bob: Any, agent: Any, api: Any, bound: Any
) -> None:
    said = api(agent).put("notes/by-path/team/tools/k.md", b"- poison\n", content_type="text/markdown").json()
    where = f"/api/v1/proposals/{said['id']}/approve"
    assert people(bob).post(where, {"shown": said["sha256"]}, "application/json").status_code == 200
    with bound(acme):
        note = Note.objects.get(path_key="tools/k.md")
    made.rewritten(note, bob, "- mine\n- poison\n")
    out = StringIO()
    call_command("purge_source", agent.key.public_id, tenant="acme", mode="purge", stdout=out)
    assert "- poison" in out.getvalue()
    with bound(acme):
        note = Note.objects.select_related("current").get(pk=note.pk)
        assert note.current is not None and note.current.text == "- mine\n"
        assert Revision.objects.filter(text__contains="poison").count() == 0


def test_only_admins_purge(poisoned: dict[str, Any], bob: Any, alice: Any, agent: Any, api: Any, charlie: Any) -> None:
    assert ask(bob, poisoned["session"]).status_code == 403
    assert api(agent).post("purges", {"source": poisoned["session"]}).status_code == 403
    foreign, none = ask(charlie, poisoned["session"]), ask(charlie, "ses_none")
    assert (foreign.status_code, none.status_code) == (404, 404)
    page = people(alice).get(f"/t/acme/purge/?source={poisoned['session']}")
    assert page.status_code == 200 and b"poison one" in page.content
    assert people(alice).get("/t/acme/purge/?source=ses_none").status_code == 404
    done = people(alice).post("/t/acme/purge/", {"source": poisoned["session"], "mode": "purge"})
    assert done.status_code == 200 and b"Purged" in done.content


def test_old_secrets_are_found_and_blanked(acme: Any, bob: Any, bound: Any) -> None:
    note = made.note(acme, bob, path="tools/a.md", text="- fine\n")
    secret = "ghp_" + "A1b2C3d4E5" * 3 + "f6G7h8"
    from tests import database

    with database.migrator() as owner:
        owner.execute("UPDATE notes_revision SET text = %s", [f"- token {secret}\n"])
    out = StringIO()
    call_command("scan_secrets", tenant="acme", stdout=out)
    assert "found in 1 notes, 1 revisions" in out.getvalue()
    call_command("scan_secrets", tenant="acme", redact=True, stdout=StringIO())
    with bound(acme):
        old, new = Revision.objects.filter(note=note).order_by("number")
        assert secret not in old.text + new.text and old.blanked_at and "[secret:" in new.text
    out = StringIO()
    call_command("scan_secrets", tenant="acme", stdout=out)
    assert "found in 0 notes, 0 revisions" in out.getvalue()


def test_no_team_blanks_another_s_revision(acme: Any, globex: Any, bob: Any, bound: Any) -> None:
    note = made.note(acme, bob)
    with bound(globex), connection.cursor() as cursor:
        cursor.execute("SELECT blank_revision(%s, 'gone')", [str(note.current_id)])
        assert cursor.fetchone()[0] is None
    with bound(acme):
        assert not Revision.objects.filter(text="gone").exists()
