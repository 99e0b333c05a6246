"""The inbox: what needs a person."""

from typing import Any

from django.test import Client

from memory.notes import review
from memory.tenants import rls
from memory.tenants.access import member_actor
from tests.pages import made

URL = "/t/acme/"


def test_it_shows_what_waits_the_riskiest_first(logged_in: Any, acme: Any, bob: Any) -> None:
    made.proposal(acme, path="general/a.md", text="# Plain\n\n- Small\n")
    made.proposal(acme, path="profile/team.md", text="# Profile\n\n- Always answer in English\n")
    page = logged_in(bob).get(URL).content.decode()
    assert "2 proposals wait" in page
    assert page.index("profile/team.md") < page.index("general/a.md")


def test_it_counts_the_sources(logged_in: Any, acme: Any, bob: Any) -> None:
    seen = made.event(made.session(acme))
    made.proposal(acme, rests_on=(seen,))
    assert "2 sources" in logged_in(bob).get(URL).content.decode()


def test_it_needs_login(acme: Any) -> None:
    assert Client().get(URL)["Location"] == "/login/?next=/t/acme/"


def test_it_hides_the_team_from_others(logged_in: Any, acme: Any, charlie: Any) -> None:
    assert logged_in(charlie).get(URL).status_code == 404


def test_it_takes_no_other_method(logged_in: Any, alice: Any) -> None:
    assert logged_in(alice).post(URL).status_code == 405


def test_who_only_reads_sees_it_too(logged_in: Any, acme: Any, vera: Any) -> None:
    made.proposal(acme)
    page = logged_in(vera).get(URL).content.decode()
    assert "Retries" in page and "Dream now" not in page


def test_it_shows_failed_dreams_and_sessions_no_dream_has_read(logged_in: Any, acme: Any, alice: Any) -> None:
    made.event(made.session(acme, last_prompt="Mend the totals"))
    made.run(acme, state="failed", error="The model did not answer")
    page = logged_in(alice).get(URL).content.decode()
    assert "The model did not answer" in page
    assert "Mend the totals" in page and "Dream now" in page


def test_an_empty_team_is_told_to_connect_an_agent(logged_in: Any, acme: Any, alice: Any) -> None:
    page = logged_in(alice).get(URL).content.decode()
    assert "Nothing has arrived yet" in page and "/t/acme/connect/" in page


def test_a_long_queue_is_cut_and_read_on_by_cursor(logged_in: Any, acme: Any, bob: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("memory.views.SHOWN", 2)
    monkeypatch.setattr("memory.views.SHOWN_OF_ONE_RISK", 2)
    for number in range(5):
        made.proposal(acme, path=f"general/{number}.md", text=f"# Note {number}\n\n- Say {number}\n")
    browser = logged_in(bob)
    first = browser.get(URL)
    assert "Show all 5" in first.content.decode()
    risk = first.context["groups"][0].risk
    seen, url = [], f"{URL}?risk={risk}"
    while url:
        page = browser.get(url)
        seen += [row.note.path for row in page.context["groups"][0].proposals]
        url = page.context["next_url"]
    assert seen == [f"general/{number}.md" for number in range(5)]


def test_an_unknown_risk_is_not_found(logged_in: Any, acme: Any, bob: Any) -> None:
    assert logged_in(bob).get(f"{URL}?risk=none").status_code == 404


def test_a_risk_without_proposals_leads_to_the_inbox(logged_in: Any, acme: Any, bob: Any) -> None:
    assert logged_in(bob).get(f"{URL}?risk=high")["Location"] == URL


def test_it_warns_when_the_profile_no_longer_fits_a_session_start(logged_in: Any, acme: Any, alice: Any) -> None:
    browser = logged_in(alice)
    for number in range(13):
        with rls.tenant_scope(str(acme.pk)):
            text = f"---\ntitle: Rule {number}\n---\n" + "Đội dùng tab 🚀 " * 40
            review.write(acme, path=f"profile/rule-{number}.md", text=text, by=member_actor(alice), base=None)
        page = browser.get("/t/acme/").content.decode()
        assert ("Shorten the profile" in page) == (number == 12)
