"""What sessions would have been told, had a proposal been approved: exactly what then happens."""

from typing import Any

from memory.notes.models import Note, Proposal, Revision
from memory.recall import foretold, inject
from memory.recall.models import Entry, Mark, NoteWords, Telling
from memory.tenants.access import member_actor
from memory.tenants.rls import tenant_scope
from tests.pages import made

LONG = "# Long\n\n" + "- Some words about something else\n" * 110


def told(acme: Any, of: Proposal, by: Any) -> dict[str, str]:
    with tenant_scope(str(acme.pk)):
        found = foretold.foretell(Proposal.objects.get(pk=of.pk), by=member_actor(by))
    return {one.session.key: one.how for one in found.tellings}


def url(of: Proposal) -> str:
    return f"/t/acme/proposals/{of.public_id}/told/"


def test_it_says_what_happens_once_it_is_approved(acme: Any, alice: Any, bob: Any) -> None:
    shop, blog = made.project(acme, "shop"), made.project(acme, "blog")
    session = made.session(acme, "one", project=shop, member=alice)
    made.session(acme, "other", project=blog, member=alice)
    proposal = made.proposal(acme, path="project/shop/retries.md")
    assert told(acme, proposal, bob) == {"one": "whole"}, "a session of another project is not in reach"
    with tenant_scope(str(acme.pk)):
        before, _ = inject.composed_start(session, member=alice)
        text = foretold.foretell(proposal, by=member_actor(bob)).text
    made.approved(proposal, bob)
    with tenant_scope(str(acme.pk)):
        answer, _ = inject.composed_start(session, member=alice)
    assert answer is not None and text in answer.text and "Try three times" in text
    assert before is None or text not in before.text


def test_it_writes_nothing(acme: Any, alice: Any, bob: Any) -> None:
    made.session(acme, member=alice, last_prompt="Retries")
    made.note(acme, alice, path="general/known.md")
    proposal = made.proposal(acme, path="general/retries.md")

    def counts() -> list[int]:
        with tenant_scope(str(acme.pk)):
            rows = (Revision, NoteWords, Telling, Entry, Mark, Note.objects.live().model)
            return [kind.objects.count() for kind in rows] + [Note.objects.live().count()]

    before = counts()
    assert told(acme, proposal, bob) == {"one": "whole"}
    assert counts() == before
    with tenant_scope(str(acme.pk)):
        assert Proposal.objects.get().state == "open"


def test_what_does_not_fit_is_a_line_or_comes_with_a_prompt(acme: Any, alice: Any, bob: Any) -> None:
    for name in "abc":
        made.note(acme, alice, path=f"general/{name}.md", text=LONG.replace("Long", name))
    session = made.session(acme, member=alice)
    proposal = made.proposal(
        acme, path="general/retries.md", text=f"# Retries\n\n- Payments are tried three times\n{LONG[8:]}"
    )
    assert told(acme, proposal, bob) == {"one": "line"}
    made.event(session, summary="How often are payments tried?")
    assert told(acme, proposal, bob) == {"one": "prompt"}


def test_a_deletion_says_who_is_told_the_note_now(acme: Any, alice: Any, bob: Any, logged_in: Any) -> None:
    made.session(acme, member=alice)
    made.note(acme, alice)
    with tenant_scope(str(acme.pk)):
        Note.objects.update(project=None, path="general/retries.md", path_key="general/retries.md")
    gone = made.proposal(acme, path="general/retries.md", text="", operation="delete")
    assert told(acme, gone, bob) == {"one": "whole"}
    page = logged_in(bob).get(url(gone)).content.decode()
    assert "Sessions that are told this note" in page and "1 of 1" in page


def test_the_page_asks_for_it_and_a_decided_one_has_none(acme: Any, bob: Any, logged_in: Any) -> None:
    proposal = made.proposal(acme)
    page = logged_in(bob).get(f"/t/acme/proposals/{proposal.public_id}/").content.decode()
    assert f'hx-get="{url(proposal)}"' in page
    piece = logged_in(bob).get(url(proposal), headers={"HX-Request": "true"}).content.decode()
    assert "No session is in reach" in piece and "<html" not in piece
    made.approved(proposal, bob)
    assert logged_in(bob).get(url(proposal)).status_code == 204


def test_a_private_note_is_told_to_its_own_sessions_only(acme: Any, alice: Any, mia: Any, logged_in: Any) -> None:
    made.session(acme, "hers", member=mia)
    made.session(acme, "other", member=alice)
    mine = made.proposal(acme, path="general/mine.md", member=mia, by=member_actor(mia))
    assert told(acme, mine, mia) == {"hers": "whole"}
    assert logged_in(alice).get(url(mine)).status_code == 404
