"""One session: its timeline, what it was told and why, what was learnt, which calls repeat."""

from typing import Any

import pytest
from django.test import Client

from memory.recall.models import Telling
from memory.tenants import rls
from tests.pages import made


@pytest.fixture
def session(acme: Any, alice: Any) -> Any:
    return made.session(acme, last_prompt="Mend the totals", member=alice, cwd="/src/shop")


def url(of: Any, team: str = "acme") -> str:
    return f"/t/{team}/sessions/{of.public_id}/"


def test_it_shows_what_happened_in_order(logged_in: Any, vera: Any, session: Any) -> None:
    made.event(session, 2, name="PostToolUse", kind="tool_after", tool="Bash", summary="make test")
    made.event(session, 1, summary="Mend the totals", redactions=2)
    page = logged_in(vera).get(url(session)).content.decode()
    assert page.index("Prompt</b>") < page.index("make test")
    assert "2 secrets removed" in page and "/src/shop" in page


def test_it_shows_each_telling_and_why(logged_in: Any, acme: Any, alice: Any, vera: Any, session: Any) -> None:
    note = made.note(acme, alice)
    made.telling(made.event(session, name="SessionStart", kind="start"), note, why="Project payments")
    page = logged_in(vera).get(url(session)).content.decode()
    assert "At the start" in page and "note of the session&#x27;s project, payments" in page and "Told 1 note" in page
    assert f"/t/acme/notes/{note.public_id}/?revision=1" in page


def test_it_says_when_nothing_was_told(logged_in: Any, vera: Any, session: Any) -> None:
    assert "no approved note fitted this session" in logged_in(vera).get(url(session)).content.decode()


def test_it_shows_what_was_learnt_from_it(logged_in: Any, acme: Any, vera: Any, session: Any) -> None:
    learnt = made.proposal(acme, rests_on=(made.event(session),))
    page = logged_in(vera).get(url(session)).content.decode()
    assert "What was learnt from it" in page and learnt.public_id in page


def test_a_call_whose_result_never_came_says_so(logged_in: Any, acme: Any, vera: Any, session: Any) -> None:
    """It may have been denied. While the agent works, or where results carry no ids, nobody can tell."""
    call = {"name": "PreToolUse", "kind": "tool_before", "tool": "Bash"}
    made.event(session, 1, **call, tool_use_id="denied")
    made.event(session, 2, **call, tool_use_id="done")
    made.event(session, 3, name="PostToolUse", kind="tool_after", tool="Bash", tool_use_id="done")
    made.event(session, 5, **call, tool_use_id="running")

    def lost() -> list[int]:
        page = logged_in(vera).get(url(session))
        found = [event.seq for event in page.context["events"] if event.is_lost]
        assert page.content.decode().count(">no outcome<") == len(found)
        return found

    assert lost() == []
    made.event(session, 4, name="Stop", kind="stop")
    made.changed(session, last_stop_seq=4)
    assert lost() == [1]
    made.changed(session, state="ended")
    assert lost() == [1, 5]
    made.event(session, 6, name="PostToolUse", kind="tool_after", tool="Bash")
    assert lost() == []


def test_it_counts_calls_that_repeat(logged_in: Any, vera: Any, session: Any) -> None:
    for seq in (1, 2, 3):
        made.event(session, seq, name="PreToolUse", kind="tool_before", tool="Read", summary="app.py")
    [call] = logged_in(vera).get(url(session)).context["repeated"]
    assert (call["tool"], call["line"], call["count"]) == ("Read", "app.py", 3)


def test_a_long_session_is_read_on_by_cursor(logged_in: Any, vera: Any, session: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("dream.views.EVENTS", 2)
    for seq in range(1, 6):
        made.event(session, seq)
    browser = logged_in(vera)
    answer = browser.get(url(session))
    seen = [event.seq for event in answer.context["events"]]
    while answer.context["next_url"]:
        answer = browser.get(answer.context["next_url"], headers={"HX-Request": "true", "HX-Target": "more"})
        assert answer.content.strip().startswith(b"<li")
        seen += [event.seq for event in answer.context["events"]]
    assert seen == [1, 2, 3, 4, 5]


def test_a_cursor_of_another_session_is_refused(
    logged_in: Any, acme: Any, vera: Any, session: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("dream.views.EVENTS", 1)
    other = made.session(acme, "two")
    for seq in (1, 2):
        made.event(other, seq)
    browser = logged_in(vera)
    cursor = browser.get(url(other)).context["next_url"].split("?")[1]
    assert browser.get(f"{url(session)}?{cursor}").status_code == 400


def test_it_needs_login(session: Any) -> None:
    assert Client().get(url(session)).status_code == 302


def test_it_hides_the_session_from_other_tenants(logged_in: Any, charlie: Any, session: Any) -> None:
    for team in ("acme", "globex"):
        assert logged_in(charlie).get(url(session, team)).status_code == 404


def test_an_unknown_session_is_not_found(logged_in: Any, vera: Any, acme: Any) -> None:
    assert logged_in(vera).get("/t/acme/sessions/ses_none/").status_code == 404


def test_it_takes_no_other_method(logged_in: Any, alice: Any, session: Any) -> None:
    assert logged_in(alice).post(url(session)).status_code == 405


def test_it_shows_the_exact_text_told(logged_in: Any, acme: Any, alice: Any, vera: Any, session: Any) -> None:
    event = made.event(session, name="SessionStart", kind="start")
    told = made.telling(event, made.note(acme, alice), why="Matches: retry")
    say(told, "<b>You were told</b>")
    browser = logged_in(vera)
    for page in (url(session), f"/t/acme/events/{event.public_id}/"):
        shown = browser.get(page).content.decode()
        assert "&lt;b&gt;You were told&lt;/b&gt;" in shown and "the prompt and the note share: retry" in shown


def test_it_keeps_a_member_s_own_words_from_others(
    logged_in: Any, acme: Any, mia: Any, vera: Any, session: Any
) -> None:
    own = made.note(acme, mia, path="general/mine.md", is_private=True)
    event = made.event(session, name="SessionStart", kind="start")
    say(made.telling(event, own, member=mia), "members/mia/general/mine.md says a secret")
    for page in (url(session), f"/t/acme/events/{event.public_id}/"):
        assert "says a secret" not in logged_in(vera).get(page).content.decode()
        assert "says a secret" in logged_in(mia).get(page).content.decode()


def say(telling: Any, text: str) -> None:
    with rls.tenant_scope(str(telling.tenant_id)):
        Telling.objects.filter(pk=telling.pk).update(text=text)


def test_a_call_s_two_events_are_marked_and_have_a_time(logged_in: Any, vera: Any, session: Any) -> None:
    made.event(session, 1, name="PreToolUse", kind="tool_before", tool="Read", summary="app.py")
    made.event(session, 2, name="PostToolUse", kind="tool_after", tool="Read", summary="app.py")
    page = logged_in(vera).get(url(session)).content.decode()
    assert page.index(">started<") < page.index(">finished<")
    assert "received <time" in page and "no time" not in page


def test_a_title_holds_no_terminal_colours(logged_in: Any, acme: Any, vera: Any) -> None:
    coloured = made.session(acme, "two", last_prompt="\x1b[31mMend\x1b[0m\x07 the totals")
    assert "<title>Mend the totals" in logged_in(vera).get(url(coloured)).content.decode()
