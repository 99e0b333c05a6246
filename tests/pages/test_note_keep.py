"""Lock, pin, end, move and the lines of a note, on its page."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from memory.notes.models import Note
from memory.tenants import rls
from memory.tenants.models import AuditEntry
from tests.mcp.asked import Mcp
from tests.pages import made

OTHER = "general/other.md"


@pytest.fixture
def note(acme: Any, alice: Any) -> Any:
    return made.note(acme, alice)


def url(of: Any, page: str = "") -> str:
    return f"/t/acme/notes/{of.public_id}/{page}"


def fresh(of: Any) -> Any:
    with rls.tenant_scope(str(of.tenant_id)):
        return Note.objects.get(pk=of.pk)


def test_a_locked_note_offers_no_edit_and_says_why(logged_in: Any, bob: Any, mia: Any, note: Any) -> None:
    browser = logged_in(bob)
    assert f"{url(note)}edit/" in browser.get(url(note)).content.decode()
    assert browser.post(url(note, "keep/"), {"lock": "1"}).status_code == 302
    page = browser.get(url(note)).content.decode()
    assert "This note is locked" in page and f"{url(note)}edit/" not in page
    refused = browser.post(url(note, "edit/"), {"text": "- new\n", "revision": "1"})
    assert refused.status_code == 403 and "This is locked" in refused.content.decode()
    assert logged_in(mia).post(url(note, "keep/"), {}).status_code == 403
    browser.post(url(note, "keep/"), {})
    assert browser.post(url(note, "edit/"), {"text": "- new\n", "revision": "1"}).status_code == 302


def test_a_rule_locks_a_path_and_is_named(logged_in: Any, acme: Any, alice: Any, bob: Any, note: Any) -> None:
    made.rule(acme, alice, "project/payments/**", mode="locked")
    page = logged_in(bob).get(url(note)).content.decode()
    assert "<code>project/payments/**</code> locks this path" in page and f"{url(note)}edit/" not in page


def test_an_end_stays_until_it_is_taken_away_and_then_agents_are_told_no_more(
    logged_in: Any, bob: Any, note: Any, agent: Any, api: Any
) -> None:
    browser = logged_in(bob)
    day = (timezone.now() + timedelta(days=9)).date()
    browser.post(url(note, "keep/"), {"pin": "1", "until": day.isoformat()})
    page = browser.get(url(note)).content.decode()
    assert f'value="{day.isoformat()}"' in page and "told before its neighbours" in page
    # A form that changes something else sends the end along.
    browser.post(url(note, "keep/"), {"until": day.isoformat()})
    assert fresh(note).expires_at == datetime(day.year, day.month, day.day, 23, 59, 59, 999999, UTC)
    assert not fresh(note).is_pinned and api(agent).get(f"notes/{note.public_id}").status_code == 200
    browser.post(url(note, "keep/"), {"until": "2020-01-31"})
    assert "Its time is over since 31 Jan 2020" in browser.get(url(note)).content.decode()
    assert "Over" in browser.get("/t/acme/notes/").content.decode()
    assert api(agent).get(f"notes/{note.public_id}").status_code == 404
    browser.post(url(note, "keep/"), {})
    assert fresh(note).expires_at is None
    with rls.tenant_scope(str(note.tenant_id)):
        said = list(AuditEntry.objects.filter(action="note.keep").order_by("seq").values_list("after", flat=True))
    assert said == [f"pinned until {day}", f"until {day}", "until 2020-01-31", ""]


@pytest.mark.parametrize("said", ["tomorrow", "2027-13-01", "\0", "9" * 400])
def test_an_end_that_is_no_date_changes_nothing(logged_in: Any, bob: Any, note: Any, said: str) -> None:
    page = logged_in(bob).post(url(note, "keep/"), {"pin": "1", "until": said}, follow=True).content.decode()
    assert "Say the last day as a date" in page and not fresh(note).is_pinned


def test_a_moved_note_is_found_at_its_old_path(
    logged_in: Any, acme: Any, alice: Any, bob: Any, note: Any, agent: Any
) -> None:
    links = "See [here](../project/payments/retries.md), [beside](limits.md#top) and [nothing](none.md).\n"
    other = made.note(acme, alice, path=OTHER, text=links)
    made.note(acme, alice, path="general/limits.md", text="# Limits\n")
    browser = logged_in(bob)
    before = browser.get(url(other)).content.decode()
    assert f'href="{url(note)}"' in before and "none.md" not in before and '/#top"' in before
    moved = browser.post(url(note, "move/"), {"path": "project/payments/again.md"}, follow=True).content.decode()
    assert "Moved. The old path leads here." in moved and "project/payments/again.md" in moved
    assert f'href="{url(note)}"' in browser.get(url(other)).content.decode(), "a link to the old path leads on"
    assert Mcp(agent).call("read_note", id=f"team/{made.PATH}")["id"] == note.public_id
    for wrong, said in ((OTHER, "There is a note at"), ("../x.md", "No segment may start with a dot")):
        assert said in browser.post(url(note, "move/"), {"path": wrong}, follow=True).content.decode()
    assert fresh(note).path == "project/payments/again.md"


def test_links_lead_to_no_note_of_another_member(logged_in: Any, acme: Any, alice: Any, mia: Any) -> None:
    hers = made.note(acme, mia, path="general/hers.md", text="# Hers\n", is_private=True)
    other = made.note(acme, alice, path=OTHER, text="See [x](hers.md).\n")
    mine = made.note(acme, mia, path="general/mine.md", text="See [x](hers.md).\n", is_private=True)
    assert hers.public_id not in logged_in(alice).get(url(other)).content.decode()
    assert f'href="{url(hers)}"' in logged_in(mia).get(url(mine)).content.decode()


def test_lines_say_which_revision_they_came_with_and_what_they_rest_on(
    logged_in: Any, acme: Any, alice: Any, bob: Any, note: Any
) -> None:
    seen = made.event(made.session(acme), summary="Retry thrice, please")
    more = made.TEXT + "- Log each try\n"
    made.approved(made.proposal(acme, text=more, rests_on=(seen,)), bob)
    page = logged_in(bob).get(url(note, "lines/")).content.decode()
    rows = page.split("<tr>")
    last = next(row for row in rows if "Log each try" in row)
    assert "revision=2" in last and f"/t/acme/events/{seen.public_id}/" in last and "Bob" in last
    first = next(row for row in rows if "# Retries" in row)
    assert "events/" not in first
