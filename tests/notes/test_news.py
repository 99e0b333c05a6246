"""News: to whom, when, with which words, and never twice."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memory.notes import discussing, news, review
from memory.notes.models import Notice
from memory.notes.tasks import tell
from memory.tenants import choices, due, outbox, people
from memory.tenants.access import member_actor
from memory.tenants.models import Due, Member
from memory.tenants.rls import tenant_scope
from memory.tenants.tasks import send
from tests import limited
from tests.hook_server import hook_server
from tests.mail_server import Mailbox, mail_server
from tests.pages import made

PAGE = "/t/acme/account/news/"
TASKS = {"news": tell, "outgoing": send}


@pytest.fixture
def box() -> Any:
    with mail_server() as made_box:
        yield made_box


def pick(member: Member, **paces: str) -> None:
    """`review_mail="now"` and so on; whatever is not named is switched off."""
    wanted = {(kind, way): paces.get(f"{kind}_{way}", "never") for kind in news.KINDS for way in news.CHANNELS}
    with tenant_scope(str(member.tenant_id)):
        news.choose(member, wanted, by=member_actor(member))


def work(team: Any, *, later: timedelta = timedelta()) -> None:
    """Let time pass, then do all that is due as a worker does, until nothing is."""
    with tenant_scope(str(team.pk)):
        for row in (*Due.objects.all(), *Notice.objects.all()):
            row.due_at -= later
            row.save()
    while True:
        with tenant_scope(str(team.pk)):
            row = Due.objects.filter(due_at__lte=timezone.now()).order_by("due_at").first()
        if row is None:
            return
        TASKS[row.task](tenant_id=str(team.pk), due_id=str(row.pk))


def states(team: Any) -> list[str]:
    with tenant_scope(str(team.pk)):
        return sorted(Notice.objects.values_list("state", flat=True))


SOON = timedelta(minutes=2)


def test_what_one_dream_proposes_comes_as_one_mail_with_links_only(acme: Any, alice: Any, bob: Any, box: Any) -> None:
    pick(alice)
    pick(bob, review_mail="now")
    rows = [made.proposal(acme, path=f"general/{name}.md", text=f"# T\n\n- Say {name}word\n") for name in "ab"]
    work(acme)
    assert box.mails == []  # it gathers for a minute
    work(acme, later=SOON)
    (mail,) = box.mails
    assert (mail["To"], mail["Subject"]) == ("bob@acme.test", "2 proposals wait for your review")
    said = mail.get_content()
    assert all(f"/t/acme/proposals/{row.public_id}/" in said and row.note.path in said for row in rows)
    assert "aword" not in said and PAGE in said and mail["List-Unsubscribe"].endswith(f"{PAGE}>")
    work(acme, later=SOON)
    assert len(box.mails) == 1 and states(acme) == ["told", "told"]


def test_who_may_decide_is_told_and_not_who_proposes(acme: Any, alice: Any, bob: Any, mia: Any, box: Any) -> None:
    for member in (alice, bob, mia):
        pick(member, review_mail="now")
    made.proposal(acme, by=member_actor(bob))
    work(acme, later=SOON)
    work(acme, later=SOON)
    assert [mail["To"] for mail in box.mails] == ["alice@acme.test"]


def test_what_was_decided_or_hidden_meanwhile_is_no_news(acme: Any, alice: Any, bob: Any, box: Any) -> None:
    pick(alice)
    pick(bob, review_mail="now")
    first, _ = made.proposal(acme), made.proposal(acme, path="general/b.md", text="# B\n\n- Say it\n")
    work(acme)
    made.approved(first, bob)
    with tenant_scope(str(acme.pk)):
        people.change_role(bob, "viewer", by=member_actor(alice))
    work(acme, later=SOON)
    assert box.mails == [] and states(acme) == ["dropped", "dropped"]


def test_a_removed_member_gets_nothing(acme: Any, alice: Any, bob: Any, box: Any) -> None:
    pick(alice)
    pick(bob, review_mail="now")
    made.proposal(acme)
    work(acme)
    with tenant_scope(str(acme.pk)):
        people.remove_member(bob, by=member_actor(alice))
    work(acme, later=SOON)
    assert box.mails == []


def test_a_new_text_of_the_same_dream_is_no_news_for_a_day(acme: Any, alice: Any, bob: Any, box: Any) -> None:
    pick(alice)
    pick(bob, review_mail="now")
    for number in ("three", "four", "five"):
        last = made.proposal(acme, text=made.TEXT.replace("three", number))
        work(acme, later=SOON)
        work(acme, later=SOON)
    assert len(box.mails) == 1
    made.approved(last, bob)
    made.proposal(acme, text=made.TEXT.replace("three", "six"))
    work(acme, later=SOON)
    work(acme, later=SOON)
    assert len(box.mails) == 2  # somebody decided: what comes now is new


def test_a_digest_waits_for_its_hour(acme: Any, alice: Any, bob: Any, box: Any) -> None:
    pick(alice, review_mail="hourly")
    pick(bob, review_mail="daily")
    made.proposal(acme)
    work(acme)
    assert box.mails == []
    work(acme, later=timedelta(hours=1))
    assert [mail["To"] for mail in box.mails] == ["alice@acme.test"]
    work(acme, later=timedelta(hours=23))
    assert [mail["To"] for mail in box.mails] == ["alice@acme.test", "bob@acme.test"]


@pytest.mark.parametrize(
    ("pace", "now", "expected"),
    [
        ("hourly", "09:59:59", "2026-03-01 10:00"),
        ("hourly", "10:00:00", "2026-03-01 11:00"),
        ("daily", "06:59:59", "2026-03-01 07:00"),
        ("daily", "07:00:00", "2026-03-02 07:00"),
        ("now", "10:00:00", "2026-03-01 10:01"),
    ],
)
def test_when_news_is_told(pace: str, now: str, expected: str) -> None:
    at = news.due_at(pace, datetime.fromisoformat(f"2026-03-01T{now}+00:00"), 7)
    assert at == datetime.strptime(expected, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)


def test_another_choice_holds_for_what_waits(acme: Any, alice: Any, bob: Any, box: Any) -> None:
    pick(alice, review_mail="daily")
    pick(bob, review_mail="daily")
    made.proposal(acme)
    work(acme)
    pick(alice)
    pick(bob, review_mail="now")
    work(acme, later=SOON)
    assert [mail["To"] for mail in box.mails] == ["bob@acme.test"]
    assert states(acme) == ["dropped", "told"]


def test_who_is_given_a_proposal_is_told_once_each_time(acme: Any, alice: Any, bob: Any, mia: Any, box: Any) -> None:
    for member in (alice, bob, mia):
        pick(member, assigned_mail="now")
    proposal = made.proposal(acme)

    def give(handle: str) -> None:
        with tenant_scope(str(acme.pk)):
            proposal.refresh_from_db()
            discussing.assign(proposal, handle, by=member_actor(bob))
        work(acme)
        work(acme, later=SOON)

    give("mia")
    give("bob")  # to oneself: no news
    give("mia")
    assert [mail["Subject"] for mail in box.to("mia@acme.test")] == [f"Given to you: {made.PATH}"] * 2
    assert len(box.mails) == 2 and "bob gave you this" in box.texts[0]


def test_a_comment_reaches_whom_it_concerns(acme: Any, alice: Any, bob: Any, mia: Any, vera: Any, box: Any) -> None:
    for member in (alice, bob, mia, vera):
        pick(member, comment_mail="now")
    proposal = made.proposal(acme, by=member_actor(mia))

    def said(by: Member, text: str) -> set[str]:
        before = len(box.mails)
        made.comment(proposal, by, text)
        work(acme)
        work(acme, later=SOON)
        return {str(mail["To"]).split("@")[0] for mail in box.mails[before:]}

    assert said(bob, "Is it so?") == {"mia"}
    assert said(mia, "Ask @Alice and a@vera or @nobody") == {"bob", "alice"}
    assert "“Is it so?”" in box.texts[0] and box.mails[0]["Subject"] == f"bob about {made.PATH}"


def test_a_comment_taken_back_is_no_news(acme: Any, bob: Any, mia: Any, box: Any) -> None:
    pick(mia, comment_mail="now")
    said = made.comment(made.proposal(acme, by=member_actor(mia)), bob)
    work(acme)
    with tenant_scope(str(acme.pk)):
        discussing.remove(said, by=member_actor(bob))
    work(acme, later=SOON)
    assert box.mails == []


def test_slack_names_all_whom_one_piece_is_for_and_nothing_private(acme: Any, alice: Any, bob: Any, mia: Any) -> None:
    with hook_server() as receiver:
        with tenant_scope(str(acme.pk)):
            choices.choose(acme, "slack_url", receiver.address, by=member_actor(alice))
        pick(alice, review_slack="now")
        pick(bob, review_slack="now")
        pick(mia, review_slack="now", comment_slack="now")
        made.proposal(acme, path="general/a-b.md", text="# T\n\n- Say secretword\n")
        made.proposal(acme, path="general/own.md", member=mia, by=made.dreamer(acme), text="# T\n\n- Say mine\n")
        work(acme)
        work(acme, later=SOON)
        (body,) = receiver.bodies
    said = body.decode()
    assert "@alice, @bob: A dream proposes a new text" in said and "|general/a-b.md>" in said
    assert "secretword" not in said and "own.md" not in said and "@mia" not in said


def test_without_a_way_out_nothing_is_kept_for_later(acme: Any, bob: Any, settings: Any) -> None:
    settings.EMAIL_HOST = ""
    pick(bob, review_mail="now")
    made.proposal(acme)
    with tenant_scope(str(acme.pk)):
        assert not Due.objects.exists() and not Notice.objects.exists()


class Killed(BaseException):
    """The worker ends here."""


@pytest.mark.parametrize("moment", ["spread", "gathered", "put", "sent"])
def test_a_worker_that_dies_anywhere_tells_nothing_twice(
    acme: Any, alice: Any, bob: Any, box: Mailbox, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    pick(alice)
    pick(bob, review_mail="now")

    def dying(whole: Any) -> Any:
        def run(*args: Any, **more: Any) -> Any:
            whole(*args, **more)
            raise Killed

        return run

    where = {
        "spread": (news, "_put"),
        "gathered": (news, "_still_news"),
        "put": (outbox, "mail"),
        "sent": (outbox, "_sent"),
    }
    with monkeypatch.context() as patched:
        module, name = where[moment]
        patched.setattr(module, name, dying(getattr(module, name)))
        made.proposal(acme)
        for _ in range(3):
            try:
                work(acme, later=SOON)
            except Killed:
                break
        else:
            pytest.fail("nobody died")
    with tenant_scope(str(acme.pk)):
        Due.objects.update(owner="", leased_until=None)
    for _ in range(3):
        work(acme, later=SOON)
    assert len(box.mails) == 1 and states(acme) == ["told"]


def test_of_two_workers_one_tells(acme: Any, alice: Any, bob: Any, box: Mailbox) -> None:
    pick(alice)
    pick(bob, review_mail="now")
    made.proposal(acme)
    work(acme)
    with tenant_scope(str(acme.pk)):
        Due.objects.update(due_at=timezone.now())
        Notice.objects.update(due_at=timezone.now())
        pk = str(Due.objects.get().pk)
    slow = due.claim(str(acme.pk), pk)
    assert slow is not None
    with tenant_scope(str(acme.pk)):
        Due.objects.update(owner="", leased_until=None)
    work(acme)
    with pytest.raises(due.LeaseLost):
        news.perform(slow)
    assert len(box.mails) == 1


def test_the_page_keeps_choices_and_says_what_is_missing(
    acme: Any, alice: Any, vera: Any, mia: Any, logged_in: Any, settings: Any
) -> None:
    settings.EMAIL_HOST = ""
    browser = logged_in(vera)
    page = browser.get(PAGE).content.decode()
    assert "TEAM_MEMORY_SMTP_URL" in page and "an admin of the team pastes" in page and "7:00 UTC" in page
    assert "#slack_url" in logged_in(alice).get(PAGE).content.decode()
    assert browser.post(PAGE, {"comment-mail": "hourly"}).status_code == 302
    with tenant_scope(str(acme.pk)):
        assert [(row.kind, row.mail, row.slack) for row in news.chosen(vera)] == [
            ("review", "daily", "never"), ("assigned", "now", "never"), ("comment", "hourly", "never"),
        ]  # fmt: skip
        assert news.chosen(mia)[2].mail == "now"
    assert browser.post(PAGE, {"comment-mail": "sometimes"}).status_code == 422
    assert Client().get(PAGE).status_code == 302
    assert PAGE in browser.get("/account/").content.decode()


def test_what_a_rule_lets_in_asks_nobody(acme: Any, alice: Any, bob: Any, box: Mailbox) -> None:
    pick(bob, review_mail="now")
    made.rule(acme, alice, "general/**", mode="auto")
    with tenant_scope(str(acme.pk)):
        let_in = review.propose(acme, review.Draft("general/a.md", "# A\n\n- Words\n"), by=member_actor(alice))
        assert let_in is not None and let_in.state == "approved"
    work(acme, later=SOON)
    work(acme, later=SOON)
    assert box.mails == []


def test_old_notices_go(acme: Any, bob: Any, box: Mailbox) -> None:
    pick(bob, review_mail="daily")
    made.proposal(acme)
    work(acme)
    with tenant_scope(str(acme.pk)):
        Notice.objects.update(created_at=timezone.now() - timedelta(days=31))
        assert news.forget(acme) == 0  # it still waits
        Notice.objects.update(state="told")
        assert news.forget(acme) >= 1


def test_news_of_a_limited_project_reaches_only_who_sees_it(
    acme: Any, alice: Any, bob: Any, mia: Any, box: Any
) -> None:
    project = limited.project_at(acme, "secret")
    for one in (alice, bob):
        pick(one, review_mail="now", review_slack="now")
    pick(mia)
    with hook_server() as receiver:
        with tenant_scope(str(acme.pk)):
            choices.choose(acme, "slack_url", receiver.address, by=member_actor(alice))
        made.proposal(acme, path="project/secret/a.md", text="# T\n\n- Say aword\n")
        work(acme)
        # Limited while the news waits: what was for Bob is dropped, and the team's channel hears nothing.
        limited.limit(project, mia)
        work(acme, later=SOON)
        assert [mail["To"] for mail in box.mails] == ["alice@acme.test"]
        made.proposal(acme, path="project/secret/b.md", text="# T\n\n- Say bword\n")
        work(acme)
        work(acme, later=SOON)
        assert {mail["To"] for mail in box.mails} == {"alice@acme.test"} and len(box.mails) == 2
        assert receiver.bodies == []
